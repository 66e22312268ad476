package lease

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// restarted is an edge that replayed records.
func restarted(t *testing.T, records [][]byte) *EdgeState {
	t.Helper()
	edge := New(&recordLog{})
	for _, r := range records {
		require.NoError(t, edge.Replay(r))
	}
	require.NoError(t, edge.Check())
	return edge
}

// without leaves out the first record of a kind.
func without(records [][]byte, tag byte) [][]byte {
	at := slices.IndexFunc(records, func(r []byte) bool { return r[0] == tag })
	return slices.Delete(slices.Clone(records), at, at+1)
}

// TestMalformedRecordsAreRefused and have no effect.
func TestMalformedRecordsAreRefused(t *testing.T) {
	good := entry{account: 1, key: 1, at: start, outcome: charge.Found, endpoint: charge.LLPs}
	record := func(e entry) []byte {
		edge, log := granted(t, 1)
		edge.logCharge(start, &charge.Request{ID: "r", Account: e.account, Key: e.key, Outcome: e.outcome, Endpoint: e.endpoint}, &charge.Verdict{})
		return log.records[len(log.records)-1]
	}
	kept := func(k keyed) []byte {
		var e syncproto.Encoder
		k.encodeKept(&e, moment{})
		return e.Bytes
	}
	keptGood := keyed{id: "r", name: keyedName{key: 1}, moment: moment{at: start}, outcome: charge.NotFound}
	for name, c := range map[string]struct {
		change func(e *entry)
		ok     bool
	}{
		"good":            {func(*entry) {}, true},
		"not found":       {func(e *entry) { e.outcome = charge.NotFound }, true},
		"no account":      {func(e *entry) { e.account = 0 }, false},
		"no key":          {func(e *entry) { e.key = 0 }, false},
		"no outcome":      {func(e *entry) { e.outcome = 0 }, false},
		"a failed lookup": {func(e *entry) { e.outcome = charge.Failed }, false},
	} {
		changed := good
		c.change(&changed)
		edge := New(&recordLog{})
		require.Equal(t, c.ok, edge.Replay(record(changed)) == nil, name)
		require.Equal(t, c.ok, edge.recent.count == 1, name)
		ids := New(&recordLog{})
		require.Equal(t, c.ok, ids.ReplayID(record(changed)) == nil, name)
		require.Equal(t, c.ok, ids.recent.count == 1, name)

		k := keptGood
		k.name.key, k.outcome = changed.key, changed.outcome
		if name == "no account" {
			continue // a kept charge has none
		}
		edge = New(&recordLog{})
		require.Equal(t, c.ok, edge.Replay(kept(k)) == nil, name)
		require.Equal(t, c.ok, len(edge.keyed.queue) == 1, name)
	}
	require.ErrorIs(t, New(&recordLog{}).Replay([]byte{99}), syncproto.ErrMalformed, "no kind of record")

	void := []byte{recordVoid, 1, 'r', 0}
	require.ErrorIs(t, New(&recordLog{}).ReplayID(void[:2]), syncproto.ErrMalformed)
	edge, log := granted(t, 1)
	edge.logVoid("r", &entry{account: 1, at: start, outcome: charge.Found, endpoint: charge.LLPs})
	require.ErrorIs(t, New(&recordLog{}).Replay(log.records[len(log.records)-1]), syncproto.ErrMalformed, "a void of no key")
	for _, short := range []func(e *syncproto.Encoder){
		func(e *syncproto.Encoder) { e.Text(string(make([]byte, 15))); e.Text(string(make([]byte, 16))) },
		func(e *syncproto.Encoder) { e.Text(string(make([]byte, 16))); e.Text(string(make([]byte, 15))) },
	} {
		var e syncproto.Encoder
		short(&e)
		d := syncproto.NewDecoder(e.Bytes)
		new(keyed).decode(d)
		require.Error(t, d.Err(), "a hash of another length")
	}
}

// TestRecordsOfChargesOfEarlierVersionsAreRead: their bytes are in journals.
func TestRecordsOfChargesOfEarlierVersionsAreRead(t *testing.T) {
	const (
		body   = "026964020280b083c598680101d00fce0f12"
		hashes = "1000000000000000000000000000000001" + "1000000000000000000000000000000002"
	)
	edge, log := granted(t, 10)
	require.Empty(t, outcomeOf(edge, start, keyedRequest("id", charge.Found, 1, 2)))
	require.Equal(t, "13"+body+"01"+hashes, hex.EncodeToString(log.records[len(log.records)-1]))
	for name, stored := range map[string]string{
		"without a key":            "12" + body + "01",
		"with a key":               "13" + body + "01" + hashes,
		"of before, without a key": "05" + body,
		"of before, with its key":  "10" + body + hashes,
	} {
		record, err := hex.DecodeString(stored)
		require.NoError(t, err)
		again, _ := granted(t, 10)
		require.NoError(t, again.Replay(record), name)
		require.EqualValues(t, 1, again.Unreported(1), name)
		require.EqualValues(t, 1, again.Epoch(), name)
		if strings.HasSuffix(stored, hashes) {
			require.Equal(t, "replayed", outcomeOf(again, start, keyedRequest("again", charge.Found, 1, 2)), name)
			require.Equal(t, reused, outcomeOf(again, start, keyedRequest("other", charge.Found, 1, 1)), name)
		}

		ids := New(&recordLog{})
		ids.recent.replayEpoch = 1
		require.NoError(t, ids.ReplayID(record), name)
		require.EqualValues(t, 1, ids.recent.find(ids.recent.sum("id")).epoch, name)
	}
}

