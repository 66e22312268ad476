package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// granter is a writer that grants. The sum of a lease that was closed begins anew, with what is not spent yet.
type granter struct {
	clock          int64
	granted, spent map[syncproto.Pool]int64 // spent of leases that were closed
}

// newGranter has given units for the windows of start.
func newGranter(units int64) *granter {
	g := &granter{start, map[syncproto.Pool]int64{}, map[syncproto.Pool]int64{}}
	for _, p := range []syncproto.Pool{volumePool(1, syncproto.Month(start)), notFoundPool(1, syncproto.Day(start))} {
		g.granted[p] = units
	}
	return g
}

// grantIn takes the edge's batch, and has given units of every kind for the windows of now then.
func (g *granter) grantIn(edge *EdgeState, now int64, version uint64, units int64) {
	batch := edge.Sync(now).Batch
	r := news(edge, version, units)
	r.NowMillis = g.clock
	if batch != nil {
		r.Applied = batch.Seq
		for _, returned := range batch.Returns {
			if returned.Close {
				g.spent[returned.Pool] += g.granted[returned.Pool] - returned.Units
			}
		}
	}
	r.Rows[1].Pool.Window, r.Rows[2].Pool.Window = syncproto.Month(now), syncproto.Day(now)
	for i := range r.Rows {
		row := &r.Rows[i]
		row.UntilMillis = g.clock + leaseMillis
		row.Granted -= g.spent[row.Pool]
		g.granted[row.Pool] = row.Granted
	}
	edge.Apply(now, r, true)
}

// chargeCode makes a request of either kind and returns the code, "wait" while a lease is missing.
func chargeCode(edge *EdgeState, now int64, id string, outcome charge.Outcome) string {
	r := request(id, outcome)
	r.PerMinute = 1000
	a := edge.Charge(now, r, false)
	if a.Wait {
		return "wait"
	}
	return a.Verdict.Code
}

// TestAWrongClockThatIsRightAgain charges under a wrong clock, also over a restart, and then
// under the right one, with what the writer grants in between: at any time, and around the ends of days,
// months and years. A clock that is half an hour off has another day there, one of a zone another month.
func TestAWrongClockThatIsRightAgain(t *testing.T) {
	const day = 24 * time.Hour
	for _, right := range []string{
		"2026-09-21T14:13:20Z", "2026-09-21T23:50:00Z", "2026-09-30T23:00:00Z", "2026-10-01T00:10:00Z",
		"2028-02-28T23:50:00Z", "2028-02-29T23:00:00Z", "2027-12-31T23:59:59Z",
	} {
		at, err := time.Parse(time.RFC3339, right)
		require.NoError(t, err)
		for _, jump := range []time.Duration{
			time.Minute, -time.Minute, 30 * time.Minute, -30 * time.Minute, 330 * time.Minute, -330 * time.Minute, day, -day, 31 * day, -31 * day, 400 * day, -400 * day,
		} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, %v, restart %v", right, jump, restart), func(t *testing.T) {
					jumpAndBack(t, at.UnixMilli(), jump.Milliseconds(), restart)
				})
			}
		}
	}
}

func jumpAndBack(t *testing.T, right, jump int64, restart bool) {
	edge, log := granted(t, 0)
	writer := newGranter(0)
	writer.clock = right
	chargeCode(edge, right, "first", charge.NotFound)
	writer.grantIn(edge, right, 2, 50)
	for i := range 10 {
		require.Empty(t, chargeCode(edge, right, fmt.Sprint("before", i), charge.Found))
		require.Empty(t, chargeCode(edge, right, fmt.Sprint("absent", i), charge.NotFound))
	}
	wrong := right + jump
	chargeCode(edge, wrong, "asks", charge.NotFound)
	writer.grantIn(edge, wrong, 3, 60)
	for i := range 5 {
		chargeCode(edge, wrong, fmt.Sprint("wrong", i), charge.Found)
	}
	if restart {
		again := New(&recordLog{})
		for _, record := range log.records {
			require.NoError(t, again.Replay(record))
		}
		again.Boot(2)
		again.Apply(right, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 1, Applied: again.outbox.acked, Live: 1, NowMillis: right}, false)
		edge = again
	}
	chargeCode(edge, right+1, "asks again", charge.Found)
	chargeCode(edge, right+1, "asks for the day", charge.NotFound)
	writer.grantIn(edge, right+1, 4, 80)
	require.NoError(t, edge.Check())
	got := 0
	for ; got < 100; got++ {
		if code := chargeCode(edge, right+2, fmt.Sprint("absent again", got), charge.NotFound); code != "" {
			break
		}
	}
	require.GreaterOrEqual(t, got, 60, "not-found lookups that are answered when the clock is right")
	require.LessOrEqual(t, got, 70, "not-found lookups: 80 were granted, at least 10 spent")
	require.Empty(t, chargeCode(edge, right+2, "found again", charge.Found))
	volume := edge.leases.find(volumePool(1, syncproto.Month(right)))
	require.LessOrEqual(t, volume.held(), int64(80-10-1), "units that were spent are not held again")
}

