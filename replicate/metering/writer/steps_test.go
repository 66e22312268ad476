package writer

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// withEdge adds a node to a writer that is not run, and opens its session.
func withEdge(t *testing.T, w *Writer) (session uint64) {
	t.Helper()
	add := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO node (name, token_hash, created_at) VALUES ('one', x'00', ?)`, now); err != nil {
			return err
		}
		return l.AddEdge("one")
	}
	require.NoError(t, w.commitChange(t.Context(), &operation{change: add}))
	hello := &operation{edge: "one", step: step(syncproto.Message{Hello: &syncproto.Hello{Boot: 1}}), done: make(chan error, 1)}
	w.commitSteps(t.Context(), []*operation{hello})
	require.NoError(t, <-hello.done)
	return hello.reply.Session
}

// knows reports whether the writer knows a session of the edge.
func knows(w *Writer, session uint64) bool {
	return w.ledger.Sync(w.now(), w.ledger.Edge("one"), &syncproto.Sync{Session: session}).Status == syncproto.OK
}

// TestSessionsGoOnOnlyAfterARefusedCommit: of one whose outcome is unknown, only the edges can say what was
// applied, with a Hello.
func TestSessionsGoOnOnlyAfterARefusedCommit(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	session := withEdge(t, w)
	require.True(t, knows(w, session))
	_, refused := w.config.Ledger.Exec(`INSERT INTO plan (id) VALUES (NULL)`)
	require.Error(t, refused)
	require.ErrorIs(t, w.outcome(t.Context(), refused), ErrUnavailable)
	require.True(t, knows(w, session))
	require.ErrorIs(t, w.outcome(t.Context(), errors.New("connection lost")), ErrUnavailable)
	require.False(t, knows(w, session))
	require.NoError(t, w.release())
	require.NoError(t, w.config.Ledger.Close())
	require.ErrorIs(t, w.outcome(t.Context(), refused), ErrUnavailable)
	require.Nil(t, w.ledger, "it can't be read")
}

// TestAChangeAfterStepsThatLostTheLedgerIsNotMade: there is nothing that it could change.
func TestAChangeAfterStepsThatLostTheLedgerIsNotMade(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	withEdge(t, w)
	retire := func(now int64, l *ledger.Ledger, _ *ledger.Edge) *syncproto.Reply {
		require.NoError(t, l.Retire(now, "one", false))
		_, err := w.config.Ledger.Exec(`ALTER TABLE node RENAME TO other`) // it can neither be written nor read
		require.NoError(t, err)
		return nil
	}
	steps := &operation{edge: "one", step: retire, done: make(chan error, 1)}
	made := false
	change := &operation{done: make(chan error, 1), change: func(context.Context, *sql.Tx, int64, *ledger.Ledger) error {
		made = true
		return nil
	}}
	w.commitGroup(t.Context(), []*operation{steps, change})
	require.Error(t, <-steps.done)
	require.Nil(t, w.ledger, "the case")
	require.ErrorIs(t, <-change.done, ErrUnavailable)
	require.False(t, made)
}

// TestALedgerOfAnotherWriterIsNotLoaded in place of the own one, which failed.
func TestALedgerOfAnotherWriterIsNotLoaded(t *testing.T) {
	w, _ := openUnrun(t)
	_, err := w.config.Ledger.Exec(`UPDATE writer SET generation = generation + 1`)
	require.NoError(t, err)
	w.reload(t.Context())
	require.Nil(t, w.ledger)
	require.True(t, w.fenced.Load())
}

// TestACommitToAFileIsSynced: a power cut would else take changes that were answered.
func TestACommitToAFileIsSynced(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	withEdge(t, w)
	var synchronous int
	require.NoError(t, w.conn.QueryRowContext(t.Context(), `PRAGMA synchronous`).Scan(&synchronous))
	require.GreaterOrEqual(t, synchronous, 2, "FULL")
}

// TestAnIdleWriterIsHeardEachSecond: another one would else take its ledger.
func TestAnIdleWriterIsHeardEachSecond(t *testing.T) {
	w, clock := openUnrun(t)
	defer w.release()
	withEdge(t, w)
	heard := func() int64 {
		holder, err := ledger.ReadHolder(t.Context(), w.config.Ledger)
		require.NoError(t, err)
		return holder.Heard
	}
	clock.pass(time.Second)
	w.beat(t.Context()) // a commit was heard since the last one
	for range 3 {
		clock.pass(time.Second)
		w.beat(t.Context())
		require.Equal(t, w.now(), heard())
	}
}

// TestAllOfAGroupAreAnsweredWhenTheLedgerIsLost in the middle of it.
func TestAllOfAGroupAreAnsweredWhenTheLedgerIsLost(t *testing.T) {
	w, _ := openUnrun(t)
	session := withEdge(t, w)
	require.NoError(t, w.release())
	change := func(context.Context, *sql.Tx, int64, *ledger.Ledger) error { return nil }
	message := syncproto.Message{Sync: &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1}}}
	group := []*operation{{edge: "one", step: step(message)}, {change: change}, {change: change}}
	for _, op := range group {
		op.done = make(chan error, 1)
	}
	require.NoError(t, w.config.Ledger.Close())
	w.commitGroup(t.Context(), group)
	for _, op := range group {
		require.ErrorIs(t, <-op.done, ErrUnavailable)
	}
}

// TestANodeThatGoesAwayInAMessageIsNotFenced: what came of it is no nonsense.
func TestANodeThatGoesAwayInAMessageIsNotFenced(t *testing.T) {
	w, client, _ := runForRoles(t)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	for range fenceAfter {
		r := httptest.NewRequest(http.MethodPost, SyncPath, iotest.ErrReader(errors.New("connection reset")))
		r.Header.Set("Authorization", "Bearer "+node.Token)
		w.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Zero(t, w.offenders.count())
}

// TestARowThatIsRefusedHoldsUpNoOthers of its batch; a server that hangs is asked no more.
func TestARowThatIsRefusedHoldsUpNoOthers(t *testing.T) {
	refused := errors.New("refused")
	var written [][]int
	write := func(items []int) error {
		for _, i := range items {
			switch i {
			case 3:
				return refused
			case 9:
				return context.DeadlineExceeded
			}
		}
		written = append(written, items)
		return nil
	}
	require.ErrorIs(t, inBatches([]int{1, 2, 3, 4, 5, 6, 7}, 3, write), refused)
	require.Equal(t, [][]int{{1}, {2}, {4, 5, 6}, {7}}, written)
	written = nil
	require.ErrorIs(t, inBatches([]int{8, 9, 10, 11, 12}, 2, write), context.DeadlineExceeded)
	require.Empty(t, written)
}
