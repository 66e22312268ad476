package ledger

import (
	"slices"

	"regedge/replicate/metering/syncproto"
)

// enterRestore starts a restore because edge e has shown that the ledger lost data. Nothing is granted until
// every edge has declared its leases, including this one.
func (l *Ledger) enterRestore(e *Edge) {
	if !l.Restoring {
		l.Restore()
	}
	e.Declared = false
	l.changes.edge(e)
}

// Restore starts a restore: the ledger came back from a backup. An edge without an epoch is awaited,
// too: it may have got its first one, and leases, since the backup.
func (l *Ledger) Restore() {
	l.Restoring = true
	l.changes.Restoring, l.changes.leapIDs = &l.Restoring, true
	for _, e := range l.edges {
		e.Declared = false
		l.changes.edge(e)
	}
}

// takeDeclaration takes one part of the list of leases that an edge holds.
func (l *Ledger) takeDeclaration(now int64, e *Edge, s *syncproto.Sync) {
	//mutant:declaration-taken-unasked
	if !l.Restoring || e.Declared || e.Retired {
		return
	}
	for _, d := range s.Declared {
		p := l.pool(now, d.Pool)
		if p == nil {
			continue
		}
		if h := l.lease(e, e.current, p); d.Granted > h.Granted {
			l.grantRetroactively(h, d.Granted-h.Granted)
		}
	}
	if s.DeclaredLast {
		e.Declared = true
		l.changes.edge(e)
		l.finishRestore()
	}
}

// finishRestore ends the restore when no edge is awaited any more.
func (l *Ledger) finishRestore() {
	if l.Restoring && len(l.Awaited()) == 0 {
		l.Restoring = false
		l.changes.Restoring = &l.Restoring
		l.covered = Covered{}
		//mutant:cover
		for _, id := range sortedPools(l.pools) {
			l.cover(l.pools[id])
		}
		for _, id := range sortedPools(l.pools) {
			l.touch(l.pools[id])
		}
	}
}

// Covered is what the end of a restore compensated, since edges held more than accounts had: credits whose
// purchase was lost with the ledger.
type Covered struct{ Accounts, Credits int64 }

// Covered is of the last restore that ended while this process had the ledger.
func (l *Ledger) Covered() Covered { return l.covered }

// Awaited lists the edges whose declarations a restored ledger waits for, by name.
func (l *Ledger) Awaited() []string {
	var names []string
	for _, e := range l.edges {
		if l.Restoring && !e.Retired && !e.Declared {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// maxInPool bounds what edges can make a restored ledger believe of one pool. It is more than any
// account can have, and sums of it do not overflow.
const maxInPool = 4 * maxCredits

// grantRetroactively books a grant that the edge has and that the ledger has lost. What the pool can't
// cover is compensated when all edges have reported: until then another edge may still report that it
// had returned these units.
func (l *Ledger) grantRetroactively(h *Lease, units int64) {
	p := h.pool
	if units = min(units, maxInPool-p.Leased-p.Spent-p.Lost); units <= 0 {
		return
	}
	granted := h.epoch.Granted
	//mutant:grants-compensated-before-returns
	l.grant(h, units)
	h.epoch.Granted = granted // already the edge's own sum, from Hello
	if h.Lost {
		l.lose(h, units) // as the rest of it was when it was written off
	}
}

// cover compensates leases that exceed a pool of credits: edges were free to spend them. Of a quota it
// compensates the spending beyond the limit. A node may have made that spending up, and a later plan with a
// greater limit must still be of use to the account.
func (l *Ledger) cover(p *Pool) {
	if short := -p.Left(); short > 0 && p.ID.Kind == syncproto.Credits {
		l.compensate(p, short, "grants of a ledger that was lost")
		l.covered.Accounts++
		l.covered.Credits += short
	} else if short -= p.Leased; short > 0 {
		l.compensate(p, short, "")
	}
}

// maxMissing bounds how far beyond the known ids an account that was lost with the ledger may be: several
// leaps of ids. An edge that makes ids up must not exhaust them.
const maxMissing = 8 * MaxRestoredLeap

// restoredPlan is the plan of an account that a restored ledger lacks: the one of the first migration without
// access to the API. Plans are never deleted.
const restoredPlan = "free"

// ensureAccount makes an account that a restored ledger does not have, so that what edges
// report about it is not lost. The account is suspended until an operator looks at it.
func (l *Ledger) ensureAccount(id int64) {
	if l.Restoring && l.accounts[id] == nil && id-l.lastAccount <= maxMissing {
		l.putAccount(&Account{ID: id, Plan: restoredPlan, Suspended: true})
	}
}
