package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// ended is a reply which says that the edge's epoch has ended, with as much as the edge knows.
func ended(edge *EdgeState, status syncproto.Status) *syncproto.Reply {
	r := nothing(edge)
	r.Status = status
	return r
}

func TestAReplyWithoutNewsIsNotJournalled(t *testing.T) {
	edge, log := granted(t, 10)
	edge.Charge(start, request("a", charge.Found), false)
	edge.Sync(start)
	edge.Apply(start, nothing(edge), true)
	before := len(log.records)
	for range 3 {
		edge.Apply(start, nothing(edge), true)
	}
	require.Len(t, log.records, before)
	require.False(t, edge.Behind(), "nor is there anything to send at once")
}

// TestRowsWithAGapBeforeThemAreNotTaken: those in the gap would never come. A new session begins, in which the writer says
// everything again.
func TestRowsWithAGapBeforeThemAreNotTaken(t *testing.T) {
	edge, _ := granted(t, 10)
	seen := edge.session.seen
	later := news(edge, 3, 40)
	later.Since = seen + 1
	edge.Apply(start, later, false)
	require.EqualValues(t, 10, held(edge, 1))
	require.True(t, edge.Greeting())

	edge, _ = granted(t, 10)
	older := nothing(edge)
	older.Since, older.Upto = 0, seen-1
	edge.Apply(start, older, false)
	require.Equal(t, seen, edge.Watch(start, 0).Seen, "nor is anything asked for again that was seen")

	again := news(edge, 3, 40) // the row of a version that was seen, with others
	again.Since, again.Rows[0].Version = 0, seen
	edge.Apply(start, again, false)
	require.EqualValues(t, 10, held(edge, 1))
	require.EqualValues(t, 40, edge.leases.accounts.get(1).volume.held())
}

// TestAnEndOfAnotherEpochOrSessionIsNotTaken: it was long under way.
func TestAnEndOfAnotherEpochOrSessionIsNotTaken(t *testing.T) {
	for name, spoil := range map[string]func(r *syncproto.Reply){
		"another epoch":                  func(r *syncproto.Reply) { r.Epoch++ },
		"another session":                func(r *syncproto.Reply) { r.Session++ },
		"batches that were not made yet": func(r *syncproto.Reply) { r.Applied++ },
	} {
		for _, status := range []syncproto.Status{syncproto.Superseded, syncproto.Retired} {
			edge, _ := granted(t, 10)
			r := ended(edge, status)
			spoil(r)
			require.Zero(t, edge.Apply(start, r, true), name)
			require.True(t, edge.Serving(), name)
			require.False(t, edge.outbox.abandoned(), name)
		}
	}
	edge, _ := granted(t, 10)
	edge.Boot(2)
	r := ended(edge, syncproto.Superseded)
	r.Session, r.Applied = 2, edge.outbox.sealed+1
	require.Zero(t, edge.Apply(start, r, false), "only a retired edge drops what it has")
	require.False(t, edge.outbox.abandoned())
}

func TestAnEpochIsNotForkedTwice(t *testing.T) {
	edge, _ := granted(t, 10)
	fork := &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1, NowMillis: start}
	require.True(t, edge.Apply(start, fork, false).Forked)
	require.True(t, edge.Connected(start), "the writer was heard")
	edge.Apply(start, news(edge, 1, 10), false)
	require.False(t, edge.Apply(start, fork, false).Forked)
	require.EqualValues(t, 10, held(edge, 1))

	empty := New(&recordLog{})
	empty.Boot(1)
	require.False(t, empty.Apply(start, fork, false).Forked, "it has nothing of which there could be an older copy")
	require.Zero(t, empty.Epoch())
}

// TestGrantsOfARetiredEdgeAreNotTaken: it neither spends nor returns them.
func TestGrantsOfARetiredEdgeAreNotTaken(t *testing.T) {
	edge, _ := granted(t, 10)
	r := news(edge, 2, 50)
	r.Status, r.NowMillis = syncproto.Retired, start
	edge.Apply(start, r, true)
	require.EqualValues(t, 10, held(edge, 1))
}

// TestARetiredEdgeStaysRetired when an earlier reply to its watch arrives late.
func TestARetiredEdgeStaysRetired(t *testing.T) {
	edge, _ := granted(t, 10)
	edge.Apply(start, ended(edge, syncproto.Retired), true)
	edge.Apply(start, ended(edge, syncproto.Superseded), false)
	require.Equal(t, syncproto.Retired, edge.Standing())
}

