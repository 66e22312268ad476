package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

const day = int64(24 * 60 * 60 * 1000)

// say sends an empty Sync, in which an edge shows that it lives.
func say(l *ledger.Ledger, now int64, e *ledger.Edge, session uint64, wants ...syncproto.Want) *syncproto.Reply {
	return l.Sync(now, e, &syncproto.Sync{Session: session, NowMillis: now, Wants: wants})
}

// TestAnEndThatAWrongClockGaveIsMended: a lease that the writer granted while its clock was a year ahead
// would not end for a year.
func TestAnEndThatAWrongClockGaveIsMended(t *testing.T) {
	f := newFixture(t, 1, "one")
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	want := syncproto.Want{Pool: creditsOf1, Target: 10}
	row := func(now int64) syncproto.Row {
		r := say(f.l, now, e, session, want)
		require.NotEmpty(t, r.Rows)
		return r.Rows[len(r.Rows)-1]
	}
	require.Greater(t, row(at+365*day).UntilMillis, at+365*day)
	until := row(at).UntilMillis
	require.Greater(t, until, at)
	require.LessOrEqual(t, until, at+day)
}

// TestAnEndThatWasMendedIsKept, also that of a lease of which everything is spent.
func TestAnEndThatWasMendedIsKept(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, 1, ledger.EntryBought, ""))
	one := newSpender(t, l, "one", 1)
	one.now = at + 365*day
	one.want(1, creditsOf1)
	one.batch([]syncproto.Usage{found(1)})
	require.NoError(t, commit())
	one.now = at
	one.want(1, creditsOf1)
	require.NoError(t, commit())
	loaded, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, l.Stored(), loaded.Stored())
}

// TestLiveEdgesAreCountedByTheClockAsItIs: grants are shared among the edges that live.
func TestLiveEdgesAreCountedByTheClockAsItIs(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	one, first := f.hello("one", syncproto.Hello{Boot: 1})
	require.EqualValues(t, 1, say(f.l, at+day, one, first).Live)
	two, second := f.hello("two", syncproto.Hello{Boot: 2})
	say(f.l, at, one, first)
	require.EqualValues(t, 2, say(f.l, at+1000, two, second).Live, "the clock was set back")
	require.Equal(t, 2, f.l.LiveEdges(at))
	require.EqualValues(t, 2, say(f.l, at+59_999, two, second).Live)
	require.EqualValues(t, 1, say(f.l, at+61_000, two, second).Live, "the first one is silent for a minute")
	require.Equal(t, 1, f.l.LiveEdges(at+60_000))
	require.NoError(t, f.l.Retire(at+61_000, "two", false))
	require.EqualValues(t, 1, f.l.Live(at+61_000), "nobody: at least one")
	require.Zero(t, f.l.LiveEdges(at+61_000))
}

// TestARetiredEdgeIsNotCountedAsLive, also within the second for which the count is kept.
func TestARetiredEdgeIsNotCountedAsLive(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	one, session := f.hello("one", syncproto.Hello{Boot: 1})
	f.hello("two", syncproto.Hello{Boot: 2})
	require.EqualValues(t, 2, say(f.l, at+1000, one, session).Live)
	require.NoError(t, f.l.Retire(at+1001, "two", false))
	require.EqualValues(t, 1, say(f.l, at+1002, one, session).Live)
}

// spendOf has an edge get a lease of a pool and spend three units of it, and tells what is booked.
func spendOf(t *testing.T, l *ledger.Ledger, pool syncproto.Pool, hour int32, outcome charge.Outcome) int64 {
	t.Helper()
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	say(l, at, e, session, syncproto.Want{Pool: pool, Target: 3, Urgent: true})
	usage := syncproto.Usage{Account: 1, Key: 1, Hour: hour, Endpoint: charge.Companies, Outcome: outcome, Count: 3}
	l.Sync(at, e, &syncproto.Sync{Session: session, NowMillis: at, Batch: &syncproto.Batch{Seq: e.Applied() + 1, Usage: []syncproto.Usage{usage}}})
	require.NoError(t, l.Check())
	return l.Spent(pool)
}

func volumeOf(month int32) syncproto.Pool {
	return syncproto.Pool{Kind: syncproto.Volume, Subject: 1, Window: month}
}

