package cluster_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/cluster"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/push"
	"regedge/replicate/registry/sqld"
)

// patience is for a busy machine; nothing waits for it when all is well.
const patience = 2 * time.Minute

// generated is how many made-up companies stand beside the sample.
const generated = 4000

// TestMain removes what program built.
func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// built is the folder of what program built.
var built string

// program builds regedge once for all tests.
var program = sync.OnceValues(func() (program string, err error) {
	if built, err = os.MkdirTemp("", "regedge-cluster-"); err != nil {
		return "", err
	}
	return testkit.BuildRegedge(context.Background(), built)
})

// world is a cluster of two edges with registries to push.
type world struct {
	*cluster.Cluster
	t testing.TB
	// before and after are two states of the register, from the same sources and 1% more.
	before, after string
	// whole is before, with nearly every record changed in what no answer shows.
	whole string
	log   *testkit.Log // what the processes log, shown when a test fails
}

// start starts a cluster of two edges on the loopback.
func start(t testing.TB, flags ...string) *world {
	t.Helper()
	return startAt(t, "", []placed{{name: "east"}, {name: "west"}}, flags...)
}

// placed is an edge and where it runs.
type placed struct {
	name  string
	place cluster.Place
}

// startAt starts a cluster whose centre listens on host.
func startAt(t testing.TB, host string, edges []placed, flags ...string) *world {
	t.Helper()
	server := sqldtest.Program(t)
	regedge, err := program()
	require.NoError(t, err)
	w := &world{t: t, log: new(testkit.Log)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: t.TempDir(), Regedge: regedge, Sqld: server, EdgeFlags: flags, Host: host,
		Log: func(name string) io.Writer { return w.log },
	})
	require.NoError(t, err, w.log.String())
	t.Cleanup(func() {
		w.Stop()
		if t.Failed() {
			said := w.log.String()
			t.Log(said[max(0, len(said)-20_000):])
		}
	})
	w.makeRegistries()
	for _, e := range edges {
		_, err := w.AddEdgeAt(ctx, e.name, e.place)
		require.NoError(t, err, w.log.String())
	}
	return w
}

// edge is the edge of a name.
func (w *world) edge(name string) *cluster.Edge {
	w.t.Helper()
	i := slices.IndexFunc(w.Edges, func(e *cluster.Edge) bool { return e.Name == name })
	require.NotEqual(w.t, -1, i, name)
	return w.Edges[i]
}

// regedge runs a command of the program to its end.
func (w *world) command(args, env []string) *exec.Cmd {
	c := exec.CommandContext(w.t.Context(), w.Regedge, args...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	return c
}

// push pushes a registry file and waits until both edges answer from it. It returns how
// long the push took, how long after its end the last edge had it, and what it said.
func (w *world) push(file string) (took, arrived time.Duration, said string) {
	w.t.Helper()
	args, env, err := w.PushArgs(file)
	require.NoError(w.t, err)
	began := time.Now()
	out, err := w.command(args, env).CombinedOutput()
	ended := time.Now()
	require.NoError(w.t, err, string(out))
	w.arrived(w.release())
	return ended.Sub(began), time.Since(ended), string(out)
}

// open opens the database of a server until the end of the test.
func (w *world) open(s *sqld.Server, token string) *sql.DB {
	w.t.Helper()
	db, err := libsql.Open(s.URL(), token)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { db.Close() })
	return db
}

// release is the current release at the primary.
func (w *world) release() string {
	w.t.Helper()
	token, err := w.Token("registry", pki.ReadOnly)
	require.NoError(w.t, err)
	var id string
	require.NoError(w.t, w.open(w.Primaries["registry"], token).QueryRow("SELECT id FROM release ORDER BY seq DESC LIMIT 1").Scan(&id))
	return id
}

// releases are those that the primary had, the current one first.
func (w *world) releases() []push.Release {
	w.t.Helper()
	token, err := w.Token("registry", pki.ReadOnly)
	require.NoError(w.t, err)
	list, err := push.Releases(w.t.Context(), w.open(w.Primaries["registry"], token))
	require.NoError(w.t, err)
	return list
}

// arrived waits until every edge is ready and answers from a release.
func (w *world) arrived(release string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for _, e := range w.Edges {
		require.NoError(w.t, e.Ready(ctx))
		require.Eventually(w.t, func() bool {
			a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+sampletest.CompanyEveryField, "reg_sandbox_public")
			return err == nil && a.release == release
		}, patience, 20*time.Millisecond)
	}
}
