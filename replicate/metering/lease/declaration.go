package lease

import "regedge/replicate/metering/syncproto"

// declaration is the progress in listing all leases to a writer whose ledger was restored
// from a backup. Leases are listed in the order of the accounts, then of the keys; a
// message holds a part of them.
type declaration struct {
	active  bool
	sent    int // accounts and keys in answered messages
	pending int // accounts and keys in the message under way
}

// demand updates the declaration as a reply asks. total is the number of accounts and keys.
func (d *declaration) demand(wanted, ofSync bool, total int) {
	switch {
	case !wanted:
		d.active, d.sent = false, 0
	case !d.active:
		d.active, d.sent = true, 0
	case ofSync:
		d.sent += d.pending
		if d.sent >= total {
			d.sent = 0 // the writer still asks: begin again
		}
	}
	d.pending = 0
}

// declare adds the next part of the declaration to a message.
func (s *EdgeState) declare(m *syncproto.Sync) {
	d, l := &s.declaration, &s.leases
	d.pending = 0
	if !d.active {
		return
	}
	accounts, total := l.accounts.len(), l.accounts.len()+l.keys.len()
	for i := d.sent; i < total && len(m.Declared) <= syncproto.MaxDeclared-1-maxWindows; i++ {
		if i < accounts {
			id := l.accounts.order[i]
			a := l.accounts.get(id)
			addDeclared(m, creditsPool(id), &a.credits)
			addDeclared(m, volumePool(id, a.volume.window), &a.volume)
			l.eachParked(volumePool(id, 0), func(p syncproto.Pool, parked *lease) { addDeclared(m, p, parked) })
		} else {
			id := l.keys.order[i-accounts]
			held := l.keys.get(id)
			addDeclared(m, notFoundPool(id, held.window), held)
			l.eachParked(notFoundPool(id, 0), func(p syncproto.Pool, parked *lease) { addDeclared(m, p, parked) })
		}
		d.pending++
	}
	m.DeclaredLast = d.sent+d.pending == total
}

func addDeclared(m *syncproto.Sync, p syncproto.Pool, l *lease) {
	if l.known && l.granted > 0 {
		m.Declared = append(m.Declared, syncproto.Declared{Pool: p, Granted: l.granted})
	}
}
