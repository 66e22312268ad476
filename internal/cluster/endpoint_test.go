package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/cluster"
)

// TestTheReleaseBeforeIsKeptWhereverItIsRead while a push stands still in its middle: by an edge that was there, by
// one that is started then, by one that reads the replica's endpoint alone, as Spin does, and in every form in which
// that endpoint is asked.
func TestTheReleaseBeforeIsKeptWhereverItIsRead(t *testing.T) {
	t.Parallel()
	r := startReleases(t, 6000) // of which 2,000 records are written in a transaction
	for _, name := range []string{"west", "north"} {
		_, err := r.AddEdge(t.Context(), name)
		require.NoError(t, err)
	}
	for _, e := range r.Edges[1:] {
		e.Stop()
	}
	withoutFile(t, r.Edges[1], "registry")
	require.NoError(t, r.Edges[1].Start())
	r.change("true")
	r.push("a full release")
	r.current(r.Edges[1])
	before := r.release()
	quiet := r.fromEndpoint(t, true)

	r.change("true")
	args, env, err := r.PushArgs(r.registry)
	require.NoError(t, err)
	token, err := r.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	require.True(t, r.pushUntil(t, args, env, r.open(r.Primaries["registry"], token), 2))
	require.NoError(t, r.Edges[2].Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, r.Edges[2].Ready(ctx))
	for _, e := range r.Edges {
		for n := range 100 {
			a, err := fetch(http.DefaultClient, e.URL, r.path(n), r.key)
			require.NoError(t, err)
			require.Equal(t, before, a.release, e.Name)
			r.judge(a, err, 0)
		}
		require.Zero(t, r.failed, e.Name)
		require.Zero(t, r.mixed, e.Name)
	}
	require.Greater(t, r.marked, 3*50, "the answers show of which release they are")
	require.Equal(t, quiet, r.fromEndpoint(t, false), "as sqld answers")

	r.pushRecords("the rest of it")
	for _, e := range r.Edges {
		r.current(e)
	}
	require.NotEqual(t, quiet, r.fromEndpoint(t, true))
}

// withoutFile makes an edge, which is stopped, read the endpoint of a replica alone.
func withoutFile(t *testing.T, e *cluster.Edge, database string) {
	t.Helper()
	at := slices.Index(e.Args, "--"+database+"-replica")
	require.Positive(t, at)
	e.Args = slices.Delete(e.Args, at, at+2)
}

// fromEndpoint asks the endpoint of the second edge's replica in each form, and returns the answers without what only
// sqld itself knows, by which one tells whether it has answered.
func (r *releases) fromEndpoint(t *testing.T, bySqld bool) (answers []string) {
	t.Helper()
	e := r.Edges[1]
	address := e.Replicas["registry"].URL()
	i := slices.IndexFunc(e.Env, func(v string) bool { return strings.HasPrefix(v, tokenVariable("registry")+"=") })
	_, token, _ := strings.Cut(e.Env[i], "=")
	statement := fmt.Sprintf(`{"sql":"SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1) AS release, cin, city, '<é&', NULL, 7, x'00ff10' FROM company WHERE cin IN (?1, ?2) ORDER BY cin",`+
		`"args":[{"type":"text","value":%q},{"type":"text","value":%q}]}`, r.cins[0], r.cins[1])
	const none = `{"sql":"SELECT cin FROM company WHERE cin = ?1 OR ?2 OR ?3","args":[{"type":"blob","base64":"AP8Q"},{"type":"integer","value":"0"},{"type":"null"}]}`
	for _, c := range []struct{ path, body string }{
		{"/v2/pipeline", `{"requests":[{"type":"execute","stmt":` + statement + `},{"type":"close"}]}`},
		{"/v3/pipeline", `{"baton":null,"requests":[{"type":"execute","stmt":` + none + `},{"type":"get_autocommit"},{"type":"close"}]}`},
		{"/v3/pipeline", `{"requests":[{"type":"batch","batch":{"steps":[{"condition":null,"stmt":` + statement + `},{"stmt":` + none + `}]}},{"type":"get_autocommit"},{"type":"close"}]}`},
		{"/v3/cursor", `{"batch":{"steps":[{"stmt":` + statement + `},{"stmt":` + none + `}]}}`},
	} {
		call, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		call.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(call)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		if c.path != "/v3/cursor" {
			require.Equal(t, bySqld, bytes.Contains(body, []byte(`"rows_read"`)), string(body))
		}
		answers = append(answers, plain(t, body))
	}
	return answers
}

// plain decodes an answer, and leaves out what may differ.
func plain(t *testing.T, body []byte) string {
	t.Helper()
	var text strings.Builder
	for decoder := json.NewDecoder(bytes.NewReader(body)); ; {
		var v any
		err := decoder.Decode(&v)
		if err == io.EOF {
			return text.String()
		}
		require.NoError(t, err, string(body))
		without(v, "baton", "decltype", "replication_index", "rows_read", "rows_written", "query_duration_ms")
		line, err := json.Marshal(v)
		require.NoError(t, err)
		if string(line) != `{"type":"replication_index"}` { // the last line of sqld's cursors
			text.Write(append(line, '\n'))
		}
	}
}

func without(v any, keys ...string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range keys {
			delete(v, key)
		}
		for _, inner := range v {
			without(inner, keys...)
		}
	case []any:
		for _, inner := range v {
			without(inner, keys...)
		}
	}
}
