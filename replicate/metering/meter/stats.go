package meter

import (
	"sync/atomic"

	"regedge/handler/charge"
	"regedge/replicate/metering/lease"
)

// counters count what Stats tells.
type counters struct {
	answered, refused, unavailable, waited, doubted atomic.Int64
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

// Stats are counts since the meter was opened, and what it holds.
type Stats struct {
	Answered, Refused, Unavailable int64 // verdicts
	Waited                         int64 // requests that waited for the writer
	Doubted                        int64 // verdicts that may not have reached the component
	Unresolved                     int   // of these, not yet known to the writer
	Unsettled                      int64 // charges that the writer may not have
	Accounts                       int   // accounts with a lease here
	Unreachable                    bool  // the last exchange with the writer failed
}

// Stats reads the counts, for metrics.
func (m *Meter) Stats() Stats {
	m.mu.Lock()
	accounts, unresolved, unsettled := m.book.Accounts(), m.book.Unresolved(), m.book.Unsettled()
	m.mu.Unlock()
	return Stats{
		Answered: m.stats.answered.Load(), Refused: m.stats.refused.Load(),
		Unavailable: m.stats.unavailable.Load(), Waited: m.stats.waited.Load(), Doubted: m.stats.doubted.Load(),
		Unresolved: unresolved, Unsettled: unsettled, Accounts: accounts, Unreachable: m.unreachable.Load(),
	}
}

// Headroom tells how far the leases reach without the writer. It looks at every account,
// some at a time, so that requests need not wait for it.
func (m *Meter) Headroom() lease.Headroom {
	h, now := lease.NewHeadroom(), m.now()
	for next, begun := 0, false; next != 0 || !begun; begun = true {
		m.mu.Lock()
		next = m.book.AddHeadroom(&h, now, next)
		m.mu.Unlock()
	}
	return h
}
