package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func TestReplayRebuildsTheState(t *testing.T) {
	edge, log := granted(t, 100)
	work := func(from int) {
		for i := range 3 {
			edge.Charge(start+int64(from)*60_000, request(fmt.Sprintf("f%d%d", from, i), charge.Found), false)
		}
		edge.Charge(start+int64(from)*60_000, request(fmt.Sprint("n", from), charge.NotFound), false)
		_, err := edge.Void(start, fmt.Sprintf("f%d0", from))
		require.NoError(t, err)
	}
	work(1)
	s := edge.Sync(start)
	require.NotNil(t, s.Batch)
	reply := news(edge, 3, 100)
	reply.Applied = s.Batch.Seq
	require.NotNil(t, edge.Apply(start, reply, true).Batch)
	work(2)
	edge.Sync(start)
	work(3)

	again := New(&recordLog{})
	for _, r := range log.records {
		require.NoError(t, again.Replay(r))
	}
	same(t, edge, again)

	t.Run("and so does its snapshot, with the ids of the records before", func(t *testing.T) {
		third := New(&recordLog{})
		for _, r := range log.records {
			require.NoError(t, third.ReplayID(r))
		}
		edge.Snapshot(func(r []byte) { require.NoError(t, third.Replay(r)) })
		same(t, edge, third)
		repeated := third.Charge(start, request("f32", charge.Found), false)
		require.True(t, repeated.Repeated)
		require.Equal(t, edge.Charge(start, request("f32", charge.Found), false).Verdict, repeated.Verdict)
		require.Equal(t, charge.MeteringUnavailable, third.Charge(start, request("f30", charge.Found), false).Verdict.Code)
	})
}

// same checks that two edges hold and report the same.
func same(t *testing.T, want, got *EdgeState) {
	t.Helper()
	require.NoError(t, got.Check())
	require.Equal(t, want.leases.accounts.get(1).credits, got.leases.accounts.get(1).credits)
	require.Equal(t, want.leases.accounts.get(1).volume, got.leases.accounts.get(1).volume)
	require.Equal(t, want.leases.accounts.get(1).balance, got.leases.accounts.get(1).balance)
	require.Equal(t, want.leases.accounts.get(1).unreported, got.leases.accounts.get(1).unreported)
	require.Equal(t, want.leases.keys.get(1), got.leases.keys.get(1))
	require.Equal(t, want.usage.current, got.usage.current)
	require.Equal(t, want.outbox.inflight, got.outbox.inflight)
	require.Equal(t, want.outbox.sealed, got.outbox.sealed)
	require.Equal(t, want.outbox.applied, got.outbox.applied)
}

func FuzzReplay(f *testing.F) {
	edge, log := granted(f, 100)
	edge.Charge(start, request("f", charge.Found), false)
	edge.Void(start, "f")
	edge.Charge(start, keyedRequest("k", charge.Found, 1, 1), false)
	edge.Sync(start)
	for _, r := range log.records {
		f.Add(r)
	}
	edge.Snapshot(func(r []byte) { f.Add(append([]byte(nil), r...)) })
	f.Fuzz(func(t *testing.T, record []byte) {
		fresh := New(&recordLog{})
		if fresh.Replay(record) == nil {
			fresh.Snapshot(func([]byte) {})
		}
		fresh.ReplayID(record)
	})
}

// TestAStatusIsWrittenWhenItChanges, and not with each reply.
func TestAStatusIsWrittenWhenItChanges(t *testing.T) {
	edge, log := granted(t, 1)
	before := len(log.records)
	edge.setStatus(edge.standing.status)
	require.Len(t, log.records, before)
	edge.setStatus(syncproto.Retired)
	require.Len(t, log.records, before+1)
}
