package ledger

import "fmt"

// spend books units that the edge spent: from the lease, as far as it reaches. What goes
// beyond is counted and not debited. Negative units are voids: first of what was beyond,
// then the edge holds them again, which of a lease that was given up is compensated, or, of
// an epoch that is over, they go back to the pool. It returns by how much what is beyond
// the lease grew.
func (l *Ledger) spend(h *Lease, units int64, over bool) (beyond int64) {
	p := h.pool
	if units > h.Outstanding() && l.Restoring && !h.Lost {
		l.grantRetroactively(h, units-h.Outstanding())
	}
	if units < 0 {
		beyond = max(units, -h.Beyond)
		units = max(units-beyond, -p.Spent) // a restored ledger may know less
	} else {
		beyond = max(units-max(h.Outstanding(), 0), 0)
		units -= beyond
	}
	h.Beyond += beyond
	h.Spent += units
	p.Spent += units
	h.toldBalance -= units
	switch {
	//mutant:late-report-debited-twice
	case h.Lost:
		p.Lost -= units
		l.enter(p, EntryLost, units, "late report of "+h.edge.Name)
		if units < 0 { // out there again, like the rest of the lease
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

// giveBack books units that the edge returned unspent.
//
//mutant:give-back
func (l *Ledger) giveBack(h *Lease, units int64) {
	if h.Lost {
		return // compensated already
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

// grantRetroactively books a grant that the edge knows of and a restored ledger does not. What the
// pool can't cover is compensated: the edge was free to spend it.
func (l *Ledger) grantRetroactively(h *Lease, units int64) {
	granted := h.epoch.Granted
	l.grant(h, units)
	h.epoch.Granted = granted // Hello brought the sum that the edge knows
	if short := -h.pool.Left(); short > 0 {
		l.compensate(h.pool, short, "grants of a ledger that was lost")
	}
}

// writeOff counts what is outstanding of a lease as lost, and compensates its owner.
func (l *Ledger) writeOff(h *Lease) {
	if h.Lost {
		return
	}
	h.Lost = true
	units := max(h.Outstanding(), 0)
	h.pool.Leased -= units
	h.pool.Lost += units
	l.changed(h)
	if units > 0 {
		l.enter(h.pool, EntryLost, -units, "out at "+h.edge.Name)
		l.compensate(h.pool, units, "out at "+h.edge.Name)
	}
}

func (l *Ledger) compensate(p *Pool, units int64, note string) {
	p.Compensated += units
	l.enter(p, EntryCompensated, units, note)
	l.changes.pool(p)
	l.touch(p)
}

// deduct takes what is left for a negative adjustment. What is then still out comes home
// by recall; what no lease holds any more can't be taken.
func (l *Ledger) deduct(p *Pool) {
	if p.Deducting == 0 {
		return
	}
	//mutant:adjustment-takes-leased-units
	if units := min(p.Deducting, max(p.Left(), 0)); units > 0 {
		p.Deducting -= units
		bought := min(units, p.Limit)
		p.Limit -= bought
		l.enter(p, EntryBought, -bought, "adjusted")
		if rest := units - bought; rest > 0 {
			p.Compensated -= rest
			l.enter(p, EntryCompensated, -rest, "adjusted")
		}
	}
	if p.Deducting > 0 && p.Leased == 0 {
		l.enter(p, EntryBought, 0, fmt.Sprintf("%d credits of an adjustment were spent already", p.Deducting))
		p.Deducting = 0
	}
	l.changes.pool(p)
}

func (l *Ledger) changed(h *Lease) {
	l.changes.lease(h)
	l.changes.pool(h.pool)
	l.touch(h.pool)
}
