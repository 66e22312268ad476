package writer_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/failing"
	"regedge/replicate/metering/writer"
)

// startFailing runs a writer on a ledger that fails when it is told to. ask makes one request of it, and
// returns the status and the answer.
func startFailing(t *testing.T) (client *writer.Client, ledger *sql.DB, faults *failing.DB, ask func(method, path, token, body string) (int, string)) {
	t.Helper()
	dir := t.TempDir()
	ledger, faults = failing.Open(t, filepath.Join(dir, "ledger.db"))
	t.Cleanup(func() { ledger.Close() })
	access := writer.OpenAccess(t, dir)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token})
	require.NoError(t, err)
	runUntilEnd(t, w)
	return newClient(w, token), ledger, faults, func(method, path, token, body string) (int, string) {
		r := httptest.NewRequestWithContext(failing.Marked(t.Context()), method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(writer.IdempotencyHeader, writer.NewIdempotencyKey())
		answer := httptest.NewRecorder()
		w.Handler().ServeHTTP(answer, r)
		return answer.Code, answer.Body.String()
	}
}

// TestNothingIsAnsweredWithoutWhatItReads: of a ledger that can't be read, an answer with less than there is
// would be taken for the truth.
func TestNothingIsAnsweredWithoutWhatItReads(t *testing.T) {
	client, _, faults, ask := startFailing(t)
	a, err := client.AddAccount(t.Context(), "made-up", "", "growth")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 10, Kind: writer.Bought})
	require.NoError(t, err)
	_, err = client.AddKey(t.Context(), a.ID, "key")
	require.NoError(t, err)
	_, err = client.AddNode(t.Context(), "edge-1")
	require.NoError(t, err)
	own, err := client.AddOwnerToken(t.Context(), a.ID, "mine", writer.RoleAll, time.Hour)
	require.NoError(t, err)
	_, err = client.AddToken(t.Context(), "reader", writer.RoleRead, time.Hour)
	require.NoError(t, err)
	for who, paths := range map[string][]string{
		token: {"/v1/health", "/v1/accounts", "/v1/accounts?search=made", "/v1/accounts/1", "/v1/accounts/1/keys", "/v1/keys/1", "/v1/accounts/1/credits",
			"/v1/accounts/1/tokens", "/v1/accounts/1/usage", "/v1/accounts/1/usage?format=csv", "/v1/plans", "/v1/nodes", "/v1/requests", "/v1/requests?search=x",
			"/v1/requests?key=1", "/v1/requests?account=1", "/v1/usage?account=1", "/v1/audit", "/v1/audit?account=1", "/v1/unresolved", "/v1/tokens", "/v1/reports"},
		own.Token: {"/v1/account", "/v1/account/keys", "/v1/account/keys/1", "/v1/account/requests", "/v1/account/usage", "/v1/account/usage?format=csv"},
	} {
		for _, path := range paths {
			for number := 1; ; number++ {
				faults.FailRead(number)
				status, said := ask(http.MethodGet, path, who, "")
				failed := faults.Failed()
				if failed == "" {
					require.Equal(t, http.StatusOK, status, "%s: %s", path, said)
					break
				}
				require.GreaterOrEqual(t, status, http.StatusInternalServerError, "%s without %s: %s", path, failed, said)
			}
		}
	}
}

