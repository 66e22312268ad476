package ledger

import (
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Sync takes what an edge reports and wants, and replies with the news. The reply has the
// status Stranger when the session is not the edge's current one.
func (l *Ledger) Sync(now int64, e *Edge, s *syncproto.Sync) *syncproto.Reply {
	if e.current == nil || s.Session != e.session {
		return &syncproto.Reply{Status: syncproto.Stranger, Session: s.Session, Generation: l.Generation, Live: l.Live(now), NowMillis: now}
	}
	e.Seen = now
	l.beginDay(now, e)
	strangers := l.strangers
	//mutant:batch-applied-twice
	if s.Batch != nil && s.Batch.Seq == e.current.Applied+1 {
		l.apply(now, e, s.Batch)
	}
	l.takeDeclaration(now, e, s)
	l.takeRates(now, e, s.Rates)
	for _, w := range s.Wants {
		l.noteWant(now, e, w)
	}
	e.excess.strange += l.strangers - strangers
	l.sweep(now, s.NowMillis)
	l.settle(now)
	return l.answer(now, e, s)
}

// HasNews reports whether a held message should be answered now: there is urgent news for
// the edge, or its session is over.
func (l *Ledger) HasNews(e *Edge, s *syncproto.Sync) bool {
	return e.current == nil || s.Session != e.session || e.urgent > s.Seen
}

// answer replies with the news after what the edge has seen.
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
		return n.version <= e.dropped || n.stale()
	})
	r.Since, r.Upto = e.dropped, e.version
	for _, n := range e.news {
		if len(r.Rows) == syncproto.MaxRows {
			r.Upto = r.Rows[len(r.Rows)-1].Version
			break
		}
		r.Rows = append(r.Rows, n.lease.row())
	}
	r.Others = l.otherRates(e)
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

// noteWant notes what an edge asks for; settle serves it.
func (l *Ledger) noteWant(now int64, e *Edge, w syncproto.Want) {
	if e.Retired || e.current.Number != e.Epoch {
		return
	}
	p := l.pool(now, w.Pool)
	if p == nil {
		return
	}
	h := l.lease(e, e.current, p)
	h.want = syncproto.Want{Pool: w.Pool, Target: max(w.Target, 1), Urgent: w.Urgent}
	l.touch(p)
}

// apply books a batch of the session's epoch. Its usage may belong to an earlier one.
func (l *Ledger) apply(now int64, e *Edge, b *syncproto.Batch) {
	epoch := e.current
	epoch.Applied = b.Seq
	l.changes.epoch(e, epoch)
	//mutant:lost-batch-keeps-its-leases
	if b.Empty() { // the edge sends it in place of a batch that it lost
		l.supersede(e, epoch)
	}
	of := e.epochs[b.Of]
	switch {
	case of == nil && l.Restoring && b.Of != 0 && b.Of < epoch.Number:
		// An earlier epoch that was lost with the ledger. The leases of this one did not pay.
		of = &Epoch{Number: b.Of, leases: map[syncproto.Pool]*Lease{}}
		e.epochs[b.Of] = of // stored below
		e.excess.strange++
	case of == nil:
		of = epoch
	}
	if of.Number < epoch.Number && !of.Forked && !of.Ended {
		// An edge that reports usage of an earlier epoch has left that epoch. If the edge is
		// an older copy (Forked), its original may still come back and continue in it.
		of.Ended = true
		l.changes.epoch(e, of)
	}
	over := e.Retired || of != epoch || b.Of != 0 && b.Of != epoch.Number // the epoch may be unknown
	// Voids first: the edge may have spent their units again. Edges list them first too, but
	// invariant 2 must not depend on that.
	for _, voids := range []bool{true, false} {
		for i := range b.Usage {
			if u := &b.Usage[i]; u.Count < 0 == voids {
				l.bookUsage(now, e, of, over, u)
			}
		}
	}
	for _, r := range b.Returns {
		l.takeReturn(now, e, r)
	}
	for _, u := range b.Unresolved {
		if e.excess.takesDoubt() {
			l.changes.Unresolved = append(l.changes.Unresolved, UnresolvedRow{u, e.Name})
		}
	}
}

// supersede ends an epoch whose edge holds leases that differ from the ledger's: the edge is told to
// return everything, and continues in a new one. A restored ledger learns the leases from declarations.
func (l *Ledger) supersede(e *Edge, epoch *Epoch) {
	if epoch.Number == e.Epoch && !e.Retired {
		e.Epoch++
		l.changes.edge(e)
	}
}

// bookUsage counts a row of usage of an epoch in its pools. over says that the epoch has
// ended.
func (l *Ledger) bookUsage(now int64, e *Edge, of *Epoch, over bool, u *syncproto.Usage) {
	l.changes.usage(u)
	l.noteUsage(e, u)
	l.countKey(now, u)
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
		switch beyond := l.spend(l.lease(e, of, p), u.Count, over); { // dashboard/credits.go reads these notes
		case beyond > 0:
			if of == e.current && id.Kind == syncproto.Credits {
				l.supersede(e, of)
			}
			l.addEntry(p, EntrySpent, 0, decimal(beyond)+" charges beyond the lease of "+e.Name)
		case beyond < 0:
			l.addEntry(p, EntrySpent, 0, decimal(-beyond)+" charges beyond the lease of "+e.Name+" taken back")
		}
	}
}

// takeReturn books returned units. A close also ends the lease.
func (l *Ledger) takeReturn(now int64, e *Edge, r syncproto.Return) {
	p := l.pool(now, r.Pool)
	if p == nil {
		return
	}
	h := e.current.leases[p.ID]
	if h == nil && l.Restoring {
		h = l.lease(e, e.current, p)
	}
	held := int64(0)
	if h != nil {
		held = h.Outstanding()
	}
	if r.Pool.Kind == syncproto.Credits && r.Units > held && !l.Restoring {
		l.supersede(e, e.current)
	}
	if h == nil {
		return
	}
	l.giveBack(h, r.Units)
	switch {
	case r.Close && h.Lost:
		h.version = 0 // the edge has forgotten it: news of it would be a grant
	case r.Close:
		l.giveBack(h, h.Outstanding()) // 0, unless the edge is broken or a wrong clock made what it returned forgotten
		l.remove(h)
	}
}
