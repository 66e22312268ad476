package writer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// read asks for a path and decodes the answer.
func readAs[T any](t *testing.T, w *Writer, path string) T {
	t.Helper()
	answer := answerTo(w, firstOperator, http.MethodGet, path, nil)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	var into T
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &into))
	return into
}

// names returns the names of the accounts of a page.
func names(p Page[Account]) (list []string) {
	for _, a := range p.Data {
		list = append(list, a.Name)
	}
	return list
}

func TestListsArePagedAndSearched(t *testing.T) {
	w, client, _ := runForRoles(t)
	for i := range 7 {
		a, err := client.AddAccount(t.Context(), fmt.Sprintf("Account %d%%", i), fmt.Sprintf("owner%d@example.com", i), "starter")
		require.NoError(t, err)
		_, err = client.AddNode(t.Context(), fmt.Sprint("edge-", i))
		require.NoError(t, err)
		if i == 0 {
			for range 3 {
				_, err = client.AddKey(t.Context(), a.ID, "server")
				require.NoError(t, err)
			}
		}
	}
	first := readAs[Page[Account]](t, w, "/v1/accounts?limit=3")
	require.Equal(t, []string{"Account 0%", "Account 1%", "Account 2%"}, names(first))
	second := readAs[Page[Account]](t, w, "/v1/accounts?limit=3&cursor="+first.Next)
	require.Equal(t, []string{"Account 3%", "Account 4%", "Account 5%"}, names(second))
	last := readAs[Page[Account]](t, w, "/v1/accounts?limit=3&cursor="+second.Next)
	require.Equal(t, []string{"Account 6%"}, names(last))
	require.Empty(t, last.Next)
	for search, want := range map[string][]string{
		"owner4": {"Account 4%"}, "ACCOUNT+5": {"Account 5%"}, "3%25": {"Account 3%"}, "7": {"Account 6%"}, "_": nil,
	} {
		require.Equal(t, want, names(readAs[Page[Account]](t, w, "/v1/accounts?search="+search)), search)
	}
	keys := readAs[Page[Key]](t, w, "/v1/accounts/1/keys?limit=2")
	require.Len(t, keys.Data, 2)
	require.Len(t, readAs[Page[Key]](t, w, "/v1/accounts/1/keys?cursor="+keys.Next).Data, 1)
	require.Empty(t, readAs[Page[Key]](t, w, "/v1/accounts/1/keys?search=laptop").Data)
	nodes := readAs[Page[Node]](t, w, "/v1/nodes?limit=6")
	require.Equal(t, "edge-5", nodes.Next)
	require.Len(t, readAs[Page[Node]](t, w, "/v1/nodes?cursor=edge-5").Data, 1)
	audit := readAs[Page[AuditEntry]](t, w, "/v1/audit?limit=4&search=/v1/nodes")
	require.Len(t, audit.Data, 4)
	require.Len(t, readAs[Page[AuditEntry]](t, w, "/v1/audit?search=/v1/nodes&cursor="+audit.Next).Data, 3)
	require.Len(t, readAs[Page[AuditEntry]](t, w, "/v1/audit?account=1").Data, 4, "the account and its keys")

	all, err := client.Accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 7)
	some, next, err := AllOf(t.Context(), ListQuery{}, 5, client.AccountPage)
	require.NoError(t, err)
	require.Len(t, some, 5)
	require.Equal(t, "5", next)
}

// TestAListIsSearchedByEachOfItsFields for everything else is left out.
func TestAListIsSearchedByEachOfItsFields(t *testing.T) {
	w, client, _ := runForRoles(t)
	for i := range 3 {
		_, err := client.AddAccount(t.Context(), fmt.Sprintf("Account %d", i), fmt.Sprintf("bills%d@example.com", i), "starter")
		require.NoError(t, err)
		_, err = client.AddNode(t.Context(), fmt.Sprint("edge-", i))
		require.NoError(t, err)
		_, err = w.config.Ledger.Exec(`INSERT INTO user (email, password, account, operator, created_at) VALUES (?, '', ?, 0, 0)`,
			fmt.Sprintf("person%d@example.com", i), i+1)
		require.NoError(t, err)
	}
	for _, search := range []string{"count+1", "+count+1+", "bills1", "person1@"} {
		require.Equal(t, []string{"Account 1"}, names(readAs[Page[Account]](t, w, "/v1/accounts?search="+search)), search)
	}
	nodes := readAs[Page[Node]](t, w, "/v1/nodes?search=ge-1")
	require.Len(t, nodes.Data, 1)
	require.Equal(t, "edge-1", nodes.Data[0].Name)
	_, err := w.config.Ledger.Exec(`INSERT INTO audit (at, actor, address, act, detail) VALUES (0, 'ada@example.com', '', 'sign in', '')`)
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`INSERT INTO audit (at, actor, address, act, detail) VALUES (0, 'DOMAIN\ada', '', 'sign in', '')`)
	require.NoError(t, err)
	for search, want := range map[string]int{"ada@example": 1, "v1/nodes": 3, "Account+1": 1, "nobody": 0, `N%5Cad`: 1, `%5C%25`: 0, "DOMAINada": 0} {
		require.Len(t, readAs[Page[AuditEntry]](t, w, "/v1/audit?search="+search).Data, want, search)
	}
}

