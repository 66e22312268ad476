package lease

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// TestVoidsAreReportedFirst makes a batch that has no room for all usage.
func TestVoidsAreReportedFirst(t *testing.T) {
	usage := tally{}
	for hour := range int32(5) {
		usage.add(use{1, 1, hour, charge.Companies, charge.Found}, 1)
	}
	usage.add(use{2, 1, 0, charge.Companies, charge.Found}, -1)
	require.EqualValues(t, -1, usage.rows(1)[0].Count)
}

// TestRowsOfUsageAreInOneOrder: batches of the same charges are the same bytes, whoever makes them.
func TestRowsOfUsageAreInOneOrder(t *testing.T) {
	usage := tally{}
	want := []use{
		{1, 1, 1, charge.Companies, charge.Found}, {1, 1, 1, charge.Companies, charge.NotFound}, {1, 1, 1, charge.Directors, charge.Found},
		{1, 1, 2, charge.Companies, charge.Found}, {1, 2, 1, charge.Companies, charge.Found}, {2, 1, 1, charge.Companies, charge.Found},
	}
	for _, u := range want {
		usage.add(u, 1)
	}
	var got []use
	for _, u := range usage.rows(len(want)) {
		got = append(got, use{u.Account, u.Key, u.Hour, u.Endpoint, u.Outcome})
	}
	require.Equal(t, want, got)
}

func TestARepeatedRowAddsNothing(t *testing.T) {
	edge, _ := granted(t, 10)
	first := news(edge, 2, 20)
	edge.Apply(start, first, false)
	edge.Apply(start, first, false)
	older := news(edge, 1, 15)
	older.Since = 0
	edge.Apply(start, older, false)
	require.EqualValues(t, 20, edge.leases.accounts.get(1).credits.held())
	require.NoError(t, edge.Check())
}

// TestUnitsAreReturnedOnlyWithAllUsage recalls a lease while usage of an earlier epoch is
// unreported: the writer could not tell units that a void brought back from spent ones.
func TestUnitsAreReturnedOnlyWithAllUsage(t *testing.T) {
	edge, _ := granted(t, 10)
	edge.Charge(start, request("of epoch 1", charge.Found), false)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	recall := news(edge, 1, 5)
	for i := range recall.Rows {
		recall.Rows[i].Recall = true
	}
	edge.Apply(start, recall, false)
	late := edge.Sync(start).Batch
	require.EqualValues(t, 1, late.Of)
	require.Empty(t, late.Returns)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 2, Generation: 1, Applied: late.Seq, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
	require.Len(t, edge.Sync(start).Batch.Returns, 3)
}

// unreadable is a Log whose batches can't be read.
type unreadable struct{ recordLog }

func (*unreadable) Batch(uint64, uint64) (*syncproto.Batch, error) { return nil, io.ErrUnexpectedEOF }

func TestAnUnreadableBatchIsTriedAgain(t *testing.T) {
	edge, log := granted(t, 10)
	edge.Charge(start, request("a", charge.Found), false)
	sealed := edge.Sync(start).Batch.Seq
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: sealed, Since: edge.session.seen, Upto: edge.session.seen, Live: 1}, true)
	broken := &unreadable{}
	for _, readable := range []bool{false, true} {
		var of Log = broken
		if readable {
			of = &recordLog{}
		}
		again := New(of)
		for _, r := range log.records {
			require.NoError(t, again.Replay(r))
		}
		again.Boot(2)
		again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 2, Live: 1}, false)
		require.True(t, again.Behind())
		batch := again.Sync(start).Batch
		require.Equal(t, readable, batch != nil, "it is sent without content only when it is no longer kept")
		require.Equal(t, readable, again.Behind(), "it is not tried again at once")
	}
}