// TestAForgottenLeaseDoesNotComeBack lets days pass, so that the edge drops a lease of which it has
// spent some, before its clock or the writer's jumps back and the writer sends all rows again.
func TestAForgottenLeaseDoesNotComeBack(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	for days := range int64(6) {
		now := start + days*day
		for name, clocks := range map[string][2]int64{"edge's": {now - 400*day, now}, "writer's": {now, now - 400*day}} {
			t.Run(fmt.Sprintf("%s clock, after %d days", name, days), func(t *testing.T) {
				edge, log := granted(t, 50)
				for i := range 10 {
					require.Empty(t, chargeCode(edge, start, fmt.Sprint("absent", i), charge.NotFound))
				}
				chargeCode(edge, now, "later", charge.NotFound)
				edge.Sync(now)
				later := news(edge, 2, 50)
				later.NowMillis, later.Rows = now, nil
				edge.Apply(now, later, true)
				for range 100 {
					edge.sweep(now)
				}
				received := edge.Hello(now).Granted
				chargeCode(edge, clocks[0], "after the jump", charge.NotFound)
				edge.Sync(clocks[0])
				again := news(edge, 3, 50)
				again.NowMillis = clocks[1]
				edge.Apply(clocks[0], again, true)
				if l := edge.leases.find(notFoundPool(request("", charge.NotFound).Key, syncproto.Day(start))); l != nil {
					require.LessOrEqual(t, l.held(), int64(40), "50 were granted, 10 spent")
				}
				require.Equal(t, received, edge.Hello(now).Granted, "with a greater sum the ledger looks as if it was restored")
				replayed := New(&recordLog{})
				for _, record := range log.records {
					require.NoError(t, replayed.Replay(record))
				}
				require.NoError(t, replayed.Check())
			})
		}
	}
}

// TestALeaseIsNotForgottenByClocksThatWereWrongInTurn: first the writer's, when it
// was heard last, then the edge's.
func TestALeaseIsNotForgottenByClocksThatWereWrongInTurn(t *testing.T) {
	const years = 400 * 24 * 60 * 60 * 1000
	edge, _ := granted(t, 50)
	for i := range 10 {
		require.Empty(t, chargeCode(edge, start, fmt.Sprint("absent", i), charge.NotFound))
	}
	received := edge.Hello(start).Granted
	ahead := nothing(edge)
	ahead.NowMillis = start + years
	edge.Apply(start, ahead, false)
	chargeCode(edge, start+years, "by a wrong clock", charge.NotFound)
	for range 100 {
		edge.sweep(start + years)
	}
	again := news(edge, 3, 50)
	again.NowMillis = start
	edge.Apply(start, again, false)
	require.Equal(t, received, edge.Hello(start).Granted)
	require.EqualValues(t, 40, edge.leases.find(notFoundPool(1, syncproto.Day(start))).held(), "50 were granted, 10 spent")
}

func TestALeaseThatEndsInYearsIsNotBelieved(t *testing.T) {
	edge, _ := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "in use", charge.Found))
	edge.Sync(start)
	far := news(edge, 2, 60) // the writer's clock is a year ahead
	for i := range far.Rows {
		far.Rows[i].UntilMillis += 365 * leaseMillis
	}
	edge.Apply(start, far, true)
	require.Equal(t, "wait", chargeCode(edge, start, "a", charge.Found))
	edge.Sync(start)
	edge.Apply(start, news(edge, 3, 60), true) // it is right again
	require.Empty(t, chargeCode(edge, start, "b", charge.Found))
	require.Equal(t, "wait", chargeCode(edge, start+leaseMillis, "c", charge.Found), "the lease ends after a day")
}

// dryEdge is an edge whose account is empty, said by the writer at start.
func dryEdge(t *testing.T) *EdgeState {
	edge, _ := granted(t, 0)
	require.Empty(t, chargeCode(edge, start, "in use", charge.Failed))
	edge.Sync(start)
	dry := news(edge, 2, 0)
	dry.Rows[0].Dry = true
	dry.Rows[1].Granted, dry.Rows[2].Granted = 10, 10
	edge.Apply(start+30, dry, true)
	return edge
}

