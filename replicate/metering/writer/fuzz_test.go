package writer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// ask sends an operator's request to a writer in this process.
func ask(t *testing.T, w *writer.Writer, method, target, body string) (status int, kind, answer string) {
	return askAs(t, w, token, method, target, body)
}

func askAs(t *testing.T, w *writer.Writer, bearer, method, target, body string) (status int, kind, answer string) {
	r, err := http.NewRequestWithContext(t.Context(), method, "http://writer"+target, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+bearer)
	reply, err := writer.InProcess(w.Handler()).RoundTrip(r)
	require.NoError(t, err)
	defer reply.Body.Close()
	content, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, reply.Header.Get("Content-Type"), string(content)
}

// FuzzBodies sends any body to every call of operators and owners that changes something. The
// writer never answers 500, and stays ready: a change that its ledger can't store would fail
// the commit of everybody else's.
func FuzzBodies(f *testing.F) {
	client, _, w := start(f, f.TempDir())
	_, err := client.AddAccount(f.Context(), "made-up", "", "starter")
	require.NoError(f, err)
	_, err = client.AddKey(f.Context(), 1, "key")
	require.NoError(f, err)
	_, err = client.AddNode(f.Context(), "edge-1")
	require.NoError(f, err)
	made := changeAs(f, w, token, changeKey, "POST", "/v1/accounts/1/tokens", `{"name":"owner","role":"all","life_seconds":31000000}`)
	var owner writer.NewOwnerToken
	require.NoError(f, json.Unmarshal(made.Body.Bytes(), &owner), made.Body)

	routes := w.ChangingRoutes()
	slices.Sort(routes)
	for _, body := range []string{
		`{"name":"made-up","email":"a@example.com","plan":"free"}`, `{"plan":"scale","suspended":true}`, `{"name":"key"}`,
		`{"name":"one"}`, `{"account":1,"email":"a@example.com"}`, `{}`,
		`{"amount":-9223372036854775808,"note":"x"}`, `{"per_minute":9223372036854775807,"monthly_volume":-1}`,
		`{"per_minute":-1,"monthly_credits":9223372036854775807,"allowed_addresses":["::/0","0.0.0.0/33",""]}`,
		`{"overlap_seconds":9223372036854775807,"life_seconds":-1}`, `{"read_tokens":{"registry":"","x":"y"}}`, `[]`, `{"name":"\u0000"}`,
	} {
		for i := range routes {
			f.Add(byte(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, body string) {
		method, path, _ := strings.Cut(routes[int(which)%len(routes)], " ")
		bearer := token
		if strings.HasPrefix(path, "/v1/account/") {
			bearer = owner.Token
		}
		if strings.HasPrefix(path, "/v1/owner-tokens/") {
			path = "/v1/owner-tokens/2" // the first one is needed
		}
		path = strings.NewReplacer(":id", "1", ":name", "edge-1").Replace(path)
		status, kind, answer := askAs(t, w, bearer, method, path, body)
		require.Less(t, status, 500, answer)
		require.NotContains(t, []int{http.StatusUnauthorized, http.StatusMethodNotAllowed}, status, answer)
		require.Contains(t, []string{"application/json", "application/problem+json"}, kind)
		status, _, answer = ask(t, w, "GET", "/v1/accounts/1", "")
		require.Equal(t, 200, status, answer)
	})
}

// FuzzUsageQuery asks for usage, and for sums of it, with any query: an answer or a refusal, never an
// error of the database.
func FuzzUsageQuery(f *testing.F) {
	for _, query := range []string{
		"", "account=1", "account=-1", "from=2026-01-31T00:00:00Z&to=2026-02-01T00:00:00%2B05:30", "to=0000-01-01T00:00:00Z",
		"from=9999-12-31T23:59:59Z", "format=csv&account=9223372036854775807", "account=1;from=2", "%zz",
		"from=2026-01-01&to=2026-01-31", "by=day,key,endpoint&cursor=20454.1.1", "from=9999-12-31&to=0000-01-01", "endpoint=llps&format=csv",
		"cursor=-1.-9223372036854775808.9223372036854775807&limit=500&key=9223372036854775807",
	} {
		f.Add(query)
	}
	client, _, w := start(f, f.TempDir())
	_, err := client.AddAccount(f.Context(), "made-up", "", "starter")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := http.NewRequest("GET", "http://writer/v1/usage?"+query, nil); err != nil {
			return
		}
		for _, path := range []string{"/v1/usage?", "/v1/accounts/1/usage?"} {
			status, _, answer := ask(t, w, "GET", path+query, "")
			require.Contains(t, []int{200, 400}, status, answer)
		}
	})
}
