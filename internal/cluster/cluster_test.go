package cluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/cluster"
	"regedge/internal/conformance"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

func currentRelease(t testing.TB, s *sqld.Server, token string) string {
	t.Helper()
	client := libsql.New(s.URL(), token)
	defer client.Close()
	result, err := client.Query(t.Context(), "SELECT id FROM release ORDER BY seq DESC LIMIT 1")
	require.NoError(t, err)
	require.NotEmpty(t, result.Rows)
	return result.Text(0, 0)
}

// paths are the requests of all vectors.
func paths(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/vectors/*.txt")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		parsed, err := conformance.Parse(file)
		require.NoError(t, err, name)
		require.NoError(t, file.Close())
		for _, v := range parsed.Vectors {
			for _, e := range v.Exchanges {
				method, path, _ := strings.Cut(e.Request[0], " ")
				if method == http.MethodGet && strings.HasPrefix(path, "/v1/") && !seen[path] {
					seen[path] = true
					list = append(list, path)
				}
			}
		}
	}
	require.Greater(t, len(list), 50)
	return list
}

func TestEveryEdgeAnswersAsASingleProcess(t *testing.T) {
	w := start(t)
	w.push(w.before)
	w.push(w.after)
	w.inStep()
	w.alarmsAreOfMetrics()
	w.statusTells()
	single := w.single("single", w.after)
	release := w.release()
	for _, key := range []string{"", "reg_sandbox_public", func() string { _, key := w.account(1); return key }()} {
		for _, e := range append(w.Edges, single) {
			require.Eventually(t, func() bool {
				a, err := fetch(http.DefaultClient, e.URL, "/v1/search/companies?name=nothing+has+this+name", key)
				return err == nil && (a.status == 200 || key == "" && a.status == 401)
			}, patience, 20*time.Millisecond, "the key reaches every edge")
		}
		for i, path := range paths(t) {
			if key == "reg_sandbox_public" && i >= 15 {
				break // the sandbox has 30 requests a minute
			}
			want := w.ask(single, path, key)
			for _, e := range w.Edges {
				got := w.ask(e, path, key)
				require.Equal(t, want, got, "%s at %s", path, e.Name)
				if got.status == 200 {
					require.Equal(t, release, got.release)
				}
			}
		}
	}
}

// ask asks an edge. The requests of a minute may be used up by those that waited for the edges
// to get ready; then it waits for another minute.
func (w *world) ask(e *cluster.Edge, path, key string) answer {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		a, err := fetch(http.DefaultClient, e.URL, path, key)
		require.NoError(w.t, err)
		if a.status != http.StatusTooManyRequests {
			return a
		}
		require.Less(w.t, time.Since(began), patience, "%s at %s: %s", path, e.Name, a.data)
	}
}
