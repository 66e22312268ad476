package conformance

import (
	"context"
	"errors"
	"log/slog"
	"maps"
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
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	docsURL       = "https://regedge.example"
	operatorToken = "operator-token-of-the-vectors"
	meterToken    = "meter-token-of-the-vectors"
)

// start is the time at which each engine's vectors start: fifteen seconds into a minute, so that
// RateLimit-Reset is 45.
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

// testEnv is the service around an engine: the registry, and a real writer and meter with
// databases of their own.
type testEnv struct {
	registry, access string
	clock            *simClock
	client           *writer.Client
	meter            *meter.Meter
	release          string
	dir              string
	full             bool // the host already serves as many requests as it may
}

func newTestEnv(t *testing.T) *testEnv {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })

	path := sampletest.Registry(t)
	dir := t.TempDir()
	env := &testEnv{registry: path, access: filepath.Join(dir, "access.db"), clock: &simClock{now: start}, dir: dir}
	env.release = readRelease(t, path)

	ledger, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { ledger.Close() })
	access, err := schema.OpenFile(env.access)
	require.NoError(t, err)
	t.Cleanup(func() { access.Close() })
	central, err := writer.Open(ctx, writer.Config{Ledger: ledger, Access: access, OperatorToken: operatorToken, Now: env.clock.Now})
	require.NoError(t, err)
	running.Go(func() { central.Run(ctx) })

	inProcess := &http.Client{Transport: writer.InProcess(central.Handler())}
	env.client = writer.NewClient("http://writer.internal", operatorToken, inProcess)
	_, err = env.client.SetPlan(ctx, writer.Plan{ID: "tiny", APIAccess: true, PerMinute: 1000, MonthlyVolume: 3})
	require.NoError(t, err)
	node, err := env.client.AddNode(ctx, "vectors")
	require.NoError(t, err)
	env.meter = env.newMeter(t, filepath.Join(dir, "state"), meter.OverHTTP("http://writer.internal", node.Token, inProcess))
	require.Eventually(t, func() bool { return env.meter.Ready() == nil }, time.Minute, 10*time.Millisecond)
	return env
}

// newMeter runs a meter until the test ends.
func (env *testEnv) newMeter(t *testing.T, state string, central meter.Transport) *meter.Meter {
	// A busy machine may take longer for a lease than the usual limit; the engines end a wait after 5 s.
	m, err := meter.Open(meter.Config{State: state, Now: env.clock.Now, Writer: central, WaitLimit: 4 * time.Second})
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

// unreachable is a writer that no message reaches.
type unreachable struct{}

func (unreachable) Sync(context.Context, []byte) ([]byte, error) { return nil, errors.New("no route") }

// without returns a copy of env in which a part has failed.
func (env *testEnv) without(t *testing.T, part string) *testEnv {
	failed := *env
	switch part {
	case "writer":
		failed.meter = env.newMeter(t, t.TempDir(), unreachable{})
	case "registry":
		failed.registry = filepath.Join(t.TempDir(), "registry.db")
		db, err := schema.OpenFile(failed.registry)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(`CREATE TABLE other (x)`)
		require.NoError(t, err)
	case "room":
		failed.full = true
	case "record":
		failed.registry = filepath.Join(t.TempDir(), "registry.db")
		content, err := os.ReadFile(env.registry)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(failed.registry, content, 0o644))
		db, err := schema.OpenFile(failed.registry)
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
	db, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	defer db.Close()
	var id string
	require.NoError(t, db.QueryRow(`SELECT id FROM release ORDER BY seq DESC LIMIT 1`).Scan(&id))
	return id
}

// newAccount makes the account of a vector by the writer's API.
func (env *testEnv) newAccount(t *testing.T, given Given) Account {
	ctx := context.Background()
	account, err := env.client.AddAccount(ctx, t.Name(), "", given.Plan)
	require.NoError(t, err)
	if given.Credits > 0 {
		_, err = env.client.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: given.Credits, Note: "given"})
		require.NoError(t, err)
	}
	var keys [3]writer.NewKey
	for i := range keys {
		settings := writer.KeySettings{Name: "key"}
		if i == 0 {
			settings.PerMinute = given.PerMinute
			if given.Allowed != "" {
				settings.Allowed = []string{given.Allowed}
			}
		}
		keys[i], err = env.client.AddKeyWith(ctx, account.ID, settings)
		require.NoError(t, err)
	}
	if given.Spent {
		env.limitKey(t, keys[0].ID)
	}
	_, err = env.client.RevokeKey(ctx, keys[2].ID)
	require.NoError(t, err)
	// The edge's clock is the real one here, and well past this end.
	expired, err := env.client.AddKeyWith(ctx, account.ID, writer.KeySettings{Name: "expired", Expires: new(env.clock.Now().Add(time.Millisecond))})
	require.NoError(t, err)
	if given.Suspended {
		yes := true
		_, err = env.client.ChangeAccount(ctx, account.ID, writer.AccountChange{Suspended: &yes})
		require.NoError(t, err)
	}
	return Account{Key: keys[0].Secret, Second: keys[1].Secret, Revoked: keys[2].Secret, Expired: expired.Secret}
}

