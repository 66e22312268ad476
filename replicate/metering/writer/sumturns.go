package writer

import (
	"context"
	"sync"
	"time"
)

const (
	// sumsAtOnce is how many sums of all accounts run at the same time. One over a year of a large account takes a
	// second or more of a processor that the edges' messages need too.
	sumsAtOnce = 2
	// sumWait is how long a request waits for its turn.
	sumWait = 10 * time.Second
)

// SumTurns lets what reads years of an account run one after another, such as the sums of its usage, and few of all
// accounts at once. Operators have a turn beside the owners', so that an owner's program does not keep them from the
// account. It is safe for concurrent use.
type SumTurns struct {
	// Wait is how long Enter waits, 10 seconds.
	Wait time.Duration
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

type operatorsTurn struct{}

// OfOperator returns the context of an operator's request, for Enter.
func OfOperator(ctx context.Context) context.Context {
	return context.WithValue(ctx, operatorsTurn{}, true)
}

func newSumTurns() *SumTurns {
	return &SumTurns{Wait: sumWait, all: make(chan struct{}, sumsAtOnce), of: map[turnOf]*accountTurn{}}
}

// SumTurns are the turns of all who read the ledger beside the writer, such as the dashboard's pages.
func (w *Writer) SumTurns() *SumTurns { return w.sumTurns }

// Enter waits for the turn of an account, which leave ends. It returns ErrTooMany when that takes longer than Wait, and
// the context's error when that ends first.
func (t *SumTurns) Enter(ctx context.Context, account int64) (leave func(), err error) {
	whose := turnOf{account, ctx.Value(operatorsTurn{}) != nil}
	own := t.join(whose)
	late := time.NewTimer(t.Wait)
	defer late.Stop()
	taken := make([]chan struct{}, 0, 2)
	leave = func() {
		for _, place := range taken {
			<-place
		}
		t.forget(whose, own)
	}
	for _, place := range []chan struct{}{own.place, t.all} {
		select {
		case place <- struct{}{}:
			taken = append(taken, place)
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-late.C:
			err = &throttledError{t.Wait, "too many sums of usage are asked for at once"}
		}
		leave()
		return nil, err
	}
	return leave, nil
}

// join returns the turn of an account, for one user more. forget ends that.
func (t *SumTurns) join(whose turnOf) *accountTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of[whose]
	if a == nil {
		a = &accountTurn{place: make(chan struct{}, 1)}
		t.of[whose] = a
	}
	a.users++
	return a
}

// forget drops a turn once nobody uses it.
func (t *SumTurns) forget(whose turnOf, a *accountTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(t.of, whose)
	}
}
