package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// together is an edge that is not the only one.
func together(t *testing.T) *EdgeState {
	edge, _ := granted(t, 100)
	edge.session.live = 2
	return edge
}

// TestRequestsAreToldToOtherEdges whenever their number has changed, with the count of the minute.
func TestRequestsAreToldToOtherEdges(t *testing.T) {
	edge := together(t)
	told := func(now int64) []syncproto.Rate {
		rates := edge.Sync(now).Rates
		edge.Apply(now, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: edge.outbox.sealed, Since: edge.session.seen, Upto: edge.session.seen, Live: 2}, true)
		return rates
	}
	minute := syncproto.Minute(start)
	for n := int64(1); n <= 3; n++ {
		chargeCode(edge, start, fmt.Sprint("r", n), charge.Found)
		require.Equal(t, []syncproto.Rate{{Subject: 1, Minute: minute, Count: n}}, told(start))
	}
	require.Empty(t, told(start), "nothing new")
	chargeCode(edge, start, "of the minute before", charge.Found)
	require.Empty(t, told(start+60_000))
	chargeCode(edge, start+60_000, "of the next", charge.Found)
	require.Equal(t, []syncproto.Rate{{Subject: 1, Minute: minute + 1, Count: 1}}, told(start+60_000))
	chargeCode(edge, start+120_000, "of the one after", charge.Found)
	require.Equal(t, []syncproto.Rate{{Subject: 1, Minute: minute + 2, Count: 1}}, told(start+120_000), "as many as in the minute before")

	alone, _ := granted(t, 100)
	chargeCode(alone, start, "r", charge.Found)
	require.Empty(t, alone.Sync(start).Rates)
}

// TestCountsThatDoNotFitAMessageComeWithTheNext.
func TestCountsThatDoNotFitAMessageComeWithTheNext(t *testing.T) {
	edge := together(t)
	for key := int64(1); key <= syncproto.MaxRates+1; key++ {
		edge.countRate(syncproto.OfKey(key), edge.rates.ofKey(key, start))
	}
	require.Len(t, edge.takeRates(start), syncproto.MaxRates)
	last := syncproto.Rate{Subject: syncproto.OfKey(syncproto.MaxRates + 1), Minute: syncproto.Minute(start), Count: 1}
	require.Equal(t, []syncproto.Rate{last}, edge.takeRates(start))
	require.Empty(t, edge.takeRates(start))
}

// TestRequestsAtOtherEdgesCount in their minute only.
func TestRequestsAtOtherEdgesCount(t *testing.T) {
	for name, c := range map[string]struct {
		minutes int64
		code    string
	}{"in this minute": {0, charge.RateLimitExceeded}, "in the minute before": {-1, ""}} {
		edge := together(t)
		require.Equal(t, "", edge.Charge(start, request("first", charge.Found), false).Verdict.Code)
		others := &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 2, NowMillis: start,
			Others: []syncproto.Rate{{Subject: 1, Minute: syncproto.Minute(start) + c.minutes, Count: 4}}}
		edge.Sync(start)
		edge.Apply(start, others, true)
		require.Equal(t, c.code, edge.Charge(start, request("second", charge.Found), false).Verdict.Code, name)
	}
}

// TestRemainingRequestsAreNotSaidWithoutContact: those at other edges are not known.
func TestRemainingRequestsAreNotSaidWithoutContact(t *testing.T) {
	edge := together(t)
	require.EqualValues(t, 4, edge.Charge(start+contactMillis, request("a", charge.Found), false).Verdict.RateRemaining)
	v := edge.Charge(start+contactMillis+1, request("b", charge.Found), false).Verdict
	require.Equal(t, "", v.Code)
	require.EqualValues(t, 5, v.RateLimit)
	require.EqualValues(t, charge.Unsent, v.RateRemaining)
	require.EqualValues(t, charge.Unsent, v.RateReset)

	edge = together(t)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, false)
	require.EqualValues(t, charge.Unsent, edge.Charge(start, request("c", charge.Found), false).Verdict.RateRemaining, "nor once the session has ended")
}

// TestExceededTellsWithoutCounting what Charge would say.
func TestExceededTellsWithoutCounting(t *testing.T) {
	edge, _ := granted(t, 100)
	_, exceeded := edge.Exceeded(start, request("x", charge.Found))
	require.False(t, exceeded, "of an account that was not seen yet, too")
	for n := range 5 {
		for range 10 {
			_, exceeded = edge.Exceeded(start, request("x", charge.Found))
			require.False(t, exceeded)
		}
		require.Equal(t, "", edge.Charge(start, request(fmt.Sprint("r", n), charge.Found), false).Verdict.Code)
	}
	v, exceeded := edge.Exceeded(start, request("x", charge.Found))
	require.True(t, exceeded)
	require.Equal(t, edge.Charge(start, request("x", charge.Found), false).Verdict, v)
	_, exceeded = edge.Exceeded(endOfMinute(start), request("x", charge.Found))
	require.False(t, exceeded, "in the next minute")

	of := &charge.Request{ID: "s", Sandbox: true, Client: "192.0.2.7", PerMinute: 1, Endpoint: charge.LLPs, Outcome: charge.Found}
	_, exceeded = edge.Exceeded(start, of)
	require.False(t, exceeded)
	require.Equal(t, "", edge.Charge(start, of, false).Verdict.Code)
	v, exceeded = edge.Exceeded(start, of)
	require.True(t, exceeded)
	require.Equal(t, charge.RateLimitExceeded, v.Code)
	require.Equal(t, v.RateReset, v.RetryAfter)
}

func TestTheNotFoundCapOfTheSandboxIsOfADay(t *testing.T) {
	edge := New(&recordLog{})
	ask := func(now int64, n int) string {
		r := &charge.Request{ID: fmt.Sprint(now, n), Sandbox: true, Client: "fe80::1%eth0", PerMinute: 1000, Endpoint: charge.LLPs, Outcome: charge.NotFound}
		return edge.Charge(now, r, false).Verdict.Code
	}
	for n := range sandboxNotFoundCap {
		require.Equal(t, "", ask(start, n))
	}
	v := edge.Charge(start, &charge.Request{ID: "zone", Sandbox: true, Client: "fe80::2%eth1", PerMinute: 1000, Endpoint: charge.LLPs, Outcome: charge.Found}, false).Verdict
	require.Equal(t, charge.NotFoundCapExceeded, v.Code, "the same network, whatever its zone")
	tomorrow := syncproto.EndOfDay(syncproto.Day(start))
	require.Equal(t, secondsUntil(start, tomorrow), v.RetryAfter)
	require.Equal(t, charge.NotFoundCapExceeded, ask(tomorrow-1, 0))
	require.Equal(t, "", ask(tomorrow, 0))
}
