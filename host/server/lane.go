package server

import (
	"context"
	"crypto/tls"
	"runtime"
)

// lane bounds the handshakes that compute at once to half of the processors: one takes as long as
// twenty lookups. Handshakes of the same address queue among themselves first, so that another client
// waits for at most one of them, not for hundreds. A handshake that waits for its client is not in the
// lane, so slow clients keep nobody out.
type lane struct {
	of      *Server
	compute chan struct{}
	turns   [laneTurns]chan struct{}
}

// laneTurns is the number of queues. Two addresses that share one wait for each other.
const laneTurns = 256

func (s *Server) newLane() *lane {
	l := &lane{of: s, compute: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	for i := range l.turns {
		l.turns[i] = make(chan struct{}, 1)
	}
	return l
}

// enter is called when the client's first message was read. The connection leaves the lane with the
// answer to it, see counted.Write, or when the handshake fails.
func (l *lane) enter(hello *tls.ClientHelloInfo) (unchanged *tls.Config, err error) {
	c := countedOf(hello.Conn)
	if c == nil || c.leave != nil { // the second message, after a HelloRetryRequest
		return nil, nil
	}
	turn := make(chan struct{}, 1) // a queue of its own: a trusted proxy's connections are of many clients
	if c.address != "" {
		turn = l.turns[l.of.shares.slot(c.address)%laneTurns]
	}
	if err := waitFor(hello.Context(), turn); err != nil {
		return nil, err
	}
	if err := waitFor(hello.Context(), l.compute); err != nil {
		<-turn
		return nil, err
	}
	c.leave = func() { <-l.compute; <-turn }
	return nil, nil
}

// waitFor acquires a place in a channel, or fails when ctx is done.
func waitFor(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
