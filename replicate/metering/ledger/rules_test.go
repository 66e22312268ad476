package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

func TestAnEndedLeaseIsExtendedEvenWhenNothingIsLeft(t *testing.T) {
	now, l := at, newLedger(t, 1, 10, "one")
	e := l.Edge("one")
	session := l.Hello(now, e, &syncproto.Hello{Boot: 1, NowMillis: now}).Session
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	want := func() syncproto.Row {
		r := l.Sync(now, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{{Pool: credits, Target: 100, Urgent: true}}})
		require.Len(t, r.Rows, 1)
		return r.Rows[0]
	}
	for want().Granted < 10 {
	}
	require.Zero(t, l.Account(1).Credits().Left())
	now += 25 * 60 * 60 * 1000
	require.Greater(t, want().UntilMillis, now, "the edge may spend what it holds")
}

// TestAVoidedUnitMayBeSpentAgain reports in one batch a charge and, in another hour, the void of
// the charge before it.
func TestAVoidedUnitMayBeSpentAgain(t *testing.T) {
	now, l := at, newLedger(t, 1, 1, "one")
	e := l.Edge("one")
	hello := l.Hello(now, e, &syncproto.Hello{Boot: 1, NowMillis: now})
	usage := func(hour int32, count int64) syncproto.Usage {
		return syncproto.Usage{Account: 1, Key: 1, Hour: hour, Endpoint: charge.Companies, Outcome: charge.Found, Count: count}
	}
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	sync := func(seq uint64, rows ...syncproto.Usage) {
		l.Sync(now, e, &syncproto.Sync{
			Session: hello.Session, Wants: []syncproto.Want{{Pool: credits, Target: 1, Urgent: true}},
			Batch: &syncproto.Batch{Seq: seq, Of: hello.Epoch, Usage: rows},
		})
		require.NoError(t, l.Check())
	}
	hour := syncproto.Hour(now)
	failed := usage(hour, 1)
	failed.Outcome = charge.Failed
	sync(1, failed)
	sync(2, usage(hour, 1))
	require.EqualValues(t, 1, l.Account(1).Credits().Spent)
	sync(3, usage(hour-1, 1), usage(hour, -1))
	require.EqualValues(t, 1, l.Account(1).Credits().Spent, "it is debited")
	require.Zero(t, l.Account(1).Credits().Left())
}

// TestAVoidOfAChargeThatWasNotDebitedRestoresNothing has an edge report charges beyond its
// lease, as an older copy of its disk would, next to those of another edge.
func TestAVoidOfAChargeThatWasNotDebitedRestoresNothing(t *testing.T) {
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	for name, closed := range map[string][]syncproto.Return{"leased": nil, "closed": {{Pool: credits, Close: true}}} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 1, 3, "one", "two")
			report := func(name string) func(count int64, returns ...syncproto.Return) {
				e := l.Edge(name)
				hello := l.Hello(at, e, &syncproto.Hello{Boot: 1, NowMillis: at})
				l.Sync(at, e, &syncproto.Sync{Session: hello.Session, Wants: []syncproto.Want{{Pool: credits, Target: 1, Urgent: true}}})
				seq := uint64(0)
				return func(count int64, returns ...syncproto.Return) {
					seq++
					batch := &syncproto.Batch{Seq: seq, Of: hello.Epoch, Returns: returns}
					if count != 0 {
						batch.Usage = []syncproto.Usage{{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: count}}
					}
					l.Sync(at, e, &syncproto.Sync{Session: hello.Session, Batch: batch})
					require.NoError(t, l.Check())
				}
			}
			one, two := report("one"), report("two")
			pool := l.Account(1).Credits()
			require.EqualValues(t, 2, pool.Leased)
			two(1)
			one(3)
			require.EqualValues(t, 2, pool.Spent, "two of four charges were beyond a lease")
			one(0, closed...)
			one(-1)
			one(-1)
			require.EqualValues(t, 2, pool.Spent, "those two are voided")
			one(-1)
			require.EqualValues(t, 1, pool.Spent, "the other edge's charge")
		})
	}
}

