package lease

import (
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Leases of volume and of not-found lookups are for one window. An account or key has one at
// hand, of the window in which its last request was made. When the edge's clock is wrong, that
// may be a window ahead of the right one, or behind it. So a lease of another window is parked,
// with its counts. When the writer grants no more in its window, by the edge's clock, which may be
// wrong as well, the lease is closed at the writer, and forgotten when the writer has that batch: were it
// just dropped, the writer's next row, which is a sum, would grant again what was spent of it.

// maxWindows is in how many windows one account or key has leases. The writer grants in four at
// a time (the day before yesterday to tomorrow); those of before a long stop may have to be closed yet.
const maxWindows = 8

// windowless names the account or key of a pool, for all windows.
func windowless(p syncproto.Pool) syncproto.Pool {
	p.Window = 0
	return p
}

// inUse reports whether a lease has something that must not be forgotten.
func (l *lease) inUse() bool { return l.open() || l.since > 0 }

// switchTo makes the lease of p's window the one at hand.
func (all *leases) switchTo(p syncproto.Pool, atHand *lease) {
	//mutant:lease-of-a-future-window-believed
	if atHand.window == p.Window {
		return
	}
	before := *atHand
	if parked := all.findParked(p); parked != nil {
		*atHand = *parked
		all.unpark(p)
	} else {
		*atHand = lease{window: p.Window}
	}
	if before.inUse() {
		all.park(p, before)
	}
}

// park parks a lease of p's account or key.
func (all *leases) park(p syncproto.Pool, l lease) *lease {
	all.parked[windowless(p)] = append(all.parked[windowless(p)], &l)
	return &l
}

func (all *leases) findParked(p syncproto.Pool) *lease {
	for _, l := range all.parked[windowless(p)] {
		if l.window == p.Window {
			return l
		}
	}
	return nil
}

func (all *leases) unpark(p syncproto.Pool) {
	all.keepParked(p, func(l *lease) bool { return l.window != p.Window })
}

func (all *leases) keepParked(p syncproto.Pool, keep func(*lease) bool) {
	parked := all.parked[windowless(p)]
	if len(parked) == 0 {
		return
	}
	parked = slices.DeleteFunc(parked, func(l *lease) bool { return !keep(l) })
	all.parked[windowless(p)] = parked
	if len(parked) == 0 {
		delete(all.parked, windowless(p))
	}
}

// eachParked calls visit for the parked leases of p's account or key, in the order in which they
// were parked.
func (all *leases) eachParked(p syncproto.Pool, visit func(syncproto.Pool, *lease)) {
	for _, l := range all.parked[windowless(p)] {
		p.Window = l.window
		visit(p, l)
	}
}

// endOthers closes the parked leases of p's account or key in whose windows the
// writer grants no more, or not yet.
func (s *EdgeState) endOthers(now int64, p syncproto.Pool) {
	s.leases.keepParked(p, func(l *lease) bool {
		p.Window = l.window
		return !s.ended(now, p, l)
	})
}

// ended reports whether a lease of pool p can be forgotten: the writer grants nothing in its window, and has
// ended it. One that the writer has is listed to be closed.
func (s *EdgeState) ended(now int64, p syncproto.Pool, l *lease) bool {
	if p.Open(now) {
		return false
	}
	//mutant:lease-of-a-past-window-dropped
	if l.open() {
		s.returns.notOpen = append(s.returns.notOpen, p)
		return false
	}
	return l.since <= s.outbox.applied
}

// windows counts the leases of p's account or key that must not be forgotten yet.
func (s *EdgeState) windows(p syncproto.Pool) (n int) {
	count := func(l *lease) {
		if l.kept(s.outbox.applied) {
			n++
		}
	}
	if atHand := s.leases.atHand(p); atHand != nil {
		count(atHand)
	}
	s.leases.eachParked(p, func(_ syncproto.Pool, l *lease) { count(l) })
	return n
}

// absurdMillis is from how far ahead the end of a lease is not believed: twice the writer's 24 hours. Either
// the clock of the writer that granted it was wrong, or this edge's is.
const absurdMillis = 2 * 24 * 60 * 60 * 1000

// mend adjusts a row that is about to be journalled, so that its replay needs no clock: an end
// moves back only from one that is absurd, and while the writer waits for declarations its
// sums are not the newest.
func (s *EdgeState) mend(now int64, row *syncproto.Row, declaring bool) {
	l := s.leases.find(row.Pool)
	if l == nil {
		return
	}
	if l.until-now <= absurdMillis {
		row.UntilMillis = max(row.UntilMillis, l.until)
	}
	if declaring {
		row.Granted = max(row.Granted, l.granted)
	}
}
