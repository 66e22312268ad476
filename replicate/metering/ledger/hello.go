package ledger

import (
	"maps"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Hello opens a session for an edge, and replies with its epoch and status.
func (l *Ledger) Hello(now int64, e *Edge, h *syncproto.Hello) *syncproto.Reply {
	e.Seen = now
	l.beginDay(now, e)
	status, epoch := l.classify(e, h)
	epoch.greeted = h.Boot
	l.sessions++
	e.session, e.current = l.Generation<<sessionBits|l.sessions%(1<<sessionBits), epoch
	e.version, e.urgent, e.dropped = 0, 0, 0
	e.news, e.rates, e.listed = nil, nil, map[int64]bool{}
	if status != syncproto.Retired {
		l.announceLeases(e, epoch)
	}
	l.finishRestore()
	l.settle(now)
	r := l.reply(now, e, status)
	r.Upto = 0
	return r
}

// classify finds the epoch for a session, and makes one where a new one is needed.
func (l *Ledger) classify(e *Edge, h *syncproto.Hello) (syncproto.Status, *Epoch) {
	known := e.epochs[h.Epoch]
	if known != nil && known.Ended && h.Sealed >= known.Applied && h.Boot != known.greeted {
		if !e.Retired && l.edgeIsAhead(h, known) {
			l.enterRestore(e)
		}
		// This is an older copy, although its batches do not show it: those of its original
		// were lost here in a restore.
		known.Applied = h.Sealed + 1
		l.changes.epoch(e, known)
	}
	switch {
	case e.Retired:
		if known == nil && e.excess.adopted >= retiredEpochs {
			known = e.newest()
		}
		if known == nil {
			known = l.adopt(e, h)
			e.excess.adopted++
		}
		return syncproto.Retired, known
	case h.Epoch == 0:
		return syncproto.Fresh, l.newEpoch(e, h)
	case known == nil:
		l.enterRestore(e)
		known = l.adopt(e, h)
	//mutant:older-disk-copy-not-fenced
	case h.Sealed < known.Applied:
		known.Forked = true
		l.changes.epoch(e, known)
		return syncproto.Forked, l.newEpoch(e, h)
	case l.edgeIsAhead(h, known):
		l.enterRestore(e)
	}
	if l.Restoring && h.Granted > known.Granted {
		known.Granted = h.Granted
		l.changes.epoch(e, known)
	}
	if known.Number < e.Epoch {
		return syncproto.Superseded, known
	}
	return syncproto.OK, known
}

// edgeIsAhead reports whether an edge has got replies about an epoch that this ledger does
// not know of.
func (l *Ledger) edgeIsAhead(h *syncproto.Hello, known *Epoch) bool {
	return h.Acked > known.Applied || h.Granted > known.Granted || h.Generation > l.Generation
}

// newEpoch gives an edge an epoch without leases. A process that asks again, because the
// reply was lost or its message was repeated, gets the same epoch. The number is at least
// the generation, since lower ones may have been given by a ledger that was lost.
func (l *Ledger) newEpoch(e *Edge, h *syncproto.Hello) *Epoch {
	if newest := e.epochs[e.Epoch]; newest != nil && newest.Boot == h.Boot && newest.Number > h.Epoch {
		return newest
	}
	e.Epoch = max(e.Epoch+1, l.Generation)
	epoch := &Epoch{Number: e.Epoch, Boot: h.Boot, leases: map[syncproto.Pool]*Lease{}}
	e.epochs[e.Epoch] = epoch
	e.excess.strange++
	// After a restore even an empty epoch has to be declared: the Hello may have been delayed,
	// and the edge may hold leases of an epoch that is not known here yet.
	e.Declared = !l.Restoring
	l.changes.edge(e)
	l.changes.epoch(e, epoch)
	return epoch
}

// retiredEpochs bounds the epochs of a retired edge that are adopted in a day: each stays, and its machine may be in other
// hands.
const retiredEpochs = 32

// newest is the greatest epoch of an edge that is known, nil without one. It may be lower than e.Epoch (see supersede).
func (e *Edge) newest() *Epoch {
	if len(e.epochs) == 0 {
		return nil
	}
	return e.epochs[slices.Max(slices.Collect(maps.Keys(e.epochs)))]
}

// adopt takes over an epoch that a restored ledger does not know.
func (l *Ledger) adopt(e *Edge, h *syncproto.Hello) *Epoch {
	epoch := &Epoch{Number: h.Epoch, Boot: h.Boot, leases: map[syncproto.Pool]*Lease{}}
	e.epochs[h.Epoch] = epoch
	e.excess.strange++
	e.Epoch = max(e.Epoch, h.Epoch)
	l.changes.edge(e)
	l.changes.epoch(e, epoch)
	return epoch
}

// announceLeases makes news of all leases of an epoch that were not written off.
func (l *Ledger) announceLeases(e *Edge, epoch *Epoch) {
	for _, p := range sortedPools(epoch.leases) {
		if !epoch.leases[p].Lost {
			l.addNews(epoch.leases[p], false)
			l.tellRate(e, p)
		}
	}
}
