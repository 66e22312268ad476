package lease

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// endedEpoch is an edge whose epoch 1 is superseded and settled: everything is reported and
// returned, in the number of batches that it returns.
func endedEpoch(t *testing.T) (edge *EdgeState, batches uint64) {
	edge, _ = granted(t, 10)
	require.Equal(t, "", edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
	ended := syncproto.Reply{Status: syncproto.Superseded, Session: 1, Epoch: 1, Generation: 1, Live: 1}
	edge.Apply(start, &ended, false)
	for ended.Applied < 5 && edge.Hello(start).Epoch != 0 {
		if batch := edge.Sync(start).Batch; batch != nil {
			ended.Applied = batch.Seq
		}
		edge.Apply(start, &ended, true)
	}
	require.Zero(t, edge.Hello(start).Epoch)
	return edge, ended.Applied
}

// requireEpochShown checks that an edge sends all of epoch 1 again to a writer of generation 2,
// which has none of it and replies with the status.
func requireEpochShown(t *testing.T, edge *EdgeState, batches uint64, status syncproto.Status) {
	require.EqualValues(t, 1, edge.Epoch(), "that writer has not seen the reports")
	require.True(t, edge.Greeting())
	shown := edge.Hello(start)
	require.EqualValues(t, 1, shown.Epoch)
	require.Equal(t, batches, shown.Acked)
	edge.Apply(start, &syncproto.Reply{Status: status, Session: 10, Epoch: 1, Generation: 2, Live: 1}, false)
	require.False(t, edge.Greeting(), "its batches are sent again first")
	for seq := uint64(1); seq <= batches; seq++ {
		require.Equal(t, seq, edge.Sync(start).Batch.Seq)
		edge.Apply(start, &syncproto.Reply{Status: status, Session: 10, Epoch: 1, Generation: 2, Applied: seq, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
	}
	require.NoError(t, edge.Check())
}

// TestAnEndedEpochIsShownToAnotherWriter ends an epoch, and restores the ledger from a backup
// before the edge asks for the next one.
func TestAnEndedEpochIsShownToAnotherWriter(t *testing.T) {
	edge, batches := endedEpoch(t)
	asked := edge.Hello(start)
	require.NotEqual(t, edge.session.boot, asked.Boot, "that number asked for epoch 1")
	fresh := syncproto.Reply{Status: syncproto.Fresh, Session: 9, Epoch: 2, Generation: 2, Live: 1}
	edge.Apply(start, &fresh, false)
	requireEpochShown(t, edge, batches, syncproto.Superseded)
	require.Equal(t, asked.Boot, edge.Hello(start).Boot)
	edge.Apply(start, &fresh, false)
	require.EqualValues(t, 2, edge.Epoch())
	require.NoError(t, edge.Check())
}

// TestAnEndedEpochOfARetiredEdgeIsShownToAnotherWriter does the same with an edge that gets no
// other epoch.
func TestAnEndedEpochOfARetiredEdgeIsShownToAnotherWriter(t *testing.T) {
	edge, batches := endedEpoch(t)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Retired, Session: 9, Generation: 2, Live: 1}, false)
	requireEpochShown(t, edge, batches, syncproto.Retired)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Retired, Session: 10, Epoch: 1, Generation: 2, Applied: batches, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
	require.EqualValues(t, 1, edge.Epoch())
	require.False(t, edge.Greeting())
}

// TestAnEpochIsNotBegunTwice repeats the reply that gave an ended epoch, while the edge asks for
// the next one.
func TestAnEpochIsNotBegunTwice(t *testing.T) {
	edge, batches := endedEpoch(t)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: edge.standing.generation, Live: 1, NowMillis: start}, false)
	require.True(t, edge.Greeting(), "it still asks")
	require.Equal(t, batches, edge.outbox.sealed, "its batches are not numbered from 1 again")
	require.NoError(t, edge.Check())

	serving, _ := granted(t, 10)
	serving.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
	require.EqualValues(t, 1, serving.Epoch(), "nor while it is served from, with leases that would be lost")
}

