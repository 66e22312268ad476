package ledger_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// listener is an edge that has seen all its news.
type listener struct {
	*spender
	seen uint64
}

// listen has an edge get a lease, and see it.
func listen(t *testing.T, l *ledger.Ledger, name string, boot uint64, target int64, pool syncproto.Pool) *listener {
	s := &listener{spender: newSpender(t, l, name, boot)}
	s.seen = s.want(target, pool).Upto
	return s
}

// news is what the edge has not seen yet. urgent says whether a held message would be answered with it.
func (s *listener) news() (rows []syncproto.Row, urgent bool) {
	urgent = s.l.HasNews(s.e, &syncproto.Sync{Session: s.session, Seen: s.seen})
	r := s.sync(syncproto.Sync{Seen: s.seen})
	s.seen = r.Upto
	return r.Rows, urgent
}

// TestAnEdgeIsToldThatNothingIsLeftOnlyWhenThatIsTrue: it answers 402 by it.
func TestAnEdgeIsToldThatNothingIsLeftOnlyWhenThatIsTrue(t *testing.T) {
	dry := func(s *listener, pool syncproto.Pool) bool {
		s.seen = 0
		s.want(1, pool)
		rows, _ := s.news()
		require.NotEmpty(t, rows)
		return rows[len(rows)-1].Dry
	}
	all := func(t *testing.T, l *ledger.Ledger) *listener {
		one := listen(t, l, "one", 1, 10, creditsOf1)
		for range 5 {
			one.want(10, creditsOf1)
		}
		require.Zero(t, l.Account(1).Credits().Left())
		return one
	}
	t.Run("it holds all", func(t *testing.T) {
		require.True(t, dry(all(t, newLedger(t, 1, 10, "one")), creditsOf1))
	})
	t.Run("some are left", func(t *testing.T) {
		l := newLedger(t, 1, 11, "one")
		one := listen(t, l, "one", 1, 5, creditsOf1)
		require.Positive(t, l.Account(1).Credits().Left())
		require.False(t, dry(one, creditsOf1))
	})
	t.Run("another edge holds some", func(t *testing.T) {
		l := newLedger(t, 1, 10, "one", "two")
		listen(t, l, "two", 2, 1, creditsOf1)
		require.False(t, dry(all(t, l), creditsOf1))
	})
	t.Run("another edge holds all, and this one spent more than its lease", func(t *testing.T) {
		l := newLedger(t, 1, 10, "one", "two")
		one := listen(t, l, "one", 1, 1, creditsOf1)
		two := listen(t, l, "two", 2, 10, creditsOf1)
		for range 5 {
			two.want(10, creditsOf1)
		}
		one.batch([]syncproto.Usage{found(3)})
		rows, _ := one.news()
		for _, row := range rows {
			require.False(t, row.Dry)
		}
	})
	t.Run("an adjustment is being taken", func(t *testing.T) {
		l := newLedger(t, 1, 10, "one")
		one := all(t, l)
		require.NoError(t, l.ChangeCredits(at, 1, -3, ledger.EntryBought, ""))
		require.Positive(t, l.Account(1).Credits().Deducting)
		require.False(t, dry(one, creditsOf1))
	})
	t.Run("a restored ledger does not know", func(t *testing.T) {
		l := newLedger(t, 9, 10, "one", "away")
		l.Restore()
		one := listen(t, l, "one", 1, 1, creditsOf1)
		one.sync(syncproto.Sync{DeclaredLast: true, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: 10}}})
		require.Zero(t, l.Account(1).Credits().Left())
		rows, _ := one.news()
		for _, row := range rows {
			require.False(t, row.Dry)
		}
		newSpender(t, l, "away", 2).sync(syncproto.Sync{DeclaredLast: true})
		rows, _ = one.news()
		require.True(t, rows[len(rows)-1].Dry, "now it does")
	})
	t.Run("a lower volume is exceeded", func(t *testing.T) {
		l := newLedger(t, 1, 10, "one")
		volume := volumeOf(syncproto.Month(at))
		one := listen(t, l, "one", 1, 5, volume)
		l.SetPlan(at, ledger.Plan{ID: "scale", MonthlyVolume: 3})
		rows, _ := one.news()
		require.True(t, rows[len(rows)-1].Dry)
		require.True(t, rows[len(rows)-1].Recall)
	})
}