// TestAnEpochThatItsDiskLeftTakesNoMoreBatches restores a ledger from a backup that lacks two
// batches of an epoch, and continues an older copy of the disk in another epoch. A copy of that
// copy, made before it continued, can't be recognised by its sequence.
func TestAnEpochThatItsDiskLeftTakesNoMoreBatches(t *testing.T) {
	for _, retired := range []bool{false, true} {
		l := newLedger(t, 9, 10, "one")
		e := l.Edge("one")
		first := l.Hello(at, e, &syncproto.Hello{Boot: 1})
		use := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: 1}
		l.Sync(at, e, &syncproto.Sync{Session: first.Session, Batch: &syncproto.Batch{Seq: 1, Of: first.Epoch, Usage: []syncproto.Usage{use}}})
		if retired {
			require.NoError(t, l.Retire(at, "one", false))
		} else {
			l.Restore()
		}
		copied := l.Hello(at, e, &syncproto.Hello{Boot: 2, Epoch: first.Epoch + 5, Sealed: 1, Acked: 1})
		l.Sync(at, e, &syncproto.Sync{Session: copied.Session, Batch: &syncproto.Batch{Seq: 1, Of: first.Epoch, Usage: []syncproto.Usage{use}}})
		l.Sync(at, e, &syncproto.Sync{Session: copied.Session, DeclaredLast: true})
		before := l.Account(1).Credits().Spent + l.Account(1).Credits().Lost
		r := l.Hello(at, e, &syncproto.Hello{Boot: 3, Epoch: first.Epoch, Sealed: 2, Acked: 1})
		if retired {
			require.Equal(t, syncproto.Retired, r.Status)
			require.Greater(t, r.Applied, uint64(2), "its batches are not taken")
			l.Sync(at, e, &syncproto.Sync{Session: r.Session, Batch: &syncproto.Batch{Seq: 2, Of: first.Epoch, Usage: []syncproto.Usage{use}}})
		} else {
			require.Equal(t, syncproto.Forked, r.Status)
			require.Greater(t, r.Epoch, copied.Epoch)
		}
		require.Equal(t, before, l.Account(1).Credits().Spent+l.Account(1).Credits().Lost)
		require.NoError(t, l.Check())
	}
}

// TestARepeatedHelloOfAnEndedEpochIsNoCopy repeats a Hello of an edge that has settled its epoch
// since, and voided one of its charges in the next epoch.
func TestARepeatedHelloOfAnEndedEpochIsNoCopy(t *testing.T) {
	l := newLedger(t, 9, 10, "one")
	e := l.Edge("one")
	use := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: 1}
	back := use
	back.Count = -1
	first := l.Hello(at, e, &syncproto.Hello{Boot: 1})
	l.Sync(at, e, &syncproto.Sync{Session: first.Session, Batch: &syncproto.Batch{Seq: 1, Of: first.Epoch, Usage: []syncproto.Usage{use}}})
	l.Hello(at, e, &syncproto.Hello{Boot: 9}) // of an earlier run
	settled := &syncproto.Hello{Boot: 2, Epoch: first.Epoch, Sealed: 1, Acked: 1}
	require.Equal(t, syncproto.Superseded, l.Hello(at, e, settled).Status)
	next := l.Hello(at, e, &syncproto.Hello{Boot: 2})
	l.Sync(at, e, &syncproto.Sync{Session: next.Session, Batch: &syncproto.Batch{Seq: 1, Of: first.Epoch, Usage: []syncproto.Usage{back}}})
	require.Equal(t, syncproto.Superseded, l.Hello(at, e, settled).Status)
	require.Equal(t, syncproto.OK, l.Hello(at, e, &syncproto.Hello{Boot: 2, Epoch: next.Epoch, Sealed: 1, Acked: 1}).Status)
	// A copy that knows more than this ledger still shows that the ledger was restored.
	require.False(t, l.Restoring)
	require.Equal(t, syncproto.Forked, l.Hello(at, e, &syncproto.Hello{Boot: 3, Epoch: first.Epoch, Sealed: 2, Acked: 2}).Status)
	require.True(t, l.Restoring)
}

