package lease

import (
	"fmt"
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
		edge.Apply(now, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: batch.Seq, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
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
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
	s := edge.Sync(start + doubtMillis)
	require.Len(t, s.Batch.Unresolved, 1)
	require.Equal(t, "doubtful", s.Batch.Unresolved[0].ID)
	edge.Apply(start+doubtMillis, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: 2, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
	require.Zero(t, edge.Unresolved())
	require.Nil(t, edge.Sync(start+doubtMillis).Batch, "it is reported once")
}

// TestAVoidOfNoChargeThatCanNotBeWrittenLeavesNothing: a row of no account would have the writer refuse all messages.
func TestAVoidOfNoChargeThatCanNotBeWrittenLeavesNothing(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "charged", charge.Found))
	_, err := edge.Void(start, "never charged")
	require.NoError(t, err)
	edge.Drop(log.records[len(log.records)-1])
	require.NoError(t, edge.Check())
	usage := edge.Sync(start).Batch.Usage
	require.Len(t, usage, 1)
	require.EqualValues(t, 1, usage[0].Account)
	require.Empty(t, chargeCode(edge, start, "never charged", charge.Found))
}

// TestDoubtsAreBounded: a component whose connection breaks at each request must not fill the memory.
func TestDoubtsAreBounded(t *testing.T) {
	edge, _ := granted(t, 2*syncproto.MaxUnresolved)
	for n := range 2 * syncproto.MaxUnresolved {
		r := request(fmt.Sprint("r", n), charge.Found)
		r.PerMinute = 1 << 20
		require.Empty(t, edge.Charge(start, r, false).Verdict.Code)
		edge.Doubt(start, r.ID)
	}
	require.Equal(t, syncproto.MaxUnresolved, edge.Unresolved())
}

// TestADoubtOfAClockThatWasAheadIsReported, with those that came after it.
func TestADoubtOfAClockThatWasAheadIsReported(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, edge.Charge(start, request("ahead", charge.Found), false).Verdict.Code)
	require.Empty(t, edge.Charge(start, request("right", charge.Found), false).Verdict.Code)
	edge.Doubt(start+1000*doubtMillis, "ahead")
	edge.Doubt(start, "right")
	require.Len(t, edge.Sync(start+doubtMillis).Batch.Unresolved, 2)
}

// TestADoubtIsReportedAfterTenSeconds and not if the charge was voided.
func TestADoubtIsReportedAfterTenSeconds(t *testing.T) {
	edge, _ := granted(t, 10)
	for _, id := range []string{"doubtful", "voided", "never charged"} {
		if id != "never charged" {
			require.Empty(t, edge.Charge(start, request(id, charge.Found), false).Verdict.Code)
		}
		edge.Doubt(start, id)
		edge.Doubt(start, id) // twice
	}
	_, err := edge.Void(start, "voided")
	require.NoError(t, err)
	edge.doubts.resolve(start+doubtMillis-1, &edge.recent)
	require.Empty(t, edge.doubts.unresolved)
	edge.doubts.resolve(start+doubtMillis, &edge.recent)
	require.Equal(t, []syncproto.Unresolved{{ID: "doubtful", Account: 1, Key: 1, AtMillis: start}}, edge.doubts.unresolved)
	require.Zero(t, len(edge.doubts.open))
}

// TestOnlyAChargeCanBeInDoubt: of a refusal, or of what is in doubt already, nothing is reported.
func TestOnlyAChargeCanBeInDoubt(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, edge.Charge(start, request("free", charge.Failed), false).Verdict.Code)
	edge.Doubt(start, "free")
	require.Zero(t, edge.Unresolved())
	require.Empty(t, edge.Charge(start, request("found nothing", charge.NotFound), false).Verdict.Code)
	edge.Doubt(start, "found nothing")
	require.Zero(t, edge.Unresolved(), "it cost no credit that could be refunded")
	require.Empty(t, edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
	edge.Doubt(start, "a")
	edge.Doubt(start, "a")
	require.Equal(t, 1, edge.Unresolved())
	edge.doubts.unresolved = make([]syncproto.Unresolved, 2)
	require.Equal(t, 3, edge.Unresolved(), "with those that wait for a batch")
	edge.doubts.unresolved = make([]syncproto.Unresolved, syncproto.MaxUnresolved)
	edge.doubts.resolve(start+doubtMillis, &edge.recent)
	require.Len(t, edge.doubts.unresolved, syncproto.MaxUnresolved, "no more than a batch takes")
}