// TestNewsAreOfWhatChanged: an edge hears of a recall at once, of a lower balance with its next message, and
// of nothing when nothing changed.
func TestNewsAreOfWhatChanged(t *testing.T) {
	l := newLedger(t, 1, 20, "one", "two")
	one := listen(t, l, "one", 1, 5, creditsOf1)
	two := listen(t, l, "two", 2, 5, creditsOf1)
	rows, _ := one.news()
	require.Empty(t, rows, "what another edge holds changes no balance")

	two.batch([]syncproto.Usage{found(2)})
	rows, urgent := one.news()
	require.Len(t, rows, 1)
	require.EqualValues(t, 18, rows[0].Balance)
	require.False(t, urgent)
	rows, _ = two.news()
	for _, row := range rows {
		require.NotEqual(t, creditsOf1, row.Pool, "it knows what it spent")
	}
	rows, _ = one.news()
	require.Empty(t, rows)

	require.NoError(t, l.ChangeAccount(at, 1, "scale", true))
	rows, urgent = one.news()
	require.Len(t, rows, 1)
	require.True(t, rows[0].Recall)
	require.True(t, urgent)
	require.NoError(t, l.ChangeAccount(at, 1, "scale", true))
	rows, urgent = one.news()
	require.Empty(t, rows, "it is recalled already")
	require.False(t, urgent)
	require.NoError(t, l.ChangeAccount(at, 1, "scale", false))
	rows, urgent = one.news()
	require.Len(t, rows, 1)
	require.False(t, rows[0].Recall)
	require.False(t, urgent, "the end of a recall can wait")
}

// TestCreditsAfterNoneAreUrgentNews: requests are refused until the edge hears of them.
func TestCreditsAfterNoneAreUrgentNews(t *testing.T) {
	l := newLedger(t, 1, 1, "one")
	one := listen(t, l, "one", 1, 1, creditsOf1)
	require.NoError(t, l.ChangeCredits(at, 1, 10, ledger.EntryBought, ""))
	rows, urgent := one.news()
	require.True(t, urgent)
	require.False(t, rows[len(rows)-1].Dry)
	require.NoError(t, l.ChangeCredits(at, 1, -10, ledger.EntryBought, ""))
	rows, urgent = one.news()
	require.False(t, urgent, "that nothing is left is no hurry")
	require.True(t, rows[len(rows)-1].Dry)
}

// TestVolumeUsedElsewhereIsNoNews: edges show a balance of credits alone.
func TestVolumeUsedElsewhereIsNoNews(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two")
	volume := volumeOf(syncproto.Month(at))
	one := listen(t, l, "one", 1, 5, volume)
	two := listen(t, l, "two", 2, 5, volume)
	rows, _ := two.news()
	for _, row := range rows {
		require.Zero(t, row.Balance)
	}
	two.batch([]syncproto.Usage{found(2)})
	rows, _ = one.news()
	require.Empty(t, rows)
}

// TestASessionHearsOfItsOwnEpochAlone, and not of a lease that it closed, when others change the pool.
func TestASessionHearsOfItsOwnEpochAlone(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two")
	old := listen(t, l, "one", 1, 5, creditsOf1)
	two := listen(t, l, "two", 2, 5, creditsOf1)
	next := &listener{spender: newSpender(t, l, "one", 3)}
	require.Greater(t, next.epoch, old.epoch)
	two.batch([]syncproto.Usage{found(2)})
	rows, _ := next.news()
	require.Empty(t, rows)

	next.seen = next.want(3, creditsOf1).Upto
	next.batch([]syncproto.Usage{found(4)}, syncproto.Return{Pool: creditsOf1, Close: true})
	next.news()
	two.batch([]syncproto.Usage{found(1)})
	rows, _ = next.news()
	require.Empty(t, rows, "a closed lease is kept for what was spent beyond it")
}

// TestAClosedLeaseIsNotKept unless something was spent beyond it.
func TestAClosedLeaseIsNotKept(t *testing.T) {
	leases := func(l *ledger.Ledger) (n int) {
		for _, line := range l.Stored() {
			if strings.HasPrefix(line, "lease ") {
				n++
			}
		}
		return n
	}
	for beyond, kept := range map[int64]int{0: 0, 1: 1} {
		l := newLedger(t, 1, 100, "one")
		one := newSpender(t, l, "one", 1)
		one.want(5, creditsOf1)
		one.want(100, volumeOf(syncproto.Month(at)))
		before := leases(l)
		one.batch([]syncproto.Usage{found(5 + beyond)}, syncproto.Return{Pool: creditsOf1, Close: true})
		require.Equal(t, before-1+kept, leases(l))
	}
}

