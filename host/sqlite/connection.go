package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"regedge/handler"
)

// maxStatements bounds the prepared statements of a connection. The service has fewer
// than ten; a component that sends ever new texts makes the connection drop them all.
const maxStatements = 64

// The bounds of the page cache of a connection, in KiB.
const (
	leastCacheKiB = 3 << 10
	mostCacheKiB  = 48 << 10
)

// cacheKiB returns the size of the page cache of a slot's connection. The inner pages of a
// file's B-trees are about a hundredth of it: with these cached, a lookup reads only leaves,
// even beside searches, which read many pages. The second half of the slots is used only while
// the first waits for the disk; it gets an eighth of that.
func (c Config) cacheKiB(at int, fileBytes int64) int {
	size := min(mostCacheKiB, fileBytes/(100<<10))
	if at > 0 && at >= c.Connections/2 {
		size /= 8
	}
	return int(max(leastCacheKiB, size))
}

// connection is one SQLite connection with its prepared statements and a buffer that
// gathers the texts of a result.
type connection struct {
	slot       int // index in Store.slots
	sqlite     *sqlite3.Conn
	file       os.FileInfo
	statements map[string]*sqlite3.Stmt
	texts      []byte
	limit      *timeLimit
	tx         readTx
	cache      resultCache
	expired    bool // guarded by Store.mu: end the transaction on release
}

func connect(config Config, at int) (c *connection, err error) {
	err = guard(func() error {
		c, err = openConnection(config, at)
		return err
	})
	return c, err
}

func openConnection(config Config, at int) (*connection, error) {
	info, err := os.Stat(config.Path)
	if err != nil {
		return nil, err
	}
	sqlite, err := sqlite3.OpenFlags(config.Path, sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, err
	}
	c := &connection{
		slot: at, sqlite: sqlite, file: info, limit: &timeLimit{},
		statements: make(map[string]*sqlite3.Stmt),
	}
	if err := guard(func() error { return c.setUp(config) }); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// setUp restricts the connection to reading. The schema is read last, because only that makes
// SQLite read the file.
func (c *connection) setUp(config Config) error {
	// First of all: even registering functions reads the file, which its owner locks while it recovers
	// the WAL.
	if err := c.sqlite.BusyTimeout(config.Timeout); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := fts5.Register(c.sqlite); err != nil {
		return fmt.Errorf("register fts5: %w", err)
	}
	// Otherwise the last reader to close would checkpoint the owner's WAL.
	if _, err := c.sqlite.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return fmt.Errorf("forbid checkpoints: %w", err)
	}
	// Otherwise a statement with LIMIT ?1 is compiled again for each value.
	if _, err := c.sqlite.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true); err != nil {
		return fmt.Errorf("keep query plans: %w", err)
	}
	settings := fmt.Sprintf("PRAGMA query_only=on; PRAGMA cache_size=-%d", config.cacheKiB(c.slot, c.file.Size()))
	if err := c.sqlite.Exec(settings); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := c.sqlite.Exec("SELECT 1 FROM sqlite_schema LIMIT 1"); err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	var err error
	if c.tx, err = newReadTx(c.sqlite, config.ReadTx); err != nil {
		return err
	}
	if config.CacheResults && config.ReadTx > 0 {
		if c.cache, err = newResultCache(c.sqlite); err != nil {
			return err
		}
	}
	c.sqlite.SetInterrupt(c.limit)
	return c.sqlite.SetAuthorizer(c.authorize)
}

// authorize allows a statement to read and nothing else. FTS5 reads data_version within its own
// queries; transactions are begun and ended by readTx only.
func (c *connection) authorize(action sqlite3.AuthorizerActionCode, name, _, _, _ string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_FUNCTION, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_PRAGMA:
		if name == "data_version" {
			return sqlite3.AUTH_OK
		}
	case sqlite3.AUTH_TRANSACTION:
		if c.tx.running {
			return sqlite3.AUTH_OK
		}
	}
	return sqlite3.AUTH_DENY
}

// close closes the connection. After errFault or errMemory it may fail with that again, and leave memory behind.
func (c *connection) close() error { return guard(c.closeAll) }

func (c *connection) closeAll() error {
	for _, statement := range c.statements {
		_ = guard(statement.Close) // a statement that got no memory panics again, but is closed
	}
	c.statements = nil
	c.tx.close()
	c.cache.close()
	return c.sqlite.Close()
}

// prepared returns the cached statement of a text.
func (c *connection) prepared(text string) (*sqlite3.Stmt, error) {
	if statement, ok := c.statements[text]; ok {
		return statement, nil
	}
	statement, tail, err := c.sqlite.PrepareFlags(text, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, fmt.Errorf("prepare statement: %w", err)
	}
	if statement == nil || tail != "" {
		return nil, errors.Join(errors.New("prepare statement: want exactly one"), statement.Close())
	}
	if len(c.statements) >= maxStatements {
		for _, old := range c.statements {
			old.Close()
		}
		clear(c.statements)
	}
	c.statements[text] = statement
	return statement, nil
}

// columns returns the names of a statement's columns.
func (c *connection) columns(text string) ([]string, error) {
	statement, err := c.prepared(text)
	if err != nil {
		return nil, err
	}
	names := make([]string, statement.ColumnCount())
	for i := range names {
		names[i] = statement.ColumnName(i)
	}
	return names, nil
}

