package lease

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// TestUsageOfAnEarlierEpochIsNotReportedAgain loses the records of an epoch's last batch, after the next
// epoch has begun. Nothing that follows shows that the batch is missing.
func TestUsageOfAnEarlierEpochIsNotReportedAgain(t *testing.T) {
	edge, log := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "charged", charge.Found))
	reply := func(status syncproto.Status, epoch, applied, upto uint64) {
		session := edge.session.id
		if status == syncproto.Fresh {
			session++
		}
		edge.Apply(start, &syncproto.Reply{Status: status, Session: session, Epoch: epoch, Generation: edge.standing.generation,
			Applied: applied, Since: edge.session.seen, Upto: upto, Live: 1, NowMillis: start}, status != syncproto.Fresh) // which answers Hello
	}
	epoch := edge.Epoch()
	reply(syncproto.Superseded, epoch, edge.outbox.applied, edge.session.seen)
	before := len(log.records)
	reported := int64(0)
	for n := 0; !edge.settled(); n++ {
		require.Less(t, n, 5, "the epoch is not settled")
		if batch := edge.Sync(start).Batch; batch != nil {
			for _, u := range batch.Usage {
				reported += u.Count
			}
		}
		reply(syncproto.Superseded, epoch, edge.outbox.sealed, edge.session.seen)
	}
	require.Equal(t, int64(1), reported)
	after := len(log.records)
	edge.Hello(start)
	reply(syncproto.Fresh, epoch+1, 0, 0)
	require.Equal(t, epoch+1, edge.Epoch())

	again := New(&recordLog{})
	for _, record := range slices.Concat(log.records[:before], log.records[after:]) {
		require.NoError(t, again.Replay(record))
	}
	again.Damaged()
	again.Boot(2)
	again.Hello(start)
	again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: epoch + 1, Generation: edge.standing.generation, Live: 1, NowMillis: start}, false)
	require.NoError(t, again.Check())
	for range 3 {
		batch := again.Sync(start).Batch
		if batch == nil {
			break
		}
		require.Empty(t, batch.Usage, "the charge was reported before")
		again.Apply(start, &syncproto.Reply{Status: syncproto.Superseded, Session: 9, Epoch: epoch + 1, Generation: edge.standing.generation,
			Applied: batch.Seq, Live: 1, NowMillis: start}, true)
	}
}

// TestUsageOfABatchIsNotReportedAgain, of before a restart, though the record is lost that the writer found the state
// directory current.
func TestUsageOfABatchIsNotReportedAgain(t *testing.T) {
	edge, log := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "charged", charge.Found))
	again := New(log)
	for _, record := range log.records {
		require.NoError(t, again.Replay(record))
	}
	again.Boot(2)
	again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	require.Len(t, again.Sync(start).Batch.Usage, 1)

	third := New(&recordLog{})
	for i, record := range log.records {
		if record[0] == recordConfirm && i > 3 {
			record = nil
		}
		require.NoError(t, third.Replay(record))
	}
	third.Damaged()
	require.NoError(t, third.Check())
	require.EqualValues(t, 1, third.Unsettled())
}

// TestADamagedEpochEndsAlsoAfterARestart, though the journal begins with a snapshot then: the writer, which does not know
// what was lost, would be asked for its leases, and credits that were spent be spent again.
func TestADamagedEpochEndsAlsoAfterARestart(t *testing.T) {
	edge, log := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "lost", charge.Found))
	damaged := New(&recordLog{})
	for _, record := range log.records[:len(log.records)-1] {
		require.NoError(t, damaged.Replay(record))
	}
	damaged.Damaged()
	again := New(&recordLog{})
	damaged.Snapshot(func(record []byte) { require.NoError(t, again.Replay(slices.Clone(record))) })
	again.Boot(2)
	again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	require.Equal(t, syncproto.Superseded, again.Standing())
	again.Apply(start, news(again, 1, 50), false)
	require.Equal(t, charge.MeteringUnavailable, chargeCode(again, start, "again", charge.Found))
}

// TestUsageOfAnEpochWhoseRecordWasLostIsNotReportedAgain loses the record with which the epoch began: what was
// charged in it was reported in the next one.
func TestUsageOfAnEpochWhoseRecordWasLostIsNotReportedAgain(t *testing.T) {
	edge, log := granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "charged", charge.Found))
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
	reported := edge.Sync(start).Batch
	require.Len(t, reported.Usage, 1)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 2, Generation: 1, Applied: 1, Live: 1, NowMillis: start}, true)

	again := New(&recordLog{})
	for i, record := range log.records {
		if record[0] == recordEpoch && again.Epoch() == 0 && i < 3 {
			record = nil
		}
		require.NoError(t, again.Replay(record))
	}
	require.EqualValues(t, 2, again.Epoch())
	again.Damaged()
	require.NoError(t, again.Check())
	require.False(t, again.HasUnreported(), "the charge was reported before")
}
