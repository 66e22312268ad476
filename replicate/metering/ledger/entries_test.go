package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// booked is a ledger in a file, with credits of account 1, an edge one, and what its journal holds.
func booked(t *testing.T, bought int64) (l *ledger.Ledger, one *spender, sums func() (map[string]int64, []string)) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, bought, ledger.EntryBought, ""))
	return l, newSpender(t, l, "one", 1), func() (map[string]int64, []string) {
		require.NoError(t, commit())
		rows, err := db.Query(`SELECT kind, amount, note FROM credit_entry ORDER BY rowid`)
		require.NoError(t, err)
		defer rows.Close()
		byKind, zero := map[string]int64{}, []string(nil)
		for rows.Next() {
			var kind, note string
			var amount int64
			require.NoError(t, rows.Scan(&kind, &amount, &note))
			byKind[kind] += amount
			if amount == 0 {
				zero = append(zero, note)
			}
		}
		return byKind, zero
	}
}

// TestAnAdjustmentTakesBoughtCreditsFirst, and then compensated ones; both are in the journal.
func TestAnAdjustmentTakesBoughtCreditsFirst(t *testing.T) {
	l, _, sums := booked(t, 5)
	require.NoError(t, l.ChangeCredits(at, 1, 10, ledger.EntryCompensated, ""))
	require.NoError(t, l.ChangeCredits(at, 1, -3, ledger.EntryBought, ""))
	byKind, _ := sums()
	require.Equal(t, map[string]int64{ledger.EntryBought: 2, ledger.EntryCompensated: 10}, byKind)
	require.NoError(t, l.ChangeCredits(at, 1, -5, ledger.EntryBought, ""))
	byKind, zero := sums()
	require.Equal(t, map[string]int64{ledger.EntryBought: 0, ledger.EntryCompensated: 7}, byKind)
	require.Empty(t, zero)
	p := l.Account(1).Credits()
	require.Zero(t, p.Limit)
	require.EqualValues(t, 7, p.Compensated)
}

// TestANoteOfAnAdjustmentIsKept, by what is taken at once or, where edges hold all of it, by an entry of none.
func TestANoteOfAnAdjustmentIsKept(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, 10, ledger.EntryBought, "order"))
	require.NoError(t, l.ChangeCredits(at, 1, 5, ledger.EntryCompensated, "sorry"))
	require.NoError(t, l.ChangeCredits(at, 1, -12, ledger.EntryBought, "booked twice"))
	one := newSpender(t, l, "one", 1)
	one.sync(syncproto.Sync{DeclaredLast: true, Wants: []syncproto.Want{{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Target: 16, Urgent: true}}})
	require.EqualValues(t, 1, l.Account(1).Credits().Leased)
	require.NoError(t, l.ChangeCredits(at, 1, -2, ledger.EntryBought, ""))
	require.NoError(t, l.ChangeCredits(at, 1, -1, ledger.EntryBought, "returned goods"))
	require.NoError(t, commit())
	rows, err := db.Query(`SELECT amount, note FROM credit_entry ORDER BY rowid`)
	require.NoError(t, err)
	defer rows.Close()
	var entries []string
	for rows.Next() {
		var amount int64
		var note string
		require.NoError(t, rows.Scan(&amount, &note))
		entries = append(entries, fmt.Sprint(amount, " ", note))
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []string{"10 order", "5 sorry", "-10 booked twice", "-2 booked twice", "-2 adjusted", "0 returned goods"}, entries)
}

// TestAnAdjustmentWaitsForTheEndOfARestore: what is left is not known before.
func TestAnAdjustmentWaitsForTheEndOfARestore(t *testing.T) {
	l, _, _ := booked(t, 10)
	l.Restore()
	one := newSpender(t, l, "one", 1)
	require.NoError(t, l.ChangeCredits(at, 1, -4, ledger.EntryBought, ""))
	require.EqualValues(t, 10, l.Account(1).Credits().Limit)
	one.sync(syncproto.Sync{DeclaredLast: true})
	require.EqualValues(t, 6, l.Account(1).Credits().Limit)
}

// TestWhatWasSpentBeyondALeaseIsNotedByItsNumber, and so is its void. An edge that held nothing when it was
// retired loses nothing.
func TestWhatWasSpentBeyondALeaseIsNotedByItsNumber(t *testing.T) {
	l, one, sums := booked(t, 10)
	one.want(3, creditsOf1)
	one.batch([]syncproto.Usage{found(5)})
	one.batch([]syncproto.Usage{found(-2)})
	require.NoError(t, l.Retire(at, "one", false))
	_, zero := sums()
	require.Equal(t, []string{"2 charges beyond the lease of one", "2 charges beyond the lease of one taken back"}, zero)
	require.Zero(t, l.Account(1).Credits().Lost)
}

