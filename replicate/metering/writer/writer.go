package writer

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3/driver"

	"regedge/replicate/metering/ledger"
	"regedge/schema"
)

// minToken is the minimum length of the operators' token, in characters.
const minToken = 16

// streamIdle is how long an unused connection to a libSQL server is kept. The server ends idle
// streams after some seconds, and a transaction on one would fail.
const streamIdle = 2 * time.Second

// Config is what a Writer needs. Ledger, Access and OperatorToken must be set.
type Config struct {
	// Ledger and Access are the two databases, local files or remote libSQL. They are
	// migrated by Open; the caller closes them.
	Ledger, Access *sql.DB
	// OperatorToken is the bearer token of the operators' API, at least 16 characters.
	OperatorToken string
	// Restored says that the ledger was restored from a backup: nothing is granted until
	// every edge that is not retired has declared its leases.
	Restored bool
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Random fills p with secure random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Logger gets the events that an operator should see; nil discards them.
	Logger *slog.Logger
}

// Writer keeps the ledger and serves edges and operators.
type Writer struct {
	config    Config
	local     bool // the ledger is a file, not a server
	ops       chan *operation
	ended     chan struct{}  // closed when Run has returned
	held      []*operation   // owned by Run
	ledger    *ledger.Ledger // owned by Run; nil while it can't be read
	last      *ledger.Ledger // the one before, for CarryOver; owned by Run
	confirmed int64          // when this writer last saw that it holds the ledger; owned by Run
	awaited   string         // the edges that a restore waits for, as last logged; owned by Run
	healError string         // why the access database could not be reconciled, as last logged; owned by Run
	// conn and prepared belong to a ledger in a file; nil before the first commit. Owned by Run.
	conn     *sql.Conn
	prepared *ledger.Prepared
	handler  http.Handler
	metrics  *metrics

	generation uint64
	fenced     atomic.Bool
	behind     atomic.Bool // the access database misses a change

	mu     sync.Mutex
	tokens map[[32]byte]string // hash of an edge's token → name
}

// Open migrates both databases, takes a new generation of the ledger, which stops an older
// writer, and reconciles the access database.
func Open(ctx context.Context, config Config) (*Writer, error) {
	if len(config.OperatorToken) < minToken {
		return nil, fmt.Errorf("open writer: the operators' token needs at least %d characters", minToken)
	}
	w := &Writer{config: config.withDefaults(), ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
	_, w.local = config.Ledger.Driver().(*driver.SQLite)
	for _, db := range []*sql.DB{config.Ledger, config.Access} {
		if _, file := db.Driver().(*driver.SQLite); !file {
			db.SetConnMaxIdleTime(streamIdle)
		}
	}
	if err := w.prepare(ctx); err != nil {
		return nil, fmt.Errorf("open writer: %w", err)
	}
	w.metrics = newMetrics(w.config.Ledger, w.generation)
	w.handler = w.routes()
	return w, nil
}

func (w *Writer) prepare(ctx context.Context) error {
	if err := schema.Migrate(ctx, w.config.Ledger, schema.Ledger); err != nil {
		return err
	}
	if err := schema.Migrate(ctx, w.config.Access, schema.Access); err != nil {
		return err
	}
	var err error
	if w.generation, err = ledger.TakeGeneration(ctx, w.config.Ledger, w.leap(), w.config.Restored); err != nil {
		return err
	}
	if w.ledger, err = ledger.Load(ctx, w.config.Ledger); err != nil {
		return err
	}
	w.ledger.BeginSessions(w.random32())
	if w.tokens, err = loadTokens(ctx, w.config.Ledger); err != nil {
		return err
	}
	return w.reconcile(ctx)
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
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = func(p []byte) { rand.Read(p) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func loadTokens(ctx context.Context, db *sql.DB) (map[[32]byte]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT name, token_hash FROM node`)
	if err != nil {
		return nil, fmt.Errorf("load node tokens: %w", err)
	}
	defer rows.Close()
	tokens := map[[32]byte]string{}
	for rows.Next() {
		var name string
		var hash []byte
		if err := rows.Scan(&name, &hash); err != nil {
			return nil, fmt.Errorf("load node tokens: %w", err)
		}
		if len(hash) == 32 {
			tokens[[32]byte(hash)] = name
		}
	}
	return tokens, rows.Err()
}

// Run commits operations until ctx ends. It is called once. It returns ErrFenced when another
// writer took the ledger, and nil when ctx ended.
func (w *Writer) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer close(w.ended)
	defer w.release()
	defer w.releaseAll(ErrUnavailable)
	w.logAwaited()
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-w.ops:
			w.commitGroup(ctx, w.gather(first))
		case <-tick.C:
			w.everySecond(ctx)
		}
		if w.fenced.Load() {
			w.config.Logger.Error("another writer took the ledger: stopping")
			w.releaseAll(ErrFenced)
			return ErrFenced
		}
	}
}

// everySecond checks that this writer still holds the ledger, loads the ledger again if that
// failed before, and heals the access database.
func (w *Writer) everySecond(ctx context.Context) {
	if w.confirm(ctx, w.now()); w.fenced.Load() {
		return
	}
	if w.ledger == nil {
		w.reload(ctx)
	}
	if w.behind.Load() {
		w.heal(ctx)
	}
	w.logAwaited()
	w.releaseNews()
}

// heal reconciles the access database. It logs the first failure, and the end of failures.
func (w *Writer) heal(ctx context.Context) {
	err := w.reconcile(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil && w.healError != "":
		w.healError = ""
		w.config.Logger.Info("the access database is up to date again")
	case err != nil && w.healError != err.Error():
		w.healError = err.Error()
		w.config.Logger.Error("the access database can't be brought up to date: new keys and changed plans wait for it", "error", err)
	}
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
		return
	}
	w.config.Logger.Warn("the ledger came back from a backup: nothing is granted until these edges have reported or are retired", "edges", names)
}

// Handler serves the operators' API, the edges' sync, /healthz, /readyz and /metrics.
func (w *Writer) Handler() http.Handler { return w.handler }

func (w *Writer) now() int64 { return w.config.Now().UnixMilli() }