// TestAChargeNamesItsEpoch, so that it is reported in the one in which it was charged also when the record with
// which that began was lost. What was charged before it, and when, nobody knows then.
func TestAChargeNamesItsEpoch(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		r := request("of epoch 2", charge.Found)
		if keyed {
			r = keyedRequest("of epoch 2", charge.Found, 1, 2)
		}
		edge, log := granted(t, 10)
		require.Empty(t, chargeCode(edge, start, "of epoch 1", charge.Found))
		began := len(log.records)
		edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
		edge.Apply(start, news(edge, 1, 10), false)
		require.Empty(t, edge.Charge(start, r, false).Verdict.Code)

		again := New(&recordLog{})
		for i, record := range log.records {
			if i == began {
				record = nil
			}
			require.NoError(t, again.Replay(record))
		}
		again.Damaged()
		again.Boot(2)
		require.EqualValues(t, 2, again.Epoch())
		require.EqualValues(t, 1, again.Unreported(1))
		require.NoError(t, again.Check())

		again.Hello(start)
		again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 3, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
		batch := again.Sync(start).Batch
		require.EqualValues(t, 2, batch.Of)
		require.Len(t, batch.Usage, 1)
		require.EqualValues(t, 1, batch.Usage[0].Count)
	}
}

// TestAfterALostSealNothingIsReportedTwice: what the lost batch reported can't be told from what it did not.
func TestAfterALostSealNothingIsReportedTwice(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	require.NotNil(t, edge.Sync(start).Batch)
	require.Empty(t, chargeCode(edge, start, "not reported yet", charge.Found))
	for name, records := range map[string][][]byte{"whole": log.records, "lost": without(log.records, recordSeal)} {
		again := restarted(t, append(records, acknowledgement(edge)))
		require.EqualValues(t, 1, again.outbox.sealed, name)
		if name == "whole" {
			require.Len(t, again.usage.current, 1, "what came after the seal is reported")
			require.EqualValues(t, 1, again.Unreported(1))
			continue
		}
		require.Empty(t, again.usage.current)
		require.Zero(t, again.Unreported(1))
	}

	require.NotNil(t, acknowledged(edge, start))
	require.NotNil(t, edge.Sync(start).Batch) // the second
	require.Empty(t, chargeCode(edge, start, "third", charge.Found))
	noNews := slices.DeleteFunc(slices.Clone(log.records), func(r []byte) bool { return r[0] == recordNews && r[1] != 0 })
	again := restarted(t, without(noNews, recordSeal))
	require.EqualValues(t, 2, again.outbox.sealed)
	require.NotNil(t, again.outbox.inflight)
	require.Len(t, again.usage.current, 1, "of the third charge, which came after the last seal")
	require.EqualValues(t, 2, again.Unreported(1))
}

// TestABatchWhoseAcknowledgementIsReplayedIsArchived: the process may have ended before it was.
func TestABatchWhoseAcknowledgementIsReplayedIsArchived(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	sent := edge.Sync(start).Batch
	require.NotNil(t, sent)
	again := restarted(t, append(log.records, acknowledgement(edge)))
	require.Equal(t, []Reported{{Epoch: 1, Batch: sent}}, again.TakeReplayed())
	require.Empty(t, again.TakeReplayed(), "once")
}

// acknowledgement is a record of a reply that acknowledges the edge's newest batch.
func acknowledgement(edge *EdgeState) []byte {
	log := &recordLog{}
	(&EdgeState{log: log}).logNews(edge.outbox.sealed, nil)
	return log.records[0]
}

// TestASealKeepsTheUsageThatItDoesNotReport, also when it is replayed.
func TestASealKeepsTheUsageThatItDoesNotReport(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "of epoch 1", charge.Found))
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Apply(start, news(edge, 1, 10), false)
	require.Empty(t, chargeCode(edge, start, "of epoch 2", charge.Found))
	require.EqualValues(t, 1, edge.Sync(start).Batch.Of)
	again := restarted(t, log.records)
	require.Equal(t, edge.usage.current, again.usage.current)
	require.EqualValues(t, 2, again.Unreported(1))
}

// TestAConfirmedDirectoryIsNotForkedByAReplay: the writer found it current, and gave another epoch later.
// What was charged before is reported also when the edge restarts.
func TestAConfirmedDirectoryIsNotForkedByAReplay(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	edge.Boot(2)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 3, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
	require.EqualValues(t, 1, edge.Unreported(1))
	require.EqualValues(t, 1, restarted(t, log.records).Unreported(1))
}

