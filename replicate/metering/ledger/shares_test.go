package ledger_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestAnEdgeHoldsWhatItWantsAndNoMore, however often it asks.
func TestAnEdgeHoldsWhatItWantsAndNoMore(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	for range 3 {
		one.want(10, creditsOf1)
		require.EqualValues(t, 10, l.Account(1).Credits().Leased)
	}
	one.batch([]syncproto.Usage{found(4)})
	one.want(10, creditsOf1)
	require.EqualValues(t, 10, l.Account(1).Credits().Leased)
}

// TestWhoeverWantsTheLastCreditsWaitsForThem while another edge holds them; and hears at once that there
// are none when nobody does.
func TestWhoeverWantsTheLastCreditsWaitsForThem(t *testing.T) {
	l := newLedger(t, 1, 1, "one", "two")
	one, two := newSpender(t, l, "one", 1), newSpender(t, l, "two", 2)
	held := one.want(1, creditsOf1)
	require.EqualValues(t, 1, held.Rows[0].Granted)
	require.False(t, held.Rows[0].Recall, "nobody else wants it")
	for _, row := range two.want(1, creditsOf1).Rows {
		require.False(t, row.Dry)
	}
	recall := one.sync(syncproto.Sync{Seen: held.Upto})
	require.True(t, recall.Rows[0].Recall)
	one.batch([]syncproto.Usage{found(1)})
	dry := two.want(1, creditsOf1)
	require.True(t, dry.Rows[len(dry.Rows)-1].Dry)
	require.Zero(t, dry.Rows[len(dry.Rows)-1].UntilMillis, "it holds nothing that could end")
	held = one.sync(syncproto.Sync{Seen: recall.Upto})
	require.False(t, held.Rows[len(held.Rows)-1].Recall, "it has nothing left to return")
}

// TestWhoeverWantsOfAnEmptyPoolIsToldSoEachTime, and gets nothing later that it did not ask for again.
func TestWhoeverWantsOfAnEmptyPoolIsToldSoEachTime(t *testing.T) {
	l := newLedger(t, 1, 1, "one")
	one := listen(t, l, "one", 1, 1, creditsOf1)
	one.batch([]syncproto.Usage{found(1)})
	one.news()
	for range 2 {
		r := one.sync(syncproto.Sync{Seen: one.seen, Wants: []syncproto.Want{{Pool: creditsOf1, Target: 1, Urgent: true}}})
		require.Len(t, r.Rows, 1)
		require.True(t, r.Rows[0].Dry)
		one.seen = r.Upto
	}
	require.NoError(t, l.ChangeCredits(at, 1, 10, ledger.EntryBought, ""))
	require.Zero(t, l.Account(1).Credits().Leased)
	one.want(0, creditsOf1)
	require.EqualValues(t, 1, l.Account(1).Credits().Leased, "a want without a number is one of one")
}

// TestAGrantLeavesAsMuchToEachLiveEdge, and half of the pool.
func TestAGrantLeavesAsMuchToEachLiveEdge(t *testing.T) {
	for live, granted := range map[int]int64{1: 50, 2: 25} {
		l := newLedger(t, 1, 100, "one", "two")
		one := newSpender(t, l, "one", 1)
		if live == 2 {
			newSpender(t, l, "two", 2)
		}
		one.now = at + 1000
		require.EqualValues(t, granted, one.want(1000, creditsOf1).Rows[0].Granted)
	}
}

// TestAClosedLeaseWaitsForNothing, although it is kept for what was spent beyond it.
func TestAClosedLeaseWaitsForNothing(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two")
	l.SetPlan(at, ledger.Plan{ID: "scale", MonthlyVolume: 1})
	volume := volumeOf(syncproto.Month(at))
	one, two := newSpender(t, l, "one", 1), newSpender(t, l, "two", 2)
	two.want(1, volume)
	one.want(5, creditsOf1)
	one.want(1, volume)
	one.batch([]syncproto.Usage{found(1)})
	one.batch(nil, syncproto.Return{Pool: volume, Close: true})
	two.batch(nil, syncproto.Return{Pool: volume, Units: 1})
	for _, row := range one.sync(syncproto.Sync{}).Rows {
		require.NotEqual(t, volume, row.Pool)
	}
	require.Contains(t, strings.Join(l.Stored(), "\n"), "Limit 1 Compensated 0 Spent 0 Lost 0 Leased 0")
}

