package simulation

import (
	"context"
	"fmt"

	"regedge/handler/charge"
)

// step performs one random action.
func (s *sim) step() {
	s.steps++
	s.clock.Add(s.random.Int64N(300))
	e := s.edges[s.random.IntN(len(s.edges))]
	if e.process == nil && s.random.IntN(4) == 0 {
		e.boot()
	}
	if e.process != nil && e.process.writing {
		s.whileWriting(e)
		return
	}
	switch action := s.random.IntN(1000); {
	case action < 510:
		s.serve(e)
	case action < 690:
		e.exchange()
	case action < 740:
		e.watch()
	case action < 790:
		e.flush()
	case action < 820:
		s.late(e)
	case action < 870:
		s.troubleEdge(e)
	case action < 910:
		s.troubleCentre()
	case action < 940:
		s.operator()
	case action < 956:
		s.troubleTime(e)
	default:
		s.rare(e)
	}
}

// serve sends a client's request to an edge's meter.
func (s *sim) serve(e *edge) {
	if s.random.IntN(12) == 0 && len(e.requests) > 0 {
		s.askAgain(e, e.requests[s.random.IntN(len(e.requests))])
		return
	}
	if e.process == nil || s.random.IntN(15) == 0 && s.voidLate(e) {
		return
	}
	if s.random.IntN(15) == 0 && s.retry(e) {
		return
	}
	r := s.newRequest(e, 1+s.random.Int64N(accounts))
	switch s.random.IntN(8) {
	case 0:
		r.Outcome, r.Key = charge.NotFound, r.Account*keysOfAccount+sharedKeys
	case 1:
		r.Outcome = charge.Failed
	}
	if s.ids%3 == 0 {
		r.IdempotencyHash, r.TargetHash = hashOf(s.ids), hashOf(0)
	}
	if s.ask(e, r) && r.Outcome != charge.Failed && !e.process.syncing && s.random.IntN(15) == 0 {
		s.void(e, e.process, r)
	}
}

// newRequest is a client's request for an account at an edge, which will find something.
func (s *sim) newRequest(e *edge, account int64) *request {
	r := s.requestNow(e)
	r.Account, r.PerMinute = account, 1<<30
	r.Endpoint, r.Outcome, r.Key = charge.Companies, charge.Found, e.key(account)
	return r
}

// requestNow is a request with a new id, of which only that is set.
func (s *sim) requestNow(e *edge) *request {
	s.ids++
	return &request{
		Request: charge.Request{ID: fmt.Sprintf("r-%d", s.ids)},
		disk:    e.disk, segments: e.disk.segments, at: e.now().UnixMilli(), setBack: e.setBackEver, process: e.process, madeAt: s.clock.Load(),
	}
}

// ask sends a new request to an edge, and reports whether it was answered. An edge without a
// lease may exchange with the writer first.
func (s *sim) ask(e *edge, r *request) bool {
	p := e.process
	if s.faulty(60) {
		p.crashIn = 1 + s.random.IntN(4)
	}
	r.epoch = e.epoch
	v := p.meter.Charge(context.Background(), r.Request)
	if v.Code == charge.MeteringUnavailable && !p.dead && s.random.IntN(2) == 0 {
		if e.exchange(); e.process != p {
			return false
		}
		v = p.meter.Charge(context.Background(), r.Request)
	}
	died := p.dead
	e.checkProcess(p)
	r.verdict = v
	s.detail("%s %s: account %d, outcome %d: %q, died %v", e.name, r.ID, r.Account, r.Outcome, v.Code, died)
	if v.Code != "" && !died {
		s.refused(e, r)
		return false
	}
	if r.Outcome == charge.NotFound {
		s.asked[r.Key]++
	}
	s.keep(e, r)
	if died {
		s.cutOff(r)
		return false
	}
	s.answered(e, r)
	if r.Outcome == charge.Found {
		e.spentAt[r.Account] = e.asks
	}
	return true
}

