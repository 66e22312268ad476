package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
)

// The defaults of a Config. They fit the largest answer of the contract (50 partners with long
// names are about 12 KB) with room for damaged data.
const (
	DefaultConnections = 4
	DefaultTimeout     = 2 * time.Second
	DefaultMaxRows     = 1000
	DefaultMaxBytes    = 1 << 20
)

// Config names the file to read and sets the limits. A limit of zero means its default.
type Config struct {
	// Path is the database file. It must exist.
	Path string
	// Connections is the maximum number of statements that run at once. The first half of the
	// connections, which are used first, have page caches that grow with the file.
	Connections int
	// Pinned makes Open open all connections at once, and the store stay with the file that Open
	// found. Another file at the path may be a replica under construction.
	Pinned bool
	// Watched opens one more connection, which reads the newest state while the others hold one.
	Watched bool
	// Timeout bounds one statement, including the wait for a connection.
	Timeout time.Duration
	// MaxRows and MaxBytes bound one result. Only its texts and blobs count as bytes.
	MaxRows, MaxBytes int
	// ReadTx is how long a connection keeps a read transaction open, to save the locks of each
	// statement. Commits of the owner are seen that much later, and its WAL cannot be
	// checkpointed fully meanwhile. 0 means a transaction per statement.
	ReadTx time.Duration
	// CacheResults caches the results of statements with one parameter until the database
	// changes. It needs ReadTx: changes are only looked for when a transaction begins.
	CacheResults bool
	// Now is the clock for Timeout; nil means time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	setDefault(&c.Connections, DefaultConnections)
	setDefault(&c.MaxRows, DefaultMaxRows)
	setDefault(&c.MaxBytes, DefaultMaxBytes)
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func setDefault(n *int, value int) {
	if *n <= 0 {
		*n = value
	}
}

// Errors of Query. SQLite's own errors about the file or the statement are returned as they are.
var (
	// ErrClosed is returned once the store is closed.
	ErrClosed = errors.New("the store is closed")
	// ErrTooLarge is returned for a result beyond MaxRows or MaxBytes.
	ErrTooLarge = errors.New("the result is over its limit")
	// ErrReplaced is returned by a pinned store that can't open its file again because the path
	// names another one.
	ErrReplaced = errors.New("the database file was replaced")
	// ErrTimeout is returned for a statement that took longer than Timeout.
	ErrTimeout = errors.New("the statement took too long")
)

// Store is a pool of read-only connections to one file. It is safe for concurrent use.
type Store struct {
	config Config
	tokens chan struct{} // one for each slot in use

	mu    sync.Mutex
	slots []slot      // the first free one is taken: its cache is warm
	held  atomic.Bool // transactions are kept; see hold
	// gathers is set while hold waits for all tokens: until then no slot may keep its token as lost.
	gathers bool
	file    os.FileInfo // the file that idle connections have open
	index   os.FileInfo // of the WAL, as Open found it; nil if there was none
	closed  bool

	aside sync.Mutex
	fresh *connection // of a Watched store: reads the newest state beside the slots; nil after it broke
}

// slot holds one connection.
type slot struct {
	taken bool
	idle  *connection // nil if it is in use or not open
	renew bool        // end the transaction on release
	lost  bool        // broke during a hold; a new connection would see the push. taken is set too
}

// Open opens the file and reads its schema once. It fails for a missing file or one that is no
// database.
func Open(config Config) (*Store, error) {
	config = config.withDefaults()
	s := &Store{
		config: config, tokens: make(chan struct{}, config.Connections), slots: make([]slot, config.Connections),
	}
	for at := range s.slots {
		c, err := s.connect(at)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open database %s: %w", config.Path, err), s.Close())
		}
		s.slots[at].idle, s.file = c, c.file
		if !config.Pinned {
			break // the others are opened when they are needed
		}
	}
	if config.Watched {
		c, err := s.connect(config.Connections)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open database %s: %w", config.Path, err), s.Close())
		}
		s.fresh = c
	}
	if info, err := os.Stat(indexOf(config.Path)); err == nil {
		s.index = info
	}
	return s, nil
}

// indexOf returns the path of the file that all processes with the database open share: the index
// of its WAL, and its locks.
func indexOf(path string) string { return path + "-shm" }

