package ledger_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// onFile is a ledger in a file, as the writer has it, and a function that commits what changed with
// prepared statements.
func onFile(t *testing.T) (l *ledger.Ledger, db *sql.DB, commit func() error) {
	t.Helper()
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	_, err = ledger.TakeGeneration(t.Context(), db, 0, false, ledger.Holder{})
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO node (name, token_hash, created_at) VALUES ('one', x'00', 0)`)
	require.NoError(t, err)
	l, err = ledger.Load(t.Context(), db)
	require.NoError(t, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	prepared := ledger.Prepare(conn)
	t.Cleanup(func() { require.NoError(t, prepared.Close()); conn.Close() })
	return l, db, func() error {
		tx, err := conn.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		if err := l.Flush(t.Context(), tx, at, prepared); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// TestEveryNumberOfRowsIsWritten with statements that are prepared for powers of two.
func TestEveryNumberOfRowsIsWritten(t *testing.T) {
	l, db, commit := onFile(t)
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	id, seq := int64(0), uint64(0)
	for _, accounts := range []int{1, 2, 3, 127, 128, 129, 300, 7} {
		var wants []syncproto.Want
		batch := &syncproto.Batch{Of: e.Epoch}
		for range accounts {
			id++
			require.NoError(t, l.AddAccount(id, "scale"))
			require.NoError(t, l.ChangeCredits(at, id, 100, ledger.EntryBought, ""))
			wants = append(wants, syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: id}, Target: 5})
			use := found(1)
			use.Account = id
			batch.Usage = append(batch.Usage, use)
		}
		l.Sync(at, e, &syncproto.Sync{Session: session, Wants: wants})
		seq++
		batch.Seq = seq
		l.Sync(at, e, &syncproto.Sync{Session: session, Batch: batch})
		require.NoError(t, commit())
		loaded, err := ledger.Load(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, l.Stored(), loaded.Stored(), "%d accounts", accounts)
		var rows int64
		require.NoError(t, db.QueryRow(`SELECT sum(count) FROM usage`).Scan(&rows))
		require.Equal(t, id, rows)
	}
}

// TestAFencedWriterWritesNothing: another one has taken the ledger.
func TestAFencedWriterWritesNothing(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, commit())
	_, err := db.Exec(`UPDATE writer SET generation = generation + 1`)
	require.NoError(t, err)
	require.NoError(t, l.AddAccount(2, "scale"))
	require.ErrorIs(t, commit(), ledger.ErrFenced)
	var accounts int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM account`).Scan(&accounts))
	require.Equal(t, 1, accounts)
}

// TestAnAdjustmentTakesWhatIsThere now, what comes back later, and no more.
func TestAnAdjustmentTakesWhatIsThere(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, 100, ledger.EntryBought, ""))
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	say(l, at, e, session, syncproto.Want{Pool: creditsOf1, Target: 10})
	pool := l.Account(1).Credits()
	require.EqualValues(t, 10, pool.Leased)
	entries := func(note string) (n int) {
		require.NoError(t, commit())
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM credit_entry WHERE note LIKE ?`, note).Scan(&n))
		return n
	}
	require.NoError(t, l.ChangeCredits(at, 1, -30, ledger.EntryBought, ""))
	require.EqualValues(t, 60, pool.Left())
	require.Zero(t, pool.Deducting)
	require.Zero(t, entries("%spent already%"))

	require.NoError(t, l.ChangeCredits(at, 1, -65, ledger.EntryBought, ""))
	require.Zero(t, pool.Left())
	require.EqualValues(t, 5, pool.Deducting, "the edge may spend what it holds")
	require.True(t, say(l, at, e, session).Rows[0].Recall)
	back := &syncproto.Batch{Seq: 1, Of: e.Epoch, Usage: []syncproto.Usage{found(7)}, Returns: []syncproto.Return{{Pool: creditsOf1, Units: 3}}}
	l.Sync(at, e, &syncproto.Sync{Session: session, Batch: back})
	require.NoError(t, l.Check())
	require.Zero(t, pool.Left())
	require.Zero(t, pool.Deducting)
	require.Equal(t, 1, entries("2 credits of an adjustment were spent already"))
	require.Equal(t, 1, entries("%spent already%"))
}

// TestALeaseThatNobodyAskedForIsLeftAsItIs when another edge gets one of the same account.
func TestALeaseThatNobodyAskedForIsLeftAsItIs(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	one, first := f.hello("one", syncproto.Hello{Boot: 1})
	until := say(f.l, at, one, first, syncproto.Want{Pool: creditsOf1, Target: 10}).Rows[0].UntilMillis
	seen := say(f.l, at, one, first).Upto
	later := at + 5*60*60*1000
	two, second := f.hello("two", syncproto.Hello{Boot: 2})
	require.Greater(t, say(f.l, later, two, second, syncproto.Want{Pool: creditsOf1, Target: 10}).Rows[0].UntilMillis, until)
	for _, row := range f.l.Sync(later, one, &syncproto.Sync{Session: first, Seen: seen}).Rows {
		require.Equal(t, until, row.UntilMillis)
		require.EqualValues(t, 10, row.Granted)
	}
}

// TestEachCommitIsASignOfLife, also while the clock stands still or goes back.
func TestEachCommitIsASignOfLife(t *testing.T) {
	_, db, commit := onFile(t)
	heard := func() (at int64) {
		require.NoError(t, db.QueryRow(`SELECT heard FROM writer`).Scan(&at))
		return at
	}
	for range 3 {
		before := heard()
		require.NoError(t, commit())
		require.Greater(t, heard(), before)
	}
}