// TestARetryUnderItsKeyEndsTheDoubt: its client gets the lookup that it paid for. If the verdict on the retry does not
// arrive either, the charge is in doubt again.
func TestARetryUnderItsKeyEndsTheDoubt(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
	edge.Doubt(start, "first")
	require.Equal(t, reused, outcomeOf(edge, start+1, keyedRequest("other target", charge.Found, 1, 2)))
	require.NotEmpty(t, edge.doubts.open, "that is another lookup")
	again := keyedRequest("again", charge.Found, 1, 1)
	require.Equal(t, "replayed", outcomeOf(edge, start+1, again))
	edge.doubts.resolve(start+doubtMillis, &edge.recent)
	require.Empty(t, edge.doubts.unresolved)

	edge.DoubtReplayed(start+doubtMillis, again)
	edge.doubts.resolve(start+2*doubtMillis, &edge.recent)
	require.Equal(t, []syncproto.Unresolved{{ID: "first", Account: 1, Key: 1, AtMillis: start}}, edge.doubts.unresolved)
	require.Equal(t, "replayed", outcomeOf(edge, start+1, again))
	_, err := edge.Void(start+1, "first")
	require.NoError(t, err)
	edge.DoubtReplayed(start+2*doubtMillis, again)
	require.Equal(t, 1, edge.Unresolved(), "the charge does not stand any more")
}

// TestALostRetryOfADeliveredLookupIsNotInDoubt: its client has what it paid for.
func TestALostRetryOfADeliveredLookupIsNotInDoubt(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, outcomeOf(edge, start, keyedRequest("delivered", charge.Found, 1, 1)))
	again := keyedRequest("again", charge.Found, 1, 1)
	require.Equal(t, "replayed", outcomeOf(edge, start+1, again))
	edge.DoubtReplayed(start+1, again)
	require.Zero(t, edge.Unresolved())
}

// TestADoubtAfterARetryHasTenSecondsOfItsOwn: a later retry ends it, after the time of the first.
func TestADoubtAfterARetryHasTenSecondsOfItsOwn(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
	edge.Doubt(start, "first")
	again := keyedRequest("again", charge.Found, 1, 1)
	require.Equal(t, "replayed", outcomeOf(edge, start+5000, again))
	edge.DoubtReplayed(start+5000, again)
	edge.doubts.resolve(start+doubtMillis, &edge.recent)
	require.Empty(t, edge.doubts.unresolved)
	require.Equal(t, "replayed", outcomeOf(edge, start+12_000, keyedRequest("third", charge.Found, 1, 1)))
	edge.doubts.resolve(start+5000+doubtMillis, &edge.recent)
	require.Empty(t, edge.doubts.unresolved, "its client has the lookup")
	edge.DoubtReplayed(start+20_000, again)
	edge.doubts.resolve(start+20_000+doubtMillis, &edge.recent)
	require.Len(t, edge.doubts.unresolved, 1)
}

// TestADoubtThatWaitsIsNotLost behind one that is due, since its clock was ahead.
func TestADoubtThatWaitsIsNotLost(t *testing.T) {
	edge, _ := granted(t, 10)
	for _, id := range []string{"waits", "ahead"} {
		require.Empty(t, edge.Charge(start, request(id, charge.Found), false).Verdict.Code)
	}
	edge.Doubt(start, "waits")
	edge.Doubt(start+1000*doubtMillis, "ahead")
	edge.doubts.resolve(start+1, &edge.recent)
	edge.doubts.resolve(start+doubtMillis, &edge.recent)
	require.Len(t, edge.doubts.unresolved, 2)
}

