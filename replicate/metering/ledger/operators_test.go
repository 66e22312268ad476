package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// spender is an edge that says what it wants and reports, message by message.
type spender struct {
	t       *testing.T
	l       *ledger.Ledger
	e       *ledger.Edge
	now     int64
	session uint64
	epoch   uint64
	seq     uint64
}

func newSpender(t *testing.T, l *ledger.Ledger, name string, boot uint64) *spender {
	e := l.Edge(name)
	hello := l.Hello(at, e, &syncproto.Hello{Boot: boot})
	return &spender{t: t, l: l, e: e, now: at, session: hello.Session, epoch: hello.Epoch}
}

func (s *spender) sync(m syncproto.Sync) *syncproto.Reply {
	m.Session = s.session
	r := s.l.Sync(s.now, s.e, &m)
	require.NoError(s.t, s.l.Check())
	return r
}

func (s *spender) want(target int64, pools ...syncproto.Pool) *syncproto.Reply {
	var wants []syncproto.Want
	for _, p := range pools {
		wants = append(wants, syncproto.Want{Pool: p, Target: target, Urgent: true})
	}
	return s.sync(syncproto.Sync{Wants: wants})
}

func (s *spender) batch(usage []syncproto.Usage, returns ...syncproto.Return) *syncproto.Reply {
	s.seq++
	return s.sync(syncproto.Sync{Batch: &syncproto.Batch{Seq: s.seq, Of: s.epoch, Usage: usage, Returns: returns}})
}

func creditsOf(account int64) syncproto.Pool {
	return syncproto.Pool{Kind: syncproto.Credits, Subject: account}
}

// TestOperatorsSeeWhatIsOut has an edge hold credits of two accounts, and volume, in two epochs.
func TestOperatorsSeeWhatIsOut(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	require.NoError(t, l.AddAccount(2, "scale"))
	require.NoError(t, l.ChangeCredits(at, 2, 100, ledger.EntryBought, ""))
	require.Zero(t, l.Edge("one").Applied(), "it never came")
	one := newSpender(t, l, "one", 1)
	one.want(10, creditsOf(1), creditsOf(2), volumeOf(syncproto.Month(at)))
	one.batch([]syncproto.Usage{found(4)})
	require.EqualValues(t, 1, one.e.Applied())
	all, stale := l.Out(one.e)
	require.EqualValues(t, 16, all, "credits alone")
	require.Zero(t, stale)
	two := newSpender(t, l, "one", 2)
	two.want(5, creditsOf(1), creditsOf(2))
	all, stale = l.Out(one.e)
	require.EqualValues(t, 26, all)
	require.EqualValues(t, 16, stale)
	require.Zero(t, one.e.Applied(), "of its newest epoch")
	require.Equal(t, syncproto.Superseded, l.Hello(at, one.e, &syncproto.Hello{Boot: 1, Epoch: one.epoch, Sealed: 1}).Status)
	require.Zero(t, one.e.Applied(), "also while an older one has the session")
	require.NoError(t, l.Retire(at, "one", true))
	all, stale = l.Out(one.e)
	require.EqualValues(t, 10, all, "the rest is lost")
	require.Zero(t, stale)
}

func TestABalanceIsWhatCouldStillBeTaken(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	require.Zero(t, l.Balance(2), "no such account")
	one := newSpender(t, l, "one", 1)
	one.want(40, creditsOf(1))
	one.batch([]syncproto.Usage{found(5)})
	require.EqualValues(t, 95, l.Balance(1), "60 left, 35 leased")
	require.NoError(t, l.ChangeCredits(at, 1, -80, ledger.EntryBought, ""))
	require.EqualValues(t, 15, l.Balance(1), "20 wait for the lease")
	require.NoError(t, l.ChangeCredits(at, 1, 3, ledger.EntryCompensated, ""))
	require.NoError(t, l.ChangeCredits(at, 1, 4, ledger.EntryCompensated, ""))
	require.EqualValues(t, 22, l.Balance(1))
}

