package libsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// ErrAnswer says that a server's answer is none that the driver knows, such as one without results.
var ErrAnswer = errors.New("the server's answer is not that of a libSQL server")

// checkedConnector makes connections that mend two defects of the driver. It takes the first result of an
// answer without looking whether there is one, which ends the process. And it asks the server to wait until
// it has all that an earlier answer came from: a replica whose primary began anew counts from the beginning,
// so such a connection would wait for ever. A connection whose time was up is not used again.
type checkedConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c checkedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if known, ok := conn.(connection); ok && err == nil {
		return &checked{connection: known}, nil
	}
	return conn, err
}

// connection is what the driver's connections implement.
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
	late bool // a call did not end in time
}

// IsValid implements driver.Validator.
func (c *checked) IsValid() bool { return !c.late }

// end is called when a call ends: it turns a panic into an error, and notes that its time was up.
func (c *checked) end(ctx context.Context, err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: %v", ErrAnswer, cause)
	}
	c.late = c.late || ctx.Err() != nil
}

// ExecContext implements driver.ExecerContext.
func (c *checked) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	defer c.end(ctx, &err)
	return c.connection.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *checked) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	defer c.end(ctx, &err)
	return c.connection.QueryContext(ctx, query, args)
}

// BeginTx implements driver.ConnBeginTx.
func (c *checked) BeginTx(ctx context.Context, options driver.TxOptions) (tx driver.Tx, err error) {
	defer c.end(ctx, &err)
	if tx, err = c.connection.BeginTx(ctx, options); err != nil {
		return nil, err
	}
	return checkedTx{tx, c}, nil
}

type checkedTx struct {
	driver.Tx
	conn *checked
}

// Commit implements driver.Tx. After ErrAnswer the transaction may have been committed.
func (t checkedTx) Commit() (err error) {
	defer t.conn.end(context.Background(), &err)
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t checkedTx) Rollback() (err error) {
	defer t.conn.end(context.Background(), &err)
	return t.Tx.Rollback()
}
