package writer

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoAnswerIsAnotherWhenATableCannotBeRead: each is an error, or as before. A list without what could not be read
// would look whole.
func TestNoAnswerIsAnotherWhenATableCannotBeRead(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, key := keyFor(t, client)
	_, err := client.ChangeCredits(t.Context(), account, CreditChange{Amount: 5})
	require.NoError(t, err)
	_, err = client.Invite(t.Context(), "ada@example.com", account)
	require.NoError(t, err)
	_, err = client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	_, err = client.AddOwnerToken(t.Context(), account, "reader", RoleRead, MaxOwnerTokenLife)
	require.NoError(t, err)
	paths := map[string]string{
		"/v1/accounts/:id": decimal(account), "/v1/accounts/:id/keys": decimal(account), "/v1/accounts/:id/credits": decimal(account),
		"/v1/accounts/:id/usage": decimal(account), "/v1/accounts/:id/tokens": decimal(account), "/v1/keys/:id": decimal(key.ID),
	}
	ask := func(path string) (status int, body string) {
		r, answer := httptest.NewRequest("GET", strings.Replace(path, ":id", paths[path], 1), nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+firstOperator)
		w.Handler().ServeHTTP(answer, r)
		return answer.Code, answer.Body.String()
	}
	routes := map[string]string{} // with their answers
	for name, role := range wantedRoles {
		if path, found := strings.CutPrefix(name, "GET /v1/"); found && (role == RoleRead || role == RoleAll) && path != "health" {
			code, body := ask("/v1/" + path)
			require.Equal(t, 200, code, path)
			routes["/v1/"+path] = body
		}
	}
	rows, err := w.config.Ledger.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`)
	require.NoError(t, err)
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, rows.Err())
	failed := 0
	for _, table := range tables {
		_, err := w.config.Ledger.Exec(`PRAGMA legacy_alter_table = on; ALTER TABLE "` + table + `" RENAME TO mislaid`)
		require.NoError(t, err)
		for path, before := range routes {
			code, body := ask(path)
			if code >= 500 {
				failed++
				continue
			}
			require.Equal(t, before, body, "%s without the table %s", path, table)
		}
		_, err = w.config.Ledger.Exec(`ALTER TABLE mislaid RENAME TO "` + table + `"; PRAGMA legacy_alter_table = off`)
		require.NoError(t, err)
	}
	require.Greater(t, failed, 20)
}

// TestEveryChangeRefusesAFieldThatThereIsNot: it may be a misspelt limit. Nodes' messages may be of a newer version,
// but not malformed.
func TestEveryChangeRefusesAFieldThatThereIsNot(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, key := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	ask := func(name, token, body string) (status int) {
		method, path, _ := strings.Cut(name, " ")
		id := decimal(account)
		if strings.Contains(path, "/keys/:id") {
			id = decimal(key.ID)
		}
		path = strings.NewReplacer(":id", id, ":name", "one").Replace(path)
		r, answer := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w.Handler().ServeHTTP(answer, r)
		return answer.Code
	}
	const all = `{"name": "two", "email": "ada@example.com", "plan": "starter", "amount": 1, "account": 1, "role": "read", "life_seconds": 60, "nonsense": 1}`
	withoutBody := []string{"POST /v1/unresolved/:name/credit", "POST /v1/nodes/:name/token"}
	for name, role := range wantedRoles {
		switch method, _, _ := strings.Cut(name, " "); {
		case method == "GET" || method == "DELETE" || role == owners || slices.Contains(withoutBody, name):
		case role == edges:
			require.Equal(t, 400, ask(name, node.Token, `{"half`), name)
		default:
			require.Equal(t, 400, ask(name, firstOperator, all), name)
		}
	}
}