// TestAChangeIsMadeWholeOrNot: a change of which one statement fails is answered so, and has changed nothing.
func TestAChangeIsMadeWholeOrNot(t *testing.T) {
	client, ledger, faults, ask := startFailing(t)
	stays := func() string {
		var all strings.Builder
		for _, table := range []string{"account", "api_key", "audit", "credit_entry", "idempotent_change", "invitation", "node", "operator_token",
			"owner_token", "plan", "pool"} {
			rows, err := ledger.Query(`SELECT * FROM ` + table + ` ORDER BY 1, 2`)
			require.NoError(t, err)
			columns, err := rows.Columns()
			require.NoError(t, err)
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = new(any)
			}
			for rows.Next() {
				require.NoError(t, rows.Scan(cells...))
				for _, cell := range cells {
					fmt.Fprint(&all, *cell.(*any), " ")
				}
				all.WriteString(table + "\n")
			}
			require.NoError(t, rows.Err())
			rows.Close()
		}
		return all.String()
	}
	a, err := client.AddAccount(t.Context(), "made-up", "", "growth")
	require.NoError(t, err)
	own, err := client.AddOwnerToken(t.Context(), a.ID, "mine", writer.RoleAll, time.Hour)
	require.NoError(t, err)
	for _, fail := range []func(int){faults.FailRead, faults.FailChange} {
		turn := fmt.Sprint(count(t, ledger, `SELECT count(*) FROM node`))
		newest := func() string { return fmt.Sprint(count(t, ledger, `SELECT coalesce(max(id), 0) FROM api_key`)) }
		for _, change := range []struct{ who, method, path, body string }{
			{token, "POST", "/v1/accounts", `{"name": "another", "plan": "starter"}`},
			{token, "PATCH", "/v1/accounts/1", `{"name": "renamed ` + turn + `", "plan": "scale", "suspended": true}`},
			{token, "PATCH", "/v1/accounts/1", `{"plan": "growth", "suspended": false}`},
			{token, "POST", "/v1/accounts/1/credits", `{"amount": 7, "kind": "bought"}`},
			{token, "POST", "/v1/accounts/1/credits", `{"amount": -2, "kind": "bought"}`},
			{token, "POST", "/v1/accounts/1/keys", `{"name": "key", "monthly_credits": 5, "per_minute": 2}`},
			{token, "PATCH", "/v1/keys/KEY", `{"name": "named", "monthly_credits": 9, "per_minute": 3, "allowed_addresses": ["192.0.2.0/24"]}`},
			{token, "POST", "/v1/keys/KEY/rotate", `{"overlap_seconds": 60}`},
			{token, "DELETE", "/v1/keys/KEY", ``},
			{own.Token, "POST", "/v1/account/keys", `{"name": "own", "monthly_credits": 5}`},
			{own.Token, "PATCH", "/v1/account/keys/KEY", `{"name": "own again"}`},
			{own.Token, "POST", "/v1/account/keys/KEY/rotate", `{"overlap_seconds": 0}`},
			{own.Token, "DELETE", "/v1/account/keys/KEY", ``},
			{token, "POST", "/v1/accounts/1/tokens", `{"name": "second", "role": "read", "life_seconds": 60}`},
			{token, "DELETE", "/v1/owner-tokens/2", ``},
			{token, "POST", "/v1/invitations", `{"email": "new@example.com", "account": 1}`},
			{token, "POST", "/v1/nodes", `{"name": "edge-` + turn + `"}`},
			{token, "POST", "/v1/nodes/edge-" + turn + "/token", ``},
			{token, "POST", "/v1/nodes/edge-" + turn + "/retire", `{}`},
			{token, "PUT", "/v1/plans/own", `{"monthly_volume": 1` + turn + `, "per_minute": 3, "api_access": true}`},
			{token, "POST", "/v1/tokens", `{"name": "reader-` + turn + `", "role": "read", "life_seconds": 60}`},
			{token, "DELETE", "/v1/tokens/reader-" + turn, ``},
		} {
			path := strings.Replace(change.path, "KEY", newest(), 1)
			for number := 1; ; number++ {
				before := stays()
				fail(number)
				status, said := ask(change.method, path, change.who, change.body)
				failed := faults.Failed()
				if failed == "" {
					require.Equal(t, http.StatusOK, status, "%s %s: %s", change.method, path, said)
					require.NotEqual(t, before, stays(), "%s %s", change.method, path)
					break
				}
				require.GreaterOrEqual(t, status, http.StatusInternalServerError, "%s %s without %s: %s", change.method, path, failed, said)
				require.Equal(t, before, stays(), "%s %s without %s", change.method, path, failed)
			}
		}
	}
}
