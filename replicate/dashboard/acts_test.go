package dashboard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestActsAreToldInWords(t *testing.T) {
	for act, words := range map[string]string{
		"sign in":                       "sign in",
		"POST /v1/accounts":             "add account",
		"POST /v1/accounts/2/keys":      "make key",
		"DELETE /v1/keys/5":             "revoke key 5",
		"POST /v1/nodes/edge-1/retire":  "retire node edge-1",
		"PUT /v1/plans/scale":           "set plan scale",
		"POST /v1/something/else/again": "POST /v1/something/else/again",
		"[":                             "[",
	} {
		require.Equal(t, words, activity{Act: act}.Words())
	}
}

func TestParticularsAreWhatWasSaid(t *testing.T) {
	for detail, want := range map[string]string{
		`{"name":"old"}`: "name: old",
		`{"amount":250000,"kind":"","note":"first"}`:             "amount: 250000, note: first",
		`{"account":2,"email":"a@example.com","operator":false}`: "account: 2, email: a@example.com",
		`{"suspended":true}`:                                     "suspended: true",
		`{"list":["a"]}`:                                         "list: [a]",
		`a browser {`:                                            "a browser {",
		``:                                                       "",
	} {
		require.Equal(t, want, activity{Detail: detail}.Particulars())
	}
}
