package ledger

import (
	"slices"

	"regedge/replicate/metering/syncproto"
)

// settle ends a step. Every touched pool grants what is wanted, recalls what is needed
// elsewhere, and makes news for its edges.
func (l *Ledger) settle(now int64) {
	for i := 0; i < len(l.touched); i++ {
		l.settlePool(now, l.touched[i])
	}
	l.touched = l.touched[:0]
}

func (l *Ledger) settlePool(now int64, p *Pool) {
	l.deduct(p, adjusted)
	starved := false
	//mutant:ended-leases-granted-again
	for _, h := range p.leases {
		if h.want.Target > 0 && !l.serve(now, h) {
			starved = true
		}
	}
	recall := starved || p.Deducting > 0 || p.Left() < 0 && !l.Restoring || l.suspended(p)
	for _, h := range p.leases {
		h.recall = recall && h.Outstanding() > 0 && !h.Lost
		l.notify(h)
	}
	p.touched = false
}

// suspended reports whether a pool holds the credits of a suspended account.
func (l *Ledger) suspended(p *Pool) bool {
	a := l.accounts[p.ID.Subject]
	return p.ID.Kind == syncproto.Credits && a != nil && a.Suspended
}

// serve tries to grant what a lease wants. It returns false when a request waits for units
// that are leased elsewhere; the want then stays.
func (l *Ledger) serve(now int64, h *Lease) bool {
	if !l.grantable(now, h) {
		h.want = syncproto.Want{}
		return true
	}
	if h.Until-now > leaseMillis {
		h.Until = now // granted by a clock that was ahead
		l.changes.lease(h)
	}
	missing := h.want.Target - h.Outstanding()
	units := min(missing, l.share(now, h.pool))
	if units > 0 {
		l.grant(h, units)
	}
	//mutant:ended-lease-not-extended
	//mutant:extend-lease
	if h.Outstanding() > 0 && h.Until-now < extendMillis {
		h.Until = now + leaseMillis
		l.changes.lease(h)
	}
	urgent := h.want.Urgent
	if urgent && h.Outstanding() <= 0 && h.pool.Leased > 0 {
		return false
	}
	h.want, h.recall = syncproto.Want{}, false
	l.addNews(h, urgent)
	return true
}

// grantable reports whether a lease may grow at all.
func (l *Ledger) grantable(now int64, h *Lease) bool {
	//mutant:restored-ledger-grants-at-once
	return !l.Restoring && !h.Lost && !h.edge.Retired && h.epoch.Number == h.edge.Epoch &&
		h.pool.Deducting == 0 && !l.suspended(h.pool) && h.pool.ID.Open(now)
}

// share is how many units of a pool one grant may take, at least 1: every live edge could
// get as many, and half of the pool would be left.
func (l *Ledger) share(now int64, p *Pool) int64 {
	left := p.Left()
	if left <= 0 {
		return 0
	}
	return max(left/(2*l.Live(now)), 1)
}

// dry reports whether the edge can get nothing more: nothing is left in the pool and nothing is leased
// elsewhere.
func (l *Ledger) dry(h *Lease) bool {
	p := h.pool
	return !l.Restoring && p.Left() <= 0 && p.Deducting == 0 && p.Leased-max(h.Outstanding(), 0) == 0
}

// notify makes news of a lease whose state differs from what the edge was told.
func (l *Ledger) notify(h *Lease) {
	if h.edge.current != h.epoch || h.version == 0 {
		return
	}
	dry := l.dry(h)
	switch {
	case h.recall != h.toldRecall && h.recall, dry != h.toldDry && !dry:
		l.addNews(h, true)
	case h.recall != h.toldRecall, dry != h.toldDry, h.pool.ID.Kind == syncproto.Credits && h.toldBalance != h.pool.Balance():
		l.addNews(h, false)
	}
}

// leastNews is how much news is kept before stale news is dropped: below it, looking through the news each time
// would not pay.
const leastNews = 64

// addNews puts a lease into the news of its edge's session, if that is in the same epoch.
func (l *Ledger) addNews(h *Lease, urgent bool) {
	e := h.edge
	if e.current != h.epoch {
		return
	}
	e.version++
	h.version = e.version
	h.toldDry, h.toldRecall = l.dry(h), h.recall
	h.toldBalance = h.pool.Balance()
	if len(e.news) >= max(2*len(h.epoch.leases), leastNews) { // an edge that is away asks for none of it
		e.news = slices.DeleteFunc(e.news, news.stale)
	}
	e.news = append(e.news, news{h.version, h})
	if urgent {
		e.urgent = h.version
	}
}

// remove ends a lease that its edge closed, with nothing outstanding. A lease with units
// spent beyond it is kept empty, since those may still be voided.
func (l *Ledger) remove(h *Lease) {
	l.settleVoids(h)
	if h.Beyond > 0 {
		h.Granted, h.Spent, h.Returned, h.Until, h.version = 0, 0, 0, 0, 0
		h.want, h.recall = syncproto.Want{}, false
		l.changes.lease(h)
		return
	}
	delete(h.epoch.leases, h.pool.ID)
	h.pool.leases = slices.DeleteFunc(h.pool.leases, func(x *Lease) bool { return x == h })
	h.version = 0
	l.changes.removeLease(h)
}

// Live is the number of live edges, at least 1. It is counted once a second.
func (l *Ledger) Live(now int64) int64 {
	if !l.liveKnown || now-l.liveAt >= 1000 || now < l.liveAt {
		l.live, l.liveAt, l.liveKnown = 0, now, true
		for _, e := range l.edges {
			if e.IsLive(now) {
				l.live++
			}
		}
	}
	return max(l.live, 1)
}

// LiveEdges is the number of edges that sent a message within the last minute.
func (l *Ledger) LiveEdges(now int64) int {
	n := 0
	for _, e := range l.edges {
		if e.IsLive(now) {
			n++
		}
	}
	return n
}