// TestAKeyIsNotSuspendedWithAnAccountOfItsNumber: keys and accounts are numbered apart.
func TestAKeyIsNotSuspendedWithAnAccountOfItsNumber(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	cap := syncproto.Pool{Kind: syncproto.NotFound, Subject: 1, Window: syncproto.Day(at)}
	require.NoError(t, l.ChangeAccount(at, 1, "scale", true))
	r := one.want(5, cap, creditsOf1)
	granted := map[syncproto.Kind]int64{}
	for _, row := range r.Rows {
		granted[row.Pool.Kind] = row.Granted
	}
	require.EqualValues(t, 5, granted[syncproto.NotFound])
	require.Zero(t, granted[syncproto.Credits])
}

// counter is an edge that holds credits, and so hears of requests at others.
func counter(t *testing.T, l *ledger.Ledger, name string, boot uint64) (s *spender, tell func(minute, count int64) []syncproto.Rate, others func() []syncproto.Rate) {
	s = newSpender(t, l, name, boot)
	s.want(1, creditsOf1)
	tell = func(minute, count int64) []syncproto.Rate {
		return s.sync(syncproto.Sync{Rates: []syncproto.Rate{{Subject: 77, Minute: minute, Count: 1}, {Subject: 1, Minute: minute, Count: count}}}).Others
	}
	return s, tell, func() []syncproto.Rate { return s.sync(syncproto.Sync{}).Others }
}

// TestEachEdgeHearsOfTheRequestsAtAllOthers, once, and not of its own.
func TestEachEdgeHearsOfTheRequestsAtAllOthers(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two", "three")
	minute := syncproto.Minute(at)
	rate := func(minute, count int64) []syncproto.Rate {
		return []syncproto.Rate{{Subject: 1, Minute: minute, Count: count}}
	}
	_, tellOne, _ := counter(t, l, "one", 1)
	_, tellTwo, two := counter(t, l, "two", 2)
	_, _, three := counter(t, l, "three", 3)
	require.Empty(t, tellOne(minute, 3))
	require.Equal(t, rate(minute, 3), tellTwo(minute, 10))
	require.Equal(t, rate(minute, 10), tellOne(minute, 5))
	require.Equal(t, rate(minute, 5), two())
	require.Equal(t, rate(minute, 15), three())
	tellOne(minute, 5)
	require.Empty(t, three(), "nothing new")
	tellOne(minute+1, 2)
	require.Equal(t, rate(minute+1, 2), three(), "an edge's clock may be a minute ahead")
}

// TestRatesAreForgottenAfterAMinute, and so are those that a clock ahead counted.
func TestRatesAreForgottenAfterAMinute(t *testing.T) {
	minute := syncproto.Minute(at)
	for after, told := range map[int64]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		l := newLedger(t, 1, 100, "one", "two")
		_, tell, _ := counter(t, l, "one", 1)
		two, _, others := counter(t, l, "two", 2)
		tell(minute, 5)
		two.now = at + after*60_000
		require.Equal(t, told, len(others()) == 1, "%d minutes later", after)
		if !told {
			l.Sync(two.now, l.Edge("one"), &syncproto.Sync{Session: l.Hello(two.now, l.Edge("one"), &syncproto.Hello{Boot: 1, Epoch: 1}).Session, Rates: []syncproto.Rate{{Subject: 1, Minute: minute + after, Count: 2}}})
			require.EqualValues(t, 2, others()[0].Count, "and counting goes on")
		}
	}
}

func TestARetiredEdgeIsNotAwaited(t *testing.T) {
	l := newLedger(t, 9, 100, "one", "two", "three")
	require.NoError(t, l.Retire(at, "one", false))
	l.Restore()
	require.Equal(t, []string{"three", "two"}, l.Awaited())
	two := newSpender(t, l, "two", 2)
	two.sync(syncproto.Sync{DeclaredLast: true})
	require.Equal(t, []string{"three"}, l.Awaited())
	two.sync(syncproto.Sync{DeclaredLast: true, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 20}}})
	require.Zero(t, l.Account(1).Credits().Leased, "it has declared already")
	require.NoError(t, l.Retire(at, "three", false))
	require.False(t, l.Restoring, "nobody is awaited any more")
}

