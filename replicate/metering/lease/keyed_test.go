package lease

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

// hashOf makes a hash of the contract from a number.
func hashOf(n int) string { return fmt.Sprintf("%0*x", charge.HashLength, n) }

// keyedRequest is a request with an Idempotency-Key, for a target.
func keyedRequest(id string, outcome charge.Outcome, name, target int) *charge.Request {
	r := request(id, outcome)
	r.IdempotencyHash, r.TargetHash, r.PerMinute = hashOf(name), hashOf(target), 1000
	return r
}

// outcomeOf decides on a request, and returns the code, or "replayed" for one that was not charged.
func outcomeOf(edge *EdgeState, now int64, r *charge.Request) string {
	v := edge.Charge(now, r, false).Verdict
	if v.Replayed {
		return strings.TrimSuffix("replayed "+v.Code, " ")
	}
	return v.Code
}

func spent(edge *EdgeState) int64 { return edge.leases.accounts.get(1).credits.spent }

const reused = charge.IdempotencyKeyReused

func TestARetryIsNotChargedTwice(t *testing.T) {
	edge, _ := granted(t, 2)
	first := edge.Charge(start, keyedRequest("first", charge.Found, 1, 1), false)
	require.False(t, first.Verdict.Replayed)
	require.EqualValues(t, 1, first.Verdict.CreditsRemaining)
	again := edge.Charge(start+1, keyedRequest("again", charge.Found, 1, 1), false)
	require.Equal(t, charge.Verdict{RateLimit: 1000, RateRemaining: 998, RateReset: again.Verdict.RateReset,
		CreditsRemaining: 1, RetryAfter: charge.Unsent, Replayed: true}, again.Verdict, "it counts for the rate")
	require.True(t, again.Logged, "the charge may not be written yet")
	require.Equal(t, reused, outcomeOf(edge, start+1, keyedRequest("other target", charge.Found, 1, 2)))
	require.EqualValues(t, 1, spent(edge))

	require.Equal(t, "", outcomeOf(edge, start+1, keyedRequest("another name", charge.Found, 2, 1)))
	require.Equal(t, "replayed", outcomeOf(edge, start+1, keyedRequest("once more", charge.Found, 1, 1)), "with no credits left")
	require.EqualValues(t, 2, spent(edge))
	require.NoError(t, edge.Check())
}

func TestNamesOfAPIKeysDoNotMeet(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("a", charge.Failed, 1, 1)))
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("b", charge.Found, 1, 1)), "a failure is not remembered")
	other := keyedRequest("c", charge.Found, 1, 2)
	other.Key = 2
	require.NotEqual(t, reused, outcomeOf(edge, start, other))
}