func TestAnEdgeIsLiveForAMinute(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	e := newSpender(t, l, "one", 1).e
	for age, live := range map[int64]bool{-60_000: false, -59_999: true, 0: true, 59_999: true, 60_000: false} {
		require.Equal(t, live, e.IsLive(at+age), age)
	}
}

// TestALeaseIsExtendedAfterAnHour, not at every want: each extension is a row to write.
func TestALeaseIsExtendedAfterAnHour(t *testing.T) {
	const hour = 60 * 60 * 1000
	one := newSpender(t, newLedger(t, 1, 100, "one"), "one", 1)
	row := func(after int64) syncproto.Row {
		one.now = at + after
		rows := one.want(10, creditsOf(1)).Rows
		require.Len(t, rows, 1)
		require.EqualValues(t, 100, rows[0].Balance, "left and leased")
		return rows[0]
	}
	require.EqualValues(t, at+24*hour, row(0).UntilMillis)
	require.EqualValues(t, at+24*hour, row(hour).UntilMillis)
	require.EqualValues(t, at+25*hour+1, row(hour+1).UntilMillis)
}

// TestSumsOfGrantsOnlyGrowInARestore: an older Hello that was delayed does not take back what a newer
// one has shown, and would begin another restore when the newer one comes again.
func TestSumsOfGrantsOnlyGrowInARestore(t *testing.T) {
	l := newLedger(t, 9, 100, "one")
	l.Restore()
	e := l.Edge("one")
	hello := func(granted int64, generation uint64) *syncproto.Reply {
		return l.Hello(at, e, &syncproto.Hello{Boot: 1, Epoch: 5, Granted: granted, Generation: generation})
	}
	hello(20, 9)
	r := hello(5, 9)
	declared := []syncproto.Declared{{Pool: creditsOf1, Granted: 20}}
	l.Sync(at, e, &syncproto.Sync{Session: r.Session, Declared: declared, DeclaredLast: true})
	require.False(t, l.Restoring)
	require.Equal(t, syncproto.OK, hello(20, 9).Status)
	require.False(t, l.Restoring, "the edge shows nothing new")
	hello(20, 10)
	require.True(t, l.Restoring, "it has heard a later writer")
}

// TestACopyOfAnEndedEpochThatShowsNoMoreThanIsKnown gets an epoch of its own, and the ledger was not
// restored.
func TestACopyOfAnEndedEpochThatShowsNoMoreThanIsKnown(t *testing.T) {
	l := newLedger(t, 9, 100, "one")
	first := newSpender(t, l, "one", 1)
	first.batch([]syncproto.Usage{found(1)})
	next := newSpender(t, l, "one", 2)
	l.Sync(at, next.e, &syncproto.Sync{Session: next.session, Batch: &syncproto.Batch{Seq: 1, Of: first.epoch}})
	copied := &syncproto.Hello{Boot: 3, Epoch: first.epoch, Sealed: 1, Acked: 1}
	r := l.Hello(at, first.e, copied)
	require.Equal(t, syncproto.Forked, r.Status)
	require.Greater(t, r.Epoch, next.epoch)
	require.False(t, l.Restoring)
}

func TestARetiredCopyBeginsNoRestore(t *testing.T) {
	l := newLedger(t, 9, 100, "one")
	first := newSpender(t, l, "one", 1)
	next := newSpender(t, l, "one", 2)
	l.Sync(at, next.e, &syncproto.Sync{Session: next.session, Batch: &syncproto.Batch{Seq: 1, Of: first.epoch}})
	require.NoError(t, l.Retire(at, "one", false))
	l.Hello(at, first.e, &syncproto.Hello{Boot: 3, Epoch: first.epoch, Sealed: 2, Acked: 2})
	require.False(t, l.Restoring)
}
