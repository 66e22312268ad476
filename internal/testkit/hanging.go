package testkit

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// HangingDB returns a database whose queries end with their context.
func HangingDB() *sql.DB { return sql.OpenDB(hanging{}) }

type hanging struct{ driver.Conn }

func (h hanging) Connect(context.Context) (driver.Conn, error) { return h, nil }
func (hanging) Driver() driver.Driver                          { return nil }
func (hanging) Close() error                                   { return nil }
func (hanging) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
