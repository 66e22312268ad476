package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// TestMoreUsageThanABatchTakesIsReportedInTheNext, and units are returned only with the last of it.
func TestMoreUsageThanABatchTakesIsReportedInTheNext(t *testing.T) {
	edge, _ := granted(t, 5)
	const rows = syncproto.MaxUsage + 3
	for account := range int64(rows) {
		edge.spend(use{account: account + 1, key: 1, outcome: charge.Failed, endpoint: charge.LLPs}, 1)
	}
	edge.leases.accounts.get(1).lastUsed = start
	edge.returns.recall(creditsPool(1))
	first := acknowledged(edge, start)
	require.Len(t, first.Usage, syncproto.MaxUsage)
	require.Empty(t, first.Returns)
	second := acknowledged(edge, start)
	require.Len(t, second.Usage, 3)
	require.Len(t, second.Returns, 1)
}

// TestMoreWantsThanAMessageTakesAreSentInTheNext.
func TestMoreWantsThanAMessageTakesAreSentInTheNext(t *testing.T) {
	w := newWants()
	for account := range int64(syncproto.MaxWants + 2) {
		w.add(syncproto.Want{Pool: creditsPool(account + 1), Target: 5})
	}
	require.Len(t, w.take(), syncproto.MaxWants)
	require.Len(t, w.pending, 2)
	w.answered()
	require.Len(t, w.take(), 2)
	w.answered()
	w.lost()
	require.Empty(t, w.take(), "they were answered")
}

// TestABatchReturnsNoMoreThanAMessageTakes, and closes both leases of an account or none.
func TestABatchReturnsNoMoreThanAMessageTakes(t *testing.T) {
	fill := func(n int64) *returnList {
		list := newReturnList()
		for account := range n {
			list.putExcess(creditsPool(account+100), &lease{granted: 5}, 0)
		}
		return list
	}
	both := &account{credits: lease{granted: 1, known: true}, volume: lease{granted: 1, known: true, window: 7}}
	for room, closed := range []int{0, 0, 2, 2} {
		list := fill(int64(syncproto.MaxReturns - room))
		list.putClose(1, both)
		require.Len(t, list.list, syncproto.MaxReturns-room+closed, "room for %d", room)
	}
	require.Len(t, fill(syncproto.MaxReturns+2).list, syncproto.MaxReturns)
	nothing := newReturnList()
	nothing.putExcess(creditsPool(1), &lease{granted: 5}, 5)
	require.Empty(t, nothing.list, "it holds no more than it keeps")
}

// TestAnAccountThatIsUsedAgainIsNotClosed: it was listed while it was idle.
func TestAnAccountThatIsUsedAgainIsNotClosed(t *testing.T) {
	edge, _ := granted(t, 50)
	edge.returns.closing = []int64{1, 99} // the other is not known any more
	edge.leases.accounts.get(1).lastUsed = start
	_, closed := returnedOf(edge, start+idleMillis-1, 1)
	require.False(t, closed)
	edge.returns.closing = []int64{1, 99}
	_, closed = returnedOf(edge, start+idleMillis, 1)
	require.True(t, closed)
}

// TestAUnitThatIsVoidedOfARecalledLeaseIsReturned: others wait for it.
func TestAUnitThatIsVoidedOfARecalledLeaseIsReturned(t *testing.T) {
	edge, _ := granted(t, 5)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	recall := news(edge, 2, 5)
	recall.Rows[0].Recall = true
	edge.Apply(start, recall, false)
	units, _ := returnedOf(edge, start, 2)
	require.EqualValues(t, 4, units)
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	require.True(t, edge.Urgent())
	units, _ = returnedOf(edge, start, 2)
	require.EqualValues(t, 1, units)
}

// TestAnAccountThatHasReturnedUnitsIsNotRefused: the writer can grant them again.
func TestAnAccountThatHasReturnedUnitsIsNotRefused(t *testing.T) {
	edge, _ := granted(t, 5)
	edge.Charge(start, request("in use", charge.Failed), false)
	recall := news(edge, 2, 5)
	recall.Rows[0].Recall, recall.Rows[0].Dry = true, true
	edge.Apply(start, recall, false)
	units, _ := returnedOf(edge, start, 1)
	require.EqualValues(t, 5, units)
	require.False(t, edge.leases.accounts.get(1).credits.dry)
	require.Equal(t, "wait", chargeCode(edge, start, "a", charge.Found))
}

