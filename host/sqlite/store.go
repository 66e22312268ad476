package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
)

// The defaults of a Config, enough for the largest answer of the specification (50
// partners with long names are about 12 KB) with room for data gone wrong.
const (
	DefaultConnections = 4
	DefaultTimeout     = 2 * time.Second
	DefaultMaxRows     = 1000
	DefaultMaxBytes    = 1 << 20
)

// Config says which file to read and within which limits. A zero limit is its default.
type Config struct {
	// Path is the database file. It must exist.
	Path string
	// Connections is the most statements that run at once. The first half of them, which
	// is used first, has page caches that grow with the file.
	Connections int
	// Pinned keeps to the file that Open finds, by opening all connections at once. A
	// file that took its place is never read: it may be a replica under construction.
	Pinned bool
	// Timeout bounds one statement, waiting for a connection included.
	Timeout time.Duration
	// MaxRows and MaxBytes bound one result; the bytes are those of its texts and blobs.
	MaxRows, MaxBytes int
	// Hold is how long a connection goes on reading the state of the database that it
	// saw first, to save the locks of each statement. What the owner commits is seen
	// that much later, and its log can't be emptied meanwhile. None by default.
	Hold time.Duration
	// Remember keeps results of statements with one parameter while the database does not
	// change. It needs Hold: between two transactions nobody knows.
	Remember bool
	// Now tells the time that Timeout is measured by; nil is time.Now.
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

// Errors of Query. What SQLite says of the file or the statement comes as it is.
var (
	// ErrClosed is returned once the store is closed.
	ErrClosed = errors.New("the store is closed")
	// ErrTooLarge is returned for a result beyond MaxRows or MaxBytes.
	ErrTooLarge = errors.New("the result is over its limit")
	// ErrReplaced is returned by a pinned store that can't open its file again, because
	// the path names another.
	ErrReplaced = errors.New("the database file was replaced")
	// ErrTimeout is returned for a statement that took longer than Timeout.
	ErrTimeout = errors.New("the statement took too long")
)

// Store is a pool of read-only connections to one file. It is safe for concurrent use.
type Store struct {
	config Config
	slots  chan struct{} // one token for each place in use

	mu     sync.Mutex
	places []place     // the first one that is free is taken: its cache is warm
	file   os.FileInfo // the file that idle connections have open
	index  os.FileInfo // of its log, as Open found it; nil when there was none
	closed bool
}

// place is where one connection may be.
type place struct {
	taken bool
	idle  *connection // nil when it is in use, or not open
}

// Open opens the file and reads its schema once, so that a missing file, or one that
// is no database, is known at start.
func Open(config Config) (*Store, error) {
	config = config.withDefaults()
	s := &Store{
		config: config, slots: make(chan struct{}, config.Connections), places: make([]place, config.Connections),
	}
	for at := range s.places {
		c, err := s.connect(at)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open database %s: %w", config.Path, err), s.Close())
		}
		s.places[at].idle, s.file = c, c.file
		if !config.Pinned {
			break // the others when they are needed
		}
	}
	if info, err := os.Stat(indexOf(config.Path)); err == nil {
		s.index = info
	}
	return s, nil
}

// indexOf is the file that all who have a database open share: where in its log (-wal) a page
// is, and locks.
func indexOf(path string) string { return path + "-shm" }

// connect opens the connection of a place; of a pinned store, to the same file.
func (s *Store) connect(at int) (*connection, error) {
	c, err := connect(s.config, at)
	if err != nil {
		return nil, err
	}
	c.hold.timer = s.newLapse(c)
	if !s.config.Pinned || s.file == nil {
		return c, nil
	}
	// The path named this file before and after it was opened: so that is the one.
	after, err := os.Stat(s.config.Path)
	if err == nil && (!os.SameFile(c.file, s.file) || !os.SameFile(after, s.file)) {
		err = ErrReplaced
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Replaced reports whether the path names another file than the one that is read, or
// none, or the index of its log is another, as it is once somebody has removed that of a
// database in use: what the owner commits from then on is not seen.
func (s *Store) Replaced() bool {
	info, err := os.Stat(s.config.Path)
	index, indexErr := os.Stat(indexOf(s.config.Path))
	s.mu.Lock()
	defer s.mu.Unlock()
	return err != nil || !os.SameFile(info, s.file) ||
		s.index != nil && indexErr == nil && !os.SameFile(index, s.index)
}

// Query runs one statement with the parameters ?1, ?2, … and fills dst with its rows,
// whose memory it reuses. The texts of dst stay valid for ever.
func (s *Store) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	started := s.config.Now()
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	c.limit.set(ctx, s.config.Now, started.Add(s.config.Timeout))
	if err = c.enter(started); err == nil {
		err = c.answer(statement, args, dst, s.config)
	}
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

// acquire takes the connection of the first place that is free, which it opens if it is
// not, or waits for a place.
func (s *Store) acquire(ctx context.Context) (*connection, error) {
	if err := s.takeSlot(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.slots
		return nil, ErrClosed
	}
	at := slices.IndexFunc(s.places, func(p place) bool { return !p.taken }) // there is one, for there was a slot
	c := s.places[at].idle
	s.places[at] = place{taken: true}
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := s.connect(at)
	if err != nil {
		s.mu.Lock()
		s.places[at] = place{}
		s.mu.Unlock()
		<-s.slots
		return nil, fmt.Errorf("open database %s: %w", s.config.Path, err)
	}
	return c, nil
}

func (s *Store) takeSlot(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	patience := time.NewTimer(s.config.Timeout)
	defer patience.Stop()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return ErrTimeout
	}
}

// release gives a connection back, unless what happened may have spoilt it or its file
// has been replaced.
func (s *Store) release(c *connection, err error) {
	s.mu.Lock()
	keep := !s.closed && !Spoils(err) && os.SameFile(c.file, s.file)
	if c.lapsed {
		c.lapsed = false
		keep = c.hold.leave() == nil && keep
	}
	s.places[c.place] = place{}
	if keep {
		s.places[c.place].idle = c
	}
	s.mu.Unlock()
	if !keep {
		c.close()
	}
	<-s.slots
}

// Spoils reports whether err is of the file or the connection rather than of the
// statement: a connection is not used again after it.
func Spoils(err error) bool {
	if err == nil {
		return false
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

// Refresh looks whether the path names another file than before, as it does after a
// replica was rebuilt, and makes the following statements read that one. Without it an
// open connection would go on with the deleted file, without an error. It fails when
// there is no file, and then nothing changes.
func (s *Store) Refresh() error {
	info, err := os.Stat(s.config.Path)
	if err != nil {
		return fmt.Errorf("refresh database: %w", err)
	}
	s.mu.Lock()
	if s.closed || os.SameFile(info, s.file) {
		s.mu.Unlock()
		return nil
	}
	s.file = info
	stale := s.takeIdle()
	s.mu.Unlock()
	return closeAll(stale)
}

// Close closes the idle connections now and the ones in use as they come back.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	idle := s.takeIdle()
	s.mu.Unlock()
	return closeAll(idle)
}

// takeIdle takes the idle connections out of their places. The caller holds mu.
func (s *Store) takeIdle() (idle []*connection) {
	for at := range s.places {
		if c := s.places[at].idle; c != nil {
			s.places[at].idle = nil
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
