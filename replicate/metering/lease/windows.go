package lease

import (
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Leases of volume and of not-found lookups are for one window. An account or key has one at
// hand, of the window in which its last request was made. When the edge's clock is wrong, that
// may be a window ahead of the right one, or behind it. So a lease of another window is parked,
// with its counts, until the writer books nothing more in that window, by both clocks: were it
// dropped earlier, the writer's next row, which is a sum, would grant again what was spent of it.

// maxParked is how many leases are parked for one account or key: the writer grants in no more
// windows at a time (the day before yesterday to tomorrow).
const maxParked = 4

// windowless names the account or key of a pool, for all windows.
func windowless(p syncproto.Pool) syncproto.Pool {
	p.Window = 0
	return p
}

// inUse reports whether a lease has counts that must not be forgotten.
func (l *lease) inUse() bool { return l.known || l.granted > 0 }

// turn makes the lease of p's window the one at hand. What is closed at the time horizon is not
// kept.
func (all *leases) turn(p syncproto.Pool, atHand *lease, horizon int64) {
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
	left := p
	left.Window = before.window
	if before.inUse() && !left.Closed(horizon) {
		all.park(left, before)
	}
}

func (all *leases) park(p syncproto.Pool, l lease) *lease {
	parked := all.parked[windowless(p)]
	if len(parked) == maxParked {
		parked = slices.Delete(parked, 0, 1)
	}
	all.parked[windowless(p)] = append(parked, &l)
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

// dropPast drops the parked leases of p's account or key that are closed at the time horizon.
func (all *leases) dropPast(p syncproto.Pool, horizon int64) {
	all.keepParked(p, func(l *lease) bool {
		p.Window = l.window
		return !p.Closed(horizon)
	})
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

// horizon is the earlier of the edge's and the writer's time: a window that is closed then is closed,
// unless both clocks are wrong. It is 0, when none is closed, while the writer was not just heard: its clock
// may have been wrong then, and the edge's be wrong now.
func (s *EdgeState) horizon(now int64) int64 {
	if !within(now-s.session.contact, contactMillis) {
		return 0
	}
	return min(now, s.session.writersTime)
}

// absurdMillis is how far ahead the end of a lease is not believed: twice the writer's 24 hours.
// The clock of the writer that granted it was wrong, or this edge's is.
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