// TestASearchTakesWhatIsTyped as it is: in a name, an address or a number, _ and % are characters like others.
func TestASearchTakesWhatIsTyped(t *testing.T) {
	w, client, _ := runForRoles(t)
	parts := []string{"a_b", "axb", "a%b", "d", "e", "f", "g", "h", "i", "j", "k"}
	for i, part := range parts {
		_, err := client.AddAccount(t.Context(), "Account "+part, "bills-"+part+"@example.com", "starter")
		require.NoError(t, err)
		_, err = w.config.Ledger.Exec(`INSERT INTO user (email, password, account, operator, created_at) VALUES (?, '', ?, 0, 0)`,
			"person-"+part+"@example.com", i+1)
		require.NoError(t, err)
	}
	for search, want := range map[string][]string{
		"Account+a_b": {"Account a_b"}, "bills-a_b": {"Account a_b"}, "person-a_b": {"Account a_b"},
		"Account+a%25b": {"Account a%b"}, "bills-a%25b": {"Account a%b"}, "person-a%25b": {"Account a%b"},
		"bills%25example": nil, "bills%5C%25": nil, "1": {"Account a_b"}, "11": {"Account k"},
	} {
		require.Equal(t, want, names(readAs[Page[Account]](t, w, "/v1/accounts?search="+search)), search)
	}
	for _, part := range parts[:3] {
		_, err := client.AddKey(t.Context(), 1, "key "+part)
		require.NoError(t, err)
	}
	for search, want := range map[string]int{"key+a_b": 1, "key+a%25b": 1, "key%25b": 0, "key+axb": 1, "key": 3} {
		require.Len(t, readAs[Page[Key]](t, w, "/v1/accounts/1/keys?search="+search).Data, want, search)
	}
}

// TestAnEntryOfNoAccountIsOfAccountZero in the audit log: what an operator does for all.
func TestAnEntryOfNoAccountIsOfAccountZero(t *testing.T) {
	w, client, _ := runForRoles(t)
	_, err := client.AddAccount(t.Context(), "Acme", "", "starter")
	require.NoError(t, err)
	_, err = client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	of := map[string]int64{}
	for _, entry := range readAs[Page[AuditEntry]](t, w, "/v1/audit").Data {
		of[entry.Act] = entry.Account
	}
	require.Equal(t, map[string]int64{"POST /v1/nodes": 0, "POST /v1/accounts": 1}, of)
}

func TestWhatAListDoesNotTakeIsRefused(t *testing.T) {
	w, client, _ := runForRoles(t)
	_, err := client.AddAccount(t.Context(), "Acme", "", "starter")
	require.NoError(t, err)
	for _, query := range []string{
		"/v1/accounts?page=2", "/v1/accounts?limit=0", "/v1/accounts?limit=501", "/v1/accounts?limit=x", "/v1/accounts?cursor=x",
		"/v1/accounts?limit=1&limit=2", "/v1/accounts?search=%00", "/v1/accounts/1?search=a", "/v1/accounts/1/keys?account=1",
		"/v1/nodes?name=a", "/v1/audit?account=0", "/v1/usage?user=1", "/v1/plans?limit=1", "/v1/health?x", "/v1/accounts?%zz",
		"/v1/unresolved?cursor=unknown",
	} {
		answer := answerTo(w, firstOperator, http.MethodGet, query, nil)
		require.Equal(t, http.StatusBadRequest, answer.Code, "%s: %s", query, answer.Body)
		require.Contains(t, answer.Body.String(), `"code":"malformed"`)
	}
	require.Equal(t, http.StatusBadRequest, answerTo(w, firstOperator, http.MethodDelete, "/v1/keys/1?force=1", nil).Code)
}

func TestErrorsAreProblemDocumentsWithTheRequestsID(t *testing.T) {
	w, _, _ := runForRoles(t)
	for _, c := range []struct {
		method, path, token string
		status              int
		code                string
	}{
		{"GET", "/v1/accounts/9", firstOperator, 404, "not_found"}, {"GET", "/v1/none", firstOperator, 404, "not_found"},
		{"GET", "/v1/accounts/", firstOperator, 404, "not_found"}, {"PUT", "/v1/accounts", firstOperator, 405, "method_not_allowed"},
		{"GET", "/v1/accounts", "wrong", 401, "unauthorized"}, {"POST", SyncPath, "wrong", 401, "unauthorized"},
	} {
		answer := answerTo(w, c.token, c.method, c.path, nil)
		require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"), c.path)
		var p map[string]any
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &p))
		require.Equal(t, c.code, p["code"])
		require.EqualValues(t, c.status, p["status"])
		require.Equal(t, c.status, answer.Code)
		require.Equal(t, http.StatusText(c.status), p["title"])
		require.Equal(t, "about:blank", p["type"])
		require.NotEmpty(t, p["detail"])
		require.Len(t, p["request_id"], 26)
		require.Equal(t, p["request_id"], answer.Header().Get(RequestIDHeader))
	}
	fine := httptest.NewRecorder()
	w.Handler().ServeHTTP(fine, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.Len(t, fine.Header().Get(RequestIDHeader), 26, "on every answer")
}

// TestManyAccountsComeInPages: an answer of 10,079 accounts was 2.4 MB; a page is bounded.
func TestManyAccountsComeInPages(t *testing.T) {
	w, client, _ := runForRoles(t)
	_, err := client.AddAccount(t.Context(), "first", "", "starter")
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10079)
		INSERT INTO account (id, name, email, plan, suspended, created_at) SELECT i, 'account ' || i, '', 'starter', 0, 0 FROM n`)
	require.NoError(t, err)
	answer := answerTo(w, firstOperator, http.MethodGet, "/v1/accounts", nil)
	require.Less(t, answer.Body.Len(), 64<<10)
	all, err := client.Accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 10079)
}