// TestADeclarationAddsWhatTheLedgerLacks to what it has, also after a pool that is gone.
func TestADeclarationAddsWhatTheLedgerLacks(t *testing.T) {
	l := newLedger(t, 9, 100, "one")
	one := newSpender(t, l, "one", 1)
	one.want(4, creditsOf1)
	l.Restore()
	gone := syncproto.Pool{Kind: syncproto.Volume, Subject: 1, Window: 1}
	one.sync(syncproto.Sync{DeclaredLast: true, Declared: []syncproto.Declared{{Pool: gone, Granted: 20}, {Pool: creditsOf1, Granted: 6}}})
	require.False(t, l.Restoring)
	require.EqualValues(t, 6, l.Account(1).Credits().Leased)
}

// TestWhatARestoredLedgerBelievesIsBounded: leased, spent and lost together.
func TestWhatARestoredLedgerBelievesIsBounded(t *testing.T) {
	const part = int64(3) << 46 // of 4 << 46
	for name, first := range map[string]func(l *ledger.Ledger, two *spender){
		"leased": func(l *ledger.Ledger, two *spender) {},
		"spent":  func(l *ledger.Ledger, two *spender) { two.batch([]syncproto.Usage{found(part)}) },
		"lost":   func(l *ledger.Ledger, two *spender) { require.NoError(t, l.Retire(at, "two", false)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 9, 100, "one", "two", "away")
			l.Restore()
			two, one := newSpender(t, l, "two", 2), newSpender(t, l, "one", 1)
			declared := []syncproto.Declared{{Pool: creditsOf1, Granted: part}}
			two.sync(syncproto.Sync{Declared: declared})
			first(l, two)
			one.sync(syncproto.Sync{Declared: declared})
			p := l.Account(1).Credits()
			require.EqualValues(t, int64(4)<<46, p.Leased+p.Spent+p.Lost)
		})
	}
}

// TestAnAccountThatARestoreMissesIsNearThoseThatAreKnown.
func TestAnAccountThatARestoreMissesIsNearThoseThatAreKnown(t *testing.T) {
	const most = 8 << 30
	for id, made := range map[int64]bool{1 + most: true, 2 + most: false} {
		l := newLedger(t, 9, 100, "one")
		l.Restore()
		one := newSpender(t, l, "one", 1)
		use := found(1)
		use.Account = id
		one.batch([]syncproto.Usage{use})
		require.Equal(t, made, l.Account(id) != nil, id)
	}
	l := newLedger(t, 9, 100, "one")
	require.NoError(t, l.AddAccount(1+most, "scale"))
	require.NoError(t, l.AddAccount(2, "scale"))
	l.Restore()
	use := found(1)
	use.Account = 3 + most
	newSpender(t, l, "one", 1).batch([]syncproto.Usage{use})
	require.NotNil(t, l.Account(use.Account), "near the greatest, whichever came last")
}

// TestARestoreThatFoundNothingMissingEntersNothing into the accounts' journals.
func TestARestoreThatFoundNothingMissingEntersNothing(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, 8, ledger.EntryBought, ""))
	l.Restore()
	one := newSpender(t, l, "one", 1)
	one.sync(syncproto.Sync{DeclaredLast: true, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 8}}})
	require.False(t, l.Restoring)
	require.Zero(t, l.Account(1).Credits().Left())
	require.NoError(t, commit())
	var entries int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM credit_entry`).Scan(&entries))
	require.Equal(t, 1, entries, "the purchase")
}

// TestNotFoundLookupsAreCappedByKey, and charged to no account.
func TestNotFoundLookupsAreCappedByKey(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	cap := syncproto.Pool{Kind: syncproto.NotFound, Subject: 7, Window: syncproto.Day(at)}
	for range 12 {
		one.want(1000, cap)
	}
	use := found(3)
	use.Outcome, use.Key = charge.NotFound, 7
	one.batch([]syncproto.Usage{use})
	require.EqualValues(t, 3, l.Spent(cap))
	require.Zero(t, l.Account(1).Credits().Spent)
	granted := int64(0)
	for _, row := range one.want(1000, cap).Rows {
		granted = max(granted, row.Granted)
	}
	require.EqualValues(t, ledger.NotFoundCap, granted)
}
