package writer

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/replicate/metering/ledger"
	"regedge/schema"
)

// minToken is the minimum length of the operators' token, in characters.
const minToken = 16

// streamIdle is how long an unused connection to a libSQL server is kept. The server ends idle
// streams after some seconds, and a transaction on one would fail.
const streamIdle = 2 * time.Second

// Config configures a Writer. Ledger, Access and OperatorToken are required.
type Config struct {
	// Ledger and Access are the two databases, local files or remote libSQL. The writer migrates
	// them; the caller closes them.
	Ledger, Access *sql.DB
	// OperatorToken is the first bearer token of the operators' API, at least 16 characters. It may do
	// everything, and makes the others.
	OperatorToken string
	// Restored says that the ledger was restored from a backup: nothing is granted until
	// every edge that is not retired has declared its leases.
	Restored bool
	// TakeOver takes the ledger from a writer that still runs, which then ends.
	TakeOver bool
	// Client returns a request's client address, for the audit log; nil takes the connection's.
	Client func(*http.Request) string
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Elapsed is the time since some fixed moment, by a clock that nobody sets. If it is nil, the monotonic reading of
	// Now is used, which time.Now has.
	Elapsed func() time.Duration
	// Random fills p with secure random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Metrics are shown by /metrics beside the writer's own; may be nil.
	Metrics *prometheus.Registry
	// Backup is the file of the ledger's last backup, for its age; may be empty.
	Backup string
	// Logger gets the events that an operator should see; nil discards them.
	Logger *slog.Logger
	// Tracer, if not nil, traces edges' syncs and requests of the API.
	Tracer Tracer
}

// Writer keeps the ledger and serves edges and operators.
type Writer struct {
	config    Config
	local     bool     // the ledger is a file, not a server
	location  location // of that file; owned by Run
	saved     bool     // it has all commits since its files are away; owned by Run
	ops       chan *operation
	ended     chan struct{}  // closed when Run has returned
	held      []*operation   // owned by Run
	ledger    *ledger.Ledger // owned by Run; nil while it can't be read
	last      *ledger.Ledger // the previous one, for CarryOver; owned by Run
	wrote     bool           // it committed since the last beat; owned by Run
	confirmed int64          // when this writer last saw that it holds the ledger; owned by Run
	awaited   string         // the edges that a restore waits for, as last logged; owned by Run
	// conn and prepared belong to a ledger in a file; nil before the first commit. Owned by Run.
	conn      *sql.Conn
	prepared  *ledger.Prepared
	handler   http.Handler
	metrics   *metrics
	reports   reportStore
	requests  requestLog
	projector *projector
	offenders *offenders
	refusals  refusals // of edges' messages
	crowds    refusals // of more of them than an edge sends at once
	inFlight  inFlight
	unbooked  refusals // commits that failed for reasons other than their content
	unloaded  refusals // loads of the ledger that failed
	gate      *ownerGate
	sumTurns  *SumTurns
	remarks   []func() string // of Remark

	began      time.Time // by Config.Now, at zero of Config.Elapsed
	generation uint64
	started    atomic.Bool // Run was called, or it never will be
	fenced     atomic.Bool
	away       atomic.Bool  // the ledger's files are no longer where they were
	unwritten  atomic.Int32 // commits in a row that could not be written, for readiness
	unread     atomic.Bool  // the ledger could not be loaded the last time: all is refused
	clocks     *nodeClocks
	// busySince is when the commit loop began what it is at, nil while it waits for work and before Run.
	busySince atomic.Pointer[time.Time]

	mu     sync.Mutex
	tokens map[[32]byte]string // hash of an edge's token → name
	// retired are the names of retired edges: these get nothing more, and their clocks do not count.
	retired map[string]bool
	// operators are the tokens of the operators' API, ended ones too.
	operators []operatorToken
	// tokensChanged says that both have to be read again.
	tokensChanged atomic.Bool
}

// ErrDamaged is returned by Open for a restored ledger whose file is damaged.
var ErrDamaged = errors.New("the restored ledger is damaged")

// ErrNothingRestored is returned by Open for a restored ledger that is empty.
var ErrNothingRestored = errors.New("the restored ledger is empty")