// connect opens the connection of a slot, or the one beside the slots, whose statements each see the
// newest state. A pinned store accepts only the file that it has.
func (s *Store) connect(at int) (*connection, error) {
	config := s.config
	if at == config.Connections {
		config.ReadTx, config.CacheResults = 0, false
	}
	c, err := connect(config, at)
	if err != nil {
		return nil, err
	}
	c.tx.timer = s.newExpiry(c)
	if !s.config.Pinned || s.file == nil {
		return c, nil
	}
	// If the path named this file before and after opening, this is the file that was opened.
	after, err := os.Stat(s.config.Path)
	if err == nil && (!os.SameFile(c.file, s.file) || !os.SameFile(after, s.file)) {
		err = ErrReplaced
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Replaced reports whether the path names another file than the one being read, or none, or
// whether the index of its WAL is another file. The latter happens after the index of a database
// in use was deleted; the owner's later commits are not seen then.
func (s *Store) Replaced() bool {
	info, err := os.Stat(s.config.Path)
	index, indexErr := os.Stat(indexOf(s.config.Path))
	s.mu.Lock()
	defer s.mu.Unlock()
	return err != nil || !os.SameFile(info, s.file) ||
		s.index != nil && indexErr == nil && !os.SameFile(index, s.index)
}

// Query runs one statement with the parameters ?1, ?2, … and fills dst with its rows, reusing the
// memory of dst. The texts in it are never overwritten.
func (s *Store) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	return s.run(ctx, func(c *connection) error { return c.answer(statement, args, dst, s.config) })
}

// queryNamed is Query, and returns the names of the columns.
func (s *Store) queryNamed(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) (names []string, err error) {
	err = s.run(ctx, func(c *connection) error {
		if err := c.answer(statement, args, dst, s.config); err != nil {
			return err
		}
		names, err = c.columns(statement)
		return err
	})
	return names, err
}

// run calls do with a connection in a transaction.
func (s *Store) run(ctx context.Context, do func(*connection) error) error {
	started := s.config.Now()
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	c.limit.set(ctx, s.config.Now, started.Add(s.config.Timeout))
	err = guard(func() error {
		if err := c.enter(started, s.held.Load()); err != nil {
			return err
		}
		return do(c)
	})
	c.limit.clear()
	s.release(c, err)
	if errors.Is(err, sqlite3.INTERRUPT) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrTimeout
	}
	return err
}

// acquire takes the connection of the first free slot, opening it if needed. It waits while none is
// free.
func (s *Store) acquire(ctx context.Context) (*connection, error) {
	if err := s.takeToken(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.tokens
		return nil, ErrClosed
	}
	at := slices.IndexFunc(s.slots, func(p slot) bool { return !p.taken }) // there is one: this caller has a token
	c := s.slots[at].idle
	s.slots[at] = slot{taken: true}
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := s.connect(at)
	if err != nil {
		s.mu.Lock()
		s.slots[at] = slot{}
		s.mu.Unlock()
		<-s.tokens
		return nil, fmt.Errorf("open database %s: %w", s.config.Path, err)
	}
	return c, nil
}

func (s *Store) takeToken(ctx context.Context) error {
	select {
	case s.tokens <- struct{}{}:
		return nil
	default:
	}
	timeout := time.NewTimer(s.config.Timeout)
	defer timeout.Stop()
	select {
	case s.tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return ErrTimeout
	}
}

// release puts a connection back into its slot, or closes it if err may have broken it or its file
// was replaced.
func (s *Store) release(c *connection, err error) {
	s.mu.Lock()
	keep := !s.closed && !breaks(err) && os.SameFile(c.file, s.file)
	if (c.expired || s.slots[c.slot].renew) && !s.held.Load() {
		c.expired = false
		keep = guard(c.tx.leave) == nil && keep
	}
	s.slots[c.slot] = slot{}
	lost := false
	switch {
	case keep:
		s.slots[c.slot].idle = c
	case s.held.Load() && !s.gathers && !s.closed:
		lost = true
		s.slots[c.slot] = slot{taken: true, lost: true}
	}
	last := !slices.ContainsFunc(s.slots, func(p slot) bool { return !p.lost })
	s.mu.Unlock()
	if !keep {
		c.close()
	}
	if !lost {
		<-s.tokens
	}
	if last {
		s.letGo()
	}
}

// breaks reports whether err is about the file or the connection rather than the statement. The
// connection is not used again after it.
func breaks(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errFault) || errors.Is(err, errMemory) {
		return true
	}
	for _, code := range []sqlite3.ErrorCode{
		sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.IOERR, sqlite3.NOMEM,
		sqlite3.CANTOPEN, sqlite3.INTERNAL, sqlite3.PROTOCOL, sqlite3.MISUSE,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// Refresh checks whether the path names another file than before, as after a replica was rebuilt,
// and makes later statements read that one. Otherwise open connections would go on reading the
// deleted file without an error. If there is no file, it fails and changes nothing.
func (s *Store) Refresh() error {
	info, err := os.Stat(s.config.Path)
	if err != nil {
		return fmt.Errorf("refresh database: %w", err)
	}
	s.mu.Lock()
	if os.SameFile(info, s.file) {
		s.mu.Unlock()
		return nil
	}
	s.file = info
	stale := s.takeIdle()
	s.mu.Unlock()
	return closeAll(stale)
}

// Close closes the idle connections now and those in use when they are released.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	idle := s.takeIdle()
	s.mu.Unlock()
	s.aside.Lock()
	defer s.aside.Unlock()
	if s.fresh != nil {
		idle = append(idle, s.fresh)
		s.fresh = nil
	}
	return closeAll(idle)
}

// takeIdle removes the idle connections from their slots. The caller holds mu.
func (s *Store) takeIdle() (idle []*connection) {
	for at := range s.slots {
		if c := s.slots[at].idle; c != nil {
			s.slots[at].idle = nil
			idle = append(idle, c)
		}
	}
	return idle
}

func closeAll(connections []*connection) error {
	var failed []error
	for _, c := range connections {
		failed = append(failed, c.close())
	}
	return errors.Join(failed...)
}
