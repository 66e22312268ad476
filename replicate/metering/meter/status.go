package meter

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"regedge/handler/charge"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

// maxSkew is how far an edge's clock may be from the writer's.
const maxSkew = 5 * time.Second

// Reasons why live keys can't be served, returned by Ready.
var (
	ErrNoEpoch    = errors.New("the writer was never reached: live keys can't be served")
	ErrRetired    = errors.New("this node is retired")
	ErrSuperseded = errors.New("a newer epoch was given to this node")
	ErrSkew       = errors.New("the clock is too far from the writer's")
	ErrDiskHangs  = errors.New("the disk of the state directory does not answer")
)

// Ready is nil when live keys can be served, else the reason why not: ErrNoEpoch,
// ErrRetired, ErrSuperseded, ErrSkew, ErrDiskHangs, or the journal's error.
func (m *Meter) Ready() error {
	if err := m.diskError.Load(); err != nil {
		return *err
	}
	m.mu.Lock()
	epoch, standing := m.state.Epoch(), m.state.Standing()
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

// noteSkew estimates the skew between the writer's clock and this one. The writer read its clock
// between sent and received; the estimate is the smallest skew that fits. All times are Unix
// milliseconds.
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

// noteDisk records the outcome of a write or sync of the journal, for Ready, and logs when it
// changes.
func (m *Meter) noteDisk(err error) {
	if err == nil {
		if m.diskError.Load() != nil {
			m.diskError.Store(nil)
			m.config.Logger.Info("the journal can be written again")
		}
		return
	}
	if failure := err; m.diskError.Swap(&failure) == nil { // its own variable: err would be on the heap each time
		m.config.Logger.Error("the journal can't be written: live keys are answered 503", "error", err)
	}
}

// counters are the counts of Stats.
type counters struct {
	answered, refused, unavailable, waited, crowded, doubted atomic.Int64
}

func (c *counters) count(code string) {
	switch code {
	case "":
		c.answered.Add(1)
	case charge.MeteringUnavailable:
		c.unavailable.Add(1)
	default:
		c.refused.Add(1)
	}
}

// Stats are counts since the meter was opened, and what it holds now.
type Stats struct {
	Answered, Refused, Unavailable int64 // verdicts
	Waited                         int64 // requests that waited for the writer
	Crowded                        int64 // requests that did not wait, since too many did
	Waiting                        int   // requests that wait now
	Doubted                        int64 // verdicts that may not have reached the component
	Unresolved                     int   // charges with such a verdict, not yet reported to the writer
	Replaced                       int64 // segments of the journal that were deleted, replaced or truncated
	Unsettled                      int64 // charges that the writer may not have
	Accounts                       int   // accounts with a lease here
	Unreachable                    bool  // the last exchange with the writer failed
}

// Stats reads the counts, for metrics.
func (m *Meter) Stats() Stats {
	m.mu.Lock()
	accounts, unresolved, unsettled := m.state.Accounts(), m.state.Unresolved(), m.state.Unsettled()
	m.mu.Unlock()
	return Stats{
		Answered: m.stats.answered.Load(), Refused: m.stats.refused.Load(),
		Unavailable: m.stats.unavailable.Load(), Waited: m.stats.waited.Load(),
		Crowded: m.stats.crowded.Load(), Waiting: m.Waiting(), Doubted: m.stats.doubted.Load(), Replaced: m.journal.Replaced(),
		Unresolved: unresolved, Unsettled: unsettled, Accounts: accounts, Unreachable: m.unreachable.Load(),
	}
}

// Headroom tells how long the leases last without the writer. It visits the accounts some at
// a time, so that requests need not wait until all are visited.
func (m *Meter) Headroom() lease.Headroom {
	h, now := lease.NewHeadroom(), m.now()
	for next, begun := 0, false; next != 0 || !begun; begun = true {
		m.mu.Lock()
		next = m.state.AddHeadroom(&h, now, next)
		m.mu.Unlock()
	}
	return h
}