// limitKey says in the access database that a key has spent the credits of its month, as the writer does
// when edges have reported them.
func (env *testEnv) limitKey(t *testing.T, id int64) {
	db, err := schema.OpenFile(env.access)
	require.NoError(t, err)
	defer db.Close()
	month := syncproto.Month(env.clock.Now().UnixMilli())
	_, err = db.Exec(`UPDATE api_key SET limited_until = ? WHERE id = ?`, syncproto.EndOfMonth(month), id)
	require.NoError(t, err)
}

func (env *testEnv) kit(address, clientHeader string) *Kit {
	return &Kit{Address: address, ClientHeader: clientHeader, NewAccount: env.newAccount, Advance: env.advance, Release: env.release}
}

// advance moves the clock and waits for the meter's next sync. Until then the meter takes the
// writer for unreachable, and its verdicts lack numbers.
func (env *testEnv) advance(t *testing.T, d time.Duration) {
	env.clock.advance(d)
	probe := charge.Request{Account: 1 << 40, Key: 1 << 40, PerMinute: 1 << 40, Endpoint: charge.Companies, Outcome: charge.Failed}
	require.Eventually(t, func() bool {
		probe.ID = handler.NewRequestID(engine.Clock{}, engine.Random{})
		return env.meter.Charge(context.Background(), probe).RateRemaining != charge.Unsent
	}, time.Minute, 5*time.Millisecond)
}

func (env *testEnv) open(t *testing.T, path string) *sqlite.Store {
	s, err := sqlite.Open(sqlite.Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// serve runs the host's server with an answerer made from the env's parts.
func (env *testEnv) serve(t *testing.T, newAnswerer func(engine.Parts) server.Answerer) *Kit {
	parts := engine.Parts{
		Access: env.open(t, env.access), Registry: env.open(t, env.registry), Meter: env.meter,
		Clock: engine.Clock{}, Random: engine.Random{}, DocsURL: docsURL,
	}
	proxies, err := server.ParseProxies([]string{"127.0.0.0/8"})
	require.NoError(t, err)
	answerer, limit := newAnswerer(parts), 0
	if env.full {
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
	if env.full {
		answerer.(*occupied).fill(t, "http://"+listener.Addr().String())
	}
	return env.kit(listener.Addr().String(), "X-Forwarded-For")
}

// serveMeter serves the meter over HTTP, as regedge meter does beside Spin.
func (env *testEnv) serveMeter(t *testing.T) string {
	web := httptest.NewServer(&joined{Handler: env.meter.Handler(meterToken), calls: map[string]func() *httptest.ResponseRecorder{}})
	t.Cleanup(web.Close)
	return web.URL
}

// joined gives calls of one target one answer. The component repeats a call that has no answer within a second, as on a busy
// machine while a charge waits for its lease, and the meter counts both to the rate: the numbers would not be a vector's.
type joined struct {
	http.Handler
	mu    sync.Mutex
	calls map[string]func() *httptest.ResponseRecorder
}

func (j *joined) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	j.mu.Lock()
	call := j.calls[r.URL.String()]
	if call == nil {
		call = sync.OnceValue(func() *httptest.ResponseRecorder {
			answer := httptest.NewRecorder()
			j.Handler.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
			return answer
		})
		j.calls[r.URL.String()] = call
	}
	j.mu.Unlock()
	answer := call()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
}

// occupied is an answerer that serves its first request until the test ends.
type occupied struct{ begun, end chan struct{} }

func (o *occupied) Answer(context.Context, *handler.Request, *handler.Response) error {
	close(o.begun) // panics for a second request, which the server must refuse
	<-o.end
	return errors.New("the test has ended")
}

// fill sends the first request and returns once it is being served.
func (o *occupied) fill(t *testing.T, base string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.Get(base + "/v1/companies/first"); err == nil {
			res.Body.Close()
		}
	}()
	<-o.begun
	t.Cleanup(func() {
		close(o.end)
		<-ended
	})
}