func (s *sim) keep(e *edge, r *request) {
	const most = 12
	if len(e.requests) == most {
		e.requests = e.requests[1:]
	}
	e.requests = append(e.requests, r)
}

// askAgain repeats a request id, as a component does that saw no answer: the verdict must be
// the same, and nothing charged twice.
func (s *sim) askAgain(e *edge, r *request) {
	p := e.process
	if p == nil || r.disk != e.disk || e.disk.segments-r.segments > 1 || r.Outcome == charge.Failed {
		return
	}
	s.count(askedAgain)
	v := p.meter.Charge(context.Background(), r.Request)
	if died := p.dead; died {
		e.checkProcess(p)
		return
	}
	s.detail("%s %s again: %q, was %d", e.name, r.ID, v.Code, r.state)
	switch {
	case r.state == cut && v.Code == "":
		s.learned(e, r)
	case r.state == undone:
		if v.Code != charge.MeteringUnavailable {
			s.fail("%s: %s was voided, and is answered %q", e.name, r.ID, v.Code)
		}
	}
}

// void undoes a charge, as a component does whose answer failed.
func (s *sim) void(e *edge, p *process, r *request) {
	s.count(voided)
	r.state = unclear // while its record is written, and the disk may hang
	err := p.meter.Void(context.Background(), r.ID)
	died := p.dead
	e.checkProcess(p)
	s.detail("%s voids %s: %v, died %v", e.name, r.ID, err, died)
	if err == nil && !died {
		r.state = undone
	}
	if r.Outcome == charge.Found {
		s.got[r.Key]--
		e.voids[r.Key]++
		if r.state == unclear {
			s.mayBe[r.Key]++
			s.missing[r.Key]++ // since got does not count it any more
		}
	}
}

// voidLate undoes an earlier charge, and reports whether it found one: the charge may be
// reported already, or be of a past epoch or process.
func (s *sim) voidLate(e *edge) bool {
	if len(e.requests) == 0 || e.disk.everCopied || e.process.syncing {
		return false
	}
	r := e.requests[s.random.IntN(len(e.requests))]
	if r.disk != e.disk || e.disk.segments-r.segments > 1 || r.state != served || r.Outcome == charge.Failed {
		return false
	}
	if r.Outcome == charge.Found {
		s.voidedLate[r.Key]++
	}
	s.void(e, e.process, r)
	return true
}

// late delivers a message that its edge gave up long ago.
func (s *sim) late(e *edge) {
	if s.rogue != nil && s.random.IntN(4) == 0 {
		s.crowd(e)
		return
	}
	if s.rogue != nil && s.random.IntN(4) > 0 {
		s.rogue.act()
		return
	}
	if len(e.messages) > 0 {
		s.count(lateMessage)
		s.centre.deliver(e.token, e.messages[s.random.IntN(len(e.messages))])
	}
}

func (s *sim) troubleEdge(e *edge) {
	switch s.random.IntN(6) {
	case 0:
		if e.process != nil {
			s.count(edgeCrash)
			s.note("%s crashes", e.name)
			e.kill()
		}
	case 1:
		if e.process != nil {
			e.process.crashIn = 1 + s.random.IntN(8)
		}
	case 2:
		e.cutUntil = s.clock.Load() + s.random.Int64N(10_000)
	case 3:
		e.fullUntil = s.clock.Load() + s.random.Int64N(3_000)
	case 4:
		e.syncFails = true
	case 5:
		s.cutPower(e)
	}
}

// cutPower ends a process and loses what chance takes of what was not synced.
func (s *sim) cutPower(e *edge) {
	if e.process == nil || !s.wild {
		return
	}
	s.count(powerCut)
	e.kill()
	if e.disk.losePower(s.random) {
		s.note("%s loses power, and %v", e.name, e.unsynced)
		s.count(powerCutLost)
		s.powerLost(e)
		e.requests = nil
		if e.snapshot != nil && !e.disk.goesOn(e.snapshot) {
			e.snapshot = nil // it is the newer one now, and may give the same numbers to other batches
		}
	}
}

