package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// resumed is a ledger after a step that was not committed: loaded again, with the sessions of before.
func resumed(t *testing.T, before func(l *ledger.Ledger, one *spender), lost func(l *ledger.Ledger, one *spender)) (*ledger.Ledger, *spender) {
	old, db, commit := onFile(t)
	require.NoError(t, old.AddAccount(1, "scale"))
	require.NoError(t, old.ChangeCredits(at, 1, 100, ledger.EntryBought, ""))
	one := newSpender(t, old, "one", 1)
	before(old, one)
	require.NoError(t, commit())
	lost(old, one)
	l, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	l.CarryOver(old)
	l.Resume(old)
	one.l, one.e = l, l.Edge("one")
	return l, one
}

// TestASessionGoesOnAfterAStepThatWasNotCommitted: what the edge wants is served with its next message,
// and it hears of every lease again.
func TestASessionGoesOnAfterAStepThatWasNotCommitted(t *testing.T) {
	var seen uint64
	l, one := resumed(t, func(l *ledger.Ledger, one *spender) {
		require.NoError(t, l.AddAccount(2, "scale"))
		require.NoError(t, l.ChangeCredits(at, 2, 100, ledger.EntryBought, ""))
		require.NoError(t, l.ChangeCredits(at, 1, -100, ledger.EntryBought, ""))
		require.NoError(t, l.ChangeCredits(at, 1, 10, ledger.EntryBought, ""))
		seen = one.want(5, creditsOf(1), creditsOf(2)).Upto
	}, func(l *ledger.Ledger, one *spender) {
		seen = one.want(9, creditsOf(1)).Upto
		require.EqualValues(t, 7, l.Account(1).Credits().Leased)
	})
	require.EqualValues(t, 5, l.Account(1).Credits().Leased, "the grant was lost")
	r := one.sync(syncproto.Sync{Seen: seen})
	require.Equal(t, syncproto.OK, r.Status)
	require.Len(t, r.Rows, 2, "all its leases")
	require.Greater(t, r.Upto, seen)
	require.True(t, one.e.IsLive(at))
}

// contested returns two edges of which the first holds the only credit and the second waits for it, at a
// ledger that was read again after a step that was not committed.
func contested(t *testing.T) (one, two *spender) {
	old, db, commit := onFile(t)
	_, err := db.Exec(`INSERT INTO node (name, token_hash, created_at) VALUES ('two', x'01', 0)`)
	require.NoError(t, err)
	require.NoError(t, old.AddEdge("two"))
	require.NoError(t, old.AddAccount(1, "scale"))
	require.NoError(t, old.ChangeCredits(at, 1, 1, ledger.EntryBought, ""))
	one, two = newSpender(t, old, "one", 1), newSpender(t, old, "two", 2)
	one.want(1, creditsOf1)
	two.want(1, creditsOf1)
	require.NoError(t, commit())
	l, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	l.CarryOver(old)
	l.Resume(old)
	one.l, one.e, two.l, two.e = l, l.Edge("one"), l, l.Edge("two")
	return one, two
}

// TestAWantThatWaitsIsServedAfterAStepThatWasNotCommitted: the edge does not ask twice.
func TestAWantThatWaitsIsServedAfterAStepThatWasNotCommitted(t *testing.T) {
	one, two := contested(t)
	one.batch(nil, syncproto.Return{Pool: creditsOf1, Units: 1})
	rows := two.sync(syncproto.Sync{}).Rows
	require.NotEmpty(t, rows)
	require.EqualValues(t, 1, rows[len(rows)-1].Granted)
	later := newSpender(t, one.l, "one", 3)
	require.NotContains(t, []uint64{one.session, two.session}, later.session, "numbers of sessions go on")
}

// TestNoSessionGoesOnForWhomItIsOver: a node that is new, that never came, that is retired, or whose epoch
// was not committed.
func TestNoSessionGoesOnForWhomItIsOver(t *testing.T) {
	never := func(*ledger.Ledger, *spender) {}
	stranger := func(l *ledger.Ledger, one *spender) {
		t.Helper()
		require.Equal(t, syncproto.Stranger, one.sync(syncproto.Sync{}).Status)
	}
	l, one := resumed(t, func(l *ledger.Ledger, one *spender) { require.NoError(t, l.Retire(at, "one", false)) }, never)
	stranger(l, one)
	l, one = resumed(t, never, func(l *ledger.Ledger, one *spender) { *one = *newSpender(t, l, "one", 2) })
	stranger(l, one)

	old, fresh := ledger.New(1), newLedger(t, 1, 100, "one")
	fresh.Resume(old) // a node that was added meanwhile
	require.NoError(t, old.AddEdge("one"))
	fresh.Resume(old) // one that never came
	require.Equal(t, syncproto.Stranger, fresh.Sync(at, fresh.Edge("one"), &syncproto.Sync{}).Status)
}

