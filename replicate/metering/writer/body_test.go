package writer

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsWrongWithABodyIsSaidInItsOwnWords, not in the words of Go's decoder: owners of accounts read it, too.
func TestWhatIsWrongWithABodyIsSaidInItsOwnWords(t *testing.T) {
	w, first, _ := runForRoles(t)
	_, err := first.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/accounts", "", "there is no body, which is a JSON object"},
		{"/v1/accounts", "[]", "the body is a JSON object, not: array"},
		{"/v1/accounts", `{"name": 5}`, "the field name is a string, not: number"},
		{"/v1/accounts", `{"name": "x"`, "the body ends within its JSON object, or is longer than 65536 bytes"},
		{"/v1/accounts", `{"name": "` + strings.Repeat("x", maxBody) + `"}`, "the body ends within its JSON object, or is longer than 65536 bytes"},
		{"/v1/accounts", `{"name": "x", "plans": "starter"}`, `there is no field "plans"`},
		{"/v1/accounts", `{name: "x"}`, "the body is not JSON: invalid character 'n' looking for beginning of object key string"},
		{"/v1/accounts/1/credits", `{"amount": 1.5}`, "the field amount is a whole number, not: number 1.5"},
		{"/v1/accounts/1/credits", `{"amount": -5, "at_most": "yes"}`, "the field at_most is true or false, not: string"},
		{"/v1/accounts/1/credits", `{"amount": 5, "kind": "gift"}`, "kind is bought or compensated"},
		{"/v1/accounts/1/credits", `{"amount": -5, "kind": "compensated"}`, "only credits of the kind bought are taken away"},
		{"/v1/accounts/1/keys", `{"name": "k", "expires": "2026-11-30"}`, `"2026-11-30" is not a time such as 2026-01-31T00:00:00Z`},
		{"/v1/accounts/1/keys", `{"name": "k", "expires": 5}`, "a time is a string such as 2026-01-31T00:00:00Z"},
		{"/v1/accounts/1/keys", `{"name": "k", "allowed_addresses": "10.0.0.1"}`, "the field allowed_addresses is an array, not: string"},
	} {
		answer := answerTo(w, firstOperator, http.MethodPost, c.path, strings.NewReader(c.body))
		require.Equal(t, http.StatusBadRequest, answer.Code, c.body)
		var told problem
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &told))
		require.Equal(t, ErrMalformed.Error()+": "+c.want, told.Detail)
	}
}
