package writer_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// ask sends an operator's request to a writer in this process.
func ask(t *testing.T, w *writer.Writer, method, target, body string) (status int, kind, answer string) {
	r, err := http.NewRequestWithContext(t.Context(), method, "http://writer"+target, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := writer.InProcess(w.Handler()).RoundTrip(r)
	require.NoError(t, err)
	defer reply.Body.Close()
	content, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, reply.Header.Get("Content-Type"), string(content)
}

// FuzzBodies sends any body to the calls that read one. The writer never answers 500, and stays
// ready: a change that its ledger can't store would fail the commit of everybody else's.
func FuzzBodies(f *testing.F) {
	calls := []struct{ method, path string }{
		{"POST", "/v1/accounts"}, {"PATCH", "/v1/accounts/1"}, {"POST", "/v1/accounts/1/keys"},
		{"POST", "/v1/accounts/1/credits"}, {"PUT", "/v1/plans/made"}, {"POST", "/v1/nodes"}, {"POST", "/v1/invitations"},
	}
	for i, body := range []string{
		`{"name":"made-up","email":"a@example.com","plan":"free"}`, `{"plan":"scale","suspended":true}`, `{"name":"key"}`,
		`{"amount":-9223372036854775808,"note":"x"}`, `{"per_minute":9223372036854775807,"monthly_volume":-1}`,
		`{"name":"one"}`, `{"account":1,"email":"a@example.com"}`,
	} {
		f.Add(byte(i), body)
	}
	var client *writer.Client
	var w *writer.Writer
	client, _, w = start(f, f.TempDir())
	_, err := client.AddAccount(f.Context(), "made-up", "", "starter")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, which byte, body string) {
		call := calls[int(which)%len(calls)]
		status, kind, answer := ask(t, w, call.method, call.path, body)
		require.Less(t, status, 500, answer)
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
