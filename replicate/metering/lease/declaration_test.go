package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// manyLeases is an edge with a lease of each of a number of accounts.
func manyLeases(t *testing.T, accounts int64) *EdgeState {
	edge, _ := granted(t, 10)
	for from := int64(2); from <= accounts; from += syncproto.MaxRows {
		r := &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: start}
		for id := from; id < from+syncproto.MaxRows && id <= accounts; id++ {
			r.Upto++
			r.Rows = append(r.Rows, syncproto.Row{Version: r.Upto, Pool: creditsPool(id), Granted: 10, UntilMillis: start + leaseMillis})
		}
		edge.Apply(start, r, false)
	}
	return edge
}

// TestADeclarationComesInParts: each part follows the answer to the one before, and is sent again when
// it was not answered, whatever the other lane says meanwhile.
func TestADeclarationComesInParts(t *testing.T) {
	const accounts = syncproto.MaxDeclared + 100
	edge := manyLeases(t, accounts)
	restored := &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: start, Declare: true}
	edge.Apply(start, restored, false)
	require.True(t, edge.Behind())
	first := edge.Sync(start)
	require.NotEmpty(t, first.Declared)
	require.LessOrEqual(t, len(first.Declared), syncproto.MaxDeclared)
	require.False(t, first.DeclaredLast)

	edge.Apply(start, restored, false) // on the lane that waits for news
	edge.Lost()
	require.Equal(t, first.Declared, edge.Sync(start).Declared, "it was not answered")
	edge.Apply(start, restored, true)
	second := edge.Sync(start)
	require.True(t, second.DeclaredLast)
	declared := map[syncproto.Pool]bool{}
	for _, d := range append(first.Declared, second.Declared...) {
		require.False(t, declared[d.Pool], "%+v twice", d.Pool)
		require.EqualValues(t, 10, d.Granted)
		declared[d.Pool] = true
	}
	require.Len(t, declared, accounts+2, "credits of all, and two leases of the first account")

	edge.Apply(start, restored, true)
	require.Equal(t, first.Declared, edge.Sync(start).Declared, "the writer still asks: it begins again")
	done := *restored
	done.Declare = false
	edge.Apply(start, &done, true)
	require.Empty(t, edge.Sync(start).Declared)
	require.False(t, edge.declaration.active)
}

// TestALostPartIsSentAgain, also when the reply to it was lost and the next one is to another message.
func TestALostPartIsSentAgain(t *testing.T) {
	edge := manyLeases(t, syncproto.MaxDeclared+100)
	restored := &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: start, Declare: true}
	edge.Apply(start, restored, false)
	first := edge.Sync(start)
	edge.Lost()
	edge.Apply(start, restored, true)
	require.Equal(t, first.Declared, edge.Sync(start).Declared)
}

// TestADeclarationBeginsAgainInANewSession: that may be of another writer, to whose ledger the leases before the rest would be
// unknown, though it was told that this is all.
func TestADeclarationBeginsAgainInANewSession(t *testing.T) {
	edge := manyLeases(t, syncproto.MaxDeclared+100)
	restored := &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Since: edge.session.seen, Upto: edge.session.seen, Live: 1, NowMillis: start, Declare: true}
	edge.Apply(start, restored, false)
	first := edge.Sync(start)
	edge.Apply(start, restored, true)
	require.True(t, edge.Sync(start).DeclaredLast)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: 1, Generation: 2, Live: 1, NowMillis: start}, true)
	require.True(t, edge.Greeting())
	edge.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 2, Live: 1, NowMillis: start, Declare: true}, false)
	again := edge.Sync(start)
	require.Equal(t, first.Declared, again.Declared)
	require.False(t, again.DeclaredLast)
}

// TestRowsOfAWriterThatAsksTakeNothingAway: a restored ledger does not know the newest grants yet.
func TestRowsOfAWriterThatAsksTakeNothingAway(t *testing.T) {
	edge, _ := granted(t, 50)
	older := news(edge, 2, 20)
	older.Declare = true
	edge.Apply(start, older, false)
	for _, p := range []syncproto.Pool{creditsPool(1), volumePool(1, syncproto.Month(start)), notFoundPool(1, syncproto.Day(start))} {
		require.EqualValues(t, 50, edge.leases.find(p).held(), "%+v", p)
	}
	require.NoError(t, edge.Check())
}
