package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestWhatAHelloChangesIsKept: an epoch that forked, that was adopted, or that has ended would else be as
// before once the writer starts again.
func TestWhatAHelloChangesIsKept(t *testing.T) {
	for name, hello := range map[string]func(l *ledger.Ledger, one *spender){
		"forked":  func(l *ledger.Ledger, one *spender) { l.Hello(at, one.e, &syncproto.Hello{Boot: 2, Epoch: one.epoch}) },
		"adopted": func(l *ledger.Ledger, one *spender) { l.Hello(at, one.e, &syncproto.Hello{Boot: 2, Epoch: 77}) },
		"ended": func(l *ledger.Ledger, one *spender) {
			next := l.Hello(at, one.e, &syncproto.Hello{Boot: 2})
			l.Sync(at, one.e, &syncproto.Sync{Session: next.Session, Batch: &syncproto.Batch{Seq: 1, Of: one.epoch}})
		},
		"copied": func(l *ledger.Ledger, one *spender) {
			next := l.Hello(at, one.e, &syncproto.Hello{Boot: 2})
			l.Sync(at, one.e, &syncproto.Sync{Session: next.Session, Batch: &syncproto.Batch{Seq: 1, Of: one.epoch}})
			l.Hello(at, one.e, &syncproto.Hello{Boot: 3, Epoch: one.epoch, Sealed: 5})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, db, commit := onFile(t)
			one := newSpender(t, l, "one", 1)
			one.batch(nil)
			require.NoError(t, commit())
			before := l.Stored()
			hello(l, one)
			require.NotEqual(t, before, l.Stored())
			require.NoError(t, commit())
			loaded, err := ledger.Load(t.Context(), db)
			require.NoError(t, err)
			require.Equal(t, l.Stored(), loaded.Stored())
		})
	}
}

// TestAnEpochThatIsNotKnownBeginsARestore: the ledger lacks what gave it.
func TestAnEpochThatIsNotKnownBeginsARestore(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two")
	l.Hello(at, l.Edge("one"), &syncproto.Hello{Boot: 1, Epoch: 5})
	require.True(t, l.Restoring)
	require.Equal(t, []string{"one", "two"}, l.Awaited())
}

// TestANewEpochIsDeclaredAgain in a restore: the edge may hold leases of one that is not known.
func TestANewEpochIsDeclaredAgain(t *testing.T) {
	l := newLedger(t, 9, 100, "one", "away")
	l.Restore()
	one := newSpender(t, l, "one", 1)
	one.sync(syncproto.Sync{DeclaredLast: true})
	require.Equal(t, []string{"away"}, l.Awaited())
	next := newSpender(t, l, "one", 2)
	require.Equal(t, []string{"away", "one"}, l.Awaited())
	next.sync(syncproto.Sync{DeclaredLast: true})
	require.Equal(t, []string{"away"}, l.Awaited())
}

// TestAClosedLeaseIsNoNews, although its edge has not seen it yet.
func TestAClosedLeaseIsNoNews(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	one.want(5, creditsOf1)
	for _, row := range one.batch(nil, syncproto.Return{Pool: creditsOf1, Close: true}).Rows {
		require.NotEqual(t, creditsOf1, row.Pool)
	}
	require.EqualValues(t, 100, l.Account(1).Credits().Left())
}

func TestAnAccountIsChangedToAPlanThatIsThere(t *testing.T) {
	l := newLedger(t, 1, 100)
	require.ErrorIs(t, l.ChangeAccount(at, 1, "none", false), ledger.ErrNoPlan)
	require.ErrorIs(t, l.ChangeAccount(at, 2, "scale", false), ledger.ErrNoAccount)
	require.Equal(t, "scale", l.Account(1).Plan)
	require.ErrorIs(t, l.Retire(at, "one", false), ledger.ErrNoEdge)
}

// TestAnEpochThatEndsByALostBatchIsKept, and a session of an older one ends no newer one.
func TestAnEpochThatEndsByALostBatchIsKept(t *testing.T) {
	l, db, commit := onFile(t)
	one := newSpender(t, l, "one", 1)
	require.NoError(t, commit())
	one.batch(nil)
	require.Greater(t, one.e.Epoch, one.epoch)
	require.NoError(t, commit())
	loaded, err := ledger.Load(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, l.Stored(), loaded.Stored())

	newest := newSpender(t, l, "one", 2).epoch
	back := l.Hello(at, one.e, &syncproto.Hello{Boot: 1, Epoch: one.epoch, Sealed: 1})
	require.Equal(t, syncproto.Superseded, back.Status)
	one.session = back.Session
	one.batch(nil)
	require.Equal(t, newest, one.e.Epoch)
}

// TestAnOriginalGoesOnBesideItsCopy, although the copy reports what it did before the fork.
func TestAnOriginalGoesOnBesideItsCopy(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	one.batch([]syncproto.Usage{found(1)})
	copied := l.Hello(at, one.e, &syncproto.Hello{Boot: 2, Epoch: one.epoch})
	require.Equal(t, syncproto.Forked, copied.Status)
	l.Sync(at, one.e, &syncproto.Sync{Session: copied.Session, Batch: &syncproto.Batch{Seq: 1, Of: one.epoch, Usage: []syncproto.Usage{found(1)}}})
	back := l.Hello(at, one.e, &syncproto.Hello{Boot: 3, Epoch: one.epoch, Sealed: 1})
	require.Equal(t, syncproto.Superseded, back.Status)
}
