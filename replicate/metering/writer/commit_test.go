package writer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// late is the context of one who comes to wait for an answer only when Run has ended.
type late struct {
	context.Context
	sent  bool
	ended <-chan struct{}
}

func (l *late) Done() <-chan struct{} {
	if l.sent {
		<-l.ended
	}
	l.sent = true
	return nil
}

// TestWhatASupersededWriterSays holds that nobody who asks a writer just when it finds its
// ledger taken hears that the ledger is out of reach, and that what was committed is not denied.
func TestWhatASupersededWriterSays(t *testing.T) {
	for range 20 {
		for _, answer := range []error{nil, ErrFenced, ErrTaken} {
			w := &Writer{ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
			go func() {
				(<-w.ops).done <- answer
				w.fenced.Store(true)
				close(w.ended)
			}()
			require.Equal(t, answer, w.submit(&late{Context: t.Context(), ended: w.ended}, &operation{}))
		}
		w := &Writer{ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
		go func() {
			<-w.ops
			w.fenced.Store(true)
			close(w.ended)
		}()
		require.Equal(t, ErrFenced, w.submit(&late{Context: t.Context(), ended: w.ended}, &operation{}))
	}
}