func (s *sim) troubleCentre() {
	switch c := s.centre; s.random.IntN(6) {
	case 0:
		c.restart()
	case 1:
		if s.random.IntN(3) > 0 {
			c.takeOver()
		} else {
			c.intrude()
		}
	case 2:
		if c.former != nil {
			c.end(&c.former)
		}
	case 3:
		if c.current != nil && c.current.session.crashIn == 0 {
			c.current.session.crashIn = 1 + s.random.IntN(30)
		}
	case 4:
		if s.wild {
			c.save()
		}
	case 5:
		c.troubleAccess()
	}
}

// maxSkewMillis is how far a clock may be off that did not jump.
const maxSkewMillis = 30_000

// jumps are how far a clock is off after it jumped: a wrong time zone, a half-hour one, a day, a
// month, a year, a battery that was empty.
var jumps = []int64{
	7 * 60_000, 60 * 60_000, 330 * 60_000, 14 * 60 * 60_000, dayMillis, 2 * dayMillis, 31 * dayMillis, 400 * dayMillis, 20 * 365 * dayMillis,
}

func (s *sim) jump() int64 {
	by := jumps[s.random.IntN(len(jumps))] + s.random.Int64N(1000)
	if s.random.IntN(2) == 0 {
		return -by
	}
	return by
}

func (s *sim) smallSkew() int64 { return s.random.Int64N(2*maxSkewMillis) - maxSkewMillis }

// jumpEdge has an edge's clock jump. Either the writer's clock or those of the edges are about
// right: when both are wrong, what is kept for a time may be forgotten too early.
func (s *sim) jumpEdge(e *edge) {
	s.count(clockJump)
	s.centre.setClock(min(max(s.centre.skew.Load(), -maxSkewMillis), maxSkewMillis))
	e.setClock(s.jump())
	s.note("the clock of %s is off by %d s", e.name, e.skew/1000)
}

func (s *sim) jumpCentre() {
	s.count(writerClockJump)
	for _, e := range s.edges {
		e.setClock(min(max(e.skew, -maxSkewMillis), maxSkewMillis))
	}
	s.centre.setClock(s.jump())
	s.note("the writer's clock is off by %d s", s.centre.skew.Load()/1000)
}

func (s *sim) troubleTime(e *edge) {
	switch s.random.IntN(16) {
	case 0:
		s.count(daysPass)
		s.clock.Add(s.random.Int64N(3 * dayMillis))
	case 1:
		s.clock.Add(s.random.Int64N(60 * 60 * 1000))
	case 2, 3, 4:
		s.centre.setClock(s.smallSkew())
	case 5, 6:
		s.jumpEdge(e)
	case 7:
		s.jumpCentre()
	default:
		s.count(clockSkew)
		e.setClock(s.smallSkew())
	}
}

// rare replaces a disk, a node or a ledger.
func (s *sim) rare(e *edge) {
	switch {
	case !s.wild:
		return
	case s.gentle:
		switch {
		case s.awaitsEdges:
		case s.random.IntN(2) == 0:
			s.shift()
		case s.centre.backup == nil || s.random.IntN(4) == 0: // time for units to move
			s.centre.restore()
		}
		return
	}
	switch s.random.IntN(18) {
	case 0, 1:
		s.wipe(e)
	case 2, 3, 4, 5:
		s.bringBack(e)
	case 6, 7:
		s.swap(e)
	case 8, 9:
		s.retireNode(e)
	case 10:
		s.count(oldEpochsRetired)
		s.retire(e, true)
	case 11, 12, 13:
		s.centre.restore()
	case 14:
		s.sleep(e)
	case 15, 16:
		s.rotArchive(e)
	default:
		s.rot(e)
	}
}

// shiftedCredits is how many credits each account gets for a shift: few, so that one edge gets all.
const shiftedCredits = 3