// Open migrates the ledger and takes a new generation of it, which stops an older writer. From a
// running writer it takes the ledger only with TakeOver, else it returns ErrHeld. It starts to update
// the access database, and after two seconds leaves that to Run, so that the writer starts while that
// database's server is down, and with any number of keys.
func Open(ctx context.Context, config Config) (*Writer, error) {
	if len(config.OperatorToken) < minToken {
		return nil, fmt.Errorf("open writer: the operators' token needs at least %d characters", minToken)
	}
	w := &Writer{config: config.withDefaults(), ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
	w.began = w.config.Now().Add(-w.config.Elapsed())
	w.local = isFile(config.Ledger)
	w.projector = newProjector(w.config, w.jitter)
	for _, db := range []*sql.DB{config.Ledger, config.Access} {
		if !isFile(db) {
			db.SetConnMaxIdleTime(streamIdle)
		}
	}
	if err := w.prepare(ctx); err != nil {
		if w.generation != 0 {
			w.noteEnd()
		}
		if ctx.Err() != nil { // what was interrupted is of no interest
			err = ctx.Err()
		}
		return nil, fmt.Errorf("open writer: %w", schema.OfDisk(err))
	}
	w.gate = newOwnerGate(w.config.Now)
	w.sumTurns = newSumTurns()
	w.offenders = newOffenders(w.config.Now, w.config.Logger)
	w.clocks = newNodeClocks(w.config.Now, w.config.Logger)
	w.metrics = newMetrics(w.config.Ledger, w.generation, w.projector)
	w.metrics.watch(w)
	w.reports.w = w
	w.requests.w, w.requests.grown, w.requests.most = w, map[int64]bool{}, keptInAll
	w.handler = w.routes()
	return w, nil
}

func (w *Writer) prepare(ctx context.Context) error {
	err := w.checkRestored(ctx)
	if err != nil {
		return err
	}
	if err = schema.Migrate(ctx, w.config.Ledger, schema.Ledger); err != nil {
		return err
	}
	if w.local {
		if w.location, err = findLocation(ctx, w.config.Ledger); err != nil {
			return err
		}
	}
	if err = w.awaitSilence(ctx); err != nil {
		return err
	}
	if w.generation, err = ledger.TakeGeneration(ctx, w.config.Ledger, w.leap(), w.config.Restored, w.self()); err != nil {
		return err
	}
	if w.ledger, err = w.load(ctx); err != nil {
		return err
	}
	w.ledger.BeginSessions(w.random32())
	if err = w.readTokens(ctx); err != nil {
		return err
	}
	// Most of the time the access database is up to date within moments; else Run goes on with it.
	ctx, cancel := context.WithTimeout(ctx, projectWait)
	defer cancel()
	err = w.projector.update(ctx)
	switch {
	case hangs(err):
		w.config.Logger.Info("the access database is brought up to date beside the service")
	case err != nil && isFile(w.config.Access):
		return err
	default:
		w.projector.logOutcome(err)
	}
	return nil
}

// checkRestored refuses a restored ledger that is empty, and lets SQLite check a file for damage, before anything is
// written to it. That takes some seconds for a gigabyte.
func (w *Writer) checkRestored(ctx context.Context) error {
	if !w.config.Restored {
		return nil
	}
	if version, err := schema.Version(ctx, w.config.Ledger, schema.Ledger); err != nil {
		return err
	} else if version == 0 {
		return ErrNothingRestored
	}
	if !w.local {
		return nil
	}
	var found string
	if err := w.config.Ledger.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return fmt.Errorf("check the restored ledger: %w", err)
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, found)
	}
	return nil
}

// jitter returns a random duration between half of d and d, so that retries of several writers, or of a
// restarting one, do not coincide.
func (w *Writer) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(w.random32())*time.Microsecond%(d/2)
}

// leap is the random step of the ledger's generation at this start.
func (w *Writer) leap() uint64 {
	if w.config.Restored {
		return w.random32() % ledger.MaxRestoredLeap
	}
	return w.random32() % ledger.MaxLeap
}

func (w *Writer) random32() uint64 {
	var random [4]byte
	w.config.Random(random[:])
	return uint64(binary.LittleEndian.Uint32(random[:]))
}

