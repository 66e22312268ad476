package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// keyRequest is a request with a key of account 1 that has a rate of its own.
func keyRequest(id string, key, rate int64) *charge.Request {
	r := request(id, charge.Failed) // needs no lease
	r.Key, r.KeyPerMinute = key, rate
	return r
}

func TestAKeyHasARateOfItsOwn(t *testing.T) {
	edge, _ := granted(t, 100)
	for n := range int64(2) {
		v := edge.Charge(start, keyRequest(fmt.Sprint("k", n), 7, 2), false).Verdict
		require.Equal(t, "", v.Code)
		require.EqualValues(t, 2, v.RateLimit, "the one that has fewer left")
		require.Equal(t, 1-n, v.RateRemaining)
	}
	v, exceeded := edge.Exceeded(start, keyRequest("x", 7, 2))
	require.True(t, exceeded)
	require.Equal(t, v, edge.Charge(start, keyRequest("third", 7, 2), false).Verdict)
	require.Equal(t, charge.RateLimitExceeded, v.Code)
	require.Equal(t, v.RateReset, v.RetryAfter)

	v = edge.Charge(start, request("another key", charge.Failed), false).Verdict
	require.Equal(t, "", v.Code, "the account may go on: what was refused did not count to its rate")
	require.EqualValues(t, 5, v.RateLimit)
	require.EqualValues(t, 2, v.RateRemaining)
	v = edge.Charge(start, keyRequest("wide", 8, 4), false).Verdict
	require.EqualValues(t, 5, v.RateLimit, "the account has fewer left than the key")
	require.EqualValues(t, 1, v.RateRemaining)
	v = edge.Charge(start, keyRequest("beyond the plan", 9, 50), false).Verdict
	require.Equal(t, "", v.Code)
	require.Equal(t, charge.RateLimitExceeded, edge.Charge(start, keyRequest("more", 9, 50), false).Verdict.Code, "the account's rate stays")

	require.Equal(t, "", edge.Charge(endOfMinute(start), keyRequest("the next minute", 7, 2), false).Verdict.Code)
}

// TestAKeysOwnRateIsToldWhereItsAccountHasAsManyLeft: it is the one that the key's user knows.
func TestAKeysOwnRateIsToldWhereItsAccountHasAsManyLeft(t *testing.T) {
	edge, _ := granted(t, 100)
	require.EqualValues(t, 4, edge.Charge(start, request("another key", charge.Failed), false).Verdict.RateRemaining)
	v := edge.Charge(start, keyRequest("as many", 7, 4), false).Verdict
	require.EqualValues(t, 4, v.RateLimit)
	require.EqualValues(t, 3, v.RateRemaining)
}

func TestRequestsOfAKeyAtOtherEdgesCount(t *testing.T) {
	edge := together(t)
	require.Equal(t, "", edge.Charge(start, keyRequest("first", 7, 3), false).Verdict.Code)
	require.ElementsMatch(t, []syncproto.Rate{
		{Subject: 1, Minute: syncproto.Minute(start), Count: 1}, {Subject: syncproto.OfKey(7), Minute: syncproto.Minute(start), Count: 1},
	}, edge.Sync(start).Rates)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: edge.outbox.sealed, Since: edge.session.seen, Upto: edge.session.seen, Live: 2, NowMillis: start,
		Others: []syncproto.Rate{{Subject: syncproto.OfKey(7), Minute: syncproto.Minute(start), Count: 1}, {Subject: syncproto.OfKey(99), Minute: 1, Count: 1}}}, true)
	require.Equal(t, "", edge.Charge(start, keyRequest("second", 7, 3), false).Verdict.Code)
	require.Equal(t, charge.RateLimitExceeded, edge.Charge(start, keyRequest("third", 7, 3), false).Verdict.Code)
}

// TestRequestsOfAKeyElsewhereCountBeforeItsFirstHere: the writer tells of them once.
func TestRequestsOfAKeyElsewhereCountBeforeItsFirstHere(t *testing.T) {
	edge := together(t)
	others := func(key int64) {
		edge.noteOthers(start, []syncproto.Rate{{Subject: syncproto.OfKey(key), Minute: syncproto.Minute(start), Count: 2}})
	}
	edge.leases.keys.ensure(7)
	others(7)
	require.Equal(t, "", edge.Charge(start, keyRequest("third", 7, 3), false).Verdict.Code)
	require.Equal(t, charge.RateLimitExceeded, edge.Charge(start, keyRequest("fourth", 7, 3), false).Verdict.Code)
	others(8)
	require.NotContains(t, edge.rates.keys, int64(8), "of a key that nobody asked for here")
}

// TestAKeyMayNoMoreThanItsPlan, even where its requests at other edges are known before its account's, which include them.
func TestAKeyMayNoMoreThanItsPlan(t *testing.T) {
	edge := together(t)
	edge.leases.keys.ensure(7)
	edge.noteOthers(start, []syncproto.Rate{{Subject: syncproto.OfKey(7), Minute: syncproto.Minute(start), Count: 5}})
	require.Equal(t, charge.RateLimitExceeded, edge.Charge(start, keyRequest("beyond the plan", 7, 50), false).Verdict.Code)
}

// TestRatesOfIdleKeysAreForgotten after a minute without requests.
func TestRatesOfIdleKeysAreForgotten(t *testing.T) {
	edge, _ := granted(t, 100)
	for n := range int64(50) {
		edge.Charge(start, keyRequest(fmt.Sprint("k", n), n+1, 2), false)
	}
	require.Len(t, edge.rates.keys, 50)
	edge.Charge(start+60_000, keyRequest("next", 1, 2), false)
	require.Len(t, edge.rates.keys, 50)
	edge.Charge(start+120_000, keyRequest("later", 2, 2), false)
	require.Len(t, edge.rates.keys, 2)
}
