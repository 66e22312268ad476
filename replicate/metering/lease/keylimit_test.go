package lease

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func TestAKeyThatSpentItsMonthIsRefused(t *testing.T) {
	edge, _ := granted(t, 100)
	end := syncproto.EndOfMonth(syncproto.Month(start))
	limited := func(id string, outcome charge.Outcome) *charge.Request {
		r := request(id, outcome)
		r.PerMinute, r.LimitedUntil = 100, end
		return r
	}
	for _, outcome := range []charge.Outcome{charge.Found, charge.NotFound} {
		v := edge.Charge(start, limited(outcome.String(), outcome), false).Verdict
		require.Equal(t, charge.KeyCreditsExceeded, v.Code)
		require.Equal(t, secondsUntil(start, end), v.RetryAfter)
		require.EqualValues(t, 100, v.RateLimit)
		require.Equal(t, v, edge.Charge(start, limited(outcome.String(), outcome), false).Verdict, "the same for a repeated call")
	}
	require.Equal(t, "", edge.Charge(start, limited("failed", charge.Failed), false).Verdict.Code, "a 400 stays one")
	require.Zero(t, edge.Unsettled(), "nothing was charged")
	require.Equal(t, "", edge.Charge(start, request("another key", charge.Found), false).Verdict.Code)
	require.NotEqual(t, charge.KeyCreditsExceeded, edge.Charge(end, limited("next month", charge.Found), false).Verdict.Code, "by the edge's own clock")
}

// TestALimitedKeyIsAnsweredAgainWhatItPaid under its Idempotency-Key.
func TestALimitedKeyIsAnsweredAgainWhatItPaid(t *testing.T) {
	edge, _ := granted(t, 100)
	paid := request("paid", charge.Found)
	paid.IdempotencyHash, paid.TargetHash = strings.Repeat("a", charge.HashLength), strings.Repeat("b", charge.HashLength)
	require.Equal(t, "", edge.Charge(start, paid, false).Verdict.Code)
	again := *paid
	again.ID, again.LimitedUntil = "again", syncproto.EndOfMonth(syncproto.Month(start))
	require.True(t, edge.Charge(start, &again, false).Verdict.Replayed)
}