// TestAnEndedEpochWaitsForTheLastGrants: one that asks for another epoch before it has heard of all its
// leases would leave units that nobody returns.
func TestAnEndedEpochWaitsForTheLastGrants(t *testing.T) {
	whole := func(edge *EdgeState, from int64, rows int) *syncproto.Reply {
		r := ended(edge, syncproto.Superseded)
		for n := range rows {
			r.Upto++
			r.Rows = append(r.Rows, syncproto.Row{Version: r.Upto, Pool: creditsPool(from + int64(n)), Granted: 1, UntilMillis: start + leaseMillis})
		}
		return r
	}
	edge, _ := granted(t, 10)
	edge.Apply(start, whole(edge, 100, syncproto.MaxRows), true)
	require.False(t, edge.session.complete, "there may be more than fit into a reply")
	edge.Apply(start, whole(edge, 100+syncproto.MaxRows, 1), true)
	require.True(t, edge.session.complete)

	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
	hello := ended(edge, syncproto.Superseded)
	hello.Session, hello.Since, hello.Upto = 2, 0, 0
	edge.Apply(start, hello, false)
	require.True(t, edge.session.open())
	require.False(t, edge.session.complete, "the reply to Hello has no rows, and the session before is over")
	edge.Apply(start, ended(edge, syncproto.Superseded), true)
	require.True(t, edge.session.complete)
}

// TestAReplyOfAnEndedSessionOpensNone: the writer does not know that one any more.
func TestAReplyOfAnEndedSessionOpensNone(t *testing.T) {
	edge, _ := granted(t, 10)
	late := news(edge, 2, 10)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
	edge.Apply(start, late, false)
	require.True(t, edge.Greeting())
}

// TestARecallOfNothingIsNotUrgent: the edge would send one message after the other.
func TestARecallOfNothingIsNotUrgent(t *testing.T) {
	edge, _ := granted(t, 0)
	edge.Charge(start, request("in use", charge.Failed), false)
	recall := news(edge, 2, 0)
	for i := range recall.Rows {
		recall.Rows[i].Recall = true
	}
	edge.Apply(start, recall, false)
	require.False(t, edge.Urgent())
	edge.returns.recall(creditsPool(1)) // and was spent since it was listed
	require.Empty(t, acknowledged(edge, start).Returns)
}

// TestALeaseThatHasNothingThoughThereIsMoreIsClosed: its units are at neither side, and would
// be for the rest of the month.
func TestALeaseThatHasNothingThoughThereIsMoreIsClosed(t *testing.T) {
	volume := volumePool(1, syncproto.Month(start))
	closed := syncproto.Return{Pool: volume, Close: true}
	tell := func(edge *EdgeState, row int, set func(*syncproto.Row)) {
		r := news(edge, edge.session.seen, 5)
		r.Rows = r.Rows[row : row+1]
		set(&r.Rows[0])
		edge.Apply(start, r, false)
		require.NoError(t, edge.Check())
		require.Equal(t, r.Upto, edge.session.seen, "the row is news")
	}
	recall := func(row *syncproto.Row) { row.Recall = true }
	returning := func(t *testing.T) *EdgeState { // after the last unit, its batch under way
		edge, _ := granted(t, 5)
		for n := range 5 {
			require.Empty(t, chargeCode(edge, start, fmt.Sprint("before ", n), charge.Found))
		}
		require.EqualValues(t, 5, edge.Sync(start).Batch.Usage[0].Count)
		return edge
	}
	for name, set := range map[string]func(*syncproto.Row){
		"recalled for another edge":             recall,
		"recalled, though nothing else is left": func(row *syncproto.Row) { row.Recall, row.Dry = true, true },
		"asked for":                             func(*syncproto.Row) {},
	} {
		t.Run(name, func(t *testing.T) {
			edge := returning(t)
			acknowledged(edge, start)
			tell(edge, 1, set)
			require.Equal(t, []syncproto.Return{closed}, acknowledged(edge, start).Returns)
			require.Zero(t, edge.leases.find(volume).granted)
			require.Zero(t, edge.returns.len())
			require.Nil(t, acknowledged(edge, start), "once")
		})
	}
	t.Run("told while a batch is under way", func(t *testing.T) {
		edge := returning(t)
		tell(edge, 1, recall)
		require.NotContains(t, acknowledged(edge, start).Returns, closed)
		require.Equal(t, []syncproto.Return{closed}, acknowledged(edge, start).Returns)
	})
	t.Run("with what is spent and not reported", func(t *testing.T) {
		edge, _ := granted(t, 5)
		for n := range 5 {
			require.Empty(t, chargeCode(edge, start, fmt.Sprint(n), charge.Found))
		}
		tell(edge, 1, recall)
		batch := acknowledged(edge, start)
		require.Equal(t, []syncproto.Return{closed}, batch.Returns)
		require.EqualValues(t, 5, batch.Usage[0].Count)
	})
	for name, set := range map[string]func(*syncproto.Row){
		"nothing is left":    func(row *syncproto.Row) { row.Dry = true },
		"there is a grant":   func(row *syncproto.Row) { row.Granted = 8 },
		"a grant comes late": func(row *syncproto.Row) { row.Recall = true },
	} {
		t.Run("not: "+name, func(t *testing.T) {
			edge := returning(t)
			acknowledged(edge, start)
			tell(edge, 1, set)
			if name == "a grant comes late" {
				tell(edge, 1, func(row *syncproto.Row) { row.Granted = 8 })
			}
			require.Nil(t, acknowledged(edge, start))
		})
	}
	t.Run("not: of credits, which no clock makes forgotten", func(t *testing.T) {
		edge := returning(t)
		acknowledged(edge, start)
		tell(edge, 0, recall)
		require.Nil(t, acknowledged(edge, start))
	})
	t.Run("later, when there is no room in the batch", func(t *testing.T) {
		edge := returning(t)
		acknowledged(edge, start)
		tell(edge, 1, recall)
		full := newReturnList()
		full.list = make([]syncproto.Return, syncproto.MaxReturns)
		edge.closeUnexplained(full)
		require.Equal(t, []syncproto.Return{closed}, acknowledged(edge, start).Returns)
	})
	t.Run("in a bounded list", func(t *testing.T) {
		edge := returning(t)
		for range 10 {
			tell(edge, 1, recall)
		}
		require.Equal(t, 1, edge.returns.len())
	})
}