func TestAPlanIsKeptAndReadingFromAClosedDatabaseIsAnError(t *testing.T) {
	l, db, commit := onFile(t)
	l.SetPlan(at, ledger.Plan{ID: "huge", APIAccess: true, Email: true, PerMinute: 7, MonthlyVolume: 1 << 40})
	require.NoError(t, commit())
	loaded, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, l.Stored(), loaded.Stored())
	holder, err := ledger.ReadHolder(t.Context(), db)
	require.NoError(t, err)
	require.Positive(t, holder.Generation)
	require.NoError(t, db.Close())
	_, err = ledger.ReadHolder(t.Context(), db)
	require.Error(t, err)
	_, err = ledger.Load(t.Context(), db)
	require.Error(t, err)
}

// TestALeaseWithoutItsRowsIsRefused: a ledger that lacks some of its rows was not written by a writer.
func TestALeaseWithoutItsRowsIsRefused(t *testing.T) {
	for name, damage := range map[string]string{
		"node":  `DELETE FROM node`,
		"epoch": `UPDATE lease SET epoch = 99`,
		"pool":  `DELETE FROM account`,
	} {
		t.Run(name, func(t *testing.T) {
			l, db, commit := onFile(t)
			require.NoError(t, l.AddAccount(1, "scale"))
			require.NoError(t, l.ChangeCredits(at, 1, 100, ledger.EntryBought, ""))
			newSpender(t, l, "one", 1).want(5, creditsOf(1))
			require.NoError(t, commit())
			db.SetMaxOpenConns(2)
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.ExecContext(t.Context(), `PRAGMA foreign_keys = off`)
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), damage)
			require.NoError(t, err)
			_, err = ledger.Load(t.Context(), conn)
			require.Error(t, err)
		})
	}
}

// TestALedgerThatCanBeReadInPartIsNotLoaded: a row fails behind others.
func TestALedgerThatCanBeReadInPartIsNotLoaded(t *testing.T) {
	_, db, _ := onFile(t)
	_, err := db.Exec(`ALTER TABLE plan RENAME TO plan_whole;
		CREATE VIEW plan AS SELECT id, api_access, per_minute, monthly_volume, email,
			iif(id = (SELECT max(id) FROM plan_whole), abs(-9223372036854775807 - 1), phone) AS phone FROM plan_whole ORDER BY id`)
	require.NoError(t, err)
	_, err = ledger.Load(t.Context(), db)
	require.ErrorContains(t, err, "load plans")
}

// TestStatementsArePreparedOnce for each number of rows.
func TestStatementsArePreparedOnce(t *testing.T) {
	l, db, _ := onFile(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	prepared := ledger.Prepare(conn)
	defer prepared.Close()
	var counts []int
	for id := int64(1); id <= 3; id++ {
		require.NoError(t, l.AddAccount(id, "scale"))
		tx, err := conn.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, l.Flush(t.Context(), tx, at, prepared))
		require.NoError(t, tx.Commit())
		counts = append(counts, prepared.Count())
	}
	require.Equal(t, []int{1, 1, 1}, counts)
}

// TestARowThatCannotBeWrittenFailsTheCommit.
func TestARowThatCannotBeWrittenFailsTheCommit(t *testing.T) {
	l, db, commit := onFile(t)
	_, err := db.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON account BEGIN SELECT raise(abort, 'no'); END`)
	require.NoError(t, err)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.ErrorContains(t, commit(), "write accounts")
}

// TestARecallGoesOnAfterAStepThatWasNotCommitted: the node that holds what another one waits for gets the
// news of all its leases anew, and would else keep it.
func TestARecallGoesOnAfterAStepThatWasNotCommitted(t *testing.T) {
	one, _ := contested(t)
	rows := one.sync(syncproto.Sync{}).Rows
	require.NotEmpty(t, rows)
	require.True(t, rows[len(rows)-1].Recall)
}

// TestARepeatedHelloIsNoCopyAfterAStepThatWasNotCommitted: a delayed Hello of an epoch that has ended since.
func TestARepeatedHelloIsNoCopyAfterAStepThatWasNotCommitted(t *testing.T) {
	again := func(l *ledger.Ledger, one *spender) *syncproto.Reply {
		return l.Hello(at, one.e, &syncproto.Hello{Boot: 1, Epoch: one.epoch})
	}
	l, one := resumed(t, func(l *ledger.Ledger, one *spender) {
		next := newSpender(t, l, "one", 2)
		again(l, one)
		first := one.epoch
		next.session = l.Hello(at, next.e, &syncproto.Hello{Boot: 2, Epoch: next.epoch}).Session
		next.sync(syncproto.Sync{Batch: &syncproto.Batch{Seq: 1, Of: first}})
		require.Equal(t, syncproto.Superseded, again(l, one).Status)
	}, func(*ledger.Ledger, *spender) {})
	require.Equal(t, syncproto.Superseded, again(l, one).Status)
}

// TestANodeLivesOnAfterAStepThatWasNotCommitted, also before its next message: the grants
// of others are shared with it.
func TestANodeLivesOnAfterAStepThatWasNotCommitted(t *testing.T) {
	never := func(*ledger.Ledger, *spender) {}
	l, one := resumed(t, never, never)
	require.True(t, one.e.IsLive(at))
	require.Equal(t, 1, l.LiveEdges(at))
}