// TestAnOldCopyOfARetiredEdge runs a copy of the state directory that is older than what the
// writer applied. The copy reports nothing. When the ledger is restored from before the edge was
// retired, the copy continues like an empty directory, since it does not know what the original
// spent of its leases.
func TestAnOldCopyOfARetiredEdge(t *testing.T) {
	edge, log := granted(t, 100)
	edge.Charge(start, request("reported", charge.Found), false)
	require.NotNil(t, edge.Sync(start).Batch)
	edge.Charge(start, request("dropped", charge.Found), false)
	edge.Boot(2)
	r := &syncproto.Reply{Status: syncproto.Retired, Session: 2, Epoch: 1, Generation: 1, Applied: edge.outbox.sealed + 5, Live: 1}
	require.True(t, edge.Apply(start, r, false).Abandoned, "the writer has more batches than this copy made")
	edge.Charge(start, request("after", charge.Failed), false)
	_, err := edge.Void(start, "reported")
	require.NoError(t, err)
	require.Nil(t, edge.Sync(start).Batch)
	require.Zero(t, edge.Unreported(1))
	require.False(t, edge.Greeting(), "it does not send Hello again and again")
	require.NoError(t, edge.Check())

	again := New(&recordLog{})
	for _, r := range log.records {
		require.NoError(t, again.Replay(r))
	}
	require.NoError(t, again.Check())
	require.Zero(t, again.Unreported(1), "nor what was voided since")
	require.Equal(t, edge.outbox.inflight, again.outbox.inflight)

	for _, status := range []syncproto.Status{syncproto.OK, syncproto.Superseded} {
		older := New(&recordLog{})
		for _, r := range log.records {
			require.NoError(t, older.Replay(r))
		}
		older.Boot(3)
		require.EqualValues(t, 1, older.Hello(start).Epoch)
		older.Apply(start, &syncproto.Reply{Status: status, Session: 3, Epoch: 1, Generation: 2, Applied: 1, Live: 1}, false)
		require.Zero(t, older.Hello(start).Epoch)
		older.Void(start, "dropped")
		require.NoError(t, older.Check())
		older.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 4, Epoch: 9, Generation: 2, Live: 1}, false)
		require.EqualValues(t, 9, older.Epoch())
		require.Zero(t, older.Unreported(1), "nor was the void counted of a charge that the writer has not")
		require.Nil(t, older.Sync(start).Batch)
		require.NoError(t, older.Check())
	}
}

// TestAnOlderCopyDropsUsageOfEarlierEpochs copies the journal of an edge that has charges of
// epoch 1 to report in epoch 2. The original may have reported them.
func TestAnOlderCopyDropsUsageOfEarlierEpochs(t *testing.T) {
	edge, log := granted(t, 10)
	edge.Charge(start, request("of epoch 1", charge.Found), false)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	require.EqualValues(t, 1, edge.Unreported(1))
	records := slices.Clone(log.records)

	open := func(records [][]byte, boot uint64) (*EdgeState, *recordLog) {
		disk := &recordLog{slices.Clone(records)}
		copied := New(disk)
		for _, r := range records {
			require.NoError(t, copied.Replay(r))
		}
		copied.Boot(boot)
		return copied, disk
	}
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 3, Epoch: 3, Generation: 1, Live: 1}, false)
	require.EqualValues(t, 1, edge.Unreported(1), "of an epoch before the last one")
	require.NoError(t, edge.Check())

	current, _ := open(records, 2)
	require.EqualValues(t, 1, current.Unreported(1))
	current.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 3, Epoch: 2, Generation: 1, Live: 1}, false)
	require.Len(t, current.Sync(start).Batch.Usage, 1, "the original reports it")

	older, disk := open(records, 3)
	older.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 4, Epoch: 3, Generation: 1, Live: 1}, false)
	require.Zero(t, older.Unreported(1))
	require.Nil(t, older.Sync(start).Batch)
	require.NoError(t, older.Check())
	again, _ := open(disk.records, 4)
	require.Zero(t, again.Unreported(1), "nor after a restart")
}

// forgotten returns an edge that had a lease of 50 for account 1, has closed it, and has forgotten the
// account, with the writer's reply and the time of then.
func forgotten(t *testing.T) (edge *EdgeState, r *syncproto.Reply, now int64) {
	edge, _ = granted(t, 50)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	r = &syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}
	r.Applied = edge.Sync(start).Batch.Seq
	edge.Apply(start, r, true)
	now = start + idleMillis + 60_000
	for range 100 {
		if m := edge.Sync(now); m.Batch != nil {
			r.Applied = m.Batch.Seq
		}
		edge.Apply(now, r, true)
	}
	require.Nil(t, edge.leases.accounts.get(1), "its leases are closed")
	return edge, r, now
}