// TestPastWindowsAreDroppedWhenBothClocksSaySo: what was spent in this month must not be forgotten
// because one clock is wrong.
func TestPastWindowsAreDroppedWhenBothClocksSaySo(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	volume := volumeOf(syncproto.Month(at))
	require.EqualValues(t, 3, spendOf(t, l, volume, syncproto.Hour(at), charge.Found))
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1, Epoch: e.Epoch}).Session
	sync := func(now, edges int64) int64 {
		l.Sync(now, e, &syncproto.Sync{Session: session, NowMillis: edges})
		require.NoError(t, l.Check())
		return l.Spent(volume)
	}
	require.EqualValues(t, 3, sync(at+2*day, at+100*day), "the edge's clock is ahead")
	require.EqualValues(t, 3, sync(at+100*day, at+3*day), "the writer's clock is ahead")
	require.Zero(t, sync(at+100*day, at+100*day), "months later by both")
}

// TestPastWindowsAreDroppedAfterTheClockWasSetBack: the last day on which it was done is in the future.
func TestPastWindowsAreDroppedAfterTheClockWasSetBack(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	say(l, at+1000*day, e, session)
	volume := volumeOf(syncproto.Month(at))
	require.EqualValues(t, 3, spendOf(t, l, volume, syncproto.Hour(at), charge.Found))
	session = l.Hello(at, e, &syncproto.Hello{Boot: 1, Epoch: e.Epoch}).Session
	say(l, at+100*day, e, session)
	require.Zero(t, l.Spent(volume))
}

// TestUsageIsBookedInWindowsOfAboutNow: an edge whose clock is far off must not make pools of every
// month and day.
func TestUsageIsBookedInWindowsOfAboutNow(t *testing.T) {
	for months, booked := range map[int32]int64{-2: 0, -1: 3, 0: 3, 1: 3, 2: 0} {
		month := syncproto.Month(at) + months
		hour := syncproto.Hour(syncproto.EndOfMonth(month) - 1)
		require.Equal(t, booked, spendOf(t, newLedger(t, 1, 100, "one"), volumeOf(month), hour, charge.Found), "%d months from now", months)
	}
	for days, booked := range map[int32]int64{-3: 0, -2: 3, -1: 3, 0: 3, 1: 3, 2: 0} {
		pool := syncproto.Pool{Kind: syncproto.NotFound, Subject: 1, Window: syncproto.Day(at) + days}
		l := newLedger(t, 1, 100, "one")
		require.Equal(t, booked, spendOf(t, l, pool, pool.Window*24, charge.NotFound), "%d days from now", days)
		require.Equal(t, booked > 0, strings.Contains(strings.Join(l.Stored(), "\n"), fmt.Sprintf("pool %+v", pool)), "%d days from now", days)
	}
}

// TestAPastWindowGetsNoMoreGrants, while it is kept because an edge's clock is behind.
func TestAPastWindowGetsNoMoreGrants(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	volume := volumeOf(syncproto.Month(at))
	one.want(3, volume)
	r := l.Sync(at+100*day, one.e, &syncproto.Sync{Session: one.session, NowMillis: at + day, Wants: []syncproto.Want{{Pool: volume, Target: 10}}})
	require.Len(t, r.Rows, 1)
	require.EqualValues(t, 3, r.Rows[0].Granted)
}

// TestALeaseOfAPastWindowIsNoNews, although its edge has not seen it yet.
func TestALeaseOfAPastWindowIsNoNews(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	volume := volumeOf(syncproto.Month(at))
	one.want(3, volume, creditsOf1)
	rows := say(l, at+100*day, one.e, one.session).Rows
	require.NotEmpty(t, rows, "of its credits")
	for _, row := range rows {
		require.NotEqual(t, volume, row.Pool)
	}
}

// TestAPoolThatIsOpenAgainIsKept: the clock was set back before the end of the window was committed.
func TestAPoolThatIsOpenAgainIsKept(t *testing.T) {
	l, db, commit := onFile(t)
	require.NoError(t, l.AddAccount(1, "scale"))
	volume := volumeOf(syncproto.Month(at))
	require.EqualValues(t, 3, spendOf(t, l, volume, syncproto.Hour(at), charge.Found))
	require.NoError(t, commit())
	e := l.Edge("one")
	say(l, at+100*day, e, l.Hello(at, e, &syncproto.Hello{Boot: 1, Epoch: e.Epoch, Sealed: 1}).Session)
	require.Zero(t, l.Spent(volume))
	require.EqualValues(t, 3, spendOf(t, l, volume, syncproto.Hour(at), charge.Found))
	require.NoError(t, commit())
	loaded, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	require.EqualValues(t, 3, loaded.Spent(volume))
}

