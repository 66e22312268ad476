package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// nothing is a reply without news.
func nothing(edge *EdgeState) *syncproto.Reply {
	return &syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: edge.standing.epoch, Generation: 1,
		Applied: edge.outbox.sealed, Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: start}
}

// TestWaitingRequestsAreWokenByNewsAlone: each wakes all of them.
func TestWaitingRequestsAreWokenByNewsAlone(t *testing.T) {
	edge := New(&recordLog{})
	edge.Boot(1)
	require.True(t, edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1}, false).News, "an epoch")
	require.False(t, edge.Apply(start, nothing(edge), false).News)
	require.True(t, edge.Apply(start, news(edge, 1, 5), false).News, "rows")
	require.False(t, edge.Apply(start, nothing(edge), false).News)
	stranger := &syncproto.Reply{Status: syncproto.Stranger, Session: 1}
	require.False(t, edge.Apply(start, stranger, false).News)
	require.True(t, edge.Greeting())
	hello := nothing(edge)
	hello.Session, hello.Upto, hello.Since = 2, 0, 0
	require.True(t, edge.Apply(start, hello, false).News, "a session")
	require.False(t, edge.Greeting())
	other := nothing(edge)
	other.Session = 7
	other.Rows, other.Upto = news(edge, 9, 50).Rows, 99
	require.False(t, edge.Apply(start, other, false).News, "of another session")
	require.EqualValues(t, 5, edge.leases.accounts.get(1).credits.held())
}

// TestAnEdgeIsIdleWhenItHasNothingToSay: the last message of a process that ends is left out then.
func TestAnEdgeIsIdleWhenItHasNothingToSay(t *testing.T) {
	idle := func() *EdgeState {
		edge, _ := granted(t, 100)
		edge.Charge(start, request("in use", charge.Failed), false)
		edge.Sync(start)
		edge.Apply(start, nothing(edge), true)
		require.True(t, edge.Idle())
		return edge
	}
	says := map[string]func(edge *EdgeState){
		"a charge":          func(e *EdgeState) { e.Charge(start, request("a", charge.Found), false) },
		"a failed request":  func(e *EdgeState) { e.Charge(start, request("a", charge.Failed), false) },
		"a batch under way": func(e *EdgeState) { e.Charge(start, request("a", charge.Found), false); e.Sync(start) },
		"a want":            func(e *EdgeState) { e.wants.add(syncproto.Want{Pool: creditsPool(1), Target: 5}) },
		"a recall":          func(e *EdgeState) { e.returns.recall(creditsPool(1)) },
		"an idle lease":     func(e *EdgeState) { e.sweep(start + slotMillis) },
		"a rate":            func(e *EdgeState) { e.rates.listed = append(e.rates.listed, 1) },
		"a batch that the writer lost": func(e *EdgeState) {
			e.Charge(start, request("a", charge.Found), false)
			e.Sync(start)
			e.Apply(start, nothing(e), true)
			require.True(t, e.Idle())
			e.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: e.session.id}, false)
			e.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 3, Epoch: 1, Generation: 2, Live: 1}, false)
		},
		"a declaration": func(e *EdgeState) {
			r := nothing(e)
			r.Declare = true
			e.Apply(start, r, false)
		},
		"a doubt": func(e *EdgeState) {
			e.Charge(start, request("a", charge.Found), false)
			e.Doubt(start, "a")
			e.Sync(start)
			e.Apply(start, nothing(e), true)
		},
		"usage of an epoch before": func(e *EdgeState) {
			e.Charge(start, request("a", charge.Found), false)
			e.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
		},
	}
	for name, say := range says {
		edge := idle()
		say(edge)
		require.False(t, edge.Idle(), name)
	}
	for _, two := range [][2]string{{"a rate", "a charge"}, {"a failed request", "a want"}, {"a want", "a recall"}, {"a recall", "an idle lease"}, {"a doubt", "a recall"},
		{"usage of an epoch before", "a failed request"}, {"usage of an epoch before", "a want"}, {"a want", "an idle lease"}} {
		edge := idle()
		says[two[0]](edge)
		says[two[1]](edge)
		require.False(t, edge.Idle(), "%v", two)
	}
	require.Equal(t, 3, (&returns{recalled: make([]syncproto.Pool, 1), excess: make([]syncproto.Pool, 1), closing: make([]int64, 1)}).len())
}

