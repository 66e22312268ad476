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

// centre is a running writer on files, and an operator's client of it.
type centre struct {
	t       *testing.T
	dir     string
	now     func() time.Time
	writer  atomic.Pointer[writer.Writer]
	client  *writer.Client
	stop    func()
	files   journal.Dir             // of the next edge, instead of its state directory
	segment int64                   // of the edges' journals
	cut     map[string]*atomic.Bool // edges that can't reach it
	log     *slog.Logger            // of the writer
	wait    time.Duration           // of the edges: long, since tests may run on a busy machine
}

func startCentre(t *testing.T, now func() time.Time) *centre {
	c := &centre{t: t, dir: t.TempDir(), now: now, cut: map[string]*atomic.Bool{}, wait: 10 * time.Second}
	c.start(false)
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *centre) start(restored bool) {
	ledger, err := schema.OpenFile(filepath.Join(c.dir, "ledger.db"), false)
	require.NoError(c.t, err)
	access, err := schema.OpenFile(filepath.Join(c.dir, "access.db"), false)
	require.NoError(c.t, err)
	w, err := writer.Open(c.t.Context(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: operatorToken, Now: c.now, Restored: restored, Logger: c.log,
	})
	require.NoError(c.t, err)
	c.writer.Store(w)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
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

// account makes an account of a plan with credits.
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

// way is an edge's way to the centre, whichever writer runs there. It can be cut.
type way struct {
	c   *centre
	cut *atomic.Bool
}

func (w way) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, fmt.Errorf("the way is cut")
	}
	response, err := writer.InProcess(w.c.writer.Load().Handler()).RoundTrip(r)
	if w.cut.Load() {
		return nil, fmt.Errorf("the way was cut meanwhile")
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
	c.cutless(name)
	e := &edge{name: name, token: node.Token, state: c.t.TempDir()}
	c.run(e)
	c.t.Cleanup(func() { e.stop() })
	return e
}

// cutless makes a way for an edge that is not cut.
func (c *centre) cutless(name string) { c.cut[name] = &atomic.Bool{} }

// cutAfter cuts an edge's way once it has heard that its charges of an account arrived, so
// that what the writer has leased to it is what it holds.
func (c *centre) cutAfter(e *edge, account, spent int64) {
	eventually(c.t, func() bool {
		return c.read(account).Spent == spent && e.Stats().Unsettled == 0
	}, "reported, and the answer heard")
	c.cut[e.name].Store(true)
}

// run opens and runs an edge's meter on its state directory.
func (c *centre) run(e *edge) {
	m, err := meter.Open(meter.Config{
		State: e.state, Files: c.files, Now: c.now, WaitLimit: c.wait, SegmentBytes: c.segment,
		Writer: meter.OverHTTP("http://writer", e.token, &http.Client{Transport: way{c, c.cut[e.name]}}),
	})
	require.NoError(c.t, err)
	e.Meter, e.stop = m, e.start(m)
}

// start runs a meter and returns what stops and closes it.
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

func request(account int64, outcome charge.Outcome) charge.Request {
	return charge.Request{
		ID: fmt.Sprintf("request-%d", ids.Add(1)), Account: account, Key: account, PerMinute: 1000,
		Endpoint: charge.Companies, Outcome: outcome,
	}
}

func (e *edge) charge(account int64, outcome charge.Outcome) charge.Verdict {
	return e.Charge(context.Background(), request(account, outcome))
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond, what)
}

func TestOneEdge(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")

	t.Run("charges a credit for each lookup that succeeds", func(t *testing.T) {
		account := c.account("growth", 100)
		if time.Now().Second() > 55 { // the rate is counted by the minute
			time.Sleep(6 * time.Second)
		}
		for i := range 10 {
			v := e.charge(account, charge.Found)
			require.Equal(t, "", v.Code)
			require.EqualValues(t, 99-i, v.CreditsRemaining)
			require.EqualValues(t, 1000-1-i, v.RateRemaining)
		}
		eventually(t, func() bool { return c.read(account).Spent == 10 }, "the writer hears of the charges")
	})

	t.Run("says 402 when nothing is left, and serves again after a top-up", func(t *testing.T) {
		account := c.account("growth", 3)
		for range 3 {
			require.Equal(t, "", e.charge(account, charge.Found).Code)
		}
		for range 3 {
			require.Equal(t, charge.InsufficientCredits, e.charge(account, charge.Found).Code)
			require.Equal(t, charge.InsufficientCredits, e.charge(account, charge.NotFound).Code)
			require.Equal(t, "", e.charge(account, charge.Failed).Code)
		}
		_, err := c.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: 2})
		require.NoError(t, err)
		eventually(t, func() bool { return e.charge(account, charge.Found).Code == "" }, "the top-up arrives")
	})

	t.Run("says 402 to an account that never had credits", func(t *testing.T) {
		require.Equal(t, charge.InsufficientCredits, e.charge(c.account("growth", 0), charge.Found).Code)
	})

	t.Run("refuses a key past its not-found cap on all endpoints", func(t *testing.T) {
		account := c.account("scale", 1000)
		for i := range 100 {
			require.Equal(t, "", e.charge(account, charge.NotFound).Code, i)
		}
		v := e.charge(account, charge.NotFound)
		require.Equal(t, charge.NotFoundCapExceeded, v.Code)
		require.Positive(t, v.RetryAfter)
		require.Equal(t, charge.NotFoundCapExceeded, e.charge(account, charge.Found).Code)
		require.Equal(t, "", e.charge(account, charge.Failed).Code)
	})

	t.Run("refuses an account past its monthly volume", func(t *testing.T) {
		_, err := c.client.SetPlan(t.Context(), writer.Plan{ID: "tiny", APIAccess: true, PerMinute: 1000, MonthlyVolume: 2})
		require.NoError(t, err)
		account := c.account("tiny", 100)
		require.Equal(t, "", e.charge(account, charge.Found).Code)
		require.Equal(t, "", e.charge(account, charge.Found).Code)
		require.Equal(t, charge.MonthlyVolumeExceeded, e.charge(account, charge.Found).Code)
		require.Equal(t, charge.MonthlyVolumeExceeded, e.charge(account, charge.NotFound).Code)
	})

	t.Run("an id is charged once, and a voided one never", func(t *testing.T) {
		account := c.account("growth", 100)
		r := request(account, charge.Found)
		first := e.Charge(t.Context(), r)
		require.EqualValues(t, 99, first.CreditsRemaining)
		require.Equal(t, first, e.Charge(t.Context(), r))
		require.NoError(t, e.Void(t.Context(), r.ID))
		require.NoError(t, e.Void(t.Context(), r.ID))
		require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code)
		require.EqualValues(t, 99, e.charge(account, charge.Found).CreditsRemaining)
		unseen := request(account, charge.Found)
		require.NoError(t, e.Void(t.Context(), unseen.ID))
		require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), unseen).Code)
		eventually(t, func() bool { return c.read(account).Spent == 1 }, "one charge stands")
	})
}
