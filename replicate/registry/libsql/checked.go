package libsql

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrAnswer says that the driver does not know a server's answer, such as one without results.
var ErrAnswer = errors.New("the server's answer is not that of a libSQL server")

// ErrSilent says that a server took a call and did not answer it. A change may have been made, or be made yet.
var ErrSilent = errors.New("the libSQL server does not answer")

// callLimit bounds a call whose context has no deadline, so that a hanging server does not hang the caller.
// The longest calls, of a schema's migration in all of India, take minutes.
const callLimit = 5 * time.Minute

// lostLimit bounds the call that ends the transaction of a lost connection. The call frees the server's lock if the
// server still answers.
const lostLimit = 3 * time.Second

// checkedConnector makes connections that work around three defects of the driver. It takes the first result of an
// answer, and a value for each column of a row, without checking that there is one; this panics and would end the
// process. It asks the server to wait until it has the data of an earlier answer: a replica whose primary began anew
// counts from the beginning, so such a connection would wait for ever. And its calls have no deadline. A connection is
// not used again after a timeout, after an answer that the driver does not know, or when its server was not reached,
// since an answer can redirect it to another address for good.
type checkedConnector struct {
	driver.Connector
	limit time.Duration
}

// Connect implements driver.Connector.
func (c checkedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if known, ok := conn.(connection); ok && err == nil {
		return &checked{connection: known, limit: c.limit}, nil
	}
	return conn, err
}

// connection lists the interfaces that the driver's connections implement.
type connection interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
}

type checked struct {
	connection
	limit time.Duration
	lost  bool // a call did not end in time, or without an answer of a libSQL server
	// replaced reports whether the token was replaced since the connection was made; nil for a token that stays.
	replaced func() bool
}

// IsValid implements driver.Validator.
func (c *checked) IsValid() bool { return !c.lost }

// ResetSession implements driver.SessionResetter. A connection whose token was replaced is not used again. If it were
// used each second, it would never be idle long enough to be closed, and would be refused once its token has ended.
func (c *checked) ResetSession(ctx context.Context) error {
	if c.replaced != nil && c.replaced() {
		return driver.ErrBadConn
	}
	return c.connection.ResetSession(ctx)
}

// begin begins a call, and returns its context and a function to call at its end: that turns a panic into
// an error, names an answer that is not JSON, and notes what loses the connection.
func (c *checked) begin(ctx context.Context) (context.Context, func(err *error)) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, ErrSilent)
	return ctx, func(err *error) {
		unknown(recover(), err)
		if *err != nil {
			*err = oneLine{*err}
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(*err, &syntax) || errors.As(*err, &kind) {
			*err = fmt.Errorf("%w: %w", ErrAnswer, *err)
		}
		if *err != nil && errors.Is(context.Cause(ctx), ErrSilent) {
			*err = fmt.Errorf("%w for %v: %w", ErrSilent, c.limit, *err)
		}
		var unreached *url.Error
		c.lost = c.lost || ctx.Err() != nil || errors.Is(*err, ErrAnswer) || errors.As(*err, &unreached)
		cancel()
	}
}

// oneLine is an error of the driver in one line, for logs and answers: the driver puts a line before the cause, and the
// cause may be another service's page.
type oneLine struct{ error }

func (e oneLine) Error() string {
	text := strings.TrimPrefix(e.error.Error(), "failed to execute SQL:\n")
	return strings.Join(strings.Fields(text), " ")
}

func (e oneLine) Unwrap() error { return e.error }

// unknown makes a panic of the driver an error.
func unknown(cause any, err *error) {
	if cause != nil {
		*err = fmt.Errorf("%w: %v", ErrAnswer, cause)
	}
}

// ExecContext implements driver.ExecerContext.
func (c *checked) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	ctx, end := c.begin(ctx)
	defer end(&err)
	return c.connection.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext. The rows have been read when it returns.
func (c *checked) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	ctx, end := c.begin(ctx)
	defer end(&err)
	rows, err = c.connection.QueryContext(ctx, query, args)
	if sets, ok := rows.(driver.RowsNextResultSet); ok && err == nil {
		rows = checkedRows{sets}
	}
	return rows, err
}

// checkedRows are rows that may have fewer values than there are columns.
type checkedRows struct{ driver.RowsNextResultSet }

// Next implements driver.Rows.
func (r checkedRows) Next(dest []driver.Value) (err error) {
	defer func() { unknown(recover(), &err) }()
	return r.RowsNextResultSet.Next(dest)
}

// BeginTx implements driver.ConnBeginTx.
func (c *checked) BeginTx(ctx context.Context, options driver.TxOptions) (tx driver.Tx, err error) {
	ctx, end := c.begin(ctx)
	defer end(&err)
	if _, err = c.connection.BeginTx(ctx, options); err != nil {
		return nil, err
	}
	return checkedTx{c}, nil
}

// Close implements driver.Conn. It does not close a lost connection: the driver would make one more call to the server
// and wait for the answer for ever. The server drops such a connection by itself.
func (c *checked) Close() error {
	if c.lost {
		return nil
	}
	return c.connection.Close()
}

// checkedTx is a transaction whose end has a deadline too; the driver's own has none.
type checkedTx struct{ conn *checked }

// Commit implements driver.Tx. After ErrAnswer and ErrSilent the transaction may have been committed.
func (t checkedTx) Commit() error { return t.end("COMMIT") }

// Rollback implements driver.Tx.
func (t checkedTx) Rollback() error { return t.end("ROLLBACK") }

func (t checkedTx) end(how string) error {
	ctx := context.Background()
	if t.conn.lost {
		limited, cancel := context.WithTimeout(ctx, lostLimit)
		defer cancel()
		ctx = limited
	}
	_, err := t.conn.ExecContext(ctx, how, nil)
	return err
}
