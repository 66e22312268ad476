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

// ending is a transaction of the driver that ends by a call.
type ending func() error

func (end ending) Commit() error   { return end() }
func (end ending) Rollback() error { return end() }

// TestAConnectionThatWasLateIsNotUsedAgain, also when the transaction in which it was late was taken back in time.
func TestAConnectionThatWasLateIsNotUsedAgain(t *testing.T) {
	c := &checked{connection: idle{}, limit: callLimit}
	_, err := c.QueryContext(t.Context(), "SELECT 1", nil)
	require.NoError(t, err)
	require.True(t, c.IsValid())
	late, end := context.WithCancel(t.Context())
	end()
	_, err = c.QueryContext(late, "SELECT 1", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, checkedTx{ending(func() error { return nil }), c}.Rollback())
	require.False(t, c.IsValid())
}

func TestATransactionThatEndsWithoutAResultIsAnError(t *testing.T) {
	var results []int // of the answer
	tx := checkedTx{ending(func() error {
		_ = results[0]
		return nil
	}), &checked{limit: callLimit}}
	require.ErrorIs(t, tx.Commit(), ErrAnswer)
	require.ErrorIs(t, tx.Rollback(), ErrAnswer)
}
