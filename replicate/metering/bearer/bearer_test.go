package bearer_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/bearer"
)

func TestOnlyTheWholeTokenIsAccepted(t *testing.T) {
	for _, c := range []struct {
		token, header string
		want          bool
	}{
		{"secret", "Bearer secret", true},
		{"secret", "Bearer secre", false},
		{"secret", "Bearer secret2", false},
		{"secret", "secret", false},
		{"secret", "Basic secret", false},
		{"secret", "", false},
		{"", "Bearer ", false},
		{"", "", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", c.header)
		require.Equal(t, c.want, bearer.New(c.token).In(r), "token %q, header %q", c.token, c.header)
	}
}
