// Package failing is a database in which a test makes one statement fail.
package failing

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"

	sqlite "github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// ErrDisk is the error of the statement that fails.
var ErrDisk = errors.New("disk I/O error")

// DB is a database in a file in which one statement fails, as on a disk that can't read a page. Package
// database/sql sees SQLite's driver.
type DB struct {
	driver.Connector

	mu     sync.Mutex
	counts func(ctx context.Context, within bool, statement string) bool
	left   int    // statements until the one that fails
	failed string // the one that failed
}

// Open opens a database as schema.OpenFile does.
func Open(t testing.TB, path string) (*sql.DB, *DB) {
	t.Helper()
	name, err := schema.FileURI(path, false)
	require.NoError(t, err)
	connector, err := (&sqlite.SQLite{}).OpenConnector(name)
	require.NoError(t, err)
	f := &DB{Connector: connector}
	return sql.OpenDB(f), f
}

type failingKey struct{}

// Marked marks the statements of a request, to tell them from those that the writer runs beside it.
func Marked(ctx context.Context) context.Context { return context.WithValue(ctx, failingKey{}, true) }

// FailRead makes the statement with that number fail. It counts from 1 the statements with a context of
// Marked outside of transactions.
func (f *DB) FailRead(number int) {
	f.fail(number, func(ctx context.Context, within bool, _ string) bool {
		return !within && ctx.Value(failingKey{}) != nil
	})
}

// FailChange makes the statement with that number fail. It counts from 1 the statements within transactions,
// except the first of each, with which a writer checks that it holds the ledger.
func (f *DB) FailChange(number int) {
	f.fail(number, func(_ context.Context, within bool, statement string) bool {
		return within && !strings.Contains(statement, " writer ")
	})
}

func (f *DB) fail(number int, counts func(context.Context, bool, string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts, f.left, f.failed = counts, number, ""
}

// Failed returns the statement that failed, "" if none has yet, and lets all others succeed.
func (f *DB) Failed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts = nil
	return f.failed
}

func (f *DB) check(ctx context.Context, within bool, statement string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil || !f.counts(ctx, within, statement) {
		return nil
	}
	if f.left--; f.left != 0 {
		return nil
	}
	f.failed = statement
	return ErrDisk
}

// Connect implements driver.Connector.
func (f *DB) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := schema.Prepare(conn.(sqlite.Conn).Raw(), false); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &failingConn{fullConn: conn.(fullConn), of: f}, nil
}

// fullConn is what SQLite's driver can do.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
}

type failingConn struct {
	fullConn
	of     *DB
	within bool // a transaction
}

// BeginTx implements driver.ConnBeginTx.
func (c *failingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, options)
	c.within = err == nil
	return failingTx{tx, c}, err
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *failingConn) PrepareContext(ctx context.Context, statement string) (driver.Stmt, error) {
	if err := c.of.check(ctx, c.within, statement); err != nil {
		return nil, err
	}
	return c.fullConn.PrepareContext(ctx, statement)
}

// ExecContext implements driver.ExecerContext.
func (c *failingConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 { // else it is prepared
		if err := c.of.check(ctx, c.within, statement); err != nil {
			return nil, err
		}
	}
	return c.fullConn.ExecContext(ctx, statement, args)
}

type failingTx struct {
	driver.Tx
	of *failingConn
}

func (t failingTx) Commit() error   { t.of.within = false; return t.Tx.Commit() }
func (t failingTx) Rollback() error { t.of.within = false; return t.Tx.Rollback() }
