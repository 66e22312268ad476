package meter_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// TestAWriterThatIsAwayIsNotFlooded: both lanes pause after a failure, with and without a session, and no
// request wakes them early.
func TestAWriterThatIsAwayIsNotFlooded(t *testing.T) {
	for _, before := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newBooks(t, 10)
			e := openOn(t, t.TempDir(), b)
			exchanged(t, e, before)
			var messages atomic.Int64
			b.before = func(context.Context, syncproto.Message) error {
				messages.Add(1)
				return errors.New("connection refused")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			require.NoError(t, e.Run(ctx))
			require.Positive(t, messages.Load())
			require.LessOrEqual(t, messages.Load(), int64(6), "two lanes, and the last report")
			require.NoError(t, e.Close())
		})
	}
}

// TestAWriterThatIsAwayIsNotFloodedAtTheEnd by the attempts to report what is left.
func TestAWriterThatIsAwayIsNotFloodedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t, 10)
		m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, WaitLimit: 10 * time.Second, LastReport: 250 * time.Millisecond})
		require.NoError(t, err)
		defer m.Close()
		e := &edge{Meter: m}
		granted(t, e)
		require.Equal(t, "", e.found(bookedAccount))
		var messages atomic.Int64
		b.before = func(context.Context, syncproto.Message) error {
			messages.Add(1)
			return errors.New("connection refused")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, e.Run(ended))
		require.Positive(t, messages.Load())
		require.LessOrEqual(t, messages.Load(), int64(5), "one each tenth of a second")
	})
}

// TestAWriterThatForgetsIsNotFlooded: an edge whose session it does not know any more is told so by a
// watch, too, and pauses before it says Hello again.
func TestAWriterThatForgetsIsNotFlooded(t *testing.T) {
	b := newBooks(t, 10)
	e := openOn(t, t.TempDir(), b)
	defer e.Close()
	exchanged(t, e, 1)
	var messages atomic.Int64
	b.before = func(context.Context, syncproto.Message) error {
		messages.Add(1)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ledger = newBooks(t, 10).ledger
		return nil
	}
	require.ErrorContains(t, e.Watch(t.Context(), time.Second), "no session")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.NoError(t, e.Run(ctx))
	require.LessOrEqual(t, messages.Load(), 10+2*time.Since(begun).Milliseconds()/10)
}

// TestChargesAreSyncedWhileTheWriterHangs: a power cut would else take all since the last message.
func TestChargesAreSyncedWhileTheWriterHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t, 10)
		var syncs, messages atomic.Int64
		m, err := meter.Open(meter.Config{
			State: t.TempDir(), Writer: b, WaitLimit: 10 * time.Second, LastReport: time.Millisecond, JournalSync: time.Millisecond,
			Synced: func(time.Duration) { syncs.Add(1) },
		})
		require.NoError(t, err)
		e := &edge{Meter: m}
		granted(t, e)
		b.before = func(ctx context.Context, _ syncproto.Message) error {
			messages.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		stop := e.start(m)
		defer stop()
		eventually(t, func() bool { return messages.Load() == 2 }, "both lanes wait for the writer")
		before := syncs.Load()
		require.Equal(t, "", e.found(bookedAccount))
		eventually(t, func() bool { return syncs.Load() > before }, "the charge is durable")
		require.EqualValues(t, 2, messages.Load(), "by itself, not for the next message")
	})
}

// TestWhatIsRecalledIsReturnedAtOnce, and not with the next message, up to a second later: a client may wait
// for it at another edge.
func TestWhatIsRecalledIsReturnedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t, 10)
		e := openOn(t, t.TempDir(), b)
		granted(t, e)
		exchanged(t, e, 2) // all is reported
		news, synced := make(chan struct{}), make(chan struct{})
		b.before = func(ctx context.Context, m syncproto.Message) error {
			if m.Sync == nil || m.Sync.HoldMillis == 0 {
				select {
				case synced <- struct{}{}:
				default:
				}
				return nil
			}
			select { // a writer holds this one
			case <-news:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		stop := e.start(e.Meter)
		defer stop()
		<-synced
		<-synced
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		b.mu.Lock()
		require.Positive(t, b.ledger.Account(bookedAccount).Credits().Leased)
		require.NoError(t, b.ledger.ChangeAccount(time.Now().UnixMilli(), bookedAccount, "scale", true))
		b.mu.Unlock()
		begun := time.Now()
		news <- struct{}{}
		time.Sleep(100 * time.Millisecond)
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Zero(t, b.ledger.Account(bookedAccount).Credits().Leased)
		require.Less(t, time.Since(begun), time.Second)
	})
}

// TestTwoEdgesOfOneNodeBothReport: each message of one ends the other's session. The earlier one would keep its leases
// and its charges to itself for as long as both run, as when the machine that replaces it is started first.
func TestTwoEdgesOfOneNodeBothReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t, 100)
		earlier, later := openOn(t, t.TempDir(), b), openOn(t, t.TempDir(), b)
		granted(t, earlier)
		granted(t, later)
		b.before = func(ctx context.Context, m syncproto.Message) error {
			time.Sleep(20 * time.Millisecond)            // the way to the writer
			for m.Sync != nil && m.Sync.HoldMillis > 0 { // a writer holds this one
				b.mu.Lock()
				news := b.ledger.HasNews(b.ledger.Edge("one"), m.Sync)
				b.mu.Unlock()
				if news || ctx.Err() != nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			return ctx.Err()
		}
		defer earlier.start(earlier.Meter)()
		time.Sleep(300 * time.Millisecond)
		defer later.start(later.Meter)()
		time.Sleep(10 * time.Second)
		require.Zero(t, earlier.Stats().Unsettled)
		require.Zero(t, later.Stats().Unsettled)
		b.mu.Lock()
		defer b.mu.Unlock()
		credits := b.ledger.Account(bookedAccount).Credits()
		require.EqualValues(t, 2, credits.Spent)
		require.Less(t, credits.Leased, int64(50), "the earlier one has returned its lease")
		first := b.ledger.Edge("one").Epoch
		b.mu.Unlock()
		time.Sleep(20 * time.Minute)
		b.mu.Lock()
		require.Greater(t, b.ledger.Edge("one").Epoch, first, "each gets its turn")
		require.Less(t, b.ledger.Edge("one").Epoch, first+60, "the ledger keeps them")
	})
}