// TestRowsOfARestoredLedgerAreTakenForALeaseInUse, although it lacks batches that were acknowledged.
func TestRowsOfARestoredLedgerAreTakenForALeaseInUse(t *testing.T) {
	edge, _ := granted(t, 10)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	require.NotNil(t, acknowledged(edge, start))
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 2, Live: 1, NowMillis: start}, false)
	require.Empty(t, chargeCode(edge, start, "b", charge.Found))
	more := news(edge, 1, 30)
	more.Applied, more.Generation = 0, 2
	edge.Apply(start, more, false)
	require.EqualValues(t, 28, held(edge, 1))
	require.NoError(t, edge.Check())
}

// TestAnEarlierEndDoesNotShortenALease: its row was overtaken.
func TestAnEarlierEndDoesNotShortenALease(t *testing.T) {
	edge, _ := granted(t, 10)
	sooner := news(edge, 2, 10)
	for i := range sooner.Rows {
		sooner.Rows[i].UntilMillis = start + 1
	}
	edge.Apply(start, sooner, false)
	require.Empty(t, chargeCode(edge, start+2, "a", charge.Found))
}

func TestALeaseIsUsableUntilItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		lease lease
		want  bool
	}{
		"until its last millisecond": {lease{granted: 2, spent: 1, until: start + 1}, true},
		"not at its end":             {lease{granted: 2, spent: 1, until: start}, false},
		"for two days":               {lease{granted: 1, until: start + absurdMillis}, true},
		"not for longer":             {lease{granted: 1, until: start + absurdMillis + 1}, false},
		"not when nothing is left":   {lease{granted: 2, spent: 1, returned: 1, until: start + 1}, false},
		"not in another window":      {lease{granted: 1, until: start + 1, window: 7}, false},
	} {
		require.Equal(t, c.want, c.lease.usable(start, 0), name)
	}
}

// TestTheBalanceFollowsWhatWasAcknowledged until the writer sends another.
func TestTheBalanceFollowsWhatWasAcknowledged(t *testing.T) {
	edge, _ := granted(t, 100)
	for n := range int64(4) {
		v := edge.Charge(start, request(fmt.Sprint("r", n), charge.Found), false).Verdict
		require.Equal(t, 99-n, v.CreditsRemaining)
		require.NotNil(t, acknowledged(edge, start))
	}
}

// TestEveryLookupIsRefusedWhenTheNotFoundCapIsUsedUp, not only those that find nothing: a client must not
// learn by a refusal that a record is not there.
func TestEveryLookupIsRefusedWhenTheNotFoundCapIsUsedUp(t *testing.T) {
	edge, _ := granted(t, 10)
	used := news(edge, 2, 10)
	used.Rows[2].Dry = true
	edge.Apply(start, used, false)
	require.Empty(t, chargeCode(edge, start, "found", charge.Found))
	for n := range 10 {
		require.Empty(t, chargeCode(edge, start, fmt.Sprint("absent", n), charge.NotFound))
	}
	require.Equal(t, charge.NotFoundCapExceeded, chargeCode(edge, start, "absent", charge.NotFound))
	require.Equal(t, charge.NotFoundCapExceeded, chargeCode(edge, start, "found then", charge.Found))
}

// TestTheWriterTellsWhetherThereAreOtherEdges: counts are told only then.
func TestTheWriterTellsWhetherThereAreOtherEdges(t *testing.T) {
	edge, _ := granted(t, 10)
	both := nothing(edge)
	both.Live = 2
	edge.Apply(start, both, false)
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	require.Len(t, edge.Sync(start).Rates, 1)
	edge.Apply(start, nothing(edge), true)
	require.Empty(t, chargeCode(edge, start, "b", charge.Found))
	require.Empty(t, edge.Sync(start).Rates, "the other has gone")
}