// TestLiveEdgesAreCountedOnceASecond.
func TestLiveEdgesAreCountedOnceASecond(t *testing.T) {
	l := newLedger(t, 1, 100, "one", "two")
	newSpender(t, l, "one", 1)
	require.EqualValues(t, 1, l.Live(at))
	newSpender(t, l, "two", 2)
	require.EqualValues(t, 1, l.Live(at+999))
	require.EqualValues(t, 2, l.Live(at+1000))
	require.EqualValues(t, 2, l.Live(at), "the clock was set back")
}

// TestAGenerationIsTakenWholeOrNot: a holder is noted with it, ids leap and edges declare after a restore
// alone, and an error on the way is the caller's.
func TestAGenerationIsTakenWholeOrNot(t *testing.T) {
	for _, restored := range []bool{false, true} {
		l, db, commit := onFile(t)
		require.NoError(t, commit())
		_, err := db.Exec(`INSERT INTO account (name, email, plan, suspended, created_at) VALUES ('a', 'a@example.com', 'scale', 0, 0)`)
		require.NoError(t, err)
		state := func() (last int64, declared bool) {
			require.NoError(t, db.QueryRow(`SELECT seq FROM sqlite_sequence WHERE name = 'account'`).Scan(&last))
			require.NoError(t, db.QueryRow(`SELECT declared FROM node`).Scan(&declared))
			return last, declared
		}
		_, err = db.Exec(`UPDATE node SET declared = 1`)
		require.NoError(t, err)
		before, _ := state()
		by := ledger.Holder{Host: "centre", PID: 7, Since: 5, Heard: 6}
		generation, err := ledger.TakeGeneration(t.Context(), db, 10, restored, by)
		require.NoError(t, err)
		require.Equal(t, l.Generation+11, generation)
		after, declared := state()
		require.Equal(t, restored, after > before)
		require.Equal(t, !restored, declared)
		loaded, err := ledger.Load(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, restored, loaded.Restoring)
		require.Equal(t, generation, loaded.Generation)
		holder, err := ledger.ReadHolder(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, "centre", holder.Host)
		require.EqualValues(t, 7, holder.PID)
		for _, of := range []uint64{generation - 1, generation + 1, generation} {
			require.NoError(t, ledger.NoteEnd(t.Context(), db, of))
			holder, err = ledger.ReadHolder(t.Context(), db)
			require.NoError(t, err)
			require.Equal(t, of == generation, holder.PID == 0, "only its own end is noted")
		}
		heard := holder.Heard
		generation, err = ledger.TakeGeneration(t.Context(), db, 10, restored, ledger.Holder{Host: "slow", Heard: heard - 10})
		require.NoError(t, err)
		holder, err = ledger.ReadHolder(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, heard+1, holder.Heard, "a sign of life, by whichever clock")

		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = ledger.TakeGeneration(cancelled, db, 10, restored, by)
		require.Error(t, err)
		for _, refuse := range []string{
			`CREATE TRIGGER refuse BEFORE UPDATE OF generation ON writer BEGIN SELECT raise(abort, 'no'); END`,
			`CREATE TRIGGER refuse BEFORE UPDATE OF declared ON node BEGIN SELECT raise(abort, 'no'); END`,
			`CREATE TRIGGER refuse BEFORE UPDATE OF host ON writer BEGIN SELECT raise(abort, 'no'); END`,
		} {
			_, err = db.Exec(refuse)
			require.NoError(t, err)
			_, err = ledger.TakeGeneration(t.Context(), db, 10, true, by)
			require.Error(t, err, refuse)
			_, err = db.Exec(`DROP TRIGGER refuse`)
			require.NoError(t, err)
			again, err := ledger.Load(t.Context(), db)
			require.NoError(t, err)
			require.Equal(t, generation, again.Generation, "nothing of it was kept")
		}
	}
}

// TestNewsForAnEdgeThatIsAwayTakeNoMoreMemory, however often others spend: it may be away for months. It gets the newest.
func TestNewsForAnEdgeThatIsAwayTakeNoMoreMemory(t *testing.T) {
	const charges = 500
	l := newLedger(t, 1, 10_000, "away", "busy")
	away, busy := newSpender(t, l, "away", 1), newSpender(t, l, "busy", 2)
	away.want(5, creditsOf1)
	busy.want(charges, creditsOf1)
	for range charges {
		busy.batch([]syncproto.Usage{{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.LLPs, Outcome: charge.Found, Count: 1}})
	}
	require.Less(t, away.e.News(), 100)
	rows := away.sync(syncproto.Sync{}).Rows
	require.Len(t, rows, 1)
	require.EqualValues(t, 10_000-charges, rows[0].Balance)
}
