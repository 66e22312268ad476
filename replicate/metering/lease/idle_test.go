package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// acknowledged has the writer take the batch of the next message, if there is one, and returns it.
func acknowledged(edge *EdgeState, now int64) *syncproto.Batch {
	batch := edge.Sync(now).Batch
	r := &syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: edge.standing.epoch, Generation: 1, Applied: edge.outbox.applied, Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: now}
	if batch != nil {
		r.Applied = batch.Seq
	}
	edge.Apply(now, r, true)
	return batch
}

// returnedOf sums the credits that a number of messages return.
func returnedOf(edge *EdgeState, now int64, messages int) (units int64, closed bool) {
	for range messages {
		if batch := acknowledged(edge, now); batch != nil {
			for _, r := range batch.Returns {
				if r.Pool.Kind == syncproto.Credits {
					units, closed = units+r.Units, closed || r.Close
				}
			}
		}
	}
	return units, closed
}

// TestAnAccountIsInUseAfterARestart: else its lease would be given back, and its next request wait.
func TestAnAccountIsInUseAfterARestart(t *testing.T) {
	edge, log := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	again := restarted(t, log.records)
	again.Boot(2)
	again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	require.Empty(t, again.Sync(start).Batch.Returns)
}

// TestAnIdleLeaseIsReturned down to a floor after ten minutes, and wholly after a day.
func TestAnIdleLeaseIsReturned(t *testing.T) {
	edge, _ := granted(t, 100)
	edge.Charge(start, request("a", charge.Found), false)
	units, closed := returnedOf(edge, start+slotMillis-1, 3)
	require.Zero(t, units)
	require.False(t, closed)
	units, closed = returnedOf(edge, start+slotMillis, 3)
	require.EqualValues(t, 99-floorUnits, units)
	require.False(t, closed)
	units, _ = returnedOf(edge, start+idleMillis-1, 3)
	require.Zero(t, units)
	units, closed = returnedOf(edge, start+idleMillis, 3)
	require.EqualValues(t, floorUnits, units)
	require.True(t, closed)
	require.NoError(t, edge.Check())
}

// TestAnAccountUsedByAClockThatWasAheadBecomesIdle: its last use would else be in the future, and its
// lease would never come back.
func TestAnAccountUsedByAClockThatWasAheadBecomesIdle(t *testing.T) {
	edge, _ := granted(t, 100)
	edge.Charge(start+365*idleMillis, request("a", charge.Found), false)
	returnedOf(edge, start, 3)
	units, _ := returnedOf(edge, start+slotMillis, 3)
	require.Positive(t, units)
}

// TestAClosedAccountIsKnownUntilTheWriterHasTheClose: a row that the writer sent before would grant
// again what was returned.
func TestAClosedAccountIsKnownUntilTheWriterHasTheClose(t *testing.T) {
	edge, _ := granted(t, 100)
	edge.Charge(start, request("a", charge.Failed), false)
	late := news(edge, 5, 100)
	now := start + 2*idleMillis
	for edge.outbox.inflight == nil || len(edge.outbox.inflight.Returns) == 0 {
		if edge.outbox.inflight != nil {
			acknowledged(edge, now)
			continue
		}
		edge.Sync(now) // no reply
	}
	for range 3 {
		edge.sweep(now + 2*idleMillis)
	}
	require.NotNil(t, edge.leases.accounts.get(1))
	edge.Apply(now, late, false)
	require.Zero(t, edge.leases.accounts.get(1).credits.held(), "they were returned")
	for range 3 {
		acknowledged(edge, now+2*idleMillis)
	}
	require.Nil(t, edge.leases.accounts.get(1), "and then it is forgotten")
}

// TestAnAccountIsKnownUntilTheWriterHasTheCloseOfBothLeases: a late grant of either would be taken for one of now.
func TestAnAccountIsKnownUntilTheWriterHasTheCloseOfBothLeases(t *testing.T) {
	for name, of := range map[string]func(*account) *lease{
		"credits": func(a *account) *lease { return &a.credits }, "volume": func(a *account) *lease { return &a.volume },
	} {
		edge, _ := granted(t, 100)
		a := edge.leases.accounts.get(1)
		a.credits, a.volume, a.unreported = lease{}, lease{}, 0
		of(a).since = edge.outbox.applied + 1
		for range 3 {
			edge.sweep(start + 2*idleMillis)
		}
		require.NotNil(t, edge.leases.accounts.get(1), name)
		edge.outbox.applied++
		for range 3 {
			edge.sweep(start + 2*idleMillis)
		}
		require.Nil(t, edge.leases.accounts.get(1), name)
	}
}