func TestADelayedFirstHelloSupersedesNothing(t *testing.T) {
	now := int64(1_790_000_000_000)
	l := ledger.New(1)
	require.NoError(t, l.AddEdge("one"))
	e := l.Edge("one")
	first := l.Hello(now, e, &syncproto.Hello{Boot: 7, NowMillis: now})
	batch := &syncproto.Batch{Seq: 1, Of: first.Epoch, Unresolved: []syncproto.Unresolved{{ID: "r-1", Account: 1, Key: 1}}}
	require.EqualValues(t, 1, l.Sync(now, e, &syncproto.Sync{Session: first.Session, Batch: batch}).Applied)
	l.Hello(now, e, &syncproto.Hello{Boot: 7, NowMillis: now})
	again := l.Hello(now, e, &syncproto.Hello{Boot: 7, Epoch: first.Epoch, Sealed: 1, Acked: 1, NowMillis: now})
	require.Equal(t, syncproto.OK, again.Status)
	other := l.Hello(now, e, &syncproto.Hello{Boot: 8, NowMillis: now})
	require.Greater(t, other.Epoch, first.Epoch, "an empty directory")
}

func TestLateUsageOfAnEpochThatTheRestoreLost(t *testing.T) {
	now, l := at, newLedger(t, 9, 10, "one")
	l.Restore()
	e := l.Edge("one")
	hello := l.Hello(now, e, &syncproto.Hello{Boot: 1, Epoch: 5, Sealed: 1, Acked: 1, Granted: 4})
	require.True(t, hello.Declare)
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	late := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(now), Endpoint: charge.Companies, Outcome: charge.Found, Count: 1}
	l.Sync(now, e, &syncproto.Sync{Session: hello.Session, Batch: &syncproto.Batch{Seq: 1, Of: 4, Usage: []syncproto.Usage{late}}})
	l.Sync(now, e, &syncproto.Sync{Session: hello.Session, Declared: []syncproto.Declared{{Pool: credits, Granted: 4}}, DeclaredLast: true})
	require.NoError(t, l.Check())
	require.EqualValues(t, 1, l.Account(1).Credits().Spent)
	require.EqualValues(t, 4, l.Account(1).Credits().Leased, "all grants of the edge's current epoch")
}

// TestADelayedHelloDeclaresNothing delays a first Hello until after a restore, so that it
// arrives between the edge's own Hello and its declaration.
func TestADelayedHelloDeclaresNothing(t *testing.T) {
	now := int64(1_790_000_000_000)
	l := ledger.New(9)
	require.NoError(t, l.AddEdge("one"))
	l.Restore()
	e := l.Edge("one")
	require.True(t, l.Hello(now, e, &syncproto.Hello{Boot: 1, Epoch: 5, Granted: 4, Generation: 8}).Declare)
	for _, boot := range []uint64{1, 2} { // repeated, and from another run
		require.True(t, l.Hello(now, e, &syncproto.Hello{Boot: boot}).Declare)
		require.True(t, l.Restoring)
	}
	hello := l.Hello(now, e, &syncproto.Hello{Boot: 3})
	l.Sync(now, e, &syncproto.Sync{Session: hello.Session, DeclaredLast: true})
	require.False(t, l.Restoring, "it declared that it holds nothing")
}

func TestSessionNumbersDifferBetweenRuns(t *testing.T) {
	session := func(begin uint64) uint64 {
		l := ledger.New(3)
		l.BeginSessions(begin)
		require.NoError(t, l.AddEdge("one"))
		return l.Hello(1_790_000_000_000, l.Edge("one"), &syncproto.Hello{Boot: 1}).Session
	}
	require.NotEqual(t, session(7), session(1<<31+9))
	require.EqualValues(t, 3, session(1<<31)>>24, "the generation")
}

// TestRatesOfManyEdgesFitAReply has two edges count more requests of an account in a minute
// than can be: the reply to a third, which adds them up, must be readable.
func TestRatesOfManyEdgesFitAReply(t *testing.T) {
	f := newFixture(t, 1, "one", "two", "three")
	n := f.start(emptyDisk())
	f.serve("three", n)
	for _, name := range []string{"one", "two"} {
		e := f.l.Edge(name)
		session := f.l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
		f.l.Sync(at, e, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: 1, Minute: syncproto.Minute(at), Count: 1<<47 - 1}}})
	}
	r := f.exchange("three", n, 1)
	require.Len(t, r.Others, 1)
	_, err := syncproto.DecodeReply(r.Encode())
	require.NoError(t, err)
}
