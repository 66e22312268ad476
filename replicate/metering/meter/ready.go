package meter

import (
	"errors"
	"fmt"
	"time"

	"regedge/replicate/metering/syncproto"
)

// maxSkew is how far an edge's clock may be from the writer's.
const maxSkew = 5 * time.Second

// Reasons for which Ready is not nil, and others.
var (
	ErrNoEpoch    = errors.New("the writer was never reached: live keys can't be served")
	ErrRetired    = errors.New("this node is retired")
	ErrSuperseded = errors.New("a newer epoch was given to this node")
	ErrSkew       = errors.New("the clock is too far from the writer's")
	errNoSession  = errors.New("no session with the writer")
)

// Ready is nil when live keys can be served, else the reason why not: ErrNoEpoch,
// ErrRetired, ErrSuperseded, ErrSkew, or the journal's error.
func (m *Meter) Ready() error {
	if err := m.failure.Load(); err != nil {
		return *err
	}
	m.mu.Lock()
	epoch, standing := m.book.Epoch(), m.book.Standing()
	m.mu.Unlock()
	skew := time.Duration(m.skewMillis.Load()) * time.Millisecond
	switch {
	case standing == syncproto.Retired:
		return ErrRetired
	case standing == syncproto.Superseded:
		return ErrSuperseded
	case epoch == 0:
		return ErrNoEpoch
	case skew.Abs() > maxSkew:
		return fmt.Errorf("%w: %v", ErrSkew, skew)
	}
	return nil
}

// noteSkew estimates the writer's clock from an exchange: it was read at some time
// between sent and received, which is given to this edge's favour.
func (m *Meter) noteSkew(sent, received, writers int64) {
	switch {
	case writers < sent:
		m.skewMillis.Store(writers - sent)
	case writers > received:
		m.skewMillis.Store(writers - received)
	default:
		m.skewMillis.Store(0)
	}
}