// TestTheWriterIsAskedAtOnceForWhatIsUrgent: a request that waits, or a lease that is recalled.
func TestTheWriterIsAskedAtOnceForWhatIsUrgent(t *testing.T) {
	edge, _ := granted(t, 5)
	require.False(t, edge.Urgent())
	edge.wants.add(syncproto.Want{Pool: creditsPool(1), Target: 5})
	require.False(t, edge.Urgent())
	edge.wants.add(syncproto.Want{Pool: creditsPool(2), Target: 5, Urgent: true})
	require.True(t, edge.Urgent())
	edge.wants.take()
	require.False(t, edge.Urgent())
	recall := news(edge, 2, 5)
	recall.Rows[0].Recall = true
	edge.Apply(start, recall, false)
	require.True(t, edge.Urgent())
	edge.standing.status = syncproto.Superseded
	require.False(t, edge.Urgent(), "it may not spend")
}

// TestARequestWithoutALeaseAsksForAllThatItNeedsAtOnce: it waits, and would wait for each in turn.
func TestARequestWithoutALeaseAsksForAllThatItNeedsAtOnce(t *testing.T) {
	edge, _ := granted(t, 5)
	other := request("of another account", charge.Found)
	other.Account, other.Key = 9, 9
	require.True(t, edge.Charge(start, other, false).Wait)
	require.True(t, edge.Urgent())
	asked := edge.Sync(start)
	for _, p := range []syncproto.Pool{creditsPool(9), volumePool(9, syncproto.Month(start)), notFoundPool(9, syncproto.Day(start))} {
		w, ok := wanted(asked, p)
		require.True(t, ok, "%+v", p)
		require.True(t, w.Urgent, "%+v", p)
		require.Positive(t, w.Target, "%+v", p)
	}
}

// TestARequestThatWaitsForAnAnswerIsWokenByIt, also when the watch has brought the row before.
func TestARequestThatWaitsForAnAnswerIsWokenByIt(t *testing.T) {
	edge, _ := granted(t, 1)
	require.Empty(t, chargeCode(edge, start, "the last", charge.Found))
	require.Equal(t, "wait", chargeCode(edge, start, "a", charge.Found))
	require.Len(t, edge.Sync(start).Wants, 2)
	dry := news(edge, 2, 1)
	dry.Rows[0].Dry, dry.Rows[1].Granted, dry.Rows[2].Granted = true, 10, 10
	require.True(t, edge.Apply(start, dry, false).News)
	require.Equal(t, "wait", chargeCode(edge, start, "a", charge.Found), "the message of Sync is not answered")
	cut := nothing(edge)
	cut.Since, cut.Upto, cut.Rows = edge.session.seen, edge.session.seen+1, make([]syncproto.Row, syncproto.MaxRows)
	require.False(t, edge.Apply(start, cut, true).News, "there is more that it does not know")
	require.True(t, edge.Apply(start, nothing(edge), true).News)
	require.Equal(t, charge.InsufficientCredits, chargeCode(edge, start, "a", charge.Found))
	edge.Sync(start)
	require.False(t, edge.Apply(start, nothing(edge), true).News, "nobody waits")
}

// TestARecalledLeaseIsReturned but not one that holds nothing. One of volume is closed, so that the writer does not
// wait for units that it wrongly counts as held here.
func TestARecalledLeaseIsReturned(t *testing.T) {
	edge, _ := granted(t, 5)
	edge.Charge(start, request("in use", charge.Failed), false)
	recall := news(edge, 2, 5)
	for i := range recall.Rows {
		recall.Rows[i].Recall = true
	}
	edge.Apply(start, recall, false)
	batch := acknowledged(edge, start)
	require.Len(t, batch.Returns, 3)
	for _, r := range batch.Returns {
		require.EqualValues(t, 5, r.Units)
		require.Equal(t, r.Pool.Kind == syncproto.Volume, r.Close)
	}
	again := news(edge, 3, 5)
	for i := range again.Rows {
		again.Rows[i].Recall = true
	}
	again.Rows[1].Granted = 0 // the lease was closed
	edge.Apply(start, again, false)
	require.Nil(t, acknowledged(edge, start), "nothing is left of it")
	require.NoError(t, edge.Check())
}

