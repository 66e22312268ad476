package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// TestAnEpochIsNotOverWhileSomethingIsLeft to report or to return: with the next one it would be lost.
func TestAnEpochIsNotOverWhileSomethingIsLeft(t *testing.T) {
	row := use{1, 1, 0, charge.Companies, charge.Found}
	for name, leave := range map[string]func(e *EdgeState){
		"the epoch has not ended":             func(e *EdgeState) { e.standing.status = syncproto.OK },
		"grants that may come":                func(e *EdgeState) { e.session.complete = false },
		"a batch under way":                   func(e *EdgeState) { e.outbox.inflight = &syncproto.Batch{Seq: e.outbox.sealed} },
		"a batch that the writer lost":        func(e *EdgeState) { e.outbox.applied = e.outbox.sealed - 1 },
		"usage":                               func(e *EdgeState) { e.usage.current.add(row, 1) },
		"usage of before a restart":           func(e *EdgeState) { tallyOf(e.usage.carried, 1).add(row, 1) },
		"usage of before and after a restart": func(e *EdgeState) { e.usage.current.add(row, 1); tallyOf(e.usage.carried, 1).add(row, 1) },
		"a lease that the writer has":         func(e *EdgeState) { e.leases.accounts.ensure(7).credits.known = true },
		"a lease of volume that the writer has": func(e *EdgeState) {
			e.leases.accounts.ensure(7).volume.known = true
		},
		"a unit that a void brought back": func(e *EdgeState) { e.leases.accounts.ensure(7).credits.spent = -1 },
	} {
		edge, _ := endedEpoch(t)
		require.True(t, edge.settled())
		leave(edge)
		require.False(t, edge.settled(), name)
		require.False(t, edge.Greeting(), name)
	}
}

// TestTheNumberThatAsksForAnEpochIsOfOneRun: by it the writer knows a Hello that came twice.
func TestTheNumberThatAsksForAnEpochIsOfOneRun(t *testing.T) {
	fresh := New(&recordLog{})
	fresh.Boot(7)
	require.EqualValues(t, 7, fresh.Hello(start).Boot)
	edge, _ := endedEpoch(t)
	first := edge.Hello(start).Boot
	edge.session.boot++
	require.NotEqual(t, first, edge.Hello(start).Boot)
}

// TestFailedRequestsOfBeforeTheFirstEpochAreReportedInIt.
func TestFailedRequestsOfBeforeTheFirstEpochAreReportedInIt(t *testing.T) {
	edge := New(&recordLog{})
	edge.Boot(1)
	require.Empty(t, chargeCode(edge, start, "early", charge.Failed))
	require.False(t, edge.HasUnreported(), "it costs nothing")
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	require.True(t, edge.Connected(start))
	batch := edge.Sync(start).Batch
	require.Len(t, batch.Usage, 1)
	require.EqualValues(t, 1, batch.Of)
	require.Equal(t, charge.Failed, batch.Usage[0].Outcome)
}

// TestUsageOfEarlierEpochsIsReportedInTheirOrder, each in batches of its own.
func TestUsageOfEarlierEpochsIsReportedInTheirOrder(t *testing.T) {
	u := newUsage()
	for _, epoch := range []uint64{7, 3, 5} {
		tallyOf(u.late, epoch).add(use{account: 1}, 1)
		tallyOf(u.late, epoch+100) // without usage
	}
	for _, want := range []uint64{3, 5, 7, 0} {
		require.Equal(t, want, u.oldestLate())
		delete(u.late, want)
	}
}

func TestWhatIsUnreportedIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		outcomes []charge.Outcome
		charges  int64
		any      bool
	}{
		"nothing":                  {nil, 0, false},
		"a failed lookup":          {[]charge.Outcome{charge.Failed}, 0, false},
		"a lookup without a match": {[]charge.Outcome{charge.NotFound, charge.Failed}, 0, true},
		"charges":                  {[]charge.Outcome{charge.Found, charge.Failed, charge.Found}, 2, true},
	} {
		edge, _ := granted(t, 10)
		for n, outcome := range c.outcomes {
			require.Empty(t, chargeCode(edge, start, fmt.Sprint("r", n), outcome))
		}
		for _, sealed := range []bool{false, true} {
			if sealed {
				edge.Sync(start)
			}
			require.Equal(t, c.charges, edge.Unsettled(), name)
			require.Equal(t, c.any, edge.HasUnreported(), name)
		}
	}
	several := &EdgeState{usage: newUsage()}
	for account := range int64(3) {
		several.usage.current.add(use{account: account, outcome: charge.Found}, 2)
	}
	require.EqualValues(t, 6, several.Unsettled())
}

// TestABatchUnderWayIsSentAsItWasSealed to another writer, and an earlier one as the log has it.
func TestABatchUnderWayIsSentAsItWasSealed(t *testing.T) {
	edge, _ := granted(t, 10)
	asked := &askedLog{}
	edge.log = asked
	require.Empty(t, chargeCode(edge, start, "a", charge.Found))
	require.NotNil(t, acknowledged(edge, start))
	require.Empty(t, chargeCode(edge, start, "b", charge.Found))
	require.NotNil(t, acknowledged(edge, start))
	require.Empty(t, chargeCode(edge, start, "c", charge.Found))
	sealed := edge.Sync(start).Batch
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: edge.session.id}, true)
	other := &syncproto.Reply{Status: syncproto.OK, Session: 9, Epoch: 1, Generation: 2, Applied: 1, Live: 1, NowMillis: start}
	edge.Apply(start, other, false)
	require.EqualValues(t, 2, edge.Sync(start).Batch.Seq)
	require.Equal(t, [][2]uint64{{1, 2}}, asked.batches, "by its epoch and number")
	other.Applied = 2
	edge.Apply(start, other, true)
	require.Equal(t, sealed, edge.Sync(start).Batch)
	require.Len(t, asked.batches, 1)
}

// askedLog notes which batches it is asked for.
type askedLog struct {
	recordLog
	batches [][2]uint64
}

func (l *askedLog) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	l.batches = append(l.batches, [2]uint64{epoch, seq})
	return nil, nil
}
