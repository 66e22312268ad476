package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func TestTheRateLimitComesFirst(t *testing.T) {
	edge, _ := granted(t, 100)
	for i := range 5 {
		a := edge.Charge(start, request(fmt.Sprint("r", i), charge.Failed), false)
		require.Equal(t, "", a.Verdict.Code)
		require.EqualValues(t, 4-i, a.Verdict.RateRemaining)
	}
	a := edge.Charge(start, request("over", charge.Found), false)
	require.Equal(t, charge.RateLimitExceeded, a.Verdict.Code)
	require.Equal(t, a.Verdict.RateReset, a.Verdict.RetryAfter)
	require.EqualValues(t, 0, a.Verdict.RateRemaining)
	next := (start/60_000 + 1) * 60_000
	require.Equal(t, "", edge.Charge(next, request("next", charge.Found), false).Verdict.Code, "a new minute")
}

// TestTheRateSurvivesANewEpoch charges a request before the first Hello is answered. It waits,
// and counts for the rate.
func TestTheRateSurvivesANewEpoch(t *testing.T) {
	edge := New(&recordLog{})
	edge.Boot(1)
	require.True(t, edge.Charge(start, request("early", charge.Found), false).Wait)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Sync(start + 1)
	edge.Apply(start+1, news(edge, 1, 100), true)
	early := edge.Charge(start+2, request("early", charge.Found), true)
	require.Equal(t, "", early.Verdict.Code)
	require.EqualValues(t, 4, early.Verdict.RateRemaining)
	require.EqualValues(t, 3, edge.Charge(start+2, request("next", charge.Found), false).Verdict.RateRemaining)
}

func TestAnEndedLeaseIsNotSpent(t *testing.T) {
	edge, _ := granted(t, 100)
	a := edge.Charge(start+leaseMillis, request("late", charge.Found), false)
	require.True(t, a.Wait)
	require.Equal(t, charge.MeteringUnavailable, a.Verdict.Code)
}

func TestAnExhaustedPoolIsForgottenWithTheSession(t *testing.T) {
	edge, _ := granted(t, 0)
	dry := news(edge, 2, 0)
	for i := range dry.Rows {
		dry.Rows[i].Dry = dry.Rows[i].Pool.Kind == syncproto.Credits
	}
	dry.Rows[1].Granted, dry.Rows[2].Granted = 10, 10
	edge.Apply(start, dry, false)
	require.Equal(t, charge.InsufficientCredits, edge.Charge(start, request("a", charge.Found), false).Verdict.Code)

	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, false)
	edge.Apply(start+1, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 2, Applied: edge.outbox.applied, Live: 1}, false)
	require.True(t, edge.Connected(start+1))
	require.True(t, edge.Charge(start+1, request("b", charge.Found), false).Wait, "there may have been a top-up")
}

// TestA402WaitsForTheGatesBeforeIt: while it is not known whether the month's volume is used up,
// which would win, an account without credits is asked for, not refused.
func TestA402WaitsForTheGatesBeforeIt(t *testing.T) {
	edge := New(&recordLog{})
	edge.Boot(1)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Sync(start)
	known := news(edge, 1, 0)
	volume, credits := known.Rows[1], known.Rows[0]
	credits.Dry = true
	known.Rows = []syncproto.Row{credits}
	edge.Apply(start, known, true)
	a := edge.Charge(start, request("a", charge.Found), false)
	require.True(t, a.Wait)
	require.Equal(t, charge.MeteringUnavailable, a.Verdict.Code)

	known = news(edge, 2, 0)
	volume.Version, volume.Dry = known.Rows[1].Version, true
	known.Rows = []syncproto.Row{volume}
	edge.Apply(start, known, true)
	require.Equal(t, charge.MonthlyVolumeExceeded, edge.Charge(start, request("a", charge.Found), true).Verdict.Code)
}