// TestNoMoreIsTakenBackThanWasSpent, although another edge took back what it had
// spent from a lease that it closed.
func TestNoMoreIsTakenBackThanWasSpent(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two")
	one, two := newSpender(t, l, "one", 1), newSpender(t, l, "two", 2)
	two.want(5, creditsOf1)
	two.batch([]syncproto.Usage{found(5)}, syncproto.Return{Pool: creditsOf1, Close: true})
	two.want(1, creditsOf1)
	two.batch([]syncproto.Usage{found(-3)})
	require.EqualValues(t, 2, l.Account(1).Credits().Spent)
	one.want(1, creditsOf1)
	one.batch([]syncproto.Usage{found(-5)})
	require.Zero(t, l.Account(1).Credits().Spent)
}

// TestARestoredLedgerTakesChargesAndReturnsForGrants that it lacks, as many as it lacks.
func TestARestoredLedgerTakesChargesAndReturnsForGrants(t *testing.T) {
	for name, report := range map[string]func(one *spender){
		"charges": func(one *spender) { one.batch([]syncproto.Usage{found(10)}) },
		"returns": func(one *spender) { one.batch(nil, syncproto.Return{Pool: creditsOf1, Units: 10}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 9, 100, "one", "away")
			one := newSpender(t, l, "one", 1)
			one.want(4, creditsOf1)
			l.Restore()
			report(one)
			rows := one.sync(syncproto.Sync{}).Rows
			require.EqualValues(t, 10, rows[len(rows)-1].Granted)
			require.Zero(t, l.Account(1).Credits().Leased)
		})
	}
}

// TestMoreThanALeaseIsNotGivenBack by an edge that is wrong.
func TestMoreThanALeaseIsNotGivenBack(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	one.want(4, creditsOf1)
	one.batch(nil, syncproto.Return{Pool: creditsOf1, Units: 3})
	one.batch(nil, syncproto.Return{Pool: creditsOf1, Units: 30})
	p := l.Account(1).Credits()
	require.Zero(t, p.Leased)
	require.EqualValues(t, 100, p.Left())
	rows := one.sync(syncproto.Sync{}).Rows
	require.EqualValues(t, 4, rows[len(rows)-1].Granted)
}

// TestUsageOfAnEarlierEpochIsBookedInItsLeases, also while a restored ledger would make one.
func TestUsageOfAnEarlierEpochIsBookedInItsLeases(t *testing.T) {
	l := newLedger(t, 9, 100, "one", "away")
	old := newSpender(t, l, "one", 1)
	old.want(4, creditsOf1)
	next := newSpender(t, l, "one", 2)
	l.Restore()
	l.Sync(at, next.e, &syncproto.Sync{Session: next.session, Batch: &syncproto.Batch{Seq: 1, Of: old.epoch, Usage: []syncproto.Usage{found(3)}}})
	require.NoError(t, l.Check())
	require.EqualValues(t, 3, l.Account(1).Credits().Spent)
	require.EqualValues(t, 1, l.Account(1).Credits().Leased, "of four")
}

// TestASupersededSessionGetsNoLease, not even an empty one.
func TestASupersededSessionGetsNoLease(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	old := newSpender(t, l, "one", 1)
	next := newSpender(t, l, "one", 2)
	back := l.Hello(at, old.e, &syncproto.Hello{Boot: 1, Epoch: old.epoch})
	require.Equal(t, syncproto.Superseded, back.Status)
	before := len(l.Stored())
	r := l.Sync(at, next.e, &syncproto.Sync{Session: back.Session, Wants: []syncproto.Want{{Pool: creditsOf1, Target: 5, Urgent: true}}})
	require.Empty(t, r.Rows)
	require.Len(t, l.Stored(), before)
}

// TestTheSumOfGrantsIsOfAllPools: an edge that shows more was granted it by a ledger that is newer.
func TestTheSumOfGrantsIsOfAllPools(t *testing.T) {
	for more, restoring := range []bool{false, true} {
		l := newLedger(t, 9, 100, "one")
		one := newSpender(t, l, "one", 1)
		one.want(4, creditsOf1)
		one.want(6, creditsOf1)
		one.want(7, volumeOf(syncproto.Month(at)))
		l.Hello(at, one.e, &syncproto.Hello{Boot: 1, Epoch: one.epoch, Granted: int64(13 + more)})
		require.Equal(t, restoring, l.Restoring)
	}
}

