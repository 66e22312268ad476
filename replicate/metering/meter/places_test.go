package meter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// fill has an account wait as often as it may.
func fill(w *waiters, account, now int64) (places []*waiter) {
	for {
		place := w.enter(account, now)
		if place == nil {
			return places
		}
		places = append(places, place)
	}
}

// given reports whether a request has to give up its place.
func given(w *waiter) bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// TestEachAccountGetsHalfOfWhatIsFree, and one that waited in vain gets less, until it is decided or half a minute
// to a minute has passed.
func TestEachAccountGetsHalfOfWhatIsFree(t *testing.T) {
	var w waiters
	first := fill(&w, 1, 1000)
	require.Len(t, first, 43)
	require.Len(t, fill(&w, 2, 1000), 29)
	require.Equal(t, 72, w.count())
	for _, place := range first {
		w.leave(place, false)
	}
	require.Equal(t, 29, w.count())
	w.leave(first[0], false)
	require.Equal(t, 29, w.count(), "it has left")

	again := fill(&w, 1, 1000)
	require.Len(t, again, 12, "of 35 that are free in the first half")
	for _, place := range again {
		w.leave(place, true)
	}
	again = fill(&w, 1, 1000)
	require.Len(t, again, 33, "it got an answer since")
	for _, place := range again {
		w.leave(place, false)
	}
	for after, places := range []int{12, 12, 33} { // each look that is in vain begins the time anew
		var later waiters
		waited := later.enter(1, 1000)
		later.leave(waited, false)
		for range 29 {
			later.line = append(later.line, &waiter{account: 2})
		}
		later.of[2] = 29
		now := int64(1000)
		for range after {
			now += vainMillis
			later.forgetOld(now)
		}
		require.Len(t, fill(&later, 1, now), places, "%d times half a minute later", after)
	}
}

// TestTheLongestInVainGivesUpItsPlace to an account that has none, but not to one that waited in vain.
func TestTheLongestInVainGivesUpItsPlace(t *testing.T) {
	var w waiters
	var line []*waiter
	for account := int64(1); len(line) < MaxWaiting; account++ {
		line = append(line, w.enter(account, 1000))
	}
	w.vain[500] = struct{}{}
	require.Nil(t, w.enter(500, 1000))
	require.Nil(t, w.enter(1, 1000), "it has a place")
	require.False(t, given(line[0]))
	place := w.enter(600, 1000)
	require.NotNil(t, place)
	require.True(t, given(line[0]))
	require.False(t, given(line[1]))
	require.Equal(t, MaxWaiting, w.count())
	w.leave(line[0], false)
	require.Equal(t, MaxWaiting, w.count(), "it gave its place up before")
	require.Nil(t, w.enter(1, 1000), "and waited in vain")
}

// TestAClockThatWentBackBeginsAnew: an account would else wait in vain for as long as the clock was ahead.
func TestAClockThatWentBackBeginsAnew(t *testing.T) {
	var w waiters
	w.leave(w.enter(1, 1_000_000), false)
	require.True(t, w.inVain(1))
	w.forgetOld(1_000_000 + vainMillis - 1)
	require.Contains(t, w.vain, int64(1))
	w.forgetOld(1000)
	require.NotContains(t, w.vain, int64(1))
	require.True(t, w.inVain(1))
	w.forgetOld(1000 + vainMillis)
	require.False(t, w.inVain(1))
}

// TestAnAccountWhosePlaceIsFreeMayTakeOneAgain, not as many as one that has none. Nothing is kept of an
// account that waits no more.
func TestAnAccountWhosePlaceIsFreeMayTakeOneAgain(t *testing.T) {
	var w waiters
	places := fill(&w, 1, 1000)
	w.leave(places[0], true)
	again := fill(&w, 1, 1000)
	require.Len(t, again, 1)
	for _, place := range append(places[1:], again...) {
		w.leave(place, true)
	}
	require.Empty(t, w.of)
	require.Empty(t, w.vain)
}

// TestWhoIsDecidedDidNotWaitInVain
func TestWhoIsDecidedDidNotWaitInVain(t *testing.T) {
	m, err := Open(Config{State: t.TempDir(), WaitLimit: time.Minute})
	require.NoError(t, err)
	defer m.Close()
	verdicts := make(chan charge.Verdict)
	go func() {
		verdicts <- m.Charge(t.Context(), charge.Request{ID: "1", Account: 7, Key: 1, PerMinute: 60, Endpoint: charge.LLPs, Outcome: charge.Found})
	}()
	require.Eventually(t, func() bool { return m.Waiting() == 1 }, time.Minute, time.Millisecond)
	for _, status := range []syncproto.Status{syncproto.Fresh, syncproto.Retired} {
		require.NoError(t, m.apply(m.now(), &syncproto.Reply{Status: status, Session: 5, Epoch: 1, Generation: 1, Live: 1}, false))
	}
	require.Equal(t, charge.MeteringUnavailable, (<-verdicts).Code)
	require.False(t, m.waiters.inVain(7))
}

// TestAnAnswerEndsTheTimeInVain, also of the half a minute before.
func TestAnAnswerEndsTheTimeInVain(t *testing.T) {
	var w waiters
	w.leave(w.enter(1, 1000), false)
	place := w.enter(1, 1000+vainMillis)
	require.True(t, w.inVain(1))
	w.leave(place, true)
	require.False(t, w.inVain(1))
}

// TestATimeInVainEndsAlsoWhileNobodyWaits: an account that waited in vain an hour ago gets as many places as any.
func TestATimeInVainEndsAlsoWhileNobodyWaits(t *testing.T) {
	const start, hour = 1_790_000_000_000, 3_600_000
	var w waiters
	w.leave(w.enter(1, start), false)
	require.Len(t, fill(&w, 2, start+hour), 43)
	require.Len(t, fill(&w, 1, start+hour), 29)
	w = waiters{}
	w.leave(w.enter(1, start), false)
	w.forgetOld(start + vainMillis)
	require.True(t, w.inVain(1), "half a minute is not over")
}

// TestATimeInVainBeginsAnewWithEachRequestThatMayNotWait: its account still can't be decided here.
func TestATimeInVainBeginsAnewWithEachRequestThatMayNotWait(t *testing.T) {
	const start = 1_790_000_000_000
	var w waiters
	w.leave(w.enter(1, start), false)
	for other := range int64(MaxWaiting / 2) {
		w.line = append(w.line, &waiter{account: 2 + other})
	}
	for n := range int64(10) {
		require.Nil(t, w.enter(1, start+n*vainMillis*2/3), n)
	}
}
