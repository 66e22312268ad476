package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func wanted(s *syncproto.Sync, p syncproto.Pool) (w syncproto.Want, ok bool) {
	for _, w := range s.Wants {
		if w.Pool == p {
			return w, true
		}
	}
	return w, false
}

// TestAWantIsJoinedWithTheOneBefore of its pool: a request may wait for that.
func TestAWantIsJoinedWithTheOneBefore(t *testing.T) {
	w, p := newWants(), creditsPool(1)
	w.add(syncproto.Want{Pool: p, Target: 60, Urgent: true})
	w.add(syncproto.Want{Pool: p, Target: floorUnits})
	require.True(t, w.urgent())
	require.Equal(t, []syncproto.Want{{Pool: p, Target: 60, Urgent: true}}, w.take())
}

// TestALeaseThatRunsLowIsRenewed before it is used up, so that no request waits.
func TestALeaseThatRunsLowIsRenewed(t *testing.T) {
	edge, _ := granted(t, 20) // the target of an account with five requests a minute is 16
	spend := func(n int) {
		for range n {
			r := request(fmt.Sprint("r", edge.recent.count), charge.Found)
			r.PerMinute = 5
			edge.leases.accounts.get(1).rate.count = 0
			require.Empty(t, edge.Charge(start, r, false).Verdict.Code)
		}
	}
	spend(12)
	require.EqualValues(t, 8, edge.leases.accounts.get(1).credits.held())
	require.Empty(t, edge.Sync(start).Wants, "half of the target is left")
	edge.Lost()
	spend(1)
	require.False(t, edge.Urgent(), "nobody waits")
	s := edge.Sync(start)
	for _, p := range []syncproto.Pool{creditsPool(1), volumePool(1, syncproto.Month(start))} {
		w, ok := wanted(s, p)
		require.True(t, ok, "%+v", p)
		require.EqualValues(t, floorUnits, w.Target)
		require.False(t, w.Urgent)
	}
	t.Run("and is asked for again when the message is lost", func(t *testing.T) {
		edge.Lost()
		again := edge.Sync(start)
		require.Equal(t, s.Wants, again.Wants)
		edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: edge.outbox.applied, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
		require.Empty(t, edge.Sync(start).Wants, "it was answered")
	})
}

func TestALeaseOfNotFoundLookupsIsRenewed(t *testing.T) {
	edge, _ := granted(t, notFoundUnits)
	day := notFoundPool(1, syncproto.Day(start))
	for n := range 6 {
		_, ok := wanted(&syncproto.Sync{Wants: edge.wants.take()}, day)
		require.False(t, ok, "%d were spent", n)
		require.Empty(t, chargeCode(edge, start, fmt.Sprint("absent", n), charge.NotFound))
	}
	_, ok := wanted(edge.Sync(start), day)
	require.True(t, ok, "six of ten were spent")
}

// TestALeaseIsRenewedHoursBeforeItEnds, however much it holds, and not when the writer has nothing more.
func TestALeaseIsRenewedHoursBeforeItEnds(t *testing.T) {
	edge, _ := granted(t, 1000)
	ends := news(edge, 2, 1000)
	for i := range ends.Rows {
		edge.leases.find(ends.Rows[i].Pool).until = 0
		ends.Rows[i].UntilMillis = start + (6 * time.Hour).Milliseconds()
	}
	edge.Apply(start, ends, false)
	require.Empty(t, chargeCode(edge, start, "early", charge.Found))
	_, ok := wanted(edge.Sync(start), creditsPool(1))
	require.False(t, ok)
	require.Empty(t, chargeCode(edge, start+1, "late", charge.Found))
	_, ok = wanted(edge.Sync(start+1), creditsPool(1))
	require.True(t, ok)

	dry, _ := granted(t, 3)
	last := news(dry, 2, 3)
	for i := range last.Rows {
		last.Rows[i].Dry = true
	}
	dry.Apply(start, last, false)
	require.Empty(t, chargeCode(dry, start, "a", charge.Found))
	require.Empty(t, dry.Sync(start).Wants)
}

// TestTheTargetOfALeaseFollowsItsUse: ten minutes of it, and at least a minute at the full rate.
func TestTheTargetOfALeaseFollowsItsUse(t *testing.T) {
	a := &account{}
	require.EqualValues(t, floorUnits, a.target())
	a.rate.limit = 100
	require.EqualValues(t, 100, a.target())
	slot := start / slotMillis * slotMillis
	for range 300 {
		a.used(slot)
	}
	require.EqualValues(t, 300, a.target())
	a.used(slot + slotMillis)
	require.EqualValues(t, 300, a.target(), "in the ten minutes before")
	a.used(slot + 3*slotMillis)
	require.EqualValues(t, 100, a.target(), "long ago")
}

// TestADayBeginsWithItsLeases: an edge asks, in the last ten minutes of a day, for those of the next one, and of
// the next month; else the first request of every key would wait for the writer at midnight.
func TestADayBeginsWithItsLeases(t *testing.T) {
	month := syncproto.Month(start)
	midnight := syncproto.EndOfMonth(month)
	edge, _ := granted(t, 1000)
	version := edge.session.seen
	hear := func(now int64, ofSync bool, pools ...syncproto.Pool) {
		r := &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: edge.outbox.applied, Since: edge.session.seen, Live: 1, NowMillis: now}
		for _, p := range pools {
			version++
			r.Upto = version
			r.Rows = append(r.Rows, syncproto.Row{Version: version, Pool: p, Granted: 1000, UntilMillis: now + leaseMillis, Balance: 1000})
		}
		edge.Apply(now, r, ofSync)
	}
	before := midnight - slotMillis - 1
	today := notFoundPool(1, syncproto.Day(before))
	hear(before, false, creditsPool(1), volumePool(1, month), today)
	require.Empty(t, chargeCode(edge, before, "in the day", charge.Found))
	require.Empty(t, edge.Sync(before).Wants, "more than ten minutes before its end")
	edge.Lost()
	now := midnight - slotMillis
	require.Empty(t, chargeCode(edge, now, "at its end", charge.Found))
	require.False(t, edge.Urgent(), "nobody waits")
	tomorrow, next := notFoundPool(1, syncproto.Day(midnight)), volumePool(1, month+1)
	require.Equal(t, []syncproto.Want{{Pool: next, Target: 1000}, {Pool: tomorrow, Target: notFoundUnits}}, edge.Sync(now).Wants)
	hear(now, true, next, tomorrow)
	require.Empty(t, chargeCode(edge, now, "again", charge.NotFound))
	require.Empty(t, edge.Sync(now).Wants, "they are there")
	edge.Lost()
	for name, outcome := range map[string]charge.Outcome{"found": charge.Found, "not found": charge.NotFound} {
		a := edge.Charge(midnight, request(name, outcome), false)
		require.False(t, a.Wait)
		require.Empty(t, a.Verdict.Code)
	}
	require.NoError(t, edge.Check())
}

// TestUrgentWantsGoFirst: a request waits for each.
func TestUrgentWantsGoFirst(t *testing.T) {
	w := newWants()
	for n := range int64(syncproto.MaxWants) {
		w.add(syncproto.Want{Pool: creditsPool(n), Target: floorUnits})
	}
	urgent := syncproto.Want{Pool: notFoundPool(1, 1), Target: notFoundUnits, Urgent: true}
	w.add(urgent)
	list := w.take()
	require.Len(t, list, syncproto.MaxWants)
	require.Equal(t, urgent, list[0])
}