// TestLeasesOfFewWindowsAreParked: an edge whose clock jumps on and on keeps no lease of each window.
func TestLeasesOfFewWindowsAreParked(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	edge, _ := granted(t, 50)
	writer := newGranter(50)
	for n := range int64(3 * maxWindows) {
		now := start + n*31*day
		chargeCode(edge, now, fmt.Sprint("asks", n), charge.Found)
		chargeCode(edge, now, fmt.Sprint("asks for the day", n), charge.NotFound)
		writer.grantIn(edge, now, uint64(n)+2, 60)
	}
	require.NotEmpty(t, edge.leases.parked)
	for pool, parked := range edge.leases.parked {
		require.LessOrEqual(t, len(parked), maxWindows, "%+v", pool)
	}
}

// TestARowOfAWindowThatBeginsAgainIsTaken: the writer took the month for past by a wrong clock, and
// grants in it from nothing.
func TestARowOfAWindowThatBeginsAgainIsTaken(t *testing.T) {
	edge, _ := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	again := news(edge, 2, 7)
	again.Rows = again.Rows[1:2]
	edge.Apply(start, again, false)
	volume := edge.leases.find(volumePool(1, syncproto.Month(start)))
	require.EqualValues(t, 7, volume.held())
	require.True(t, volume.known)

	less := news(edge, 3, 7)
	less.Rows = less.Rows[:1] // credits have no window: an older row
	edge.Apply(start, less, false)
	require.EqualValues(t, 49, edge.leases.accounts.get(1).credits.held())
}

// TestALeaseOfAPastWindowIsForgottenWhenTheWriterHasEndedIt: until then the sum of its grants counts.
func TestALeaseOfAPastWindowIsForgottenWhenTheWriterHasEndedIt(t *testing.T) {
	edge, _ := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	later := start + 100*leaseMillis
	chargeCode(edge, later, "asks", charge.Found) // the leases of before are parked
	month, day := volumePool(1, syncproto.Month(start)), notFoundPool(1, syncproto.Day(start))
	batch := edge.Sync(later).Batch
	require.Contains(t, batch.Returns, syncproto.Return{Pool: month, Units: 49, Close: true})
	require.Contains(t, batch.Returns, syncproto.Return{Pool: day, Units: 50, Close: true})
	edge.Apply(later, news(edge, 5, 50), false) // sent before the writer had the batch
	for _, p := range []syncproto.Pool{month, day} {
		require.Equal(t, lease{window: p.Window, since: batch.Seq}, *edge.leases.find(p))
	}
	edge.Lost()
	require.Equal(t, batch, acknowledged(edge, later))
	acknowledged(edge, later)
	require.Empty(t, edge.leases.parked)
	require.NoError(t, edge.Check())
}

// rowsOf is a reply with a row for each window of key 1's not-found leases.
func rowsOf(edge *EdgeState, windows ...int32) *syncproto.Reply {
	r := nothing(edge)
	for _, window := range windows {
		r.Upto++
		r.Rows = append(r.Rows, syncproto.Row{Version: r.Upto, Pool: notFoundPool(1, window), Granted: 1, UntilMillis: start + leaseMillis})
	}
	return r
}

// TestALeaseTooManyIsNotTaken, nor too many of one reply: an edge says in one message what a key holds.
func TestALeaseTooManyIsNotTaken(t *testing.T) {
	today := syncproto.Day(start)
	for name, each := range map[string]int{"in one reply": 3 * maxWindows, "in many": 1} {
		edge, _ := granted(t, 50)
		for first := range 3 * maxWindows / each {
			var windows []int32
			for n := range each {
				windows = append(windows, today+1+int32(first*each+n))
			}
			edge.Apply(start, rowsOf(edge, windows...), false)
		}
		require.Len(t, edge.leases.parked[notFoundPool(1, 0)], maxWindows-1, "and one is at hand, %s", name)
		again := news(edge, 1000, 60)
		edge.Apply(start, again, false)
		require.EqualValues(t, 60, edge.leases.find(notFoundPool(1, today)).granted, "one that is known is taken")
		declare := nothing(edge)
		declare.Declare = true
		edge.Apply(start, declare, false)
		require.LessOrEqual(t, len(edge.Sync(start).Declared), 2+maxWindows)
	}
}

