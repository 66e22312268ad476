package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

var creditsOf1 = syncproto.Pool{Kind: syncproto.Credits, Subject: 1}

// hello opens a session for an edge in epoch 5, or in its newest one.
func (f *fixture) hello(name string, h syncproto.Hello) (e *ledger.Edge, session uint64) {
	e = f.l.Edge(name)
	return e, f.l.Hello(at, e, &h).Session
}

func found(count int64) syncproto.Usage {
	return syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: count}
}

func TestASuspendedAccountGetsNoLeases(t *testing.T) {
	f := newFixture(t, 1, "one")
	require.NoError(t, f.l.ChangeAccount(at, 1, "scale", true))
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	want := syncproto.Want{Pool: creditsOf1, Target: 16, Urgent: true}
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}})
	require.Zero(t, f.credits().Leased)

	require.NoError(t, f.l.ChangeAccount(at, 1, "scale", false))
	require.Zero(t, f.credits().Leased, "the edge may want none any more")
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}})
	require.EqualValues(t, 16, f.credits().Leased, "and gets them when the suspension ends")
}

func TestARetiredEdgeDeclaresNothing(t *testing.T) {
	f := newFixture(t, 9, "one", "two")
	f.l.Restore()
	f.hello("two", syncproto.Hello{Boot: 2, Epoch: 6}) // keeps the ledger waiting
	e, session := f.hello("one", syncproto.Hello{Boot: 1, Epoch: 5, Granted: 20})
	require.NoError(t, f.l.Retire(at, "one", false))
	f.l.Sync(at, e, &syncproto.Sync{Session: session, DeclaredLast: true, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 20}}})
	require.True(t, f.l.Restoring)
	require.Zero(t, f.credits().Leased+f.credits().Lost, "a retired edge's leases are no longer granted")
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Usage: []syncproto.Usage{found(4)}}})
	require.NoError(t, f.l.Check())
	require.Zero(t, f.credits().Spent, "nor are they for what it reports")
}

// TestARestoredLedgerRecallsNothingThatItDoesNotKnow: what edges hold beyond its credits may have been bought since the backup.
func TestARestoredLedgerRecallsNothingThatItDoesNotKnow(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	f.l.Restore()
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	r := f.l.Sync(at, e, &syncproto.Sync{Session: session, DeclaredLast: true, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 500}}})
	require.True(t, f.l.Restoring, "the other has not declared")
	require.Negative(t, f.credits().Left())
	require.NotEmpty(t, r.Rows)
	for _, row := range r.Rows {
		require.False(t, row.Recall)
	}
}

// TestARestoredLedgerTakesAReturnThatItDoesNotKnow for a grant that it has lost: the edge goes on in its epoch, and need not
// give everything back.
func TestARestoredLedgerTakesAReturnThatItDoesNotKnow(t *testing.T) {
	for restoring, want := range map[bool]syncproto.Status{true: syncproto.OK, false: syncproto.Superseded} {
		f := newFixture(t, 1, "one", "two")
		if restoring {
			f.l.Restore()
		}
		e, session := f.hello("one", syncproto.Hello{Boot: 1})
		back := &syncproto.Batch{Seq: 1, Of: e.Epoch, Returns: []syncproto.Return{{Pool: creditsOf1, Units: 3}}}
		r := f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: back})
		require.Equal(t, restoring, f.l.Restoring)
		require.Equal(t, want, r.Status)
	}
}

// TestARestoreEndsWhenOnlyRetiredEdgesAreLeft, with the next that says something.
func TestARestoreEndsWhenOnlyRetiredEdgesAreLeft(t *testing.T) {
	f := newFixture(t, 1, "one")
	require.NoError(t, f.l.Retire(at, "one", false))
	f.l.Restore()
	f.hello("one", syncproto.Hello{Boot: 1})
	require.False(t, f.l.Restoring)
}