// TestAClosedLeaseIsNotBelievedOfARestoredLedger closes the leases of an account that nobody used for a
// day, and forgets it. Then a ledger of before that, which waits for the edge's reports, sends its rows.
func TestAClosedLeaseIsNotBelievedOfARestoredLedger(t *testing.T) {
	for name, asked := range map[string]bool{"nobody has asked since": false, "a request waits": true} {
		edge, r, now := forgotten(t)
		batches := r.Applied

		edge.Apply(now, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
		restored := syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 2, Live: 1, NowMillis: now, Declare: true}
		edge.Apply(now, &restored, false)
		if asked {
			chargeCode(edge, now, "b", charge.Found)
		}
		for ; restored.Applied < batches; restored.Applied++ { // the last one closed the lease
			edge.Sync(now)
			restored.Since = edge.session.seen
			rows := news(edge, 1+restored.Applied, 50)
			restored.Rows, restored.Upto = rows.Rows, rows.Upto
			edge.Apply(now, &restored, true)
			if l := edge.leases.find(creditsPool(1)); l != nil {
				require.Zero(t, l.held(), "%s: after %d of %d batches", name, restored.Applied, batches)
			}
		}
		require.Equal(t, "wait", chargeCode(edge, now, "c", charge.Found), name)
		require.NoError(t, edge.Check())
	}
}

// TestALeaseThatNoBatchClosedIsHeardOfAgain: the edge never had the row of its grant. It can't tell the lease from a
// closed one until a restored ledger has all its batches.
func TestALeaseThatNoBatchClosedIsHeardOfAgain(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	require.NotNil(t, acknowledged(edge, start))
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
	greeting := syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 2, Live: 1, NowMillis: start}
	edge.Apply(start, &greeting, false)

	told := greeting
	told.Upto = 1
	told.Rows = []syncproto.Row{{Version: 1, Pool: creditsPool(2), Granted: 3, UntilMillis: start + leaseMillis, Recall: true}}
	edge.Sync(start)
	edge.Apply(start, &told, true)
	require.Nil(t, edge.leases.find(creditsPool(2)))
	require.False(t, edge.Greeting())
	edge.Sync(start)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 2, Live: 1, NowMillis: start, Applied: 1, Since: 1, Upto: 1}, true)
	require.True(t, edge.Greeting())

	greeting.Session, told.Session, greeting.Applied, told.Applied = 10, 10, 1, 1
	edge.Apply(start, &greeting, false)
	edge.Sync(start)
	edge.Apply(start, &told, true)
	require.Equal(t, []syncproto.Return{{Pool: creditsPool(2), Units: 3, Close: true}}, edge.Sync(start).Batch.Returns)
	require.NoError(t, edge.Check())
	require.False(t, edge.Greeting(), "no row was skipped")
}

// TestAForgottenLeaseIsNotTakenForTheOneOfNow: the account was forgotten with its closed lease, and has
// another lease since.
func TestAForgottenLeaseIsNotTakenForTheOneOfNow(t *testing.T) {
	edge, r, now := forgotten(t)
	again := news(edge, 1, 3)
	r.Rows, r.Since, r.Upto = again.Rows, edge.session.seen, edge.session.seen+1
	for i := range r.Rows {
		r.Rows[i].Version = r.Upto
	}
	edge.Apply(now, r, true)
	require.EqualValues(t, 3, edge.leases.find(creditsPool(1)).held())

	edge.Apply(now, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
	restored := syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 2, Live: 1, NowMillis: now, Declare: true}
	edge.Apply(now, &restored, false)
	edge.Sync(now)
	rows := news(edge, 1, 50)
	restored.Rows, restored.Upto = rows.Rows, rows.Upto
	edge.Apply(now, &restored, true)
	require.EqualValues(t, 3, edge.leases.find(creditsPool(1)).held())
	require.NoError(t, edge.Check())
}

// TestARecallEndsWithItsEpoch: what the writer grants in the next one stays here.
func TestARecallEndsWithItsEpoch(t *testing.T) {
	edge, _ := granted(t, 100)
	recall := news(edge, 2, 100)
	for i := range recall.Rows {
		recall.Rows[i].Recall = true
	}
	edge.Apply(start, recall, false)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Apply(start, news(edge, 1, 50), false)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	require.Empty(t, edge.Sync(start).Batch.Returns)
}