// TestARecallOfWhatIsSpentIsReportedAtOnce: until the writer hears of it, another edge's requests wait in vain.
func TestARecallOfWhatIsSpentIsReportedAtOnce(t *testing.T) {
	for row, name := range []string{"credits", "volume"} {
		edge, _ := granted(t, 1)
		require.Empty(t, chargeCode(edge, start, "the last", charge.Found), name)
		require.False(t, edge.Urgent(), name)
		recall := news(edge, 2, 1)
		recall.Rows = recall.Rows[row : row+1]
		recall.Rows[0].Recall = true
		edge.Apply(start, recall, false)
		require.True(t, edge.Urgent(), name)
		require.EqualValues(t, 1, acknowledged(edge, start).Usage[0].Count, name)
		require.False(t, edge.Urgent(), "%s: once", name)
	}
	edge, _ := granted(t, 1)
	require.Empty(t, chargeCode(edge, start, "missing", charge.NotFound))
	require.Empty(t, chargeCode(edge, start, "the last", charge.Found))
	require.False(t, edge.Urgent())
	recall := news(edge, 2, 1)
	recall.Rows = recall.Rows[2:3]
	recall.Rows[0].Recall = true
	edge.Apply(start, recall, false)
	require.False(t, edge.Urgent(), "of not-found lookups: the number is a key's, not the account's")
}

// TestARecalledLeaseIsNotAskedFor: it would come back at once, and the edge that needs it get none.
func TestARecalledLeaseIsNotAskedFor(t *testing.T) {
	edge, _ := granted(t, 5)
	recall := news(edge, 2, 5)
	for i := range recall.Rows {
		recall.Rows[i].Recall = true
	}
	edge.Apply(start, recall, false)
	require.Equal(t, "", edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
	require.Empty(t, edge.Sync(start).Wants)
}

// TestCreditsOfAnEndedLeaseGoBackWhereNothingIsLeft, so that the account is refused when all are spent. Two clocks must say that
// it has ended.
func TestCreditsOfAnEndedLeaseGoBackWhereNothingIsLeft(t *testing.T) {
	const end = start + 1000
	for name, c := range map[string]struct {
		held         int64
		kind         int // of the row, as in news
		dry          bool
		now, writers int64
		back         bool
	}{
		"ended":                              {5, 0, true, end, end, true},
		"not where there is more elsewhere":  {5, 0, false, end, end, false},
		"not by the edge's clock alone":      {5, 0, true, end, end - 1, false},
		"not by the writer's clock alone":    {5, 0, true, end - 1, end, false},
		"not without any":                    {0, 0, true, end, end, false},
		"not of the volume":                  {5, 1, true, end, end, false},
		"not of a key's not-found responses": {5, 2, true, end, end, false},
	} {
		edge, _ := granted(t, c.held)
		edge.Charge(start, request("in use", charge.Failed), false)
		r := news(edge, 2, c.held)
		r.NowMillis, r.Rows = c.writers, r.Rows[c.kind:c.kind+1]
		edge.leases.find(r.Rows[0].Pool).until = end
		r.Rows[0].Dry, r.Rows[0].UntilMillis = c.dry, start
		edge.Apply(c.now, r, false)
		require.Equal(t, c.back, edge.returns.len() > 0, name)
		if !c.back {
			continue
		}
		pool := creditsPool(1)
		require.Equal(t, []syncproto.Return{{Pool: pool, Units: c.held}}, acknowledged(edge, c.now).Returns)
		l := edge.leases.find(pool)
		require.Zero(t, l.held())
		require.False(t, l.dry || l.recalled, "it can be asked for again")
		require.NoError(t, edge.Check())
	}
}

// TestAVoidThatWasNotWrittenOfAnUnknownIDChangesNothing.
func TestAVoidThatWasNotWrittenOfAnUnknownIDChangesNothing(t *testing.T) {
	edge, log := granted(t, 5)
	require.Equal(t, "", edge.Charge(start, request("a", charge.Found), false).Verdict.Code)
	_, err := edge.Void(start, "a")
	require.NoError(t, err)
	void := log.records[len(log.records)-1]
	other, _ := granted(t, 5)
	other.Drop(void)
	require.EqualValues(t, 5, other.leases.accounts.get(1).credits.held())
	require.Equal(t, "", other.Charge(start, request("a", charge.Found), false).Verdict.Code)
	other.Drop(void)
	require.EqualValues(t, 4, other.leases.accounts.get(1).credits.held(), "its charge was not voided here")
	require.NoError(t, other.Check())
}