// TestClocksThatWereAheadAtOnce has an edge, and the writer that it hears, take this month and day for long
// past, and the writer's clock be right first. Nothing is spent again then, and the ledger does not take
// itself for restored. The edge is heard by its own clock only when that is right again, or earlier.
func TestClocksThatWereAheadAtOnce(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprint("heard by the wrong clock: ", early), func(t *testing.T) {
			l := newLedger(t, 1, 100, "one")
			f := &fixture{t: t, l: l, boot: 100}
			n := f.start(emptyDisk())
			for range 10 {
				f.serve("one", n)
			}
			month := volumeOf(syncproto.Month(at))
			require.EqualValues(t, 10, l.Spent(month))
			e := l.Edge("one")
			n.state.Apply(at+100*day, l.Sync(at+100*day, e, n.state.Watch(at, 0)), false)
			ask := charge.Request{ID: "asks", Account: 1, Key: 1, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
			require.True(t, n.state.Charge(at+100*day, &ask, false).Wait)
			for range 5 {
				sync := n.state.Sync(at + 100*day)
				if !early {
					n.state.Lost()
					continue
				}
				n.state.Apply(at+100*day, l.Sync(at, e, sync), true)
			}
			for range 10 {
				f.serve("one", n)
			}
			require.NoError(t, l.Check())
			require.EqualValues(t, 20, l.Spent(month))
			n.state.Apply(at, l.Hello(at, e, n.state.Hello(at)), false)
			require.False(t, l.Restoring, "with more grants than were given the ledger looks as if it was restored")
		})
	}
}

// tell exchanges messages of an edge whose clock differs from the writer's.
func (f *fixture) tell(name string, n *edge, writers, edges int64, times int) {
	for range times {
		sync := !n.state.Greeting()
		if sync {
			n.state.Apply(edges, f.l.Sync(writers, f.l.Edge(name), n.state.Sync(edges)), true)
		} else {
			n.state.Apply(edges, f.l.Hello(writers, f.l.Edge(name), n.state.Hello(edges)), false)
		}
		require.NoError(f.t, f.l.Check())
		require.NoError(f.t, n.state.Check())
	}
}

// TestAVoidOfAClosedLeaseStarvesNobody: to the writer the edge holds the unit, and so needs no other that is
// leased elsewhere. The lease was closed by a wrong clock, or since nobody used it for a day.
func TestAVoidOfAClosedLeaseStarvesNobody(t *testing.T) {
	for name, clocks := range map[string]struct{ closed, after int64 }{"wrong clock": {at + 100*day, at}, "idle": {at + 2*day, at + 2*day}} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 1, 1000, "one", "two")
			l.SetPlan(at, ledger.Plan{ID: "scale", APIAccess: true, PerMinute: 60, MonthlyVolume: 400})
			f := &fixture{t: t, l: l, boot: 100}
			one, two := f.start(emptyDisk()), f.start(emptyDisk())
			ask := func(n *edge, now int64) string {
				f.ids++
				r := charge.Request{ID: fmt.Sprint("id", f.ids), Account: 1, Key: 1, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
				return n.state.Charge(now, &r, false).Verdict.Code
			}
			f.exchange("two", two, 1)
			id := f.serve("one", one)
			if clocks.closed != clocks.after {
				ask(one, clocks.closed) // the lease of before is parked
			}
			f.tell("one", one, clocks.after, clocks.closed, 4)
			for range 50 { // the other edge gets all that is left
				ask(two, clocks.after)
				f.tell("two", two, clocks.after, clocks.after, 1)
			}
			_, err := one.state.Void(clocks.after, id)
			require.NoError(t, err)
			served := 0
			for range 30 {
				if ask(one, clocks.after) == "" {
					served++
				}
				for range 3 {
					f.tell("one", one, clocks.after, clocks.after, 1)
					f.tell("two", two, clocks.after, clocks.after, 1)
				}
			}
			require.Greater(t, served, 20)
		})
	}
}

// TestAKeyOfManyDaysIsServedAfterARestart: what was forgotten since is in the journal.
func TestAKeyOfManyDaysIsServedAfterARestart(t *testing.T) {
	const keys, days = 60, 12
	l := newLedger(t, 1, 1_000_000, "one")
	f := &fixture{t: t, l: l, boot: 100}
	n := f.start(emptyDisk())
	ask := func(now, key int64) string {
		f.ids++
		r := charge.Request{ID: fmt.Sprint("id", f.ids), Account: 1, Key: key, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.NotFound}
		n.state.Charge(now, &r, false)
		f.tell("one", n, now, now, 1)
		return n.state.Charge(now, &r, true).Verdict.Code
	}
	f.tell("one", n, at, at, 1)
	for d := range int64(days) {
		now := at + d*day
		for key := range int64(keys) {
			require.Empty(t, ask(now, key+1), "day %d, key %d", d, key)
		}
		f.tell("one", n, now, now, 30)
	}
	n = f.start(n.disk)
	now := at + days*day
	f.tell("one", n, now, now, 1)
	require.Empty(t, ask(now, keys), "no sweep has come to it yet")
}
