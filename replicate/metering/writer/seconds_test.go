package writer

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
)

// TestAWriterLooksRoundEachSecond, without a message or a change that would make it: for clocks that differ, for
// a restore that begins, and for messages that wait on a ledger that was taken away.
func TestAWriterLooksRoundEachSecond(t *testing.T) {
	t.Run("at the clocks of the nodes", func(t *testing.T) {
		w, _ := openUnrun(t)
		log := new(testkit.Log)
		w.clocks.log = slog.New(slog.NewTextHandler(log, nil))
		hello := syncproto.Message{Hello: &syncproto.Hello{NowMillis: w.now() - time.Hour.Milliseconds()}}
		w.clocks.note("pune", hello)
		w.everySecond(t.Context())
		require.Contains(t, log.String(), "the clocks of writer and nodes differ")
		hello.Hello.NowMillis = w.now()
		w.clocks.note("pune", hello)
		w.everySecond(t.Context())
		require.Contains(t, log.String(), "the clock is that of most nodes again")
	})
	t.Run("at the nodes that a restore awaits", func(t *testing.T) {
		w, _ := openUnrun(t)
		withEdge(t, w)
		log := new(testkit.Log)
		w.config.Logger = slog.New(slog.NewTextHandler(log, nil))
		w.everySecond(t.Context())
		require.NotContains(t, log.String(), "backup")
		w.ledger.Restore()
		w.everySecond(t.Context())
		require.Contains(t, log.String(), "the ledger came back from a backup: nothing is granted until these edges have reported")
	})
	t.Run("at the messages that wait", func(t *testing.T) {
		w, _ := openUnrun(t)
		session := withEdge(t, w)
		waits := heldOperation("one", &syncproto.Sync{Session: session, Seen: 1 << 40})
		w.held = append(w.held, waits)
		w.everySecond(t.Context())
		require.Empty(t, waits.done)
		w.away.Store(true)
		w.everySecond(t.Context())
		require.NotEmpty(t, waits.done)
		require.ErrorIs(t, <-waits.done, ErrUnavailable)
	})
}

// TestAConnectionToTheLedgerThatIsLostIsMadeAnew for the next transaction.
func TestAConnectionToTheLedgerThatIsLostIsMadeAnew(t *testing.T) {
	w, _ := openUnrun(t)
	require.NoError(t, w.commitBeat(t.Context(), w.now()))
	require.NoError(t, w.conn.Close())
	require.Error(t, w.commitBeat(t.Context(), w.now()))
	require.NoError(t, w.commitBeat(t.Context(), w.now()))
	require.NoError(t, w.release())
}

// TestReadinessSaysWhatEdgesDoNotKnowYet, once that lasts, and whose fault it is.
func TestReadinessSaysWhatEdgesDoNotKnowYet(t *testing.T) {
	w, _ := openUnrun(t)
	pending := w.projector.add(changedRow{table: keyTable, id: int64(1)})
	w.Remark(func() string { return "" })
	_, text := readiness(w)
	require.Equal(t, "ready\n", text, "it has just begun")
	pending.since = time.Now().Add(-time.Minute)
	_, text = readiness(w)
	require.Regexp(t, `^ready\nthe access database misses 1 changes, the oldest for 6\d s\n$`, text)
	w.projector.failure = ErrUnavailable
	status, text := readiness(w)
	require.Equal(t, 200, status, "the ledger is served")
	require.Regexp(t, `for 6\d s: the writer's log says why\n$`, text)
}
