package lease

import "regedge/replicate/metering/syncproto"

// Applied is the result of a reply.
type Applied struct {
	// Batch was acknowledged. It has to be archived for a ledger that is restored from a
	// backup. Nil when there was none.
	Batch *Reported
	// News says that leases changed: waiting requests should be decided again.
	News bool
	// Forked says that the state directory was an older copy; its leases are void.
	Forked bool
	// Abandoned says the same of a retired edge: its unreported usage is dropped; the units that the
	// writer counts as lost cover it.
	Abandoned bool
}

// Apply takes the writer's reply to Hello, Sync or Watch. Replies may be repeated, delayed and overtaken: one without
// anything newer changes nothing. ofSync says that it answers a message that Sync made.
func (s *EdgeState) Apply(now int64, r *syncproto.Reply, ofSync bool) Applied {
	if s.standing.damaged && r.Status == syncproto.OK { // the writer does not know what was lost here
		ended := *r
		ended.Status = syncproto.Superseded
		r = &ended
	}
	if r.Status == syncproto.Stranger {
		s.endSession(r, ofSync)
		return Applied{}
	}
	//mutant:contradiction-of-the-writer-believed
	if s.ofOtherEpoch(r) || s.ofLater(r) || ofSync && s.contradicts(r) {
		s.session.id = 0
		if ofSync {
			s.Lost()
		}
		return Applied{}
	}
	if ofSync {
		s.wants.answered()
	}
	switch {
	case s.mustShowEpoch(r):
		s.session.id = 0
		s.noteContact(now, r)
		return Applied{}
	case s.ledgerForgotAbandon(r):
		s.session.id = 0
		s.beginEpoch(0, r.Generation, true)
		return Applied{News: true}
	}
	switch r.Status {
	case syncproto.OK:
		return s.applyOK(now, r, ofSync)
	case syncproto.Fresh:
		if (s.standing.epoch == 0 || s.settled()) && s.mayFollow(r.Epoch) { // else of an earlier request
			s.beginEpoch(r.Epoch, r.Generation, false)
			s.openSession(now, r)
			return Applied{News: true}
		}
	case syncproto.Forked:
		if s.mayFollow(r.Epoch) && s.standing.epoch != 0 {
			s.beginEpoch(r.Epoch, r.Generation, true)
			s.openSession(now, r)
			return Applied{News: true, Forked: true}
		}
	case syncproto.Superseded, syncproto.Retired:
		return s.applyEnd(now, r)
	}
	return Applied{}
}

// endSession takes a reply which says that the writer does not know the session.
func (s *EdgeState) endSession(r *syncproto.Reply, ofSync bool) {
	if r.Session == s.session.id {
		s.session.id = 0
	}
	if ofSync {
		s.Lost()
	}
}

// mustShowEpoch reports whether the ended epoch has to be shown to this writer before it may
// give another. It has to when a writer other than the one that took everything gives a new
// epoch, so that it sees what its ledger lacks of the old one; and when a writer retired
// this edge, since its reply to a Hello without an epoch is about no epoch.
func (s *EdgeState) mustShowEpoch(r *syncproto.Reply) bool {
	otherWriter := r.Status == syncproto.Fresh && r.Generation != s.standing.generation
	return (otherWriter || r.Status == syncproto.Retired) && s.session.open() && s.settled()
}

// ledgerForgotAbandon reports whether a reply comes from a ledger of before this edge was
// retired, to an edge that abandoned its epoch then. Its leases lack what was dropped, so
// it continues like an empty state directory.
func (s *EdgeState) ledgerForgotAbandon(r *syncproto.Reply) bool {
	return s.outbox.abandoned() && r.Epoch == s.standing.epoch &&
		(r.Status == syncproto.OK || r.Status == syncproto.Superseded)
}

func (s *EdgeState) applyOK(now int64, r *syncproto.Reply, ofSync bool) Applied {
	if r.Epoch != s.standing.epoch || r.Applied > s.outbox.sealed {
		return Applied{}
	}
	var applied Applied
	switch {
	case !s.session.open():
		if r.Upto != 0 {
			return Applied{} // of a session that ended
		}
		s.openSession(now, r)
		applied.News = true
		s.setStatus(syncproto.OK) // after an end that a restored ledger does not know
	case r.Session != s.session.id:
		return Applied{}
	}
	s.noteContact(now, r)
	if ofSync && len(r.Rows) < syncproto.MaxRows { // else more rows follow
		s.session.answered, s.session.answeredSync = s.session.sent, s.session.syncs
		applied.News = applied.News || s.session.awaited
		s.session.awaited = false
	}
	s.declaration.demand(r.Declare, ofSync, s.leases.accounts.len()+s.leases.keys.len())
	acknowledged := s.outbox.news(r.Applied)
	if acknowledged {
		applied.Batch = s.acknowledge(r.Applied)
	}
	rows := s.newRows(now, r)
	s.applyNews(r.Applied, acknowledged, rows)
	s.hearAgain(r.Applied)
	applied.News = applied.News || len(rows) > 0
	s.noteOthers(now, r.Others)
	return applied
}