func (c Config) withDefaults() Config {
	if c.Client == nil {
		c.Client = Connection
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Elapsed == nil {
		now, began := c.Now, c.Now()
		c.Elapsed = func() time.Duration { return now().Sub(began) }
	}
	if c.Random == nil {
		c.Random = func(p []byte) { rand.Read(p) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// loadTokens reads the names of edges by the hashes of their tokens, and which edges are retired.
func loadTokens(ctx context.Context, db *sql.DB) (tokens map[[32]byte]string, retired map[string]bool, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name, token_hash, retired FROM node`)
	if err != nil {
		return nil, nil, fmt.Errorf("load node tokens: %w", err)
	}
	defer rows.Close()
	tokens, retired = map[[32]byte]string{}, map[string]bool{}
	for rows.Next() {
		var name string
		var hash []byte
		var isRetired bool
		if err := rows.Scan(&name, &hash, &isRetired); err != nil {
			return nil, nil, fmt.Errorf("load node tokens: %w", err)
		}
		if len(hash) == 32 {
			tokens[[32]byte(hash)] = name
		}
		if isRetired {
			retired[name] = true
		}
	}
	return tokens, retired, rows.Err()
}

// Close gives the ledger up when Run was never called, as in a command that fails in between: else the next
// writer would wait some seconds for this one.
func (w *Writer) Close() error {
	if !w.started.Swap(true) {
		w.noteEnd()
	}
	return nil
}

// Run commits operations until ctx ends. It is called once. It returns ErrFenced when another
// writer took the ledger, and nil when ctx ended.
func (w *Writer) Run(ctx context.Context) error {
	w.started.Store(true)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer w.startProjector(ctx)()
	defer w.requests.start(ctx)()
	defer close(w.ended)
	defer w.noteEnd()
	defer w.release()
	defer w.releaseAll(ErrUnavailable)
	w.logAwaited()
	for {
		w.busySince.Store(nil)
		select {
		case <-ctx.Done():
			return nil
		case first := <-w.ops:
			w.busySince.Store(new(time.Now()))
			w.timedCommit(ctx, w.gather(first))
		case <-tick.C:
			w.busySince.Store(new(time.Now()))
			w.everySecond(ctx)
		}
		if w.fenced.Load() {
			w.config.Logger.Error("another writer took the ledger: stopping")
			w.releaseAll(ErrFenced)
			return ErrFenced
		}
	}
}

// startProjector projects until ctx ends or the returned function is called, which waits for the end.
func (w *Writer) startProjector(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.projector.run(ctx) })
	return func() { cancel(); running.Wait() }
}

// everySecond checks that this writer still holds the ledger, and loads the ledger again if that
// failed before.
func (w *Writer) everySecond(ctx context.Context) {
	if w.inPlace(ctx) != nil {
		w.metrics.failed.Inc()
		w.save(ctx)
		w.ledger = nil
		w.releaseNews()
		return
	}
	w.beat(ctx)
	if w.confirm(ctx, w.now()); w.fenced.Load() {
		return
	}
	if w.ledger == nil {
		w.reload(ctx)
	}
	if w.unread.Load() {
		w.metrics.failed.Inc()
	} else {
		w.unloaded.end(func(count int) { w.config.Logger.Info("the ledger is read again", "failed", count) })
	}
	w.refreshTokens(ctx)
	w.logAwaited()
	w.clocks.tell()
	w.releaseNews()
}

// logAwaited logs which edges a restore waits for, when that changed.
func (w *Writer) logAwaited() {
	if w.ledger == nil {
		return
	}
	names := strings.Join(w.ledger.Awaited(), ", ")
	if names == w.awaited {
		return
	}
	if w.awaited = names; names == "" {
		w.config.Logger.Info("every edge has reported since the ledger came back from a backup: leases are granted again")
		if covered := w.ledger.Covered(); covered.Credits > 0 {
			w.config.Logger.Warn("edges held credits whose purchase was lost with the ledger, and they were compensated: repeat a purchase without them (regedge credit list)",
				"credits", covered.Credits, "accounts", covered.Accounts)
		}
		return
	}
	w.config.Logger.Warn("the ledger came back from a backup: nothing is granted until these edges have reported or are retired", "edges", names)
}

// AccessLost says that the access database has lost its tables. The writer fills it again.
func (w *Writer) AccessLost() {
	w.projector.lost()
	w.projector.ask()
}

// AccessFilled reports whether the access database got all its rows since the writer began or that database was lost,
// except rows that it refuses.
func (w *Writer) AccessFilled() bool {
	w.projector.mu.Lock()
	defer w.projector.mu.Unlock()
	return w.projector.filled
}

// Handler serves the operators' API, the edges' sync and reports, /healthz, /readyz and /metrics.
func (w *Writer) Handler() http.Handler { return w.handler }

func (w *Writer) now() int64 { return w.config.Now().UnixMilli() }

// steadyNow is what the clock would show if nobody had set it since this writer began, in Unix milliseconds.
func (w *Writer) steadyNow() int64 { return w.began.Add(w.config.Elapsed()).UnixMilli() }
