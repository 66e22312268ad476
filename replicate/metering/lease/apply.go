package lease

import "regedge/replicate/metering/syncproto"

// Applied is what came of a reply.
type Applied struct {
	// Batch was acknowledged; it has to be kept for a ledger that is restored from a
	// backup. Nil when none was.
	Batch *Reported
	// News says that leases changed: requests that wait should be decided again.
	News bool
	// Forked says that the state directory was an older copy; its leases are void.
	Forked bool
	// Abandoned says the same of an edge that is retired: what it did not report is
	// covered by what the writer counts as lost.
	Abandoned bool
}

// Reported is a batch that the writer has applied, and the epoch that it is numbered in.
type Reported struct {
	Epoch uint64
	Batch *syncproto.Batch
}

// Behind reports whether batches have still to be sent, or leases to be declared.
func (b *EdgeState) Behind() bool { return b.applied < b.sealed && !b.unread || b.declaring }

// TakeReplayed lists the batches whose acknowledgement was replayed: they may have to be
// kept still.
func (b *EdgeState) TakeReplayed() []Reported {
	taken := b.replayed
	b.replayed = nil
	return taken
}

// Apply takes the writer's reply to Hello, Sync or Watch. Replies may be repeated,
// delayed and overtaken: what is not newer than what is known changes nothing.
// ofSync says that the reply answers the message of Sync.
func (b *EdgeState) Apply(now int64, r *syncproto.Reply, ofSync bool) Applied {
	if r.Status == syncproto.Stranger {
		if r.Session == b.session {
			b.session = 0
		}
		if ofSync {
			b.Lost()
		}
		return Applied{}
	}
	if ofSync && len(b.asked) > 0 {
		b.asked = map[syncproto.Pool]syncproto.Want{}
	}
	anotherWriter := r.Status == syncproto.Fresh && r.Generation != b.generation
	if (anotherWriter || r.Status == syncproto.Retired) && b.session != 0 && b.settled() {
		// Another writer than the one that took everything, asked for a new epoch: it has to
		// see what it lacks of the old one. So does one that retired this node: its word is of
		// no epoch, when none was shown.
		b.session = 0
		b.heard(now, r)
		return Applied{}
	}
	if b.abandoned() && r.Epoch == b.epoch && (r.Status == syncproto.OK || r.Status == syncproto.Superseded) {
		// A ledger from before the edge was retired. The leases are short of what was dropped:
		// it goes on as with an empty directory.
		b.session = 0
		b.beginEpoch(0, r.Generation, true)
		return Applied{News: true}
	}
	switch r.Status {
	case syncproto.OK:
		return b.applyOK(now, r, ofSync)
	case syncproto.Fresh:
		if (b.epoch == 0 || b.settled()) && r.Epoch > b.epoch { // else of an earlier request
			b.beginEpoch(r.Epoch, r.Generation, false)
			b.open(now, r)
			return Applied{News: true}
		}
	case syncproto.Forked:
		if r.Epoch > b.epoch && b.epoch != 0 {
			b.beginEpoch(r.Epoch, r.Generation, true)
			b.open(now, r)
			return Applied{News: true, Forked: true}
		}
	case syncproto.Superseded, syncproto.Retired:
		return b.applyEnd(now, r)
	}
	return Applied{}
}

// open takes the session of a Hello's reply.
func (b *EdgeState) open(now int64, r *syncproto.Reply) {
	b.session, b.seen, b.applied, b.told = r.Session, 0, r.Applied, false
	b.declaring, b.declaredTo = false, 0
	b.doubtDry()
	b.heard(now, r)
	if !b.accepted {
		b.accept()
		b.logAccept()
	}
}

// doubtDry forgets of which accounts nothing was left: that was said in another session,
// and may be different when this one's first news come.
func (b *EdgeState) doubtDry() {
	for _, a := range b.accounts {
		a.credits.dry, a.volume.dry = false, false
	}
}

func (b *EdgeState) heard(now int64, r *syncproto.Reply) {
	b.contact, b.everMet, b.live = now, true, r.Live
	if r.Generation != b.generation {
		b.generation = r.Generation
		b.logStanding()
	}
}

