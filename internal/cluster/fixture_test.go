package cluster_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
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

// TestMain removes the program that the tests have built.
func TestMain(m *testing.M) {
	becomeConfined()
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// built is the folder of the program, empty until it is built.
var built string

// program builds regedge once for all tests.
var program = sync.OnceValues(func() (program string, err error) {
	if built, err = os.MkdirTemp("", "regedge-cluster-"); err != nil {
		return "", err
	}
	return testkit.BuildRegedge(context.Background(), built)
})

// fixture is a cluster and registries to push to it.
type fixture struct {
	*cluster.Cluster
	t testing.TB
	// before and after are files of two states of the registry: after has 1% of the companies changed.
	before, after string
	// whole is before with nearly every record changed, but no answer about a company.
	whole string
	log   *testkit.Log // output of all processes, shown when a test fails
	// primaryMetrics is the address of the metrics of a regedge primary, once it was started.
	primaryMetrics string
}

// start starts a cluster of two edges on the loopback.
func start(t testing.TB, flags ...string) *fixture {
	t.Helper()
	return startAt(t, "", []placed{{name: "east"}, {name: "west"}}, flags...)
}

// placed is an edge with the network that it runs in.
type placed struct {
	name  string
	place cluster.Place
}

// startAt starts a cluster whose centre listens on host.
func startAt(t testing.TB, host string, edges []placed, flags ...string) *fixture {
	t.Helper()
	regedge, err := program()
	require.NoError(t, err)
	return startProgram(t, regedge, host, edges, flags...)
}

// startProgram is startAt with a program of its own.
func startProgram(t testing.TB, regedge, host string, edges []placed, flags ...string) *fixture {
	t.Helper()
	server, err := sqldtest.Program(t), error(nil)
	f := &fixture{t: t, log: new(testkit.Log)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: t.TempDir(), Regedge: regedge, Sqld: server, EdgeFlags: flags, Host: host,
		Log: func(name string) io.Writer { return f.log },
	})
	require.NoError(t, err, f.log.String())
	t.Cleanup(func() {
		f.Stop()
		if t.Failed() {
			said := f.log.String()
			t.Log(said[max(0, len(said)-20_000):])
		}
	})
	f.makeRegistries()
	for _, e := range edges {
		_, err := f.AddEdgeAt(ctx, e.name, e.place)
		require.NoError(t, err, f.log.String())
	}
	return f
}

// edge returns the edge with a name.
func (f *fixture) edge(name string) *cluster.Edge {
	f.t.Helper()
	i := slices.IndexFunc(f.Edges, func(e *cluster.Edge) bool { return e.Name == name })
	require.NotEqual(f.t, -1, i, name)
	return f.Edges[i]
}

// command is a command of the program with its environment.
func (f *fixture) command(args, env []string) *exec.Cmd {
	c := exec.CommandContext(f.t.Context(), f.Regedge, args...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	return c
}

// push pushes a registry file and waits until all edges answer from it. It returns the time of the
// push, the time from its end until the last edge answered from it, and its output.
func (f *fixture) push(file string) (took, arrived time.Duration, said string) {
	f.t.Helper()
	args, env, err := f.PushArgs(file)
	require.NoError(f.t, err)
	args = f.confirmed(args, env)
	began := time.Now()
	out, err := f.command(args, env).CombinedOutput()
	ended := time.Now()
	require.NoError(f.t, err, string(out))
	f.arrived(f.release())
	return ended.Sub(began), time.Since(ended), string(out)
}

// asksFor is what a push prints that has to be confirmed.
var asksFor = regexp.MustCompile(`confirmed with --yes (\d+)`)

// confirmed adds to the arguments of a push the number that it asks for, since the tests push files
// that do not continue each other. To ask it, the snapshot is made.
func (f *fixture) confirmed(args, env []string) []string {
	f.t.Helper()
	out, err := f.command(append(slices.Clone(args), "--dry-run"), env).CombinedOutput()
	require.NoError(f.t, err, string(out))
	if number := asksFor.FindSubmatch(out); number != nil {
		args = append(args, "--yes", string(number[1]))
	}
	return args
}

// open opens the database of a server until the end of the test.
func (f *fixture) open(s *sqld.Server, token string) *sql.DB {
	f.t.Helper()
	db, err := libsql.Open(s.URL(), token)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { db.Close() })
	return db
}

// release is the current release at the primary.
func (f *fixture) release() string {
	f.t.Helper()
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(f.t, err)
	var id string
	require.NoError(f.t, f.open(f.Primaries["registry"], token).QueryRow("SELECT id FROM release ORDER BY seq DESC LIMIT 1").Scan(&id))
	return id
}

// releases lists the releases at the primary, the current one first.
func (f *fixture) releases() []push.Release {
	f.t.Helper()
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(f.t, err)
	list, err := push.Releases(f.t.Context(), f.open(f.Primaries["registry"], token))
	require.NoError(f.t, err)
	return list
}

// arrived waits until every edge is ready and answers from a release.
func (f *fixture) arrived(release string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for _, e := range f.Edges {
		require.NoError(f.t, e.Ready(ctx))
		require.Eventually(f.t, func() bool {
			a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+sampletest.CompanyEveryField, "reg_sandbox_public")
			return err == nil && a.release == release
		}, patience, 200*time.Millisecond, "the sandbox key has 30 requests a minute") // an edge takes a second
	}
}