func TestARepeatedVerdictIsTheSame(t *testing.T) {
	edge := New(&recordLog{})
	now := start + 123
	rated := charge.Verdict{
		RateLimit: 60, RateRemaining: 5, RateReset: secondsUntil(now, endOfMinute(now)),
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	unrated := rated
	unrated.RateRemaining, unrated.RateReset, unrated.CreditsRemaining = charge.Unsent, charge.Unsent, 7
	volume, notFound, credits := rated, rated, rated
	volume.Code, volume.RetryAfter = charge.MonthlyVolumeExceeded, secondsUntil(now, syncproto.EndOfMonth(syncproto.Month(now)))
	notFound.Code, notFound.RetryAfter = charge.NotFoundCapExceeded, secondsUntil(now, syncproto.EndOfDay(syncproto.Day(now)))
	credits.Code = charge.InsufficientCredits
	for i, v := range []charge.Verdict{rated, unrated, volume, notFound, credits} {
		r := &charge.Request{ID: fmt.Sprint(i), Account: 1, Key: 1, PerMinute: 60, Endpoint: charge.LLPs, Outcome: charge.Found}
		edge.answer(now, r, edge.recent.sum(r.ID), v, answered)
		again := edge.Charge(now+40_000, r, false)
		require.True(t, again.Repeated)
		require.Equal(t, v, again.Verdict)
	}
}

func TestSandbox(t *testing.T) {
	edge := New(&recordLog{})
	from := func(client, id string, outcome charge.Outcome) charge.Verdict {
		r := &charge.Request{ID: id, Sandbox: true, Client: client, PerMinute: 3, Endpoint: charge.LLPs, Outcome: outcome}
		return edge.Charge(start, r, false).Verdict
	}
	t.Run("counts an IPv6 network as one client", func(t *testing.T) {
		for i := range 3 {
			require.Equal(t, "", from(fmt.Sprintf("2001:db8::%d", i), fmt.Sprint("six", i), charge.Found).Code)
		}
		require.Equal(t, charge.RateLimitExceeded, from("2001:db8::ffff:1", "six", charge.Found).Code)
		require.Equal(t, "", from("2001:db8:0:1::1", "seven", charge.Found).Code)
		require.Equal(t, "", from("::ffff:192.0.2.1", "mapped", charge.Found).Code)
		require.EqualValues(t, 1, from("192.0.2.1", "four", charge.Found).RateRemaining)
	})
	t.Run("refuses a client past its not-found cap", func(t *testing.T) {
		for i := range sandboxNotFoundCap {
			r := &charge.Request{ID: fmt.Sprint("n", i), Sandbox: true, Client: "192.0.2.9", PerMinute: 1000, Endpoint: charge.LLPs, Outcome: charge.NotFound}
			require.Equal(t, "", edge.Charge(start, r, false).Verdict.Code)
		}
		r := &charge.Request{ID: "n", Sandbox: true, Client: "192.0.2.9", PerMinute: 1000, Endpoint: charge.LLPs, Outcome: charge.Found}
		require.Equal(t, charge.NotFoundCapExceeded, edge.Charge(start, r, false).Verdict.Code)
		r.ID, r.Outcome = "malformed", charge.Failed
		require.Equal(t, "", edge.Charge(start, r, false).Verdict.Code, "a request that can't be answered is told why")
	})
	t.Run("remembers who was there just before, in a flood of others", func(t *testing.T) {
		for i := range 4 {
			from("192.0.2.77", fmt.Sprint("before", i), charge.Failed)
		}
		for i := range sandboxClientsLimit {
			from(fmt.Sprintf("11.%d.%d.%d", i>>16, i>>8&255, i&255), fmt.Sprint("flood", i), charge.Failed)
		}
		require.Equal(t, charge.RateLimitExceeded, from("192.0.2.77", "after", charge.Failed).Code)
	})
	t.Run("remembers a bounded number of clients", func(t *testing.T) {
		for i := range 3 * sandboxClientsLimit {
			from(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), fmt.Sprint("c", i), charge.Failed)
		}
		require.LessOrEqual(t, len(edge.sandbox.newer)+len(edge.sandbox.older), 2*sandboxClientsLimit)
	})
}

// headroom is the Headroom of all accounts.
func headroom(edge *EdgeState, now int64) Headroom {
	h := NewHeadroom()
	for next := edge.AddHeadroom(&h, now, 0); next != 0; next = edge.AddHeadroom(&h, now, next) {
	}
	return h
}