// enter makes sure that a read transaction is open; with hold, an old one will do. A new one may invalidate the
// cache.
func (c *connection) enter(now time.Time, hold bool) error {
	began, err := c.tx.enter(now, hold)
	if err != nil || !began {
		return err
	}
	return c.cache.begin()
}

// answer takes the result from the cache, or runs the statement.
func (c *connection) answer(text string, args []handler.Value, dst *handler.Result, config Config) error {
	key, ok := c.cache.key(text, args)
	if ok && c.cache.get(key, dst) {
		return nil
	}
	err := c.query(text, args, dst, config.MaxRows, config.MaxBytes)
	if err == nil && ok {
		c.cache.put(key, dst)
	}
	return err
}

// query binds the parameters, steps the statement to its end and resets it, even after an error.
func (c *connection) query(text string, args []handler.Value, dst *handler.Result, maxRows, maxBytes int) error {
	dst.Columns, dst.Values = 0, dst.Values[:0]
	statement, err := c.prepared(text)
	if err != nil {
		return err
	}
	err = bind(statement, args)
	if err == nil {
		err = c.collect(statement, dst, maxRows, maxBytes)
	}
	if resetErr := statement.Reset(); err == nil {
		err = resetErr
	}
	if err != nil {
		dst.Columns, dst.Values = 0, dst.Values[:0]
	}
	return err
}

func bind(statement *sqlite3.Stmt, args []handler.Value) error {
	if want := statement.BindCount(); want != len(args) {
		return fmt.Errorf("bind parameters: want %d, got %d", want, len(args))
	}
	for i, arg := range args {
		if err := bindOne(statement, i+1, arg); err != nil {
			return fmt.Errorf("bind parameter %d: %w", i+1, err)
		}
	}
	return nil
}

func bindOne(statement *sqlite3.Stmt, i int, arg handler.Value) error {
	switch arg.Kind {
	case handler.Integer:
		return statement.BindInt64(i, arg.Int)
	case handler.Text:
		return statement.BindText(i, arg.Text)
	case handler.Blob:
		return statement.BindBlob(i, []byte(arg.Text))
	}
	return statement.BindNull(i)
}

// collect gathers all texts in one buffer and slices them out of a single string, so that a
// result costs one allocation.
func (c *connection) collect(statement *sqlite3.Stmt, dst *handler.Result, maxRows, maxBytes int) error {
	c.texts = c.texts[:0]
	dst.Columns = statement.ColumnCount()
	rows := 0
	for ; statement.Step(); rows++ {
		if rows == maxRows {
			return ErrTooLarge
		}
		for column := range dst.Columns {
			value, err := c.value(statement, column)
			if err != nil {
				return err
			}
			dst.Values = append(dst.Values, value)
		}
		if len(c.texts) > maxBytes {
			return ErrTooLarge
		}
	}
	if err := statement.Err(); err != nil {
		return fmt.Errorf("run statement: %w", err)
	}
	cutTexts(dst.Values, string(c.texts))
	return nil
}

// value reads one column. Until cutTexts, the Int of a text holds its length.
func (c *connection) value(statement *sqlite3.Stmt, column int) (handler.Value, error) {
	switch kind := statement.ColumnType(column); kind {
	case sqlite3.INTEGER:
		return handler.Value{Kind: handler.Integer, Int: statement.ColumnInt64(column)}, nil
	case sqlite3.TEXT:
		return c.gather(handler.Text, statement.ColumnRawText(column)), nil
	case sqlite3.BLOB:
		return c.gather(handler.Blob, statement.ColumnRawBlob(column)), nil
	case sqlite3.NULL:
		return handler.Value{}, nil
	default:
		return handler.Value{}, fmt.Errorf("column %d: the storage class %v is not supported", column, kind)
	}
}

// gather appends a text to the buffer.
func (c *connection) gather(kind handler.Kind, raw []byte) handler.Value {
	c.texts = append(c.texts, raw...)
	return handler.Value{Kind: kind, Int: int64(len(raw))}
}

func cutTexts(values []handler.Value, texts string) {
	for i := range values {
		v := &values[i]
		if v.Kind == handler.Text || v.Kind == handler.Blob {
			v.Text, texts = texts[:v.Int], texts[v.Int:]
			v.Int = 0
		}
	}
}

// timeLimit is the context that SQLite polls while a statement runs. It is reset for each
// statement, which needs neither a timer nor an allocation.
type timeLimit struct {
	ctx   context.Context
	now   func() time.Time
	until time.Time
	polls int // since it was set
}

func (t *timeLimit) set(ctx context.Context, now func() time.Time, until time.Time) {
	t.ctx, t.now, t.until, t.polls = ctx, now, until, 0
}

func (t *timeLimit) clear() { t.ctx = nil }

// Deadline implements context.Context.
func (t *timeLimit) Deadline() (time.Time, bool) { return t.until, t.ctx != nil }

// Done returns nil: SQLite polls Err.
func (t *timeLimit) Done() <-chan struct{} { return nil }

// Err is not nil once the limit has passed or the request's own context is done. SQLite polls
// it before every row and, within a long statement, every few thousand instructions. Only every
// fourth poll reads the clock; a lookup never gets that far.
func (t *timeLimit) Err() error {
	if t.ctx == nil {
		return nil
	}
	if t.polls++; t.polls%4 != 0 {
		return nil
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.now().After(t.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (t *timeLimit) Value(any) any { return nil }
