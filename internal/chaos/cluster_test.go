package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/writer"
	"regedge/schema/sample"
)

const (
	operatorToken = "operator-token-of-the-chaos"
	company       = "/v1/companies/" + sampletest.CompanyEveryField
)

// built is the program and a registry for it to serve.
type built struct{ dir, program, registry string }

var buildOnce = sync.OnceValues(func() (*built, error) {
	dir, err := os.MkdirTemp("", "regedge-chaos-")
	if err != nil {
		return nil, err
	}
	b := &built{dir: dir, registry: filepath.Join(dir, "registry.db")}
	if b.program, err = testkit.BuildRegedge(context.Background(), dir); err != nil {
		return nil, err
	}
	if _, err := sample.Import(context.Background(), b.registry, time.Now); err != nil {
		return nil, err
	}
	return b, nil
})

func TestMain(m *testing.M) {
	if text := os.Getenv(attackerEnv); text != "" {
		os.Exit(attackMain(text))
	}
	code := m.Run()
	if b, err := buildOnce(); err == nil {
		os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// process is a server that is started, killed and started again.
type process struct {
	testkit.Process
	t       *testing.T
	name    string
	address string
	secured *http.Transport // how its address is reached with TLS; nil for plain HTTP
}

// url is where a path is asked for.
func (p *process) url(path string) string {
	if p.secured != nil {
		return "https://" + p.address + path
	}
	return "http://" + p.address + path
}

// dials makes a client with connections of its own.
func (p *process) dials() *http.Client {
	if p.secured != nil {
		return &http.Client{Timeout: clientPatience, Transport: p.secured.Clone()}
	}
	return &http.Client{Timeout: clientPatience, Transport: &http.Transport{}}
}

// clientPatience is how long most clients wait for an answer: who gives up is charged all the same.
const clientPatience = time.Minute

// start starts the process; it does not wait until it serves.
func (p *process) start() {
	p.t.Helper()
	require.NoError(p.t, p.Start())
}

// fails starts the process, which must end with an error at once.
func (p *process) fails() {
	p.t.Helper()
	p.start()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	require.Error(p.t, p.Wait(ctx))
	require.NoError(p.t, ctx.Err(), "it started")
}

// status is the HTTP status of a path, 0 when there is no answer.
func (p *process) status(path string) int {
	client := p.dials()
	defer client.CloseIdleConnections()
	response, err := client.Get(p.url(path))
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func (p *process) await(path string, status int) {
	p.t.Helper()
	eventually(p.t, func() bool { return p.status(path) == status }, func() string {
		return fmt.Sprintf("%s answers %d on %s\n%s", p.name, status, path, p.Tail())
	})
}

// eventually waits for a condition, for a minute at most.
func eventually(t *testing.T, condition func() bool, what func() string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			require.Fail(t, "never came true", what())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cluster is a writer and its edges.
type cluster struct {
	t      *testing.T
	dir    string
	built  *built
	writer *process
	client *writer.Client
	edges  []*process
}

func newCluster(t *testing.T) *cluster {
	if testing.Short() {
		t.Skip("skipped with -short: builds the program and runs it")
	}
	b, err := buildOnce()
	require.NoError(t, err)
	return newClusterOf(t, b)
}

func newClusterOf(t *testing.T, b *built) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), built: b}
	c.writer = c.process("writer", "writer", "--token", operatorToken,
		"--database", c.path("ledger.db"), "--access", c.path("access.db"))
	c.client = writer.NewClient("http://"+c.writer.address, operatorToken, nil)
	c.writer.start()
	c.writer.await("/readyz", 200)
	return c
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) process(name string, args ...string) *process {
	p := &process{t: c.t, name: name, address: testkit.FreePort(c.t)}
	p.Program, p.Args = c.built.program, append(args, "--listen", p.address)
	c.t.Cleanup(p.Kill)
	return p
}

// edge adds an edge that connects to the writer at url and has its state in dir. It is not
// started.
func (c *cluster) edge(name, url, dir string, flags ...string) *process {
	node, err := c.client.AddNode(c.t.Context(), name)
	require.NoError(c.t, err)
	token := c.path(name + ".token")
	require.NoError(c.t, os.WriteFile(token, []byte(node.Token), 0o600))
	p := c.process(name, append([]string{"edge", "--registry", c.built.registry, "--access", c.path("access.db"),
		"--writer", url, "--state", dir, "--token-file", token, "--log", "errors", "--engine", "native"}, flags...)...)
	c.edges = append(c.edges, p)
	return p
}

// run starts an edge that connects to the writer directly, and waits until it is ready.
func (c *cluster) run(name string) *process {
	p := c.edge(name, "http://"+c.writer.address, c.path(name))
	p.start()
	p.await("/readyz", 200)
	return p
}
