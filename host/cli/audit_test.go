package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// TestTheAuditNamesTheClientBehindATrustedProxy changes something through the API
// with the headers of a proxy, at a writer that trusts it and at one that does not.
func TestTheAuditNamesTheClientBehindATrustedProxy(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"trusted": {[]string{"--trusted-proxy", "127.0.0.0/8"}, "203.0.113.9"},
		"unknown": {nil, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			centre := startCentre(t, c.flags...)
			through := func(path, body string) *http.Response {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, centre.url()+path, strings.NewReader(body))
				require.NoError(t, err)
				request.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.9")
				request.Header.Set("Authorization", "Bearer "+operatorToken)
				request.Header.Set("Content-Type", "application/json")
				response, err := http.DefaultClient.Do(request)
				require.NoError(t, err)
				response.Body.Close()
				return response
			}
			require.Equal(t, http.StatusOK, through("/v1/accounts", `{"name":"Acme","plan":"growth"}`).StatusCode)
			ledger, err := schema.OpenFile(centre.path("ledger.db"))
			require.NoError(t, err)
			defer ledger.Close()
			var address string
			require.NoError(t, ledger.QueryRow(`SELECT address FROM audit WHERE act = 'POST /v1/accounts'`).Scan(&address))
			require.Equal(t, c.want, address)
		})
	}
}
