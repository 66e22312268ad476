package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/freeport"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/writer"
	"regedge/schema/sample"
)

const (
	operatorToken = "operator-token-of-the-chaos"
	company       = "/v1/companies/" + sampletest.CompanyEveryField
)

// built is the program, and a registry for it to serve.
type built struct{ dir, program, registry string }

var buildOnce = sync.OnceValues(func() (*built, error) {
	dir, err := os.MkdirTemp("", "regedge-chaos-")
	if err != nil {
		return nil, err
	}
	b := &built{dir, filepath.Join(dir, "regedge"), filepath.Join(dir, "registry.db")}
	if out, err := exec.Command("go", "build", "-o", b.program, "regedge/host").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w: %s", err, out)
	}
	if _, err := sample.Import(context.Background(), b.registry, time.Now); err != nil {
		return nil, err
	}
	return b, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := buildOnce(); err == nil {
		os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// process is a server that is started, killed and started again.
type process struct {
	t       *testing.T
	name    string
	address string
	program string
	args    []string
	log     testkit.Log
	command *exec.Cmd
}

// start starts the process; it does not wait until it serves.
func (p *process) start() {
	p.command = exec.Command(p.program, p.args...)
	p.command.Stderr = &p.log
	require.NoError(p.t, p.command.Start())
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	if p.command != nil {
		p.command.Process.Kill()
		p.command.Wait()
		p.command = nil
	}
}

// status is the status of a path, 0 while nothing answers.
func (p *process) status(path string) int {
	response, err := http.Get("http://" + p.address + path)
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
		return fmt.Sprintf("%s answers %d on %s\n%s", p.name, status, path, p.log.String())
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
	p := &process{t: c.t, name: name, address: freeport.ForTest(c.t), program: c.built.program}
	p.args = append(args, "--listen", p.address)
	c.t.Cleanup(p.kill)
	return p
}

// edge adds a node whose edge reaches the writer at url, and keeps its state in dir. It
// is not started.
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

// run adds an edge beside the writer, and waits until it is ready.
func (c *cluster) run(name string) *process {
	p := c.edge(name, "http://"+c.writer.address, c.path(name))
	p.start()
	p.await("/readyz", 200)
	return p
}

// account makes an account with credits and a key.
func (c *cluster) account(credits int64) *account {
	_, err := c.client.SetPlan(c.t.Context(), writer.Plan{ID: "unlimited", APIAccess: true, PerMinute: 1 << 30, MonthlyVolume: 1 << 40})
	require.NoError(c.t, err)
	made, err := c.client.AddAccount(c.t.Context(), "chaos", "", "unlimited")
	require.NoError(c.t, err)
	_, err = c.client.ChangeCredits(c.t.Context(), made.ID, writer.CreditChange{Amount: credits})
	require.NoError(c.t, err)
	key, err := c.client.AddKey(c.t.Context(), made.ID, "")
	require.NoError(c.t, err)
	a := &account{cluster: c, id: made.ID, key: key.Secret, bought: credits}
	for _, p := range c.edges {
		// An edge may see a new key a moment late. A request that is refused costs nothing.
		eventually(c.t, func() bool { return a.fetch(http.DefaultClient, p, "/v1/companies/none") != http.StatusUnauthorized },
			func() string { return p.name + " knows the key" })
	}
	return a
}

// account counts what its clients received.
type account struct {
	cluster *cluster
	id      int64
	key     string
	bought  int64

	mu    sync.Mutex
	codes map[int]int64
	cut   int64
}

// ask asks an edge for a company, and counts what came of it.
func (a *account) ask(client *http.Client, p *process) int { return a.fetch(client, p, company) }

func (a *account) fetch(client *http.Client, p *process, path string) int {
	request, err := http.NewRequest(http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	// The client sends a request again by itself when a connection that it used before ends
	// without an answer: each sending may be charged.
	var sent atomic.Int64
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Add(1) },
	}))
	response, err := client.Do(request)
	status := 0
	if err == nil {
		status = response.StatusCode
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.codes == nil {
		a.codes = map[int]int64{}
	}
	if err == nil {
		a.codes[status]++
		a.cut += sent.Load() - 1
	} else {
		a.cut += sent.Load()
	}
	return status
}

// got is how many answers 200 clients received, and how many requests were cut off.
func (a *account) got() (answered, cut int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.codes[http.StatusOK], a.cut
}

func (a *account) read() (writer.Account, error) {
	return a.cluster.client.Account(context.Background(), a.id)
}

// settles waits until every answer is spent, and holds that nothing else is.
func (a *account) settles() {
	t := a.cluster.t
	t.Helper()
	answered, cut := a.got()
	eventually(t, func() bool {
		at, err := a.read()
		return err == nil && at.Spent >= answered
	}, func() string {
		at, err := a.read()
		return fmt.Sprintf("%d answers are spent: %+v %v", answered, at, err)
	})
	at, err := a.read()
	require.NoError(t, err)
	require.LessOrEqual(t, at.Spent, answered+cut, "spent, beside %d answers and %d requests cut off", answered, cut)
	require.LessOrEqual(t, at.Spent, at.Bought+at.Compensated)
	require.Equal(t, at.Bought+at.Compensated, at.Left+at.Leased+at.Spent+at.Lost)
}
