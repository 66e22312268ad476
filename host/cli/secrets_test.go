package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// TestAnInvitationsTokenReachesNoLog opens an invitation at the writer, where its page works and then
// fails, and at an edge, where a mistaken link may lead, in every form that a server can be sent.
func TestAnInvitationsTokenReachesNoLog(t *testing.T) {
	c := startCentre(t)
	account, _ := c.account(t, 10)
	invitation, err := c.client.Invite(t.Context(), "ada@example.com", account)
	require.NoError(t, err)
	edge := c.edge(t, "one", "--metrics", "127.0.0.1:0")
	path := writer.InvitationPath + invitation.Token
	require.Contains(t, exchange(t, c.addr("writer"), "GET", path), "200 OK")

	ledger, err := schema.OpenFile(c.path("ledger.db"))
	require.NoError(t, err)
	defer ledger.Close()
	_, err = ledger.ExecContext(t.Context(), `ALTER TABLE invitation RENAME TO mislaid`)
	require.NoError(t, err)
	require.Contains(t, exchange(t, c.addr("writer"), "GET", path), "500 ")
	for _, addr := range []string{c.addr("writer"), edge.addr("lookups")} {
		for _, form := range []string{path, path + "/", path + "?token=" + invitation.Token, path + "%ZZ", path + "%", "/v1" + path, "/v1/companies" + path, "http://other.example" + path, path + " x"} {
			for _, method := range []string{"GET", "POST", "BREW", invitation.Token} {
				exchange(t, addr, method, form)
			}
		}
	}
	seen := metricsOf(t, "http://"+c.addr("writer")+"/metrics") + metricsOf(t, "http://"+edge.addr("metrics")+"/metrics")
	edge.halt()
	c.halt()
	seen += edge.stderr.String() + edge.stdout.String() + c.stderr.String() + c.stdout.String()
	require.Contains(t, c.stderr.String(), `"route":"/invitations/:token"`, "the failure is logged")
	require.NotContains(t, seen, invitation.Token)
	var audited int
	const query = `SELECT count(*) FROM audit WHERE instr(act || detail || actor, ?)`
	require.NoError(t, ledger.QueryRowContext(t.Context(), query, invitation.Token).Scan(&audited))
	require.Zero(t, audited)
}

// exchange sends a request as it is, and returns the answer.
func exchange(t *testing.T, addr, method, target string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", method, target)
	answer, _ := io.ReadAll(conn) // a reset after a refusal is no matter
	return string(answer)
}

// metricsOf reads metrics, with the operator's token.
func metricsOf(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+operatorToken)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var body strings.Builder
	_, err = io.Copy(&body, response.Body)
	require.NoError(t, err)
	return body.String()
}

// TestASecretMayBeAsLargeAsItsBound, and not larger.
func TestASecretMayBeAsLargeAsItsBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, make([]byte, maxSecret), 0o600))
	content, err := readSecret(path)
	require.NoError(t, err)
	require.Len(t, content, maxSecret)
	require.NoError(t, os.WriteFile(path, make([]byte, maxSecret+1), 0o600))
	_, err = readSecret(path)
	require.ErrorContains(t, err, "holds more than a secret")
}