func TestAnIdempotencyKeyEnds(t *testing.T) {
	const hour, began = 60 * 60 * 1000, 5
	for name, test := range map[string]struct {
		after   int64
		elapsed int64 // by the clock that nobody sets, 0 without it
		want    string
	}{
		"just before":                     {keyedMillis - 1, 0, "replayed"},
		"after ten minutes":               {keyedMillis, 0, ""},
		"after ten minutes by both":       {keyedMillis, keyedMillis, ""},
		"when the clock was set back":     {-keyedMillis + 1, 0, "replayed"},
		"when it was set back by longer":  {-keyedMillis, 0, ""},
		"when it was set ahead":           {hour, keyedMillis - 1, "replayed"},
		"long after it was set ahead":     {hour, keyedMillis, ""},
		"when it was set back by an hour": {-hour, keyedMillis - 1, "replayed"},
		"long after it was set back":      {-hour, keyedMillis, ""},
		"when it was set back to then":    {0, keyedMillis, "replayed"},
	} {
		t.Run(name, func(t *testing.T) {
			edge, _ := granted(t, 10)
			if test.elapsed != 0 {
				edge.NoteClock(start, began)
			}
			require.Equal(t, "", outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
			if test.elapsed != 0 {
				edge.NoteClock(start+test.after, began+test.elapsed)
				require.Equal(t, "", outcomeOf(edge, start+test.after, keyedRequest("another", charge.Found, 2, 1)), "which may end the first")
			}
			require.Equal(t, test.want, outcomeOf(edge, start+test.after, keyedRequest("again", charge.Found, 1, 1)))
			require.Equal(t, "replayed", outcomeOf(edge, start+test.after, keyedRequest("third", charge.Found, 1, 1)), "of the newest charge")
		})
	}
}

// TestAJumpOfTheClockIsJournalledOnlyForKeys: on a machine without any, a clock that is set often would fill the journal.
func TestAJumpOfTheClockIsJournalledOnlyForKeys(t *testing.T) {
	const hour = 60 * 60 * 1000
	edge, log := granted(t, 10)
	edge.NoteClock(start, 5)
	before := len(log.records)
	edge.NoteClock(start+hour, 6)
	require.Len(t, log.records, before)
	require.Equal(t, "", outcomeOf(edge, start+hour, keyedRequest("first", charge.Found, 1, 1)))
	before = len(log.records)
	edge.NoteClock(start, 7)
	require.Len(t, log.records, before+1)
}

// TestAnIdempotencyKeySurvivesARestartAfterAJump: the next run sees the clock that was set, and no other. It may be set once
// more in that run.
func TestAnIdempotencyKeySurvivesARestartAfterAJump(t *testing.T) {
	const hour = 60 * 60 * 1000
	for _, jump := range []int64{hour, -hour} {
		edge, log := granted(t, 10)
		edge.NoteClock(start, 5)
		require.Equal(t, "", outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
		edge.NoteClock(start+jump+1000, 1005)
		require.Equal(t, "", outcomeOf(edge, start+jump+1000, keyedRequest("second", charge.Found, 2, 1)))
		fromRecords := New(&recordLog{})
		for _, r := range log.records {
			require.NoError(t, fromRecords.Replay(r))
		}
		for name, restarted := range map[string]*EdgeState{"from its records": fromRecords, "from its snapshot": replayed(t, edge)} {
			t.Run(fmt.Sprint(name, " after ", jump), func(t *testing.T) {
				require.Equal(t, "replayed", outcomeOf(restarted, start+jump+keyedMillis-1, keyedRequest("again", charge.Found, 1, 1)))
				restarted.NoteClock(start+jump+2000, 7)
				restarted.NoteClock(start+2*jump+2001, 8)
				require.Equal(t, "replayed", outcomeOf(restarted, start+2*jump+2001, keyedRequest("third", charge.Found, 1, 1)))
				restarted.NoteClock(start+2*jump+keyedMillis, keyedMillis-2000+7)
				require.NotEqual(t, "replayed", outcomeOf(restarted, start+2*jump+keyedMillis, keyedRequest("late", charge.Found, 1, 1)))
				require.Equal(t, "replayed", outcomeOf(restarted, start+2*jump+keyedMillis, keyedRequest("of the second", charge.Found, 2, 1)))
			})
		}
	}
}

// TestWhatWasReplayedStaysSo, however long the write took that a retry waits for, unless the charge was taken back.
func TestWhatWasReplayedStaysSo(t *testing.T) {
	edge, _ := granted(t, 3)
	retry := keyedRequest("retry", charge.Found, 1, 1)
	require.False(t, edge.Replays(retry))
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
	require.Equal(t, "", outcomeOf(edge, start+keyedMillis, keyedRequest("of another name", charge.Failed, 2, 1)))
	require.True(t, edge.Replays(retry))
	require.False(t, edge.Replays(keyedRequest("other target", charge.Found, 1, 2)))
	_, err := edge.Void(start+keyedMillis, "first")
	require.NoError(t, err)
	require.False(t, edge.Replays(retry))
}

func TestOnlyAChargeThatStandsIsReplayed(t *testing.T) {
	edge, log := granted(t, 10)
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("voided", charge.Found, 1, 1)))
	_, err := edge.Void(start, "voided")
	require.NoError(t, err)
	void := log.records[len(log.records)-1]
	require.Zero(t, spent(edge))
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("second", charge.Found, 1, 1)))
	require.Equal(t, "replayed", outcomeOf(edge, start, keyedRequest("third", charge.Found, 1, 1)))
	edge.Drop(void)
	require.EqualValues(t, 2, spent(edge), "both stand")

	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("dropped", charge.Found, 2, 1)))
	edge.Drop(log.records[len(log.records)-1])
	require.EqualValues(t, 2, spent(edge))
	restarted := New(&recordLog{})
	edge.Snapshot(func(r []byte) { require.NoError(t, restarted.Replay(r)) })
	require.NotContains(t, outcomeOf(restarted, start, keyedRequest("charged", charge.Found, 2, 1)), "replayed")
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("charged", charge.Found, 2, 1)))
	require.EqualValues(t, 3, spent(edge))

	_, err = edge.Void(start, "third")
	require.NoError(t, err, "the id of a replay has no charge")
	require.EqualValues(t, 3, spent(edge))
	require.Equal(t, "replayed", outcomeOf(edge, start, keyedRequest("fourth", charge.Found, 1, 1)))
	require.NoError(t, edge.Check())

	poor, _ := granted(t, 0)
	require.NotEqual(t, "", outcomeOf(poor, start, keyedRequest("refused", charge.Found, 1, 1)))
	require.NotEqual(t, reused, outcomeOf(poor, start, keyedRequest("other", charge.Found, 1, 2)), "a refusal is not remembered")
}

