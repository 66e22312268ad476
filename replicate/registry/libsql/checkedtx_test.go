package libsql

import (
	"context"
	"database/sql/driver"
	"testing"

	"github.com/stretchr/testify/require"
)

// idle is a connection whose calls end with the error of their context.
type idle struct{ connection }

func (idle) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	return nil, ctx.Err()
}

func (idle) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	return nil, ctx.Err()
}

func (idle) Close() error { panic("the server is asked once more") }

// TestAConnectionThatWasLateIsNotUsedAgain, also when the transaction in which it
// was late was taken back in time.
func TestAConnectionThatWasLateIsNotUsedAgain(t *testing.T) {
	c := &checked{connection: idle{}, limit: callLimit}
	_, err := c.QueryContext(t.Context(), "SELECT 1", nil)
	require.NoError(t, err)
	require.True(t, c.IsValid())
	late, end := context.WithCancel(t.Context())
	end()
	_, err = c.QueryContext(late, "SELECT 1", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, checkedTx{c}.Rollback())
	require.False(t, c.IsValid())
	require.NoError(t, c.Close())
}

// noResult is a connection that looks for the first result of an answer without any, as the driver does.
type noResult struct{ connection }

func (noResult) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	var results []driver.Result
	return results[0], nil
}

func TestATransactionThatEndsWithoutAResultIsAnError(t *testing.T) {
	tx := checkedTx{&checked{connection: noResult{}, limit: callLimit}}
	require.ErrorIs(t, tx.Commit(), ErrAnswer)
	require.ErrorIs(t, tx.Rollback(), ErrAnswer)
}