// TestOnlyAnEdgeThatIsAwaitedIsAskedForItsLeases.
func TestOnlyAnEdgeThatIsAwaitedIsAskedForItsLeases(t *testing.T) {
	l := newLedger(t, 9, 100, "one", "two", "away")
	one, two := newSpender(t, l, "one", 1), newSpender(t, l, "two", 2)
	require.False(t, one.sync(syncproto.Sync{}).Declare, "nothing was restored")
	l.Restore()
	require.True(t, one.sync(syncproto.Sync{}).Declare)
	require.False(t, one.sync(syncproto.Sync{DeclaredLast: true}).Declare)
	require.NoError(t, l.Retire(at, "two", false))
	require.False(t, two.sync(syncproto.Sync{}).Declare, "retired")
}

// TestTheSumOfGrantsThatARestoreLearnedIsKept when the writer starts again.
func TestTheSumOfGrantsThatARestoreLearnedIsKept(t *testing.T) {
	l, db, commit := onFile(t)
	one := newSpender(t, l, "one", 1)
	l.Restore()
	require.NoError(t, commit())
	l.Hello(at, one.e, &syncproto.Hello{Boot: 1, Epoch: one.epoch, Granted: 13})
	require.NoError(t, commit())
	loaded, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, l.Stored(), loaded.Stored())
}

// TestWhatARestoreCompensatedIsKept although it was declared in an earlier commit.
func TestWhatARestoreCompensatedIsKept(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, 10, ledger.EntryBought, ""))
	l.Restore()
	one := newSpender(t, l, "one", 1)
	declared := []syncproto.Declared{{Pool: creditsOf1, Granted: 25}}
	one.sync(syncproto.Sync{Declared: declared})
	require.NoError(t, commit())
	one.sync(syncproto.Sync{DeclaredLast: true})
	require.EqualValues(t, 15, l.Account(1).Credits().Compensated)
	require.NoError(t, commit())
	loaded, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, l.Stored(), loaded.Stored())
	require.False(t, loaded.Changed(), "what was loaded needs no commit")
}

// TestAQuotaIsNotCompensatedForWhatIsLeased: only what was spent beyond it is.
func TestAQuotaIsNotCompensatedForWhatIsLeased(t *testing.T) {
	l := newLedger(t, 9, 100, "one")
	l.Restore()
	volume := volumeOf(syncproto.Month(at))
	one := newSpender(t, l, "one", 1)
	one.sync(syncproto.Sync{DeclaredLast: true, Declared: []syncproto.Declared{{Pool: volume, Granted: 1500}}})
	require.False(t, l.Restoring)
	require.Contains(t, strings.Join(l.Stored(), "\n"), "Limit 1000 Compensated 0 Spent 0 Lost 0 Leased 1500")
}

// TestAnEdgeThatIsAheadDeclaresAgain, although a restore is under way and it has declared once.
func TestAnEdgeThatIsAheadDeclaresAgain(t *testing.T) {
	l := newLedger(t, 9, 100, "one", "away")
	l.Restore()
	one := newSpender(t, l, "one", 1)
	one.sync(syncproto.Sync{DeclaredLast: true})
	require.Equal(t, []string{"away"}, l.Awaited())
	l.Hello(at, one.e, &syncproto.Hello{Boot: 1, Epoch: one.epoch, Granted: 50})
	require.Equal(t, []string{"away", "one"}, l.Awaited())
}

// TestIdsLeapWhenARestoreBegins that nobody announced: the ids of accounts that were lost are not given again.
func TestIdsLeapWhenARestoreBegins(t *testing.T) {
	l, db, commit := onFile(t)
	_, err := db.Exec(`INSERT INTO account (name, email, plan, suspended, created_at) VALUES ('a', 'a@example.com', 'scale', 0, 0)`)
	require.NoError(t, err)
	last := func() (id int64) {
		require.NoError(t, db.QueryRow(`SELECT seq FROM sqlite_sequence WHERE name = 'account'`).Scan(&id))
		return id
	}
	before := last()
	l.Hello(at, l.Edge("one"), &syncproto.Hello{Boot: 1, Epoch: 5})
	require.True(t, l.Restoring)
	require.NoError(t, commit())
	require.Greater(t, last(), before)
}