// shift has the credits of all accounts move from one edge to another, undisturbed, with a backup
// between, and the ledger restored from it: what the second edge shows is more than is left, until
// the first shows what it returned.
func (s *sim) shift() {
	if len(s.edges) < 2 || s.depth > 0 {
		return
	}
	s.calm = true
	s.centre.end(&s.centre.former)
	s.unsuspend()
	for id := int64(1); id <= accounts; id++ {
		s.sell(topUp, id, shiftedCredits)
	}
	at := s.random.Perm(len(s.edges))
	from, to := s.edges[at[0]], s.edges[at[1]]
	for _, e := range s.edges {
		e.cutUntil, e.fullUntil, e.syncFails = 0, 0, false
	}
	s.askForAll(from, 4)
	s.centre.backup = nil
	s.centre.restore() // makes a backup
	s.askForAll(to, 1)
	s.quiet(2) // the first edge is told to return, and does
	s.askForAll(to, 1+s.random.IntN(2))
	s.centre.restore()
	for range s.random.IntN(8) { // all that it shows, or a part of it
		to.exchange()
	}
	s.calm = false
}

// askForAll has clients ask for every account at an edge, which exchanges with the writer after each
// time.
func (s *sim) askForAll(e *edge, times int) {
	for range times {
		if e.process == nil {
			e.boot()
		}
		for id := int64(1); id <= accounts; id++ {
			s.ask(e, s.newRequest(e, id))
		}
		e.exchange()
		e.flush()
	}
}

// wipe erases an edge's disk.
func (s *sim) wipe(e *edge) {
	s.note("%s is wiped", e.name)
	s.count(wiped)
	e.kill()
	s.diskGone(e)
	e.disk, e.snapshot, e.requests = newDisk(), nil, nil
	if s.random.IntN(3) > 0 && s.retire(e, true) {
		s.count(wipedAndRetired)
	}
}

// bringBack restores an edge's disk from a snapshot, or takes the snapshot.
func (s *sim) bringBack(e *edge) {
	if e.snapshot == nil {
		s.detail("a snapshot of %s is taken", e.name)
		e.snapshot = e.disk.clone()
		return
	}
	s.note("%s is restored from a snapshot", e.name)
	s.count(snapshotRestored)
	e.kill()
	s.diskGone(e)
	e.disk, e.snapshot, e.requests = e.snapshot, nil, nil
	e.disk.copied, e.disk.everCopied = true, true
	e.mayExceed, s.copied = true, true
	e.boot()
}

// swap replaces an edge's disk by an empty one, or by the one that was taken aside before.
func (s *sim) swap(e *edge) {
	if s.restoredSilently {
		return
	}
	s.note("%s changes its disk", e.name)
	s.count(diskSwapped)
	e.kill()
	if s.restored {
		s.excuseUnreported(e)
	}
	s.noteEpochEnd(e)
	e.disk, e.aside = e.aside, e.disk
	if e.disk == nil {
		e.disk = newDisk()
	}
	if e.disk.forgedEpoch != 0 && e.disk.forgedEpoch == e.epoch { // the writer gave that number to the other disk meanwhile
		e.disk.copied, e.disk.everCopied = true, true
		e.mayExceed, s.copied = true, true
	}
	e.snapshot, e.requests, e.unsynced = nil, nil, counts{}
	e.boot()
}

// retireNode retires a node whose edge still runs, and adds another.
func (s *sim) retireNode(e *edge) {
	if e.retired || len(s.edges) > 5 {
		return
	}
	s.note("%s is retired", e.name)
	if s.retire(e, false) {
		e.retired = true
		s.count(retiredAlive)
		s.addEdge()
	}
}

// sleep stops an edge for days.
func (s *sim) sleep(e *edge) {
	e.kill()
	s.clock.Add(dayMillis + s.random.Int64N(3*dayMillis))
	e.boot()
}
