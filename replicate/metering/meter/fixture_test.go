package meter_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const operatorToken = "operator-token-of-tests"

// centre is a running writer with its databases in files, and an operator's client.
type centre struct {
	t       *testing.T
	dir     string
	now     func() time.Time
	elapsed func() time.Duration // of the edges
	writer  atomic.Pointer[writer.Writer]
	client  *writer.Client
	stop    func()
	files   journal.Dir             // of the next edge, in place of its state directory
	segment int64                   // of the edges' journals
	cut     map[string]*atomic.Bool // by edge: whether its link is cut
	log     *slog.Logger            // of the writer
	edgeLog *slog.Logger            // of the edges
	wait    time.Duration           // the edges' WaitLimit: long, since the machine may be busy
	last    time.Duration           // the edges' LastReport
}

func startCentre(t *testing.T, now func() time.Time) *centre {
	c := &centre{t: t, dir: t.TempDir(), now: now, cut: map[string]*atomic.Bool{}, wait: 10 * time.Second, last: time.Second}
	c.start(false)
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *centre) start(restored bool) {
	ledger, err := schema.OpenFile(filepath.Join(c.dir, "ledger.db"))
	require.NoError(c.t, err)
	access, err := schema.OpenFile(filepath.Join(c.dir, "access.db"))
	require.NoError(c.t, err)
	w, err := writer.Open(c.t.Context(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: operatorToken, Now: c.now, Restored: restored, Logger: c.log,
	})
	require.NoError(c.t, err)
	c.writer.Store(w)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done) // after a failed start it is stopped a second time
		w.Run(ctx)
	}()
	c.client = writer.NewClient("http://writer", operatorToken, &http.Client{Transport: writer.InProcess(w.Handler())})
	c.stop = func() {
		cancel()
		<-done
		ledger.Close()
		access.Close()
	}
}

func (c *centre) restart() {
	c.stop()
	c.start(false)
}

// backup copies the ledger into a folder of its own: a request that still has the ledger open would write into a file that
// is put in its place.
func (c *centre) backup() (dir string) {
	c.t.Helper()
	dir = c.t.TempDir()
	db, err := schema.OpenFile(filepath.Join(c.dir, "ledger.db"))
	require.NoError(c.t, err)
	_, err = db.Exec(`VACUUM INTO ?`, filepath.Join(dir, "ledger.db"))
	require.NoError(c.t, err)
	require.NoError(c.t, db.Close())
	return dir
}

// account adds an account with a plan and credits.
func (c *centre) account(plan string, credits int64) int64 {
	a, err := c.client.AddAccount(c.t.Context(), "made-up", "made-up@example.com", plan)
	require.NoError(c.t, err)
	if credits != 0 {
		_, err = c.client.ChangeCredits(c.t.Context(), a.ID, writer.CreditChange{Amount: credits})
		require.NoError(c.t, err)
	}
	return a.ID
}

func (c *centre) read(id int64) writer.Account {
	a, err := c.client.Account(c.t.Context(), id)
	require.NoError(c.t, err)
	require.Equal(c.t, a.Bought+a.Compensated, a.Left+a.Leased+a.Spent+a.Lost)
	return a
}

// link is an edge's connection to the centre's current writer. It can be cut.
type link struct {
	c   *centre
	cut *atomic.Bool
}

func (l link) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, fmt.Errorf("the link is cut")
	}
	response, err := writer.InProcess(l.c.writer.Load().Handler()).RoundTrip(r)
	if l.cut.Load() {
		return nil, fmt.Errorf("the link was cut meanwhile")
	}
	return response, err
}

// edge is a running meter.
type edge struct {
	*meter.Meter
	name, token, state string
	stop               func()
}

func (c *centre) edge(name string) *edge {
	node, err := c.client.AddNode(c.t.Context(), name)
	require.NoError(c.t, err)
	c.connect(name)
	e := &edge{name: name, token: node.Token, state: c.t.TempDir()}
	c.run(e)
	c.t.Cleanup(func() { e.stop() })
	return e
}

// connect gives an edge a link that is not cut.
func (c *centre) connect(name string) { c.cut[name] = &atomic.Bool{} }

// cutAfterReport cuts an edge's link once its charges of an account are reported and
// acknowledged: the writer then knows exactly what the edge holds.
func (c *centre) cutAfterReport(e *edge, account, spent int64) {
	eventually(c.t, func() bool {
		return c.read(account).Spent == spent && e.Stats().Unsettled == 0
	}, "reported and acknowledged")
	c.cut[e.name].Store(true)
}

// run opens and runs an edge's meter on its state directory.
func (c *centre) run(e *edge) {
	m, err := meter.Open(meter.Config{
		State: e.state, Files: c.files, Now: c.now, Elapsed: c.elapsed, WaitLimit: c.wait, SegmentBytes: c.segment, Logger: c.edgeLog, LastReport: c.last,
		Writer: meter.OverHTTP("http://writer", e.token, &http.Client{Transport: link{c, c.cut[e.name]}}),
	})
	require.NoError(c.t, err)
	e.Meter, e.stop = m, e.start(m)
}

// start runs a meter and returns a function that stops and closes it.
func (e *edge) start(m *meter.Meter) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
		m.Close()
	})
}

var ids atomic.Int64

// request makes a request of an account with a key of the same number. Such keys are in no
// api_key table: a test whose ledger must know the key's account adds one.
func request(account int64, outcome charge.Outcome) charge.Request {
	return charge.Request{
		ID: fmt.Sprintf("request-%d", ids.Add(1)), Account: account, Key: account, PerMinute: 1000,
		Endpoint: charge.Companies, Outcome: outcome,
	}
}

func (e *edge) charge(account int64, outcome charge.Outcome) charge.Verdict {
	return e.Charge(context.Background(), request(account, outcome))
}

func (e *edge) found(account int64) string { return e.charge(account, charge.Found).Code }

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond, what)
}