func TestHeadroomIsHowLongLeasesLastAtTheirUse(t *testing.T) {
	edge, _ := granted(t, 100)
	require.Equal(t, Headroom{Credits: 100, LeastMillis: -1}, headroom(edge, start), "nothing is in use")
	spend := func(from, to int) {
		for i := from; i < to; i++ {
			r := request(fmt.Sprint("r", i), charge.Found)
			r.PerMinute = 1000
			require.Empty(t, edge.Charge(start, r, false).Verdict.Code)
		}
	}
	spend(0, 50)
	require.Equal(t, Headroom{Credits: 50, LeastMillis: slotMillis}, headroom(edge, start), "as long as it took to spend the other half")
	spend(50, 95)
	short := headroom(edge, start)
	require.Equal(t, 1, short.Short)
	require.EqualValues(t, 5*slotMillis/95, short.LeastMillis)
	require.EqualValues(t, 95, edge.Unsettled())
	require.Zero(t, headroom(edge, start+2*slotMillis).Short, "no longer in use")
	require.Zero(t, headroom(edge, start+leaseMillis).Credits, "its lease has ended")

	edge.Sync(start)
	require.EqualValues(t, 95, edge.Unsettled(), "a batch that was not acknowledged is unsettled")
	settled := news(edge, 2, 100)
	settled.Applied = 1
	edge.Apply(start, settled, true)
	require.Zero(t, edge.Unsettled())
	require.NoError(t, edge.Check())
}

// TestTheHeadroomOfManyAccountsIsAddedUpInParts, of which none is left out.
func TestTheHeadroomOfManyAccountsIsAddedUpInParts(t *testing.T) {
	const accounts = 2*headroomPart + 1
	s := New(nil)
	for id := range int64(accounts) {
		s.leases.accounts.ensure(id + 1).credits = lease{granted: 1, known: true, until: 2}
	}
	h, parts := NewHeadroom(), 0
	for next := 0; next != 0 || parts == 0; parts++ {
		next = s.AddHeadroom(&h, 1, next)
	}
	require.EqualValues(t, accounts, h.Credits)
	require.Equal(t, 3, parts)
}

// TestTheDemandOfTheLastSlotCounts until the next one is over.
func TestTheDemandOfTheLastSlotCounts(t *testing.T) {
	var d demand
	for range 3 {
		d.add(slotMillis - 1)
	}
	for at, want := range map[int64]int{0: 3, slotMillis: 3, 2*slotMillis - 1: 3, 2 * slotMillis: 0} {
		require.EqualValues(t, want, d.recent(at), at)
	}
}

// TestAfterAPauseALeaseIsAskedForByWhatIsUsedNow: what an account used before it was idle would else be
// leased again, and be missing elsewhere.
func TestAfterAPauseALeaseIsAskedForByWhatIsUsedNow(t *testing.T) {
	var a account
	for range 500 {
		a.used(start)
	}
	require.EqualValues(t, 500, a.target())
	a.used(start + slotMillis)
	require.EqualValues(t, 500, a.target(), "the slot before counts")
	a.used(start + 2*slotMillis)
	require.EqualValues(t, floorUnits, a.target())
	for range 500 {
		a.used(start + 3*slotMillis)
	}
	a.used(start + 5*slotMillis)
	require.EqualValues(t, floorUnits, a.target())
}

// TestNoNumberOfCreditsIsBelowZero, nor said of a refusal: -1 stands for a number that is not sent.
func TestNoNumberOfCreditsIsBelowZero(t *testing.T) {
	edge, _ := granted(t, 100)
	poor := news(edge, 2, 100)
	for i := range poor.Rows {
		poor.Rows[i].Balance = 1 // others have spent more than the writer knew when it granted
	}
	edge.Apply(start, poor, false)
	for i, credits := range []int64{0, 0, 0} {
		a := edge.Charge(start, request(fmt.Sprint("r", i), charge.Found), false)
		require.Equal(t, "", a.Verdict.Code)
		require.Equal(t, credits, a.Verdict.CreditsRemaining)
	}
	require.EqualValues(t, charge.Unsent, Unavailable(charge.Verdict{CreditsRemaining: 5}).CreditsRemaining)
}