// applyEnd takes a reply which says that this epoch, or this edge, has ended. What was
// charged is still reported.
func (s *EdgeState) applyEnd(now int64, r *syncproto.Reply) Applied {
	if r.Epoch != s.standing.epoch || s.session.open() && r.Session != s.session.id {
		return Applied{}
	}
	applied := Applied{News: true}
	if r.Applied > s.outbox.sealed {
		if r.Status != syncproto.Retired || s.session.open() {
			return Applied{}
		}
		s.abandon(r.Applied)
		s.logAbandon()
		applied.Abandoned = true
	}
	greeted := !s.session.open()
	if greeted {
		s.openSession(now, r)
	}
	s.noteContact(now, r)
	if greeted || s.standing.status != syncproto.Retired {
		s.setStatus(r.Status)
	}
	acknowledged := s.outbox.news(r.Applied)
	if acknowledged {
		applied.Batch = s.acknowledge(r.Applied)
	}
	var rows []syncproto.Row
	if r.Status == syncproto.Superseded && !greeted {
		// Grants of a reply that was lost: they are returned with the rest.
		s.session.complete = s.session.complete || r.Since <= s.session.seen && len(r.Rows) < syncproto.MaxRows
		rows = s.newRows(now, r)
	}
	s.applyNews(r.Applied, acknowledged, rows)
	s.hearAgain(r.Applied)
	return applied
}

// hearAgain ends a session in which rows were skipped, once the restored ledger has the batches that it lacked. In the
// next one it sends the rows of leases that those did not close.
func (s *EdgeState) hearAgain(applied uint64) {
	if s.session.skipped && applied >= s.outbox.acked {
		s.session.id = 0
	}
}

// applyNews writes the record of an acknowledgement and of rows, if there is either, and
// applies the rows.
func (s *EdgeState) applyNews(applied uint64, acknowledged bool, rows []syncproto.Row) {
	if len(rows) > 0 || acknowledged {
		s.logNews(applied, rows)
		s.applyRows(rows)
	}
}

// newRows filters the rows for news, and advances to their version. A row of a new lease in one window too
// many is skipped: it is sent again when the lease is wanted.
func (s *EdgeState) newRows(now int64, r *syncproto.Reply) []syncproto.Row {
	if r.Since > s.session.seen || r.Upto <= s.session.seen {
		return nil
	}
	rows := make([]syncproto.Row, 0, len(r.Rows))
	made := map[syncproto.Pool]int{} // leases that rows make, by account or key
	returning := s.outbox.returning()
	for _, row := range r.Rows {
		if row.Version <= s.session.seen {
			continue
		}
		if s.closedSince(&row, r.Applied) {
			s.session.skipped = s.session.skipped || r.Applied < s.outbox.acked
			continue
		}
		if l := s.leases.find(row.Pool); l == nil || !l.kept(s.outbox.applied) {
			of := windowless(row.Pool)
			if s.windows(of)+made[of] >= maxWindows {
				s.sweepWindows(now, of)
				continue
			}
			made[of]++
		}
		s.mend(now, &row, r.Declare)
		if returning[row.Pool] {
			row.Dry = false
		}
		if s.holdsEnded(now, &row, r.NowMillis) {
			s.returns.recall(row.Pool)
		}
		rows = append(rows, row)
	}
	s.session.seen = r.Upto
	return rows
}

// holdsEnded reports whether the edge holds credits of a lease that has ended by the writer's clock too, which the
// writer does not renew although nothing is left elsewhere. They must be returned, so that the writer can grant them
// again; as long as they are held, it can't say that nothing is left. If the writer did not grant some of them,
// returning them ends the epoch.
func (s *EdgeState) holdsEnded(now int64, row *syncproto.Row, writersNow int64) bool {
	if row.Pool.Kind != syncproto.Credits || !row.Dry || row.UntilMillis > min(now, writersNow) {
		return false
	}
	l := s.leases.find(row.Pool)
	return l != nil && l.held() > 0
}

// closedSince reports whether a row is about a lease that was closed in a batch which the
// writer had not applied when it wrote the row. A closed lease is forgotten once a writer has
// that batch; a ledger that is restored from a backup may still have the lease.
func (s *EdgeState) closedSince(row *syncproto.Row, applied uint64) bool {
	l := s.leases.find(row.Pool)
	switch {
	case l == nil:
		return applied < s.outbox.acked
	case !l.known:
		return applied < max(l.since, s.outbox.acked)
	}
	return applied < l.since
}

// applyRows is the effect of rows, now and on replay.
func (s *EdgeState) applyRows(rows []syncproto.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Pool.Kind != syncproto.NotFound {
			s.leases.accounts.ensure(row.Pool.Subject)
		}
		l := s.leases.ensure(row.Pool)
		s.leases.granted = min(s.leases.granted+l.apply(row, s.outbox.acked), mostGranted)
		if row.Pool.Kind == syncproto.Credits {
			s.leases.accounts.get(row.Pool.Subject).balance = row.Balance
		}
		if row.Recall && l.window == row.Pool.Window && (l.held() > 0 || s.hasUnsentCharges(row.Pool)) {
			s.returns.recall(row.Pool)
		}
		if row.Pool.Kind == syncproto.Volume && l.unexplained() {
			s.returns.noteUnexplained(row.Pool)
		}
	}
}

// hasUnsentCharges reports whether the account has charges that are in no message yet. While the writer counts their units
// as held here, it can't refuse another edge's requests, which wait.
func (s *EdgeState) hasUnsentCharges(p syncproto.Pool) bool {
	return p.Kind != syncproto.NotFound && s.outbox.inflight == nil && s.Unreported(p.Subject) > 0
}
