package conformance

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/engine"
	"regedge/host/server"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	docsURL       = "https://regedge.example"
	operatorToken = "operator-token-of-the-vectors"
	meterToken    = "meter-token-of-the-vectors"
)

// start is when the vectors happen: fifteen seconds into a minute, so that RateLimit-Reset
// is 45.
var start = time.Date(2026, 11, 21, 10, 30, 15, 0, time.UTC)

// simClock is the clock of writer and meter.
type simClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *simClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *simClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is the service around an engine: the registry, and a real writer and meter on
// databases of its own.
type world struct {
	registry, access string
	clock            *simClock
	client           *writer.Client
	meter            *meter.Meter
	release          string
	dir              string
	full             bool // all requests that a host answers at once are under way
}

func newWorld(t *testing.T) *world {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })

	path := sampletest.Registry(t)
	dir := t.TempDir()
	w := &world{registry: path, access: filepath.Join(dir, "access.db"), clock: &simClock{now: start}, dir: dir}
	w.release = readRelease(t, path)

	ledger, err := schema.OpenFile(filepath.Join(dir, "ledger.db"), false)
	require.NoError(t, err)
	t.Cleanup(func() { ledger.Close() })
	access, err := schema.OpenFile(w.access, false)
	require.NoError(t, err)
	t.Cleanup(func() { access.Close() })
	center, err := writer.Open(ctx, writer.Config{Ledger: ledger, Access: access, OperatorToken: operatorToken, Now: w.clock.Now})
	require.NoError(t, err)
	running.Go(func() { center.Run(ctx) })

	inProcess := &http.Client{Transport: writer.InProcess(center.Handler())}
	w.client = writer.NewClient("http://writer.internal", operatorToken, inProcess)
	_, err = w.client.SetPlan(ctx, writer.Plan{ID: "tiny", APIAccess: true, PerMinute: 1000, MonthlyVolume: 3})
	require.NoError(t, err)
	node, err := w.client.AddNode(ctx, "vectors")
	require.NoError(t, err)
	w.meter = w.newMeter(t, filepath.Join(dir, "state"), meter.OverHTTP("http://writer.internal", node.Token, inProcess))
	require.Eventually(t, func() bool { return w.meter.Ready() == nil }, time.Minute, 10*time.Millisecond)
	return w
}

// newMeter runs a meter until the test ends.
func (w *world) newMeter(t *testing.T, state string, center meter.Transport) *meter.Meter {
	m, err := meter.Open(meter.Config{State: state, Now: w.clock.Now, Writer: center})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, m.Close())
	})
	return m
}

// away is a writer that no message reaches.
type away struct{}

func (away) Sync(context.Context, []byte) ([]byte, error) { return nil, errors.New("no route") }

// without is the world after a part of it failed.
func (w *world) without(t *testing.T, part string) *world {
	failed := *w
	switch part {
	case "writer":
		failed.meter = w.newMeter(t, t.TempDir(), away{})
	case "registry":
		failed.registry = filepath.Join(t.TempDir(), "registry.db")
		db, err := schema.OpenFile(failed.registry, false)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(`CREATE TABLE other (x)`)
		require.NoError(t, err)
	case "room":
		failed.full = true
	case "record":
		failed.registry = filepath.Join(t.TempDir(), "registry.db")
		content, err := os.ReadFile(w.registry)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(failed.registry, content, 0o644))
		db, err := schema.OpenFile(failed.registry, false)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(`UPDATE company SET website = ? WHERE cin = ?`, strings.Repeat("w", handler.MaxBody), sampletest.CompanyEveryField)
		require.NoError(t, err)
	default:
		t.Fatalf("no outage is called %q", part)
	}
	return &failed
}

func readRelease(t *testing.T, path string) string {
	db, err := schema.OpenFile(path, true)
	require.NoError(t, err)
	defer db.Close()
	var id string
	require.NoError(t, db.QueryRow(`SELECT id FROM release ORDER BY seq DESC LIMIT 1`).Scan(&id))
	return id
}

// newAccount makes what a vector starts with, through the writer's own API.
func (w *world) newAccount(t *testing.T, given Given) Account {
	ctx := context.Background()
	account, err := w.client.AddAccount(ctx, t.Name(), "", given.Plan)
	require.NoError(t, err)
	if given.Credits > 0 {
		_, err = w.client.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: given.Credits, Note: "given"})
		require.NoError(t, err)
	}
	var keys [3]writer.NewKey
	for i := range keys {
		keys[i], err = w.client.AddKey(ctx, account.ID, "key")
		require.NoError(t, err)
	}
	_, err = w.client.RevokeKey(ctx, keys[2].ID)
	require.NoError(t, err)
	if given.Suspended {
		yes := true
		_, err = w.client.ChangeAccount(ctx, account.ID, writer.AccountChange{Suspended: &yes})
		require.NoError(t, err)
	}
	return Account{Key: keys[0].Secret, Second: keys[1].Secret, Revoked: keys[2].Secret}
}

func (w *world) kit(address, clientHeader string) *Kit {
	return &Kit{Address: address, ClientHeader: clientHeader, NewAccount: w.newAccount, Advance: w.advance, Release: w.release}
}

// advance moves the clock. To the meter that is silence of the writer, until their next
// sync: it waits for a verdict that has all of its numbers.
func (w *world) advance(t *testing.T, d time.Duration) {
	w.clock.advance(d)
	probe := charge.Request{Account: 1 << 40, Key: 1 << 40, PerMinute: 1 << 40, Endpoint: charge.Companies, Outcome: charge.Failed}
	require.Eventually(t, func() bool {
		probe.ID = handler.NewRequestID(engine.Clock{}, engine.Random{})
		return w.meter.Charge(context.Background(), probe).RateRemaining != charge.Unsent
	}, time.Minute, 5*time.Millisecond)
}

func (w *world) open(t *testing.T, path string) *sqlite.Store {
	s, err := sqlite.Open(sqlite.Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// serve runs the host's server around an answerer of the world's parts.
func (w *world) serve(t *testing.T, newAnswerer func(engine.Parts) server.Answerer) *Kit {
	parts := engine.Parts{
		Access: w.open(t, w.access), Registry: w.open(t, w.registry), Meter: w.meter,
		Clock: engine.Clock{}, Random: engine.Random{}, DocsURL: docsURL,
	}
	proxies, err := server.ParseProxies([]string{"127.0.0.0/8"})
	require.NoError(t, err)
	answerer, limit := newAnswerer(parts), 0
	if w.full {
		answerer, limit = &occupied{begun: make(chan struct{}), end: make(chan struct{})}, 1
	}
	web, err := server.New(server.Config{
		Answerer: answerer, MaxInFlight: limit, DocsURL: docsURL, Proxies: proxies,
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		NewRequestID: func() string { return handler.NewRequestID(engine.Clock{}, engine.Random{}) },
	})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Run(ctx, listener) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	if w.full {
		answerer.(*occupied).fill(t, "http://"+listener.Addr().String())
	}
	return w.kit(listener.Addr().String(), "X-Forwarded-For")
}

// serveMeter serves the meter over HTTP, as regedge meter does beside Spin.
func (w *world) serveMeter(t *testing.T) string {
	web := httptest.NewServer(w.meter.Handler(meterToken))
	t.Cleanup(web.Close)
	return web.URL
}