// TestAKeyIsRememberedAsLongAsItsNewestCharge, though an older one of its name, of a lookup that found nothing, ends before.
func TestAKeyIsRememberedAsLongAsItsNewestCharge(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("absent", charge.NotFound, 1, 1)))
	require.Equal(t, "", outcomeOf(edge, start+1, keyedRequest("found since", charge.Found, 1, 1)))
	require.Equal(t, "", outcomeOf(edge, start+keyedMillis, keyedRequest("another", charge.Found, 2, 1)))
	require.Equal(t, "replayed", outcomeOf(edge, start+keyedMillis, keyedRequest("again", charge.Found, 1, 1)))
	require.EqualValues(t, 2, spent(edge))
}

func TestANotFoundRetryCountsOnce(t *testing.T) {
	edge, _ := granted(t, 10)
	missed := func() int64 { return edge.leases.keys.get(1).spent }
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("first", charge.NotFound, 1, 1)))
	require.Equal(t, "replayed", outcomeOf(edge, start, keyedRequest("again", charge.NotFound, 1, 1)))
	require.EqualValues(t, 1, missed())
	require.Equal(t, reused, outcomeOf(edge, start, keyedRequest("other", charge.NotFound, 1, 2)))

	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("found since", charge.Found, 1, 1)), "what was free is not paid")
	require.EqualValues(t, 1, spent(edge))
	require.Equal(t, "replayed", outcomeOf(edge, start, keyedRequest("found again", charge.Found, 1, 1)))
	require.Equal(t, "replayed", outcomeOf(edge, start, keyedRequest("gone", charge.NotFound, 1, 1)), "what was paid counts for no cap")
	require.EqualValues(t, 1, missed())
	require.EqualValues(t, 1, spent(edge))
}

func TestIdempotencyKeysSurviveARestart(t *testing.T) {
	edge, log := granted(t, 10)
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("first", charge.Found, 1, 1)))
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("missing", charge.NotFound, 2, 1)))
	require.Equal(t, "", outcomeOf(edge, start, keyedRequest("voided", charge.Found, 3, 1)))
	_, err := edge.Void(start, "voided")
	require.NoError(t, err)

	fromRecords := New(&recordLog{})
	for _, r := range log.records {
		require.NoError(t, fromRecords.Replay(r))
	}
	fromSnapshot := New(&recordLog{})
	for _, r := range log.records {
		require.NoError(t, fromSnapshot.ReplayID(r))
	}
	edge.Snapshot(func(r []byte) { require.NoError(t, fromSnapshot.Replay(r)) })
	for name, restarted := range map[string]*EdgeState{"from its records": fromRecords, "from its snapshot": fromSnapshot} {
		t.Run(name, func(t *testing.T) {
			same(t, edge, restarted)
			require.Equal(t, "replayed", outcomeOf(restarted, start+1, keyedRequest("again", charge.Found, 1, 1)))
			require.Equal(t, "replayed", outcomeOf(restarted, start+1, keyedRequest("still missing", charge.NotFound, 2, 1)))
			require.Equal(t, reused, outcomeOf(restarted, start+1, keyedRequest("other", charge.Found, 1, 2)))
			require.True(t, restarted.Charge(start+1, keyedRequest("first", charge.Found, 1, 1), false).Repeated, "its id is remembered")
			require.Equal(t, charge.MeteringUnavailable, outcomeOf(restarted, start+1, keyedRequest("voided", charge.Found, 3, 1)))
			_, err := restarted.Void(start+1, "first")
			require.NoError(t, err)
			require.EqualValues(t, 0, spent(restarted))
			require.NotContains(t, outcomeOf(restarted, start+1, keyedRequest("after the void", charge.Found, 1, 1)), "replayed")
			require.NotContains(t, outcomeOf(restarted, start+1, keyedRequest("after the other", charge.Found, 3, 1)), "replayed")
		})
	}
}

func TestIdempotencyKeysAreBounded(t *testing.T) {
	c := newKeyedCharges()
	name := func(i int) keyedName { return keyedName{1, parseHash(hashOf(i))} }
	for i := range keyedLimit + 1 {
		c.put(keyed{name: name(i), id: fmt.Sprint(i), moment: moment{at: start}})
	}
	require.NoError(t, c.check())
	require.Len(t, c.queue, keyedLimit)
	require.Nil(t, c.find(name(0), moment{at: start}), "the oldest is forgotten")
	require.NotNil(t, c.find(name(1), moment{at: start}))
	c.put(keyed{name: name(1), id: "newer", moment: moment{at: start + keyedMillis}})
	require.NoError(t, c.check())
	require.Len(t, c.queue, 1, "what has ended takes no memory")
	require.Len(t, c.index, 1)
}
