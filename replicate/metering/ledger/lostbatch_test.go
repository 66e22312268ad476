package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestALostBatchLeavesNothingLeased has an edge that lost reported batches resend what it has to a ledger
// from a backup. What they had spent and returned must not stay leased to it, where nobody can spend it.
func TestALostBatchLeavesNothingLeased(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	for range 20 {
		f.serve("one", n)
	}
	f.l = newLedger(t, 1_000, 100, "one")
	f.l.Restore()
	clear(n.disk.archive)
	f.exchange("one", n, 60)
	require.Empty(t, f.l.Awaited())
	f.serve("one", n)
	held := lease.NewHeadroom()
	n.state.AddHeadroom(&held, at, 0)
	require.Equal(t, held.Credits, f.credits().Leased)
	require.Zero(t, f.stale("one"))
}

// TestCreditsBeyondTheMostCanBeTaken takes what a false claim of an edge gave to an account.
func TestCreditsBeyondTheMostCanBeTaken(t *testing.T) {
	const most = 1 << 46
	l := newLedger(t, 1, most)
	require.NoError(t, l.ChangeCredits(at, 1, most, ledger.EntryCompensated, ""))
	require.ErrorIs(t, l.ChangeCredits(at, 1, 1, ledger.EntryBought, ""), ledger.ErrAmount)
	require.NoError(t, l.ChangeCredits(at, 1, -most, ledger.EntryBought, ""))
	require.Equal(t, int64(most), l.Account(1).Credits().Left())
}

// TestCreditsThatSomebodyElseGrantedAreNotLeasedTwice has an edge take grants from a stranger, and spend or
// return some of them, before it greets its writer: only what it still holds is leased to it.
func TestCreditsThatSomebodyElseGrantedAreNotLeasedTwice(t *testing.T) {
	for name, recall := range map[string]bool{"spent": false, "returned": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, "one")
			n := f.start(emptyDisk())
			f.serve("one", n)
			m := n.state.Sync(at)
			rows := []syncproto.Row{{Version: m.Seen + 1000, Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Granted: 90, UntilMillis: at + 1000, Recall: recall}}
			n.state.Apply(at, &syncproto.Reply{Status: syncproto.OK, Session: m.Session, Epoch: n.state.Epoch(), Generation: 1, Live: 1,
				Applied: 1, Since: m.Seen, Upto: m.Seen + 1000, Rows: rows, NowMillis: at}, true)
			for range 80 {
				f.ask(n)
			}
			f.exchange("one", n, 60)
			f.serve("one", n)
			held := lease.NewHeadroom()
			n.state.AddHeadroom(&held, at, 0)
			require.Equal(t, held.Credits, f.credits().Leased)
			require.Zero(t, f.stale("one"))
		})
	}
}