func (b *EdgeState) applyOK(now int64, r *syncproto.Reply, ofSync bool) Applied {
	if r.Epoch != b.epoch || r.Applied > b.sealed {
		return Applied{}
	}
	var applied Applied
	switch {
	case b.session == 0:
		if r.Upto != 0 {
			return Applied{} // of a session that ended
		}
		b.open(now, r)
		applied.News = true
		if b.standing != syncproto.OK { // an end that a restored ledger does not know
			b.standing = syncproto.OK
			b.logStanding()
		}
	case r.Session != b.session:
		return Applied{}
	}
	b.heard(now, r)
	b.applyDeclare(r, ofSync)
	acknowledged := r.Applied > b.applied || b.inflight != nil && r.Applied >= b.inflight.Seq
	if acknowledged {
		applied.Batch = b.acknowledge(r.Applied)
	}
	if rows := b.newRows(now, r); len(rows) > 0 || acknowledged {
		b.logNews(r.Applied, rows)
		b.applyRows(rows)
		applied.News = applied.News || len(rows) > 0
	}
	for _, o := range r.Others {
		if a := b.accounts[o.Account]; a != nil {
			a.othersMinute, a.others = o.Minute, int32(min(o.Count, 1<<30))
		}
	}
	return applied
}

// applyDeclare follows the writer's demand that leases be declared.
func (b *EdgeState) applyDeclare(r *syncproto.Reply, ofSync bool) {
	switch {
	case !r.Declare:
		b.declaring, b.declaredTo = false, 0
	case !b.declaring:
		b.declaring, b.declaredTo = true, 0
	case ofSync:
		b.declaredTo += b.declared
		if b.declaredTo >= len(b.order)+len(b.keyOrder) {
			b.declaredTo = 0 // the writer asks on: begin again
		}
	}
	b.declared = 0
}

// newRows picks the rows that are news and of windows that are not over, and moves on to
// the version that they reach. A lease of a past window may be forgotten here already.
func (b *EdgeState) newRows(now int64, r *syncproto.Reply) []syncproto.Row {
	if r.Since > b.seen || r.Upto <= b.seen {
		return nil
	}
	rows := make([]syncproto.Row, 0, len(r.Rows))
	for _, row := range r.Rows {
		if row.Version > b.seen && !b.closedFor(&row, r.Applied) && !past(now, row.Pool) {
			rows = append(rows, row)
		}
	}
	b.seen = r.Upto
	return rows
}

// past reports whether the pool's window is over.
func past(now int64, p syncproto.Pool) bool {
	return p.Kind == syncproto.Volume && p.Window < syncproto.Month(now) || p.Kind == syncproto.NotFound && p.Window < syncproto.Day(now)
}

// closedFor reports whether a row speaks of a lease that was closed in a batch which the
// writer had not applied when it wrote the row.
func (b *EdgeState) closedFor(row *syncproto.Row, applied uint64) bool {
	if row.Pool.Kind == syncproto.NotFound {
		return false
	}
	a := b.accounts[row.Pool.Subject]
	return a != nil && applied < a.closeSeq
}

// applyRows is the effect of rows on the book, now and on replay.
func (b *EdgeState) applyRows(rows []syncproto.Row) {
	for i := range rows {
		row := &rows[i]
		h := b.opened(row.Pool)
		b.granted += h.apply(row)
		if row.Pool.Kind == syncproto.Credits {
			b.accounts[row.Pool.Subject].balance = row.Balance
		}
		if row.Recall && h.window == row.Pool.Window && h.held() > 0 {
			b.recalls = append(b.recalls, row.Pool)
		}
	}
}

// opened is the lease of a pool, made when there is none.
func (b *EdgeState) opened(p syncproto.Pool) *holding {
	switch p.Kind {
	case syncproto.NotFound:
		return &b.key(p.Subject).notFound
	case syncproto.Volume:
		return &b.account(p.Subject).volume
	}
	return &b.account(p.Subject).credits
}

