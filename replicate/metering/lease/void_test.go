package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// TestAUnitVoidedAfterItsLeaseWasClosedIsReturned lets days pass, so that the account could be
// dropped, before the writer sends a row with the unit that the void brought back.
func TestAUnitVoidedAfterItsLeaseWasClosedIsReturned(t *testing.T) {
	edge, _ := granted(t, 10)
	returned := int64(0)
	sync := func(now int64) {
		batch := edge.Sync(now).Batch
		if batch == nil {
			return
		}
		for _, r := range batch.Returns {
			if r.Pool.Kind == syncproto.Credits {
				returned += r.Units
			}
		}
		edge.Apply(now, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: batch.Seq, Live: 1}, true)
	}
	edge.Charge(start, request("a", charge.Found), false)
	idle := start + idleMillis + 1
	for range 3 {
		sync(idle)
	}
	require.EqualValues(t, 9, returned)
	_, err := edge.Void(idle, "a")
	require.NoError(t, err)
	for n := range int64(5) {
		sync(idle + n*idleMillis)
	}
	require.EqualValues(t, 10, returned)
	require.NoError(t, edge.Check())
}

func TestDropTakesBackUnwrittenRecords(t *testing.T) {
	edge, log := granted(t, 10)
	require.Equal(t, "", edge.Charge(start, request("first", charge.Found), false).Verdict.Code)
	require.Equal(t, "", edge.Charge(start, request("dropped", charge.Found), false).Verdict.Code)
	record := log.records[len(log.records)-1]
	edge.Drop(record)
	require.NoError(t, edge.Check())
	require.EqualValues(t, 9, edge.leases.accounts.get(1).credits.held())
	a := edge.Charge(start, request("dropped", charge.Found), false)
	require.False(t, a.Repeated)

	_, err := edge.Void(start, "first")
	require.NoError(t, err)
	edge.Drop(log.records[len(log.records)-1])
	require.NoError(t, edge.Check())
	require.EqualValues(t, 8, edge.leases.accounts.get(1).credits.held())
	require.Equal(t, "", edge.Charge(start, request("first", charge.Found), false).Verdict.Code, "its charge stands again")
}

func TestUnresolvedChargesAreReported(t *testing.T) {
	edge, _ := granted(t, 10)
	edge.Charge(start, request("answered", charge.Found), false)
	edge.Charge(start, request("doubtful", charge.Found), false)
	edge.Doubt(start, "answered")
	edge.Doubt(start, "doubtful")
	edge.Charge(start, request("answered", charge.Found), false) // charged again: the verdict arrived
	require.Empty(t, edge.Sync(start).Batch.Unresolved)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: 1, Live: 1}, true)
	s := edge.Sync(start + doubtMillis)
	require.Len(t, s.Batch.Unresolved, 1)
	require.Equal(t, "doubtful", s.Batch.Unresolved[0].ID)
}