// TestADroppedChargeIsTakenBackOnce, and not if it was voided meanwhile.
func TestADroppedChargeIsTakenBackOnce(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
	record := log.records[len(log.records)-1]
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	edge.Drop(record)
	require.EqualValues(t, 10, held(edge, 1))
	other, _ := granted(t, 10)
	other.Drop(record)
	require.EqualValues(t, 10, held(other, 1), "it was not charged here")
	require.NoError(t, edge.Check())
}

// TestAVoidThatWasNotWrittenLeavesTheIdempotencyKey: its charge stands, and a retry is not charged again.
func TestAVoidThatWasNotWrittenLeavesTheIdempotencyKey(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
	_, err := edge.Void(start, "first")
	require.NoError(t, err)
	edge.Drop(log.records[len(log.records)-1])
	require.Equal(t, "replayed", outcomeOf(edge, start, keyedRequest("again", charge.Found, 1, 1)))
	require.EqualValues(t, 1, spent(edge))
}

// TestAVoidOfAnEarlierEpochThatWasNotWrittenIsTakenBack: the charge is reported as it was made.
func TestAVoidOfAnEarlierEpochThatWasNotWrittenIsTakenBack(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	require.EqualValues(t, 1, edge.Unreported(1))
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	require.Zero(t, edge.Unreported(1))
	edge.Drop(log.records[len(log.records)-1])
	require.EqualValues(t, 1, edge.Unreported(1))
	batch := edge.Sync(start).Batch
	require.EqualValues(t, 1, batch.Of)
	require.Len(t, batch.Usage, 1)
	require.EqualValues(t, 1, batch.Usage[0].Count)
}

// TestAChargeThatWasNotWrittenBeforeANewEpochIsNotReported: its write failed after the writer had answered Hello. The lease of
// the new epoch has not paid for it.
func TestAChargeThatWasNotWrittenBeforeANewEpochIsNotReported(t *testing.T) {
	for _, outcome := range []charge.Outcome{charge.Found, charge.NotFound} {
		edge, log := granted(t, 10)
		require.Empty(t, edge.Charge(start, request("a", outcome), false).Verdict.Code)
		record := log.records[len(log.records)-1]
		edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
		edge.Apply(start, news(edge, 1, 10), false)
		edge.Drop(record)
		require.NoError(t, edge.Check())
		require.False(t, edge.HasUnreported())
		require.EqualValues(t, 10, held(edge, 1))
		require.Nil(t, edge.Sync(start).Batch)
	}
}

