package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// TestAReplyThatTakesBackEndsTheSession has a stranger answer once in the writer's place. When the writer
// answers again, the edge has it say everything anew.
func TestAReplyThatTakesBackEndsTheSession(t *testing.T) {
	for name, forge := range map[string]func(*syncproto.Reply){
		"a batch acknowledged": func(r *syncproto.Reply) { r.Applied++ },
		"news":                 func(r *syncproto.Reply) { r.Upto += 1000 },
		"retired":              func(r *syncproto.Reply) { r.Status = syncproto.Retired },
	} {
		t.Run(name, func(t *testing.T) {
			edge, _ := granted(t, 50)
			require.Empty(t, chargeCode(edge, start, "charged", charge.Found))
			honest := syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: edge.standing.epoch, Generation: 1,
				Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: start}
			forged := honest
			forge(&forged)
			edge.Sync(start)
			edge.Apply(start, &forged, true)
			require.False(t, edge.Greeting())

			edge.Sync(start)
			edge.Apply(start, &honest, true)
			require.True(t, edge.Greeting(), "the edge believes both")

			edge.Hello(start)
			honest.Session, honest.Since, honest.Upto = 9, 0, 0
			edge.Apply(start, &honest, false)
			require.True(t, edge.Serving())
			require.Equal(t, uint64(1), edge.Sync(start).Batch.Seq, "the batch that the writer does not have")
			require.NoError(t, edge.Check())
		})
	}
}

// TestAnEdgeWithLostRecordsIsNotRetiredByAStranger: what the writer says of it is taken for Superseded, and
// that takes a retirement back as well.
func TestAnEdgeWithLostRecordsIsNotRetiredByAStranger(t *testing.T) {
	edge, _ := granted(t, 50)
	edge.Damaged()
	reply := &syncproto.Reply{Status: syncproto.Retired, Session: edge.session.id, Epoch: edge.Epoch(), Generation: 1, Upto: edge.session.seen, Live: 1, NowMillis: start}
	edge.Sync(start)
	edge.Apply(start, reply, true)
	require.Equal(t, syncproto.Retired, edge.Standing())
	reply.Status = syncproto.OK
	edge.Sync(start)
	edge.Apply(start, reply, true)
	require.True(t, edge.Greeting())
	reply.Session, reply.Upto = 9, 0
	edge.Apply(start, reply, false)
	require.Equal(t, syncproto.Superseded, edge.Standing())
}

// TestASessionHasOneEpoch: what is sent in it counts in the epoch that it was opened for.
func TestASessionHasOneEpoch(t *testing.T) {
	for _, ofSync := range []bool{true, false} { // false: a reply to Watch
		edge, _ := granted(t, 50)
		epoch := edge.Epoch()
		edge.Sync(start)
		edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: edge.session.id, Epoch: epoch + 1, Generation: 1, Live: 1, NowMillis: start}, ofSync)
		require.Equal(t, epoch, edge.Epoch())
		require.True(t, edge.Greeting())
	}
}

// TestNoReplyUsesUpAllEpochs, and none leads an edge where its writer's next number is not believed: that can
// be far from what a disk that was emptied, or is an older copy, knows.
func TestNoReplyUsesUpAllEpochs(t *testing.T) {
	edge := New(&recordLog{})
	edge.Boot(1)
	last := uint64(0)
	for _, c := range []struct {
		status   syncproto.Status
		epoch    uint64
		believed bool
	}{
		{syncproto.Fresh, anyEpoch + maxEpochLeap + 1, false}, {syncproto.Fresh, 7, true}, {syncproto.Forked, 1 << 45, true},
		{syncproto.Forked, 1 << 45, false}, {syncproto.Forked, anyEpoch + maxEpochLeap, true},
		{syncproto.Forked, anyEpoch + 2*maxEpochLeap + 1, false}, {syncproto.Forked, anyEpoch + maxEpochLeap + 1, true},
	} {
		edge.session.id = 0
		reply, err := syncproto.DecodeReply((&syncproto.Reply{Status: c.status, Session: 1, Epoch: c.epoch, Generation: 1, Live: 1, NowMillis: start}).Encode())
		require.NoError(t, err)
		edge.Apply(start, reply, false)
		if c.believed {
			last = c.epoch
		}
		require.Equal(t, last, edge.Epoch(), "%+v", c)
	}
	require.Less(t, last, uint64(syncproto.MaxUnits-32*maxEpochLeap), "there is room for the writer's next numbers")
}

// TestTheSumOfGrantsStaysWithinAMessage grants more than a writer would: the edge
// must still be able to greet it.
func TestTheSumOfGrantsStaysWithinAMessage(t *testing.T) {
	edge, _ := granted(t, syncproto.MaxUnits)
	_, err := syncproto.DecodeMessage(syncproto.Message{Hello: edge.Hello(start)}.Encode())
	require.NoError(t, err)
}
