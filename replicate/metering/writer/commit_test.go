package writer

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lateContext is the context of a caller that begins to wait for its answer when Run has
// returned.
type lateContext struct {
	context.Context
	sent  bool
	ended <-chan struct{}
}

func (l *lateContext) Done() <-chan struct{} {
	if l.sent {
		<-l.ended
	}
	l.sent = true
	return nil
}

// TestAnswersOfAFencedWriter submits operations while a writer finds that another one took the
// ledger. They must get ErrFenced, not ErrUnavailable, and their own answer if they had one.
func TestAnswersOfAFencedWriter(t *testing.T) {
	for range 20 {
		for _, answer := range []error{nil, ErrFenced, ErrTaken} {
			w := &Writer{ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
			go func() {
				(<-w.ops).done <- answer
				w.fenced.Store(true)
				close(w.ended)
			}()
			require.Equal(t, answer, w.submit(&lateContext{Context: t.Context(), ended: w.ended}, &operation{}))
		}
		w := &Writer{ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
		go func() {
			<-w.ops
			w.fenced.Store(true)
			close(w.ended)
		}()
		require.Equal(t, ErrFenced, w.submit(&lateContext{Context: t.Context(), ended: w.ended}, &operation{}))
	}
}

// TestNothingWaitsForAWriterThatHasEnded, even if there is no room for more operations.
func TestNothingWaitsForAWriterThatHasEnded(t *testing.T) {
	w := &Writer{ops: make(chan *operation), ended: make(chan struct{})}
	close(w.ended)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.Equal(t, ErrUnavailable, w.submit(ctx, &operation{}))
}