// TestAVoidBeforeItsChargeHolds: the charge comes later, and is refused. If the record could not be
// written, it is charged.
func TestAVoidBeforeItsChargeHolds(t *testing.T) {
	edge, log := granted(t, 10)
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	v, err := edge.Void(start, "a")
	require.NoError(t, err)
	require.True(t, v.Repeated)
	a := edge.Charge(start, request("a", charge.Found), false)
	require.Equal(t, charge.MeteringUnavailable, a.Verdict.Code)
	require.True(t, a.Logged, "only once the void is written")
	edge.Drop(log.records[len(log.records)-1])
	require.Empty(t, edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
}

// TestAVoidOfAForgottenIDIsRefused: its charge may stand.
func TestAVoidOfAForgottenIDIsRefused(t *testing.T) {
	edge, _ := granted(t, 10)
	edge.recent.forgotten = 1 << 40
	_, err := edge.Void(start, "0000000000ABCDEFGHJKMNPQRS")
	require.ErrorIs(t, err, ErrForgotten)
}

// TestAVoidOfAnEarlierEpochIsReportedOnce, though its account has no lease in this one and is idle.
func TestAVoidOfAnEarlierEpochIsReportedOnce(t *testing.T) {
	edge, _ := endedEpoch(t)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	require.EqualValues(t, 2, edge.Epoch())
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	var less int64
	later := start + 2*int64(idleMillis)
	for range 3 {
		if batch := acknowledged(edge, later); batch != nil {
			require.EqualValues(t, 1, batch.Of)
			less += batch.Usage[0].Count
		}
		require.NoError(t, edge.Check())
	}
	require.EqualValues(t, -1, less)
}

// TestAChargeThatWasReportedIsNotVoided: an operator refunds it, and the void would give the credit back once more. That
// holds after a restart, from the records or from the ids alone.
func TestAChargeThatWasReportedIsNotVoided(t *testing.T) {
	edge, log := granted(t, 10)
	require.Empty(t, edge.Charge(start, request("reported", charge.Found), false).Verdict.Code)
	edge.Doubt(start, "reported")
	require.Len(t, edge.Sync(start+doubtMillis).Batch.Unresolved, 1)
	fromRecords, fromIDs := New(&recordLog{}), New(&recordLog{})
	for _, r := range log.records {
		require.NoError(t, fromRecords.Replay(r))
		require.NoError(t, fromIDs.ReplayID(r))
	}
	edge.Snapshot(func(r []byte) { require.NoError(t, fromIDs.Replay(r)) })
	for name, state := range map[string]*EdgeState{"at once": edge, "from its records": fromRecords, "from its snapshot": fromIDs} {
		_, err := state.Void(start+doubtMillis, "reported")
		require.ErrorIs(t, err, ErrReported, name)
		require.EqualValues(t, 1, spent(state), name)
		require.True(t, state.Charge(start+doubtMillis, request("reported", charge.Found), false).Repeated, name)
		require.NoError(t, state.Check(), name)
	}
}

// TestALateDoubtOfADeliveredVerdict: that the first attempt failed is noticed only when the second one has arrived.
func TestALateDoubtOfADeliveredVerdict(t *testing.T) {
	edge, _ := granted(t, 10)
	first, again := keyedRequest("first", charge.Found, 1, 1), keyedRequest("again", charge.Found, 1, 1)
	require.Empty(t, outcomeOf(edge, start, first))
	require.True(t, edge.Charge(start, first, false).Repeated)
	edge.Delivered(start, first, false)
	edge.Doubt(start+1, "first")
	require.Zero(t, edge.Unresolved(), "the request was repeated")
	require.Equal(t, "replayed", outcomeOf(edge, start+2, again))
	edge.DoubtReplayed(start+2, again)
	require.Zero(t, edge.Unresolved(), "nor is a retry's, whose client has the lookup")

	second, again := keyedRequest("second", charge.Found, 2, 1), keyedRequest("again", charge.Found, 2, 1)
	require.Empty(t, outcomeOf(edge, start, second))
	require.Equal(t, "replayed", outcomeOf(edge, start, again))
	edge.Delivered(start, again, true)
	edge.Doubt(start+1, "second")
	require.Zero(t, edge.Unresolved(), "it was retried under its Idempotency-Key")
	edge.Delivered(start+2*doubtMillis, keyedRequest("none", charge.Found, 3, 1), true)
	require.Len(t, edge.doubts.delivered, 2, "of no charge there is nothing to note")
	edge.Delivered(start+doubtMillis, second, false)
	edge.Doubt(start+doubtMillis, "first")
	require.Zero(t, edge.Unresolved(), "of the period before")
	require.Zero(t, edge.doubts.since-start-doubtMillis)
	edge.Delivered(start+2*doubtMillis, second, false)
	edge.Doubt(start+2*doubtMillis, "first")
	require.Len(t, edge.doubts.waiting, 1, "it is forgotten")
	edge.Delivered(start, second, false)
	require.Equal(t, start, edge.doubts.since, "by a clock that was set back")
}

// TestALostRetryAfterADeliveredOne: the charge was in doubt before, and is not any more.
func TestALostRetryAfterADeliveredOne(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
	edge.Doubt(start, "first")
	again := keyedRequest("again", charge.Found, 1, 1)
	require.Equal(t, "replayed", outcomeOf(edge, start, again))
	edge.Delivered(start, again, true)
	third := keyedRequest("third", charge.Found, 1, 1)
	require.Equal(t, "replayed", outcomeOf(edge, start+doubtMillis, third))
	edge.DoubtReplayed(start+doubtMillis, third)
	edge.doubts.resolve(start+2*doubtMillis, &edge.recent)
	require.Empty(t, edge.doubts.unresolved)
}