// TestKeysOfPastDaysAreForgotten: each costs memory.
func TestKeysOfPastDaysAreForgotten(t *testing.T) {
	edge, _ := granted(t, 5)
	require.Equal(t, 1, edge.leases.keys.len())
	past := start + 5*leaseMillis
	require.NotNil(t, acknowledged(edge, past))
	acknowledged(edge, past)
	require.Zero(t, edge.leases.keys.len())

	other, _ := granted(t, 5)
	today := syncproto.Day(past)
	for id := range other.leases.keys.all() {
		other.leases.park(notFoundPool(id, today), lease{window: today, granted: 5})
	}
	acknowledged(other, past)
	acknowledged(other, past)
	require.Equal(t, 1, other.leases.keys.len(), "it has a lease of another day")
}

// TestASweepLooksAtAFewAccountsAtATime, and at all of them in ten minutes.
func TestASweepLooksAtAFewAccountsAtATime(t *testing.T) {
	r := newRoster[lease]()
	const members = 12_000
	for id := range int64(members) {
		r.ensure(id)
	}
	seen := map[int64]bool{}
	for n := range sweepParts {
		before := len(seen)
		r.sweep(func(id int64, _ *lease) { seen[id] = true })
		require.LessOrEqual(t, len(seen)-before, members/sweepParts+8, "sweep %d", n)
	}
	require.Len(t, seen, members)
}

// TestADeclarationFitsIntoAMessage, also of accounts with leases of several months.
func TestADeclarationFitsIntoAMessage(t *testing.T) {
	edge, _ := granted(t, 0)
	for id := int64(100); id < 100+syncproto.MaxDeclared/(1+maxWindows)+10; id++ {
		a := edge.leases.accounts.ensure(id)
		a.credits, a.volume = lease{granted: 5, known: true}, lease{granted: 5, known: true, window: 7}
		for window := range int32(maxWindows - 1) {
			edge.leases.park(volumePool(id, 0), lease{granted: 5, known: true, window: window})
		}
	}
	edge.leases.keys.ensure(1).granted = 0
	edge.declaration.active = true
	var m syncproto.Sync
	edge.declare(&m)
	require.LessOrEqual(t, len(m.Declared), syncproto.MaxDeclared)
	require.Greater(t, len(m.Declared), syncproto.MaxDeclared-2*(1+maxWindows))
	require.EqualValues(t, 100, m.Declared[0].Pool.Subject, "a lease that was granted nothing is not declared")
	for _, l := range []*lease{{granted: 5}, {known: true}} {
		var none syncproto.Sync
		addDeclared(&none, creditsPool(1), l)
		require.Empty(t, none.Declared)
	}
}

// TestADeclarationOfManyKeysGoesOn with the ones that were not listed.
func TestADeclarationOfManyKeysGoesOn(t *testing.T) {
	edge, _ := granted(t, 1)
	for key := range int64(syncproto.MaxDeclared) {
		*edge.leases.keys.ensure(key + 1) = lease{granted: 1, known: true, window: syncproto.Day(start)}
	}
	r := nothing(edge)
	r.Declare = true
	edge.Apply(start, r, false)
	first := edge.Sync(start)
	require.False(t, first.DeclaredLast)
	edge.Apply(start, r, true)
	second := edge.Sync(start)
	require.True(t, second.DeclaredLast)
	require.Len(t, append(first.Declared, second.Declared...), syncproto.MaxDeclared+2)
}

func TestTimesOfAVerdictAreInWholeSeconds(t *testing.T) {
	for ahead, want := range map[int64]int64{-5000: 1, 0: 1, 1: 1, 1000: 1, 1001: 2, 59_001: 60, 60_000: 60} {
		require.Equal(t, want, secondsUntil(start, start+ahead), "%d ms", ahead)
	}
	minute := time.Date(2026, 9, 21, 14, 13, 0, 0, time.UTC)
	for second := range 60 {
		require.Equal(t, minute.Add(time.Minute).UnixMilli(), endOfMinute(minute.Add(time.Duration(second)*time.Second).UnixMilli()))
	}
}

