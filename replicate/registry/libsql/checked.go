package libsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// ErrAnswer says that a server's answer is none that the driver knows, such as one without results.
var ErrAnswer = errors.New("the server's answer is not that of a libSQL server")

// checkedConnector makes connections whose driver does not end the process when an answer has fewer results
// than it expects: the driver takes the first one without looking.
type checkedConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c checkedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if known, ok := conn.(connection); ok && err == nil {
		return checked{known}, nil
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

type checked struct{ connection }

// ExecContext implements driver.ExecerContext.
func (c checked) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	defer recovered(&err)
	return c.connection.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c checked) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	defer recovered(&err)
	return c.connection.QueryContext(ctx, query, args)
}

// BeginTx implements driver.ConnBeginTx.
func (c checked) BeginTx(ctx context.Context, options driver.TxOptions) (tx driver.Tx, err error) {
	defer recovered(&err)
	if tx, err = c.connection.BeginTx(ctx, options); err != nil {
		return nil, err
	}
	return checkedTx{tx}, nil
}

type checkedTx struct{ driver.Tx }

// Commit implements driver.Tx. After ErrAnswer the transaction may have been committed.
func (t checkedTx) Commit() (err error) {
	defer recovered(&err)
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t checkedTx) Rollback() (err error) {
	defer recovered(&err)
	return t.Tx.Rollback()
}

func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: %v", ErrAnswer, cause)
	}
}
