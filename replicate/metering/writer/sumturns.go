package writer

import (
	"context"
	"time"
)

const (
	// sumsAtOnce is how many sums of usage run at the same time. One over a year of a large account takes a
	// second or more of a processor that the edges' messages need too.
	sumsAtOnce = 2
	// sumWait is how long a request waits for its turn.
	sumWait = 10 * time.Second
	// sumPlaces is the number of queues that accounts are spread over.
	sumPlaces = 256
)

// sumTurns runs the sums of each account one after another, and few of all accounts at once.
type sumTurns struct {
	wait time.Duration
	all  chan struct{}
	own  [sumPlaces]chan struct{}
}

var usageTurns = newSumTurns(sumsAtOnce, sumWait)

func newSumTurns(atOnce int, wait time.Duration) *sumTurns {
	t := &sumTurns{wait: wait, all: make(chan struct{}, atOnce)}
	for i := range t.own {
		t.own[i] = make(chan struct{}, 1)
	}
	return t
}

// enter waits for the turn of an account, which leave ends. It returns ErrTooMany when that takes too long.
func (t *sumTurns) enter(ctx context.Context, account int64) (leave func(), err error) {
	late := time.NewTimer(t.wait)
	defer late.Stop()
	var taken []chan struct{}
	leave = func() {
		for _, place := range taken {
			<-place
		}
	}
	for _, place := range []chan struct{}{t.own[uint64(account)%sumPlaces], t.all} {
		select {
		case place <- struct{}{}:
			taken = append(taken, place)
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-late.C:
			err = &throttledError{t.wait, "too many sums of usage are asked for at once"}
		}
		leave()
		return nil, err
	}
	return leave, nil
}