// TestAReturnOfALostLeaseIsReplayed: the record of its grant was lost.
func TestAReturnOfALostLeaseIsReplayed(t *testing.T) {
	edge, log := granted(t, 5)
	edge.leases.accounts.get(1).lastUsed = start
	edge.returns.recall(creditsPool(1))
	require.Len(t, edge.Sync(start).Batch.Returns, 1)
	again := restarted(t, without(log.records, recordNews))
	require.EqualValues(t, 1, again.outbox.sealed)
}

// TestADamagedEdgeSpendsNothingOfItsEpoch: its leases may have been spent. It gives them back, as far as
// the writer knows that something is left.
func TestADamagedEdgeSpendsNothingOfItsEpoch(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	damaged := restarted(t, log.records)
	damaged.Damaged()
	require.Equal(t, syncproto.Superseded, damaged.Standing())
	require.EqualValues(t, 1, damaged.Unreported(1), "what was replayed is reported")
	damaged.Boot(2)
	damaged.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	require.False(t, damaged.Serving(), "the writer does not know what was lost")
	rows := news(damaged, 1, 10)
	rows.NowMillis = start
	damaged.Apply(start, rows, false)
	require.Equal(t, charge.MeteringUnavailable, chargeCode(damaged, start, "b", charge.Found))
	returns := damaged.Sync(start).Batch.Returns
	require.NotEmpty(t, returns)
	for _, r := range returns {
		require.True(t, r.Close)
		require.Zero(t, r.Units)
	}
	require.NoError(t, damaged.Check())

	retired := restarted(t, log.records)
	retired.standing.status = syncproto.Retired
	retired.Damaged()
	require.Equal(t, syncproto.Retired, retired.Standing())
}

// TestOfADamagedEdgeOnlyUsageOfItsEpochIsReported: the last batches of an earlier one may be lost.
func TestOfADamagedEdgeOnlyUsageOfItsEpochIsReported(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "of epoch 1", charge.Found))
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Apply(start, news(edge, 1, 10), false)
	require.Empty(t, chargeCode(edge, start, "of epoch 2", charge.Found))
	edge.Boot(2)
	damaged := restarted(t, log.records)
	require.Len(t, damaged.usage.carried, 2)
	damaged.Damaged()
	require.Len(t, damaged.usage.carried, 1)
	require.NotEmpty(t, damaged.usage.carried[2])
	require.EqualValues(t, 1, damaged.Unreported(1))
	require.NoError(t, damaged.Check())
}

// TestADamagedEdgeWithoutItsEpochIsLikeAnEmptyOne, and a batch whose seal was lost is not sent.
func TestADamagedEdgeWithoutItsEpochIsLikeAnEmptyOne(t *testing.T) {
	edge, log := granted(t, 10)
	granted := log.records[len(log.records)-1]
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	empty := New(&recordLog{})
	require.NoError(t, empty.Replay(granted))
	empty.addUnreported(use{account: 1, outcome: charge.Found}, 1)
	empty.outbox.sealed = 3
	empty.Damaged()
	require.Zero(t, empty.Epoch())
	require.Zero(t, empty.outbox.sealed)
	require.Zero(t, empty.Unreported(1))
	require.Equal(t, syncproto.OK, empty.Standing())

	edge.outbox.inflight = &syncproto.Batch{Seq: 7, Of: 1}
	edge.Damaged()
	require.Nil(t, edge.outbox.inflight, "its seal was lost")
	require.NotNil(t, edge.Sync(start), "and the next is made")
}

// TestAVoidOfARefusedRequestIsJournalled: nothing of its id may be charged after a restart either.
func TestAVoidOfARefusedRequestIsJournalled(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Failed))
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	again := restarted(t, log.records)
	require.True(t, again.Charge(start, request("a", charge.Found), false).Repeated)
	require.Equal(t, charge.MeteringUnavailable, chargeCode(again, start, "a", charge.Found))
}

// TestIDsOfBeforeALossAreTooOld: their charges may stand.
func TestIDsOfBeforeALossAreTooOld(t *testing.T) {
	edge, _ := granted(t, 10)
	edge.Forget(31)
	_, err := edge.Void(start, "000000000ZABCDEFGHJKMNPQRS") // of 31 ms after 1970
	require.ErrorIs(t, err, ErrForgotten)
	for _, id := range []string{"0000000010ABCDEFGHJKMNPQRS", "000000000Z", "000000000u" + "ABCDEFGHJKMNPQRS", "000000000!" + "ABCDEFGHJKMNPQRS"} {
		_, err = edge.Void(start, id)
		require.NoError(t, err, "%s is newer, or of another form", id)
	}
	edge.Forget(3)
	require.EqualValues(t, 31, edge.recent.forgotten)
	require.False(t, (&recentIDs{}).tooOld("short"), "nothing was forgotten")
}
