package ledger

import "fmt"

// maxBeyond caps the count of units spent beyond a lease: a broken edge may report ever more, and the
// sum must not overflow.
const maxBeyond = 1 << 60

// spend books units that the edge spent. They are debited as far as the lease reaches; the rest is
// counted as beyond it. Negative units are voids. They first reduce the count beyond the lease; after
// that the edge holds the units again. When it can't, they return to the pool (the epoch is over) or
// are compensated (the lease was written off). spend returns the change of the count beyond the lease.
func (l *Ledger) spend(h *Lease, units int64, over bool) (beyond int64) {
	p := h.pool
	if units > h.Outstanding() && l.Restoring && !h.Lost {
		l.grantRetroactively(h, units-h.Outstanding())
	}
	if units < 0 {
		beyond = max(units, -h.Beyond)
		//mutant:voids-undo-what-others-spent
		units = max(units-beyond, -l.voidable(h))
	} else {
		beyond = max(units-max(h.Outstanding(), 0), 0)
		units -= beyond
	}
	h.Beyond = min(h.Beyond+beyond, maxBeyond)
	h.Spent += units
	p.Spent += units
	h.toldBalance -= units
	switch {
	//mutant:late-report-debited-twice
	case h.Lost:
		p.Lost -= units
		l.addEntry(p, EntryLost, units, "late report of "+h.edge.Name)
		if units < 0 { // outstanding again, and lost like the rest of the lease
			l.compensate(p, -units, "out at "+h.edge.Name)
		}
	case units < 0 && over:
		h.Returned -= units
	default:
		p.Leased -= units
	}
	l.changed(h)
	return beyond
}

// voidable is how many of its pool's spent units an edge may take back by voids: not those that were spent
// from other edges' leases. A restored ledger may know less than the edge. Units spent from leases that were
// closed since then belong to no edge.
func (l *Ledger) voidable(h *Lease) int64 {
	byEdge := map[*Edge]int64{} // of all its epochs: a void in one may be of another's charge
	for _, other := range h.pool.leases {
		if other.edge != h.edge {
			byEdge[other.edge] += other.Spent
		}
	}
	spent := h.pool.Spent
	for _, of := range byEdge {
		spent -= max(of, 0)
	}
	return max(spent, 0)
}

// settleVoids moves voids beyond a lease's own spending to the edge's other leases, before the lease ends.
// Otherwise their charges could be taken back twice. The outstanding units of these leases stay.
func (l *Ledger) settleVoids(h *Lease) {
	for _, other := range h.pool.leases {
		if units := min(-h.Spent, other.Spent); units > 0 && other.edge == h.edge {
			other.Spent -= units
			other.Returned += units
			h.Spent += units
			l.changed(other)
		}
	}
}

// giveBack books units that the edge returned unspent.
//
//mutant:give-back
func (l *Ledger) giveBack(h *Lease, units int64) {
	if h.Lost {
		return // the owner was compensated
	}
	if units > h.Outstanding() && l.Restoring {
		l.grantRetroactively(h, units-h.Outstanding())
	}
	units = min(units, max(h.Outstanding(), 0))
	h.Returned += units
	h.pool.Leased -= units
	l.changed(h)
}

// grant leases units to the edge.
func (l *Ledger) grant(h *Lease, units int64) {
	h.Granted += units
	h.pool.Leased += units
	h.epoch.Granted += units
	l.changes.epoch(h.edge, h.epoch)
	l.changed(h)
}

// writeOff counts what is outstanding of a lease as lost, and compensates the account.
func (l *Ledger) writeOff(h *Lease) {
	if h.Lost {
		return
	}
	h.Lost = true
	l.lose(h, max(h.Outstanding(), 0))
}

// lose counts leased units of a lease that is written off as lost.
func (l *Ledger) lose(h *Lease, units int64) {
	h.pool.Leased -= units
	h.pool.Lost += units
	l.changed(h)
	if units > 0 {
		l.addEntry(h.pool, EntryLost, -units, "out at "+h.edge.Name)
		l.compensate(h.pool, units, "out at "+h.edge.Name)
	}
}

func (l *Ledger) compensate(p *Pool, units int64, note string) {
	p.Compensated += units
	l.addEntry(p, EntryCompensated, units, note)
	l.changes.pool(p)
	l.touch(p)
}

// adjusted is the note of entries that an adjustment makes later, or without a note of its own.
const adjusted = "adjusted"

// note takes the left units of a negative adjustment under its note. When none can be taken before leases
// are returned, an entry of none keeps the note.
func (l *Ledger) note(p *Pool, note string) {
	before := p.Deducting
	l.deduct(p, note)
	if p.Deducting == before {
		l.addEntry(p, EntryBought, 0, note)
	}
}

// deduct takes left units for a negative adjustment, in entries with a note. The rest waits for recalled
// leases; what no lease holds any more was spent and can't be taken. A restored ledger does not know what is
// left until its edges have reported.
func (l *Ledger) deduct(p *Pool, note string) {
	if p.Deducting == 0 || l.Restoring {
		return
	}
	//mutant:adjustment-takes-leased-units
	if units := min(p.Deducting, max(p.Left(), 0)); units > 0 {
		p.Deducting -= units
		bought := min(units, p.Limit)
		if bought > 0 {
			p.Limit -= bought
			l.addEntry(p, EntryBought, -bought, note)
		}
		if rest := units - bought; rest > 0 {
			p.Compensated -= rest
			l.addEntry(p, EntryCompensated, -rest, note)
		}
	}
	if p.Deducting > 0 && p.Leased == 0 {
		l.addEntry(p, EntryBought, 0, fmt.Sprintf("%d credits of an adjustment were spent already", p.Deducting))
		p.Deducting = 0
	}
	l.changes.pool(p)
}

func (l *Ledger) changed(h *Lease) {
	l.changes.lease(h)
	l.changes.pool(h.pool)
	l.touch(h.pool)
}