// TestLeasesOfWindowsFarAheadAreClosed: a clock was wrong, and they would be in the place of others for years.
func TestLeasesOfWindowsFarAheadAreClosed(t *testing.T) {
	edge, _ := granted(t, 50)
	today := syncproto.Day(start)
	var ahead []int32
	for n := range int32(maxWindows) {
		ahead = append(ahead, today+1000+n)
	}
	edge.Apply(start, rowsOf(edge, ahead...), false)
	require.NotEmpty(t, edge.leases.parked)
	for range 3 {
		acknowledged(edge, start)
	}
	require.Empty(t, edge.leases.parked)
	edge.Apply(start, rowsOf(edge, today+1), false)
	require.EqualValues(t, 1, edge.leases.find(notFoundPool(1, today+1)).held(), "the next day's is not too far")
	for range 3 {
		acknowledged(edge, start)
	}
	require.EqualValues(t, 1, edge.leases.find(notFoundPool(1, today+1)).held())
}

// TestALeaseIsNotClosedByAClockThatIsRightAgain, while what was listed to be closed waits for a batch.
func TestALeaseIsNotClosedByAClockThatIsRightAgain(t *testing.T) {
	edge, _ := granted(t, 50)
	edge.sweep(start + 5*leaseMillis)
	require.Contains(t, edge.returns.notOpen, notFoundPool(1, syncproto.Day(start)))
	for _, r := range edge.Sync(start).Batch.Returns {
		require.NotEqual(t, syncproto.NotFound, r.Pool.Kind)
	}
	require.True(t, edge.leases.keys.get(1).known)
}

// TestAVoidOfAForgottenLeaseIsHeldHere, as the writer counts it, and after a restart.
func TestAVoidOfAForgottenLeaseIsHeldHere(t *testing.T) {
	for _, outcome := range []charge.Outcome{charge.Found, charge.NotFound} {
		for _, snapshot := range []bool{false, true} {
			edge, log := granted(t, 50)
			require.Empty(t, chargeCode(edge, start, "a", outcome))
			ahead := start + 100*leaseMillis
			for range 4 {
				acknowledged(edge, ahead)
			}
			p := notFoundPool(1, syncproto.Day(start))
			if outcome == charge.Found {
				p = volumePool(1, syncproto.Month(start))
			}
			require.Nil(t, edge.leases.find(p))
			if snapshot {
				edge.Snapshot(func(r []byte) { log.Append(r, false) })
			}
			chargeCode(edge, start+1, "asks", outcome) // a lease is at hand, of which there is no record
			_, err := edge.Void(start+1, "a")
			require.NoError(t, err)
			again := New(&recordLog{})
			for _, r := range log.records {
				require.NoError(t, again.Replay(r))
			}
			for _, e := range []*EdgeState{edge, again} {
				require.EqualValues(t, 1, e.leases.find(p).held())
				require.NoError(t, e.Check())
			}
		}
	}
}

// TestPastLeasesOfAKeyThatTheSweepDoesNotReachAreClosed: an edge that restarts often has many keys.
func TestPastLeasesOfAKeyThatTheSweepDoesNotReachAreClosed(t *testing.T) {
	edge, _ := granted(t, 50)
	for id := range int64(sweepParts) { // the sweep comes to these first
		edge.leases.keys.ensure(1000 + id)
	}
	edge.leases.keys.drop(1)
	today := syncproto.Day(start)
	edge.leases.keys.ensure(1)
	for n := range int32(maxWindows) {
		edge.leases.park(notFoundPool(1, 0), lease{window: today - 20 + n, known: true, granted: 5})
	}
	edge.leases.granted += 5 * maxWindows
	edge.leases.switchTo(notFoundPool(1, today), edge.leases.keys.get(1))
	edge.Apply(start, rowsOf(edge, today), false)
	require.False(t, edge.leases.keys.get(1).known, "it would be one too many")
	require.Len(t, acknowledged(edge, start).Returns, 2+maxWindows, "with those of the account, which is idle")
	edge.Apply(start, rowsOf(edge, today), false)
	require.True(t, edge.leases.keys.get(1).known)
	require.NoError(t, edge.Check())
}