// TestVoidsAreBookedBeforeCharges reports, in one batch, five charges and then the voids of five
// earlier ones, whose units were spent again.
func TestVoidsAreBookedBeforeCharges(t *testing.T) {
	f := newFixture(t, 1, "one")
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	want := syncproto.Want{Pool: creditsOf1, Target: 10}
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}})
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Usage: []syncproto.Usage{found(10)}}})
	f.l.Restore() // which takes charges beyond a lease for a grant that it lacks
	void := found(-5)
	void.Endpoint = charge.LLPs
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 2, Usage: []syncproto.Usage{found(5), void}}})
	require.EqualValues(t, 10, f.credits().Spent)
	require.Zero(t, f.credits().Leased)
}

// TestSumsOfNonsenseDoNotOverflow: a node reports more and more, beyond any lease, also while the ledger
// believes it since it was restored.
func TestSumsOfNonsenseDoNotOverflow(t *testing.T) {
	for _, restoring := range []bool{false, true} {
		f := newFixture(t, 9, "one", "two")
		f.hello("two", syncproto.Hello{Boot: 2})
		if restoring {
			f.l.Restore()
		}
		e, session := f.hello("one", syncproto.Hello{Boot: 1, Epoch: 5})
		for seq := range uint64(8) {
			b := &syncproto.Batch{Seq: seq + 1, Usage: []syncproto.Usage{found(1 << 61)}}
			f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: b})
			require.NoError(t, f.l.Check())
		}
	}
}

func TestAMadeUpAccountDoesNotUseUpTheIds(t *testing.T) {
	f := newFixture(t, 9, "one", "two")
	f.l.Restore()
	f.hello("two", syncproto.Hello{Boot: 2, Epoch: 6}) // keeps the ledger waiting
	e, session := f.hello("one", syncproto.Hello{Boot: 1, Epoch: 5})
	lost, madeUp := found(1), found(1)
	lost.Account, madeUp.Account = 1+2*ledger.MaxRestoredLeap, 1<<53
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Usage: []syncproto.Usage{lost, madeUp}}})
	require.NotNil(t, f.l.Account(lost.Account))
	require.Nil(t, f.l.Account(madeUp.Account))
}

func TestABatchAfterAGapIsNotApplied(t *testing.T) {
	f := newFixture(t, 1, "one")
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	want := syncproto.Want{Pool: creditsOf1, Target: 10}
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}})
	batch := &syncproto.Batch{Seq: 2, Usage: []syncproto.Usage{found(3)}}
	r := f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: batch})
	require.Zero(t, r.Applied)
	require.Zero(t, f.credits().Spent)
}

// TestAnEdgeWithoutAnEpochIsAwaited restores a backup from before an edge's first Hello, or before the
// edge was added. It may hold leases since.
func TestAnEdgeWithoutAnEpochIsAwaited(t *testing.T) {
	f := newFixture(t, 9, "one", "two")
	f.l.Restore()
	require.NoError(t, f.l.AddEdge("three"))
	require.Equal(t, []string{"one", "three", "two"}, f.l.Awaited())
	for _, name := range []string{"one", "three"} {
		e, session := f.hello(name, syncproto.Hello{Boot: 1, Epoch: 5, Granted: 30})
		want := syncproto.Want{Pool: creditsOf1, Target: 100, Urgent: true}
		f.l.Sync(at, e, &syncproto.Sync{Session: session, DeclaredLast: true, Wants: []syncproto.Want{want}})
	}
	require.Equal(t, []string{"two"}, f.l.Awaited())
	require.Zero(t, f.credits().Leased, "granted before the last edge has reported")
	f.hello("two", syncproto.Hello{Boot: 2})
	require.True(t, f.l.Restoring, "until it has declared that it holds nothing")
}

