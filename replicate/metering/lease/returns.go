package lease

import (
	"maps"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// returns lists what the next batch may give back to the writer. The lists are hints: what
// a lease holds is looked up when the batch is made.
type returns struct {
	recalled []syncproto.Pool // leases that the writer recalls
	excess   []syncproto.Pool // idle leases, to be reduced to their floor
	closing  []int64          // idle accounts
	notOpen  []syncproto.Pool // leases in whose windows the writer grants nothing
	// unexplained are volume leases of which the writer may count units as held here that are not.
	unexplained map[syncproto.Pool]bool
}

func (r *returns) recall(p syncproto.Pool) { r.recalled = append(r.recalled, p) }

func (r *returns) noteUnexplained(p syncproto.Pool) {
	if r.unexplained == nil {
		r.unexplained = map[syncproto.Pool]bool{}
	}
	r.unexplained[p] = true
}

func (r *returns) len() int {
	return len(r.recalled) + len(r.excess) + len(r.closing) + len(r.notOpen) + len(r.unexplained)
}

// clear forgets what is listed, but for the unexplained leases that did not fit into a batch.
func (r *returns) clear() {
	r.recalled, r.excess, r.closing, r.notOpen = r.recalled[:0], r.excess[:0], r.closing[:0], r.notOpen[:0]
}

// returnList builds the returns of one batch, at most one for each lease.
type returnList struct {
	list  []syncproto.Return
	index map[syncproto.Pool]int
}

func newReturnList() *returnList { return &returnList{index: map[syncproto.Pool]int{}} }

// put adds a return of at most a message's units. A close replaces an earlier return of the same lease.
func (r *returnList) put(n syncproto.Return) {
	n.Units = min(n.Units, syncproto.MaxUnits) // a void may bring back one more than any grant
	if i, ok := r.index[n.Pool]; ok {
		if n.Close {
			r.list[i] = n
		}
		return
	}
	if len(r.list) < syncproto.MaxReturns {
		r.index[n.Pool] = len(r.list)
		r.list = append(r.list, n)
	}
}

// putExcess returns what a lease of the pool holds above keep.
func (r *returnList) putExcess(p syncproto.Pool, l *lease, keep int64) {
	if l != nil && l.window == p.Window && l.held() > keep {
		r.put(syncproto.Return{Pool: p, Units: l.held() - keep})
	}
}

// putClose returns both leases of an account and ends them: both or none, so there must be
// room for two.
func (r *returnList) putClose(id int64, a *account) {
	if len(r.list) > syncproto.MaxReturns-2 {
		return
	}
	r.closeLease(creditsPool(id), &a.credits)
	r.closeLease(volumePool(id, a.volume.window), &a.volume)
}

func (r *returnList) closeLease(p syncproto.Pool, l *lease) {
	if l.open() {
		r.put(syncproto.Return{Pool: p, Units: max(l.held(), 0), Close: true})
	}
}

// dueReturns takes the listed returns of an edge in service.
func (s *EdgeState) dueReturns(now int64) []syncproto.Return {
	r := newReturnList()
	for _, p := range s.returns.recalled {
		s.putRecalled(r, p)
	}
	for _, p := range s.returns.excess {
		r.putExcess(p, s.leases.find(p), floorUnits)
	}
	for _, id := range s.returns.closing {
		if a := s.leases.accounts.get(id); a != nil && now-a.lastUsed >= idleMillis {
			r.putClose(id, a)
		}
	}
	for _, p := range s.returns.notOpen {
		if l := s.leases.find(p); l != nil && !p.Open(now) {
			r.closeLease(p, l)
		}
	}
	s.closeUnexplained(r)
	s.returns.clear()
	return r.list
}

// putRecalled returns what a recalled lease holds. One of volume is closed with it: if the writer counts more as
// held here than is (see closeUnexplained), it would else wait for the rest until the lease ends.
func (s *EdgeState) putRecalled(r *returnList, p syncproto.Pool) {
	l := s.leases.find(p)
	if p.Kind == syncproto.Volume && l != nil {
		r.closeLease(p, l)
		return
	}
	r.putExcess(p, l, 0)
}

// closeUnexplained closes volume leases that are empty here although the writer neither grants more nor says
// that nothing is left. The writer then counts units as held here that are not. This happens after its ledger,
// by a wrong clock, took their month for past and forgot what was spent and returned, and then, restored from a
// backup, was told again what was granted. A closed lease begins anew. This batch has all unreported usage, so
// closing a lease without need loses nothing.
func (s *EdgeState) closeUnexplained(r *returnList) {
	for _, p := range slices.SortedFunc(maps.Keys(s.returns.unexplained), syncproto.Pool.Compare) {
		if len(r.list) == syncproto.MaxReturns {
			return
		}
		if l := s.leases.find(p); l != nil && l.unexplained() {
			r.closeLease(p, l)
		}
		delete(s.returns.unexplained, p)
	}
}

// unexplained reports whether a volume lease holds nothing, although the writer said that there is more, here or
// elsewhere.
func (l *lease) unexplained() bool {
	return l.known && l.granted > 0 && l.held() <= 0 && (!l.dry || l.recalled)
}

// allReturns closes every account and returns what keys hold, as far as it fits into a batch, for a superseded
// epoch. In a damaged epoch it is unknown what is held: the writer then takes back what it counts as left of
// the closed leases.
func (s *EdgeState) allReturns() []syncproto.Return {
	r := newReturnList()
	if s.standing.damaged {
		for id, a := range s.leases.accounts.all() {
			r.putClose(id, a)
		}
		for i := range r.list {
			r.list[i].Units = 0
		}
		return r.list
	}
	putParked := func(p syncproto.Pool, l *lease) { r.putExcess(p, l, 0) }
	for id, a := range s.leases.accounts.all() {
		r.putClose(id, a)
		s.leases.eachParked(volumePool(id, 0), putParked)
	}
	for id, l := range s.leases.keys.all() {
		r.putExcess(notFoundPool(id, l.window), l, 0)
		s.leases.eachParked(notFoundPool(id, 0), putParked)
	}
	return r.list
}

// applyReturn takes a return of the batch seq out of its lease.
func (s *EdgeState) applyReturn(r syncproto.Return, seq uint64) {
	l := s.leases.find(r.Pool)
	if l == nil || l.window != r.Pool.Window {
		return
	}
	//mutant:returned-units-still-spent
	l.returned += r.Units
	l.dry = l.dry && r.Units == 0 // returned units can be granted again
	if r.Close {
		*l = lease{window: l.window, since: seq}
	}
}

// sweep looks at some accounts and keys: idle leases, and those in whose windows the writer grants nothing, are
// listed for return, and what has ended is dropped.
func (s *EdgeState) sweep(now int64) {
	if !s.sweeps() {
		return
	}
	s.leases.accounts.sweep(func(id int64, a *account) { s.sweepAccount(id, a, now) })
	s.leases.keys.sweep(func(id int64, l *lease) {
		p := notFoundPool(id, l.window)
		s.endOthers(now, p)
		if s.ended(now, p, l) && len(s.leases.parked[windowless(p)]) == 0 {
			s.leases.keys.drop(id)
		}
	})
}

// sweeps reports whether idle and past leases are returned now.
func (s *EdgeState) sweeps() bool { return !s.declaration.active && s.Serving() }

// sweepWindows lists the leases in windows without grants, of an account or key that has too many: the
// regular sweep may be far off.
func (s *EdgeState) sweepWindows(now int64, p syncproto.Pool) {
	if s.sweeps() {
		s.endOthers(now, p)
	}
}

func (s *EdgeState) sweepAccount(id int64, a *account, now int64) {
	s.endOthers(now, volumePool(id, 0))
	a.lastUsed = min(a.lastUsed, now) // the clock was ahead
	idle := now - a.lastUsed
	open := a.credits.open() || a.volume.open() || len(s.leases.parked[volumePool(id, 0)]) > 0
	switch {
	case !open && a.unreported == 0 && idle > idleMillis && s.outbox.applied >= max(a.credits.since, a.volume.since):
		s.leases.accounts.drop(id)
	case open && idle >= idleMillis:
		s.returns.closing = append(s.returns.closing, id)
	case open && idle >= slotMillis:
		s.returns.excess = append(s.returns.excess, creditsPool(id), volumePool(id, a.volume.window))
	}
}