func TestARefusalIsTrue(t *testing.T) {
	const refused = charge.InsufficientCredits
	t.Run("for a second after the writer was asked", func(t *testing.T) {
		edge := dryEdge(t)
		require.Equal(t, refused, chargeCode(edge, start+1000, "a", charge.Found))
		require.Equal(t, "wait", chargeCode(edge, start+1001, "b", charge.Found))
	})
	t.Run("after the writer was asked again", func(t *testing.T) {
		edge := dryEdge(t)
		edge.Sync(start + 3000)
		edge.Apply(start+3010, &syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
		require.Equal(t, refused, chargeCode(edge, start+3020, "a", charge.Found))
	})
	t.Run("not by an answer that was long under way", func(t *testing.T) {
		edge := dryEdge(t)
		edge.Sync(start + 3000)
		edge.Apply(start+5000, &syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
		require.Equal(t, "wait", chargeCode(edge, start+5000, "a", charge.Found))
	})
	t.Run("when requests come a little out of order", func(t *testing.T) {
		edge := dryEdge(t)
		require.Equal(t, refused, chargeCode(edge, start+600, "a", charge.Found))
		require.Equal(t, refused, chargeCode(edge, start+600-setBackMillis, "b", charge.Found))
		require.Equal(t, "wait", chargeCode(edge, start+600-setBackMillis-1, "c", charge.Found))
	})
	t.Run("not by a clock that was set back to before the writer was asked", func(t *testing.T) {
		edge := dryEdge(t)
		edge.Apply(start-100, nothing(edge), false)
		require.Equal(t, "wait", chargeCode(edge, start-100, "a", charge.Found))
	})
	t.Run("not of before the last credit", func(t *testing.T) {
		edge := dryEdge(t)
		more := news(edge, 3, 1)
		more.Rows[0].Dry, more.Rows[1].Granted, more.Rows[2].Granted = true, 10, 10
		edge.Apply(start+40, more, false)
		require.Empty(t, chargeCode(edge, start+50, "the last", charge.Found))
		require.Equal(t, "wait", chargeCode(edge, start+60, "a", charge.Found), "credits may have been bought before the last was spent")
		acknowledged(edge, start+70)
		require.Equal(t, refused, chargeCode(edge, start+80, "a", charge.Found))
	})
	t.Run("not by a message that was under way when the last credit was spent", func(t *testing.T) {
		edge := dryEdge(t)
		more := news(edge, 3, 1)
		more.Rows[0].Dry, more.Rows[1].Granted, more.Rows[2].Granted = true, 10, 10
		edge.Apply(start+40, more, false)
		edge.Sync(start + 45)
		require.Empty(t, chargeCode(edge, start+50, "the last", charge.Found))
		edge.Apply(start+55, nothing(edge), true)
		require.Equal(t, "wait", chargeCode(edge, start+60, "a", charge.Found), "credits may have been bought before the last was spent")
	})
	for row, code := range []string{refused, charge.MonthlyVolumeExceeded, charge.NotFoundCapExceeded} {
		t.Run("not while units are on their way back: "+code, func(t *testing.T) {
			edge, _ := granted(t, 5)
			require.Empty(t, chargeCode(edge, start, "in use", charge.Failed))
			told := news(edge, 2, 5)
			told.Rows = told.Rows[row : row+1]
			told.Rows[0].Recall = true
			edge.Apply(start, told, false)
			require.Len(t, edge.Sync(start).Batch.Returns, 1)
			tell := func(applied uint64, ofSync bool) {
				told.Applied, told.Since, told.Upto = applied, edge.session.seen, edge.session.seen+1
				told.Rows[0].Version, told.Rows[0].Recall, told.Rows[0].Dry = told.Upto, false, true
				edge.Apply(start, told, ofSync)
			}
			tell(0, false)
			require.Equal(t, "wait", chargeCode(edge, start+10, "a", charge.NotFound), "the writer does not have them yet")
			if code == charge.MonthlyVolumeExceeded {
				told.Rows[0].Granted = 0 // the lease was closed
			}
			tell(1, true)
			require.Equal(t, code, chargeCode(edge, start+20, "b", charge.NotFound))
		})
	}
	t.Run("not when the clock was set back", func(t *testing.T) {
		edge := dryEdge(t)
		require.Equal(t, "wait", chargeCode(edge, start+60_000, "a", charge.Found))
		require.Equal(t, "wait", chargeCode(edge, start+500, "b", charge.Found))
	})
}

// TestAClockThatWasSetBackIsNoticedOnce: after the next reply the edge counts as connected again, and does not wait until
// the time of the clock that was ahead has come.
func TestAClockThatWasSetBackIsNoticedOnce(t *testing.T) {
	edge, _ := granted(t, 100)
	require.Empty(t, chargeCode(edge, start+3_600_000, "ahead", charge.Found))
	require.Empty(t, chargeCode(edge, start, "set back", charge.Found))
	require.False(t, edge.Connected(start))
	acknowledged(edge, start)
	for n := range int64(3) {
		require.Empty(t, chargeCode(edge, start+n, fmt.Sprint("right ", n), charge.Found))
		require.True(t, edge.Connected(start+n))
	}
}
