package ledger

import (
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Hello opens a session for an edge and tells it where it stands.
func (l *Ledger) Hello(now int64, e *Edge, h *syncproto.Hello) *syncproto.Reply {
	e.Seen = now
	status, epoch := l.judge(e, h)
	epoch.greeted = h.Boot
	l.sessions++
	e.session, e.current = l.Generation<<sessionBits|l.sessions%(1<<sessionBits), epoch
	e.version, e.urgent, e.dropped = 0, 0, 0
	e.news, e.rates, e.listed = nil, nil, map[int64]bool{}
	if status != syncproto.Retired {
		l.renew(e, epoch)
	}
	l.restored()
	l.settle(now)
	r := l.reply(now, e, status)
	r.Upto = 0
	return r
}

// judge finds the epoch of a session, making one where it must be new.
func (l *Ledger) judge(e *Edge, h *syncproto.Hello) (syncproto.Status, *Epoch) {
	known := e.epochs[h.Epoch]
	if known != nil && known.Ended && h.Sealed >= known.Applied && h.Boot != known.greeted {
		if !e.Retired && l.edgeIsAhead(h, known) {
			l.enterRestore(e)
		}
		// A copy, and batches of its original are missing here since a restore.
		known.Applied = h.Sealed + 1
		l.changes.epoch(e, known)
	}
	switch {
	case e.Retired:
		if known == nil {
			known = l.adopt(e, h)
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

// edgeIsAhead reports whether an edge was told what this ledger does not know of an epoch.
func (l *Ledger) edgeIsAhead(h *syncproto.Hello, known *Epoch) bool {
	return h.Acked > known.Applied || h.Granted > known.Granted || h.Generation > l.Generation
}

// newEpoch gives an edge an epoch in which nothing is held. A process that asks again,
// because the answer was lost or its message was repeated on the way, gets the same. Its
// number is not below the generation's: one that a restored ledger does not know may have
// been given before.
func (l *Ledger) newEpoch(e *Edge, h *syncproto.Hello) *Epoch {
	if newest := e.epochs[e.Epoch]; newest != nil && newest.Boot == h.Boot && newest.Number > h.Epoch {
		return newest
	}
	e.Epoch = max(e.Epoch+1, l.Generation)
	epoch := &Epoch{Number: e.Epoch, Boot: h.Boot, leases: map[syncproto.Pool]*Lease{}}
	e.epochs[e.Epoch] = epoch
	// It holds nothing, which after a restore it has to say: who asked may be a message that
	// was under way for long, while the edge holds leases of an epoch that is not known yet.
	e.Declared = !l.Restoring
	l.changes.edge(e)
	l.changes.epoch(e, epoch)
	return epoch
}

// adopt takes over an epoch that a restored ledger does not know.
func (l *Ledger) adopt(e *Edge, h *syncproto.Hello) *Epoch {
	epoch := &Epoch{Number: h.Epoch, Boot: h.Boot, leases: map[syncproto.Pool]*Lease{}}
	e.epochs[h.Epoch] = epoch
	e.Epoch = max(e.Epoch, h.Epoch)
	l.changes.edge(e)
	l.changes.epoch(e, epoch)
	return epoch
}

// enterRestore begins the restoring of a ledger that an edge knows to be older than it was:
// no grant is made until each has declared its leases, and this one certainly.
func (l *Ledger) enterRestore(e *Edge) {
	if !l.Restoring {
		l.Restore()
	}
	e.Declared = false
	l.changes.edge(e)
}

// Restore says that the ledger came back from a backup.
func (l *Ledger) Restore() {
	l.Restoring = true
	l.changes.Restoring = &l.Restoring
	for _, e := range l.edges {
		e.Declared = e.Epoch == 0
		l.changes.edge(e)
	}
}

// renew makes news of all leases of a session's epoch that were not given up.
func (l *Ledger) renew(e *Edge, epoch *Epoch) {
	for _, p := range sortedPools(epoch.leases) {
		if !epoch.leases[p].Lost {
			l.bump(epoch.leases[p], false)
		}
	}
}

// Sync takes what an edge reports and wants, and answers the news. The answer to a session
// that is not the edge's is Stranger.
func (l *Ledger) Sync(now int64, e *Edge, s *syncproto.Sync) *syncproto.Reply {
	if e.current == nil || s.Session != e.session {
		return &syncproto.Reply{Status: syncproto.Stranger, Session: s.Session, Generation: l.Generation, Live: l.Live(now), NowMillis: now}
	}
	e.Seen = now
	//mutant:batch-applied-twice
	if s.Batch != nil && s.Batch.Seq == e.current.Applied+1 {
		l.apply(now, e, s.Batch)
	}
	l.declared(now, e, s)
	l.takeRates(now, e, s.Rates)
	for _, w := range s.Wants {
		l.want(now, e, w)
	}
	l.sweep(now)
	l.settle(now)
	return l.answer(now, e, s)
}

// HasNews reports whether there is something for the edge that should not wait, so that
// a held message is answered. A session that is over is news too.
func (l *Ledger) HasNews(e *Edge, s *syncproto.Sync) bool {
	return e.current == nil || s.Session != e.session || e.urgent > s.Seen
}

// answer gives the news after what the edge has seen.
func (l *Ledger) answer(now int64, e *Edge, s *syncproto.Sync) *syncproto.Reply {
	status := syncproto.OK
	switch {
	case e.Retired:
		status = syncproto.Retired
	case e.current.Number < e.Epoch:
		status = syncproto.Superseded
	}
	r := l.reply(now, e, status)
	e.dropped = max(e.dropped, min(s.Seen, e.version))
	e.news = slices.DeleteFunc(e.news, func(n news) bool {
		return n.version <= e.dropped || n.version != n.lease.version
	})
	r.Since, r.Upto = e.dropped, e.version
	for _, n := range e.news {
		if len(r.Rows) == syncproto.MaxRows {
			r.Upto = r.Rows[len(r.Rows)-1].Version
			break
		}
		r.Rows = append(r.Rows, n.lease.row())
	}
	r.Others = l.others(e)
	return r
}

func (l *Ledger) reply(now int64, e *Edge, status syncproto.Status) *syncproto.Reply {
	return &syncproto.Reply{
		Status: status, Session: e.session, Epoch: e.current.Number, Generation: l.Generation,
		Applied: e.current.Applied, Live: l.Live(now), NowMillis: now,
		Declare: l.Restoring && !e.Declared && status != syncproto.Retired,
	}
}

func (h *Lease) row() syncproto.Row {
	row := syncproto.Row{
		Version: h.version, Pool: h.pool.ID, Granted: h.Granted, UntilMillis: h.Until,
		Recall: h.toldRecall, Dry: h.toldDry,
	}
	if h.pool.ID.Kind == syncproto.Credits {
		row.Balance = h.pool.Balance()
	}
	return row
}

// want notes what an edge asks for; settle serves it.
func (l *Ledger) want(now int64, e *Edge, w syncproto.Want) {
	if e.Retired || e.current.Number != e.Epoch {
		return
	}
	p := l.pool(now, w.Pool)
	if p == nil {
		return
	}
	h := l.lease(e, e.current, p, true)
	h.want = syncproto.Want{Pool: w.Pool, Target: max(w.Target, 1), Urgent: w.Urgent}
	l.touch(p)
}

// declared takes a part of an edge's declaration after the ledger was restored.
func (l *Ledger) declared(now int64, e *Edge, s *syncproto.Sync) {
	if !l.Restoring || e.Declared || e.Retired {
		return
	}
	for _, d := range s.Declared {
		p := l.pool(now, d.Pool)
		if p == nil {
			continue
		}
		if h := l.lease(e, e.current, p, true); d.Granted > h.Granted {
			l.grantRetroactively(h, d.Granted-h.Granted)
		}
	}
	if s.DeclaredLast {
		e.Declared = true
		l.changes.edge(e)
		l.restored()
	}
}

// restored ends the restoring when no edge is awaited any more.
func (l *Ledger) restored() {
	if l.Restoring && len(l.Awaited()) == 0 {
		l.Restoring = false
		l.changes.Restoring = &l.Restoring
		for _, id := range sortedPools(l.pools) {
			l.touch(l.pools[id])
		}
	}
}

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

// apply books a batch.
func (l *Ledger) apply(now int64, e *Edge, b *syncproto.Batch) {
	epoch := e.current
	epoch.Applied = b.Seq
	l.changes.epoch(e, epoch)
	of := e.epochs[b.Of]
	switch {
	case of == nil && l.Restoring && b.Of != 0 && b.Of < epoch.Number:
		// An earlier epoch that was lost with the ledger: not this one's leases paid.
		of = &Epoch{Number: b.Of, leases: map[syncproto.Pool]*Lease{}}
		e.epochs[b.Of] = of
		l.changes.epoch(e, of)
	case of == nil:
		of = epoch
	}
	if of.Number < epoch.Number && !of.Forked && !of.Ended {
		// Who reports of an earlier epoch has left it. Where a copy was seen to do so, its
		// original may come back and go on.
		of.Ended = true
		l.changes.epoch(e, of)
	}
	over := e.Retired || of != epoch || b.Of != 0 && b.Of != epoch.Number // which may be forgotten
	// What was taken back comes first, as edges list it since they may have spent these units
	// again; one of an earlier version lists them in any order.
	for _, back := range []bool{true, false} {
		for i := range b.Usage {
			if u := &b.Usage[i]; u.Count < 0 == back {
				l.book(now, e, of, over, u)
			}
		}
	}
	for _, r := range b.Returns {
		l.takeReturn(now, e, r)
	}
	for _, u := range b.Unresolved {
		l.changes.Unresolved = append(l.changes.Unresolved, UnresolvedRow{u, e.Name})
	}
}

// book counts a row of usage in its pools: of an epoch, which may be over.
func (l *Ledger) book(now int64, e *Edge, of *Epoch, over bool, u *syncproto.Usage) {
	l.changes.usage(u)
	var pools []syncproto.Pool
	switch u.Outcome {
	case charge.Found:
		l.ensureAccount(u.Account)
		pools = []syncproto.Pool{
			{Kind: syncproto.Credits, Subject: u.Account},
			{Kind: syncproto.Volume, Subject: u.Account, Window: syncproto.MonthOfHour(u.Hour)},
		}
	case charge.NotFound:
		pools = []syncproto.Pool{{Kind: syncproto.NotFound, Subject: u.Key, Window: syncproto.DayOfHour(u.Hour)}}
	}
	for _, id := range pools {
		p := l.pool(now, id)
		if p == nil {
			continue
		}
		if a := l.accounts[id.Subject]; id.Kind == syncproto.Credits && a != nil {
			l.post(a, syncproto.Hour(now))
		}
		switch beyond := l.spend(l.lease(e, of, p, true), u.Count, over); {
		case beyond > 0:
			l.enter(p, EntrySpent, 0, decimal(beyond)+" charges beyond the lease of "+e.Name)
		case beyond < 0:
			l.enter(p, EntrySpent, 0, decimal(-beyond)+" charges beyond the lease of "+e.Name+" taken back")
		}
	}
}

// takeReturn books a return. A close also ends the lease.
func (l *Ledger) takeReturn(now int64, e *Edge, r syncproto.Return) {
	p := l.pool(now, r.Pool)
	if p == nil {
		return
	}
	h := l.lease(e, e.current, p, l.Restoring)
	if h == nil {
		return
	}
	l.giveBack(h, r.Units)
	if r.Close && !h.Lost {
		l.giveBack(h, h.Outstanding()) // nothing, from an edge in its right mind
		l.remove(h)
	}
}
