package dashboard

import (
	"context"
	"sync"
	"time"

	"regedge/replicate/metering/writer"
)

// sumWait is how long a page waits for its account's turn.
const sumWait = 10 * time.Second

// sumsAtOnce is how many sums of all accounts run at the same time.
const sumsAtOnce = 2

// turns lets what reads years of an account run one after another, such as the sums of its usage, and few of all accounts at
// once: that takes seconds of a processor that the edges' messages need too. Operators have a turn beside the owners', so that
// an owner's program does not keep them from the account. It is safe for concurrent use.
type turns struct {
	wait time.Duration
	all  chan struct{}
	mu   sync.Mutex
	of   map[turnOf]*accountTurn // of which a sum runs or waits
}

// turnOf is whose turn it is.
type turnOf struct {
	account  int64
	operator bool
}

type accountTurn struct {
	place chan struct{}
	users int // in the place, or waiting for it
}

type operatorKey struct{}

// ofOperator returns the context of an operator's request.
func ofOperator(ctx context.Context) context.Context {
	return context.WithValue(ctx, operatorKey{}, true)
}

func newTurns() *turns {
	return &turns{wait: sumWait, all: make(chan struct{}, sumsAtOnce), of: map[turnOf]*accountTurn{}}
}

// enter waits for the turn of an account, which leave ends. It returns writer.ErrTooMany when that takes too long.
func (t *turns) enter(ctx context.Context, account int64) (leave func(), err error) {
	whose := turnOf{account, ctx.Value(operatorKey{}) != nil}
	ctx, cancel := context.WithTimeout(ctx, t.wait)
	defer cancel()
	t.mu.Lock()
	a := t.of[whose]
	if a == nil {
		a = &accountTurn{place: make(chan struct{}, 1)}
		t.of[whose] = a
	}
	a.users++
	t.mu.Unlock()
	select {
	case a.place <- struct{}{}:
	case <-ctx.Done():
		t.forget(whose, a)
		return nil, writer.ErrTooMany
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-a.place
		t.forget(whose, a)
		return nil, writer.ErrTooMany
	}
	return func() {
		<-t.all
		<-a.place
		t.forget(whose, a)
	}, nil
}

// forget drops a turn once nobody uses it.
func (t *turns) forget(whose turnOf, a *accountTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(t.of, whose)
	}
}
