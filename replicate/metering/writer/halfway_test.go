package writer_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// TestAChangeThatFailsHalfWayIsForgotten: the ledger in memory has the credits already when the
// audit log refuses its row. The next change must not book them.
func TestAChangeThatFailsHalfWayIsForgotten(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	db := openLedger(t, dir)
	_, err = db.Exec(`CREATE TRIGGER refused BEFORE INSERT ON audit WHEN NEW.act = 'refused' BEGIN SELECT raise(ABORT, 'refused'); END`)
	require.NoError(t, err)
	_, err = client.ChangeCredits(writer.WithAct(t.Context(), writer.Act{Name: "refused"}), a.ID, writer.CreditChange{Amount: 100})
	require.Error(t, err)
	a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Bought)
	require.EqualValues(t, 1, a.Balance)
	require.Equal(t, 1, count(t, db, `SELECT sum(amount) FROM credit_entry`))
}

// TestEveryCommitOfTheLedgerIsDurable: below FULL, SQLite does not sync the WAL at a commit, and a
// power cut takes changes that were answered.
func TestEveryCommitOfTheLedgerIsDurable(t *testing.T) {
	_, _, w := start(t, t.TempDir())
	var level int
	var mode string
	require.NoError(t, w.Commit(t.Context(), writer.Act{}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
		if err := tx.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&level)
	}))
	require.Equal(t, "wal", mode)
	const full = 2
	require.GreaterOrEqual(t, level, full)
}
