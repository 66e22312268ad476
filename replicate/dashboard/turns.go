package dashboard

import (
	"context"
	"sync"
	"time"

	"regedge/replicate/metering/writer"
)

// sumWait is how long a page waits for its account's turn.
const sumWait = 10 * time.Second

// turns lets what reads years of an account run one after another, such as the sums of its usage, whoever asks: that takes
// seconds of a processor that the edges' messages need too. It is safe for concurrent use.
type turns struct {
	wait time.Duration
	mu   sync.Mutex
	of   map[int64]*accountTurn // accounts of which a sum runs or waits
}

type accountTurn struct {
	place chan struct{}
	users int // in the place, or waiting for it
}

func newTurns() *turns { return &turns{wait: sumWait, of: map[int64]*accountTurn{}} }

// enter waits for the turn of an account, which leave ends. It returns writer.ErrTooMany when that takes too long.
func (t *turns) enter(ctx context.Context, account int64) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, t.wait)
	defer cancel()
	t.mu.Lock()
	a := t.of[account]
	if a == nil {
		a = &accountTurn{place: make(chan struct{}, 1)}
		t.of[account] = a
	}
	a.users++
	t.mu.Unlock()
	select {
	case a.place <- struct{}{}:
		return func() {
			<-a.place
			t.forget(account, a)
		}, nil
	case <-ctx.Done():
		t.forget(account, a)
		return nil, writer.ErrTooMany
	}
}

// forget drops an account's turn once nobody uses it.
func (t *turns) forget(account int64, a *accountTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(t.of, account)
	}
}