// applyEnd takes a reply which says that this epoch, or this edge, is at its end. What
// was charged is still reported.
func (b *EdgeState) applyEnd(now int64, r *syncproto.Reply) Applied {
	if r.Epoch != b.epoch || b.session != 0 && r.Session != b.session {
		return Applied{}
	}
	var applied Applied
	if r.Applied > b.sealed {
		if r.Status != syncproto.Retired || b.session != 0 {
			return Applied{}
		}
		b.abandon(r.Applied)
		b.logAbandon()
		applied.Abandoned = true
	}
	greeted := b.session == 0
	if greeted {
		b.open(now, r)
	}
	b.heard(now, r)
	if b.standing != r.Status && (greeted || b.standing != syncproto.Retired) {
		b.standing = r.Status
		b.logStanding()
	}
	acknowledged := r.Applied > b.applied || b.inflight != nil && r.Applied >= b.inflight.Seq
	if acknowledged {
		applied.Batch = b.acknowledge(r.Applied)
	}
	var rows []syncproto.Row
	if r.Status == syncproto.Superseded && !greeted {
		// Units of an answer that was lost: they go back with the rest.
		b.told = b.told || r.Since <= b.seen && len(r.Rows) < syncproto.MaxRows
		rows = b.newRows(now, r)
	}
	if len(rows) > 0 || acknowledged {
		b.logNews(r.Applied, rows)
		b.applyRows(rows)
	}
	applied.News = true
	return applied
}

// abandon drops what a retired edge did not report and, its state directory being an
// older copy of one that reported so many batches, never can.
func (b *EdgeState) abandon(applied uint64) {
	b.acked = max(b.acked, applied)
	b.dropUsage()
}

// dropUsage forgets what was not reported.
func (b *EdgeState) dropUsage() {
	b.pending, b.carried, b.late, b.inflight = tally{}, map[uint64]tally{}, map[uint64]tally{}, nil
	for _, a := range b.accounts {
		a.unreported = 0
	}
}

// abandoned reports whether abandon was called in this epoch: the writer has batches that
// were never made here, and takes no others under their numbers.
func (b *EdgeState) abandoned() bool { return b.acked > b.sealed }

// beginEpoch starts an epoch without leases. When forked, the state directory was an
// older copy: what was unreported before this run may have been reported by the original
// and is dropped, what was charged in this run is reported as of the old epoch.
func (b *EdgeState) beginEpoch(epoch, generation uint64, forked bool) {
	b.applyEpoch(epoch, forked)
	b.generation = generation
	b.logEpoch(forked)
}

// applyEpoch is the effect of a new epoch on the book, now and on replay. 0 is none: what
// was abandoned goes on as with an empty directory, and counts nothing of the epoch before.
func (b *EdgeState) applyEpoch(epoch uint64, forked bool) {
	old := b.epoch
	if epoch == 0 {
		b.dropped = old
	}
	for _, a := range b.accounts {
		*a = account{
			index: a.index, perMinute: a.perMinute, minute: a.minute, count: a.count,
			othersMinute: a.othersMinute, others: a.others, rateListed: a.rateListed, rateTold: a.rateTold,
			lastUsed: a.lastUsed, // or the next sweep would forget what was counted
		}
	}
	b.keys, b.keyOrder = map[int64]*key{}, nil
	//mutant:usage-of-older-copy-reported-again
	if forked {
		b.carried = map[uint64]tally{}
	}
	b.join()
	recent := b.pending
	b.pending, b.inflight = tally{}, nil
	b.epoch, b.standing = epoch, syncproto.OK
	b.sealed, b.applied, b.acked, b.granted, b.seen = 0, 0, 0, 0, 0
	b.recalls, b.trims, b.closing = nil, nil, nil
	for _, t := range b.late {
		for u, n := range t {
			b.owe(u, n)
		}
	}
	if old == 0 {
		b.pending = recent // failed requests only: nothing was charged yet
		return
	}
	for u, n := range recent {
		b.countLate(old, u, n)
	}
}
