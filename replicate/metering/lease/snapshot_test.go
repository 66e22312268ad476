package lease

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// replayed is an edge made of the snapshot of another.
func replayed(t *testing.T, edge *EdgeState) *EdgeState {
	t.Helper()
	again := New(&recordLog{})
	edge.Snapshot(func(r []byte) { require.NoError(t, again.Replay(r)) })
	require.NoError(t, again.Check())
	return again
}

// requireWhole checks that two edges know the same, but for what is counted in memory only.
func requireWhole(t *testing.T, want, got *EdgeState) {
	t.Helper()
	require.Equal(t, want.standing, got.standing)
	require.Equal(t, want.leases.granted, got.leases.granted)
	require.Equal(t, want.leases.accounts.order, got.leases.accounts.order)
	for id, a := range want.leases.accounts.all() {
		stored := *a
		stored.rate, stored.demand, stored.lastTaken = rate{}, demand{}, 0
		require.Equal(t, stored, *got.leases.accounts.get(id), "account %d", id)
	}
	require.Equal(t, want.leases.keys.order, got.leases.keys.order)
	for id, l := range want.leases.keys.all() {
		require.Equal(t, *l, *got.leases.keys.get(id), "key %d", id)
	}
	require.Equal(t, want.leases.parked, got.leases.parked)
	require.Equal(t, want.usage.confirmed, got.usage.confirmed)
	require.Equal(t, want.usage.current.durable(), got.usage.current.durable())
	require.Equal(t, counted(want.usage.late), counted(got.usage.late))
	require.Equal(t, counted(want.usage.carried), counted(got.usage.carried))
	for _, n := range []func(*outbox) any{
		func(o *outbox) any { return o.sealed }, func(o *outbox) any { return o.applied },
		func(o *outbox) any { return o.acked }, func(o *outbox) any { return encoded(o.inflight) },
	} {
		require.Equal(t, n(&want.outbox), n(&got.outbox))
	}
	require.ElementsMatch(t, want.doubts.unresolved, got.doubts.unresolved)
}

// encoded is a batch as it is sent, nil for none: an empty list is as good as none.
func encoded(b *syncproto.Batch) []byte {
	if b == nil {
		return nil
	}
	var e syncproto.Encoder
	b.Encode(&e)
	return e.Bytes
}

// counted leaves out the epochs without usage.
func counted(byEpoch map[uint64]tally) map[uint64]tally {
	left := maps.Clone(byEpoch)
	maps.DeleteFunc(left, func(_ uint64, t tally) bool { return len(t) == 0 })
	return left
}