// TestReturnsAreKnownBeforeGrantsAreCompensated restores a ledger that lacks a lease of all
// credits, 60 that came back of it, and the grant of these to another edge, which reports first.
func TestReturnsAreKnownBeforeGrantsAreCompensated(t *testing.T) {
	for name, c := range map[string]struct{ returned, compensated int64 }{
		"all of them came back":       {60, 0},
		"20 were granted twice":       {40, 20},
		"the edge never got a return": {0, 60},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 9, "one", "two")
			f.l.Restore()
			two, session := f.hello("two", syncproto.Hello{Boot: 2, Epoch: 6, Granted: 60})
			one, first := f.hello("one", syncproto.Hello{Boot: 1, Epoch: 5, Sealed: 1, Acked: 1, Granted: 100})
			f.l.Sync(at, two, &syncproto.Sync{Session: session, DeclaredLast: true, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 60}}})
			f.l.Sync(at, two, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Usage: []syncproto.Usage{found(60)}}})
			f.l.Sync(at, one, &syncproto.Sync{Session: first, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 100}}})
			require.NoError(t, f.l.Check())
			require.Zero(t, f.credits().Compensated, "while returns may be missing")
			back := syncproto.Return{Pool: creditsOf1, Units: c.returned}
			f.l.Sync(at, one, &syncproto.Sync{Session: first, Batch: &syncproto.Batch{Seq: 1, Returns: []syncproto.Return{back}}})
			f.l.Sync(at, one, &syncproto.Sync{Session: first, DeclaredLast: true})
			require.False(t, f.l.Restoring)
			require.NoError(t, f.l.Check())
			require.Equal(t, c.compensated, f.credits().Compensated)
		})
	}
}

// TestVoidsOfAnEdgeUndoNoChargesOfAnother has an edge report voids of charges that it never made, and return
// the units that it would hold then.
func TestVoidsOfAnEdgeUndoNoChargesOfAnother(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	report := func(name string, seq uint64, count int64, returned int64) {
		e, session := f.hello(name, syncproto.Hello{Boot: seq})
		batch := &syncproto.Batch{Seq: 1, Of: e.Epoch, Usage: []syncproto.Usage{found(count)}}
		want := []syncproto.Want{{Pool: creditsOf1, Target: 10, Urgent: true}}
		f.l.Sync(at, e, &syncproto.Sync{Session: session, Wants: want})
		if returned > 0 {
			batch.Returns = []syncproto.Return{{Pool: creditsOf1, Units: returned}}
		}
		f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: batch})
		require.NoError(t, f.l.Check())
	}
	report("one", 1, 5, 0)
	require.EqualValues(t, 5, f.credits().Spent)
	report("two", 2, -5, 5)
	require.EqualValues(t, 5, f.credits().Spent, "clients of the other edge got these answers")
}

// TestAVoidIsBookedBesideVoidsOfOldEpochs has an edge take back in one epoch what it spent in another one.
func TestAVoidIsBookedBesideVoidsOfOldEpochs(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	report := func(name string, boot uint64, count int64) {
		e, session := f.hello(name, syncproto.Hello{Boot: boot})
		f.l.Sync(at, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{{Pool: creditsOf1, Target: 10, Urgent: true}}})
		f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Of: e.Epoch, Usage: []syncproto.Usage{found(count)}}})
		require.NoError(t, f.l.Check())
	}
	report("one", 1, 5)
	report("two", 2, 3)
	report("two", 3, -3)
	require.EqualValues(t, 5, f.credits().Spent)
	e := f.l.Edge("two")
	_, session := f.hello("two", syncproto.Hello{Epoch: e.Epoch, Boot: 3, Sealed: 1, Acked: 1})
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 2, Of: e.Epoch, Returns: []syncproto.Return{{Pool: creditsOf1, Units: 100, Close: true}}}})
	require.NoError(t, f.l.Check())
	report("two", 4, -3)
	require.EqualValues(t, 5, f.credits().Spent, "the edge has taken its charges back already")
	report("one", 5, -5)
	require.Zero(t, f.credits().Spent)
}
