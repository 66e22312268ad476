package libsql

import (
	"context"
	"database/sql/driver"
	"testing"
	"time"

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

// asked is a connection that notes how long its last call may take.
type asked struct {
	connection
	limit *time.Duration
}

func (a asked) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	until, _ := ctx.Deadline()
	*a.limit = time.Until(until)
	return nil, ctx.Err()
}

// TestTheEndOfATransactionWaitsForNoServerThatWasSilent: a command that is interrupted while its server hangs would wait minutes more.
func TestTheEndOfATransactionWaitsForNoServerThatWasSilent(t *testing.T) {
	var limit time.Duration
	c := &checked{connection: asked{limit: &limit}, limit: callLimit}
	require.NoError(t, checkedTx{c}.Rollback())
	require.Greater(t, limit, lostLimit)
	late, end := context.WithCancel(t.Context())
	end()
	_, err := c.ExecContext(late, "DELETE FROM t", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, checkedTx{c}.Rollback())
	require.LessOrEqual(t, limit, lostLimit)
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