// TestASnapshotHasEverything: what it left out would be lost with the segment before it.
func TestASnapshotHasEverything(t *testing.T) {
	edge, _ := granted(t, 50)
	t.Run("of a first run", func(t *testing.T) { requireWhole(t, edge, replayed(t, edge)) })

	edge.Charge(start, request("of epoch 1", charge.Found), false)
	edge.Charge(start, request("absent", charge.NotFound), false)
	edge.Charge(start, request("doubtful", charge.Found), false)
	edge.Doubt(start, "doubtful")
	t.Run("with leases that are exhausted, or recalled, or not the writer's yet", func(t *testing.T) {
		edge, _ := granted(t, 50)
		said := news(edge, 2, 50)
		said.Rows[0].Recall, said.Rows[1].Dry = true, true
		edge.Apply(start, said, false)
		edge.leases.keys.ensure(9).returned = -1 // by a void, without a row yet
		edge.leases.granted++
		again := replayed(t, edge)
		requireWhole(t, edge, again)
		require.True(t, again.leases.accounts.get(1).credits.recalled)
		require.True(t, again.leases.accounts.get(1).volume.dry)
	})
	t.Run("with leases of other days and months", func(t *testing.T) {
		edge, _ := granted(t, 50)
		edge.Charge(start, request("absent", charge.NotFound), false)
		edge.Charge(syncproto.EndOfMonth(syncproto.Month(start)), request("in the next month", charge.NotFound), false)
		require.Len(t, edge.leases.parked, 2, "of the account and of the key")
		requireWhole(t, edge, replayed(t, edge))
	})
	t.Run("of a retired edge that began anew", func(t *testing.T) {
		edge, _ := granted(t, 50)
		edge.applyEpoch(0, true)
		require.EqualValues(t, 1, edge.standing.dropped)
		requireWhole(t, edge, replayed(t, edge))
	})
	t.Run("with an unresolved charge", func(t *testing.T) {
		edge.doubts.resolve(start+doubtMillis, &edge.recent)
		require.Len(t, edge.doubts.unresolved, 1)
		requireWhole(t, edge, replayed(t, edge))
	})
	t.Run("with a lease that is being closed", func(t *testing.T) {
		edge, _ := granted(t, 50)
		edge.Sync(start + 5*leaseMillis)
		require.NotZero(t, edge.leases.keys.get(1).since)
		requireWhole(t, edge, replayed(t, edge))
	})
	writer := newGranter(50)
	t.Run("with leases of two windows", func(t *testing.T) {
		const day = 24 * 60 * 60 * 1000
		later := start + 31*day
		chargeCode(edge, later, "asks", charge.Found)
		chargeCode(edge, later, "asks for the day", charge.NotFound)
		writer.grantIn(edge, later, 2, 60)
		require.Len(t, edge.leases.parked, 2)
		require.Empty(t, chargeCode(edge, later, "fails", charge.Failed))
		edge.Sync(later)
		require.NotNil(t, edge.outbox.inflight)
		requireWhole(t, edge, replayed(t, edge))
	})
	t.Run("with usage of an epoch before", func(t *testing.T) {
		chargeCode(edge, start+1, "asks again", charge.Found)
		writer.grantIn(edge, start+1, 3, 70)
		require.Empty(t, chargeCode(edge, start+1, "of epoch 1 too", charge.Found))
		edge.Apply(start+1, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 3, Live: 1, NowMillis: start}, false)
		require.NotEmpty(t, edge.usage.late)
		requireWhole(t, edge, replayed(t, edge))
	})
	t.Run("of a run that no writer has answered yet", func(t *testing.T) {
		again := replayed(t, edge)
		again.Boot(7)
		require.False(t, again.usage.confirmed)
		require.NotEmpty(t, again.usage.carried)
		requireWhole(t, again, replayed(t, again))
	})
}

// TestASnapshotOfAnOlderCopyReportsNothingTwice: what an earlier run left unreported is reported only
// after the writer found the state directory current, also when a segment began meanwhile.
func TestASnapshotOfAnOlderCopyReportsNothingTwice(t *testing.T) {
	edge, _ := granted(t, 50)
	edge.Charge(start, request("a", charge.Found), false)
	again := replayed(t, edge)
	again.Boot(2)
	third := replayed(t, again)
	require.Equal(t, "", third.Charge(start, request("b", charge.Found), false).Verdict.Code)
	third.seal(start)
	require.Nil(t, third.outbox.inflight, "the writer was not heard since the restart")
	third.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	third.seal(start)
	require.Len(t, third.outbox.inflight.Usage, 1)
	require.EqualValues(t, 1, third.outbox.inflight.Usage[0].Count, "of this run: its original may have reported the other")
}

// TestAnAccountOfAnOlderSnapshotKnowsItsClose: one number stood behind the account then, for both leases.
func TestAnAccountOfAnOlderSnapshotKnowsItsClose(t *testing.T) {
	var e syncproto.Encoder
	e.Byte(recordAccount)
	e.Int(1)
	for _, window := range []int32{0, 5} {
		(&lease{granted: 3, known: true, window: window}).encode(&e)
	}
	for range 3 { // balance, unreported, last use
		e.Int(0)
	}
	e.Uint(7)
	edge := New(&recordLog{})
	require.NoError(t, edge.Replay(e.Bytes))
	a := edge.leases.accounts.get(1)
	require.Equal(t, lease{granted: 3, known: true, since: 7}, a.credits)
	require.Equal(t, lease{granted: 3, known: true, since: 7, window: 5}, a.volume)
}