// TestCountsOfAnAccountThatIsForgottenHideNoOthers.
func TestCountsOfAnAccountThatIsForgottenHideNoOthers(t *testing.T) {
	edge := together(t)
	for account := range int64(3) {
		r := request(fmt.Sprint("r", account), charge.Failed)
		r.Account = account + 1
		edge.Charge(start, r, false)
	}
	edge.leases.accounts.drop(2)
	require.Len(t, edge.Sync(start).Rates, 2)
}

// TestASandboxClientKeepsItsCounts while others come, and begins anew with each minute.
func TestASandboxClientKeepsItsCounts(t *testing.T) {
	edge := New(&recordLog{})
	n := 0
	from := func(now int64, client string) string {
		n++
		r := &charge.Request{ID: fmt.Sprint(n), Sandbox: true, Client: client, PerMinute: 2, Endpoint: charge.LLPs, Outcome: charge.Found}
		return edge.Charge(now, r, false).Verdict.Code
	}
	for range 2 {
		require.Empty(t, from(start, "192.0.2.1"))
	}
	for other := range 10 {
		require.Empty(t, from(start, fmt.Sprint("198.51.100.", other)))
	}
	require.Equal(t, charge.RateLimitExceeded, from(start, "192.0.2.1"))
	require.Empty(t, from(endOfMinute(start), "192.0.2.1"))
}

func TestHeadroomIsThatOfAllAccounts(t *testing.T) {
	edge := New(&recordLog{})
	used := func(id, held int64, uses int32) {
		a := edge.leases.accounts.ensure(id)
		a.credits = lease{granted: held, known: true, until: start + leaseMillis}
		a.demand = demand{slot: int32(start / slotMillis), current: uses}
	}
	used(1, 10, 100) // a minute
	require.Equal(t, Headroom{Credits: 10, LeastMillis: shortMillis}, headroom(edge, start))
	used(2, 0, 5)
	require.Equal(t, Headroom{Credits: 10, Short: 1}, headroom(edge, start))
	used(3, 40, 100)
	used(4, 500, 0)
	require.Equal(t, Headroom{Credits: 550, Short: 1}, headroom(edge, start), "the least of all, and what is not in use is not short")
}

// TestLeasesOfOtherMonthsAreParkedWhileTheyMatter: what the writer said of them,
// not those that were never used.
func TestLeasesOfOtherMonthsAreParkedWhileTheyMatter(t *testing.T) {
	all := newLeases()
	month := syncproto.Month(start)
	for name, c := range map[string]struct {
		lease  lease
		parked int
	}{
		"used up":               {lease{window: month, known: true}, 1},
		"in use":                {lease{window: month, granted: 5}, 1},
		"never used":            {lease{window: month}, 0},
		"of a past window":      {lease{window: month - 5, known: true, granted: 5}, 1},
		"of a void before it":   {lease{window: month, spent: -1}, 1},
		"closed, not forgotten": {lease{window: month, since: 3}, 1},
	} {
		clear(all.parked)
		atHand := c.lease
		all.switchTo(volumePool(1, month+1), &atHand)
		require.Equal(t, lease{window: month + 1}, atHand, name)
		require.Len(t, all.parked[volumePool(1, 0)], c.parked, name)
	}
}

// TestANewSessionForgetsWhatWasDryInOtherMonths: the ledger may be a restored one.
func TestANewSessionForgetsWhatWasDryInOtherMonths(t *testing.T) {
	edge, _ := granted(t, 5)
	parked := edge.leases.park(volumePool(1, syncproto.Month(start)+1), lease{window: syncproto.Month(start) + 1, known: true, dry: true})
	edge.openSession(start, &syncproto.Reply{Session: 9, Generation: 1, Live: 1})
	require.False(t, parked.dry)
}

// TestAWordOfAnotherSessionEndsNone: it may be of the one before, on its way for long.
func TestAWordOfAnotherSessionEndsNone(t *testing.T) {
	edge, _ := granted(t, 5)
	for _, c := range []struct {
		session uint64
		open    bool
	}{{edge.session.id + 1, true}, {edge.session.id, false}} {
		edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: c.session, Generation: 1, Live: 1}, false)
		require.Equal(t, c.open, edge.session.open())
	}
}
