package lease

import (
	"maps"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// standing is where the writer put this edge: in which epoch, and whether it may still
// spend in it. It is durable.
type standing struct {
	epoch      uint64           // 0 before the writer gave one
	generation uint64           // of the ledger that replied last
	status     syncproto.Status // OK, Superseded or Retired
	dropped    uint64           // an epoch whose usage is no longer counted, 0 for none
	// damaged says that records of the epoch were lost. It is ended like one that the writer ended.
	damaged bool
}

// Serving reports whether this edge may spend leases at all.
func (s *EdgeState) Serving() bool {
	return s.standing.epoch != 0 && s.standing.status == syncproto.OK
}

// Standing is the writer's verdict on this edge: OK, Superseded or Retired.
func (s *EdgeState) Standing() syncproto.Status { return s.standing.status }

// Epoch is the current epoch, 0 before the first contact.
func (s *EdgeState) Epoch() uint64 { return s.standing.epoch }

// No reply may use up all epoch numbers, which in messages are below 1<<47 (syncproto.MaxUnits).
const (
	// anyEpoch is the limit up to which any number may follow any other: forged replies can have led the
	// writer far from what an emptied or outdated disk knows.
	anyEpoch = 1 << 46
	// maxEpochLeap bounds the step beyond anyEpoch, or beyond a greater epoch: more than the writer's
	// numbers grow in a thousand restores.
	maxEpochLeap = 1 << 40
)

// mayFollow reports whether an epoch may be the next one of this edge.
func (s *EdgeState) mayFollow(epoch uint64) bool {
	return epoch > s.standing.epoch && epoch <= max(s.standing.epoch, anyEpoch)+maxEpochLeap
}

// setStatus notes a verdict of the writer that differs from the one before.
func (s *EdgeState) setStatus(status syncproto.Status) {
	if s.standing.status != status {
		s.standing.status = status
		s.logStanding()
	}
}

// beginEpoch starts an epoch without leases. When forked, the state directory is an older
// copy: the original may have reported what was unreported before this run, so that is
// dropped; what was charged in this run is reported as usage of the old epoch.
func (s *EdgeState) beginEpoch(epoch, generation uint64, forked bool) {
	s.applyEpoch(epoch, forked)
	s.standing.generation = generation
	s.logEpoch(forked)
}

// applyEpoch is the effect of a new epoch, now and on replay. Epoch 0 means none: an
// abandoned state directory continues like an empty one, and counts no usage of the old epoch.
func (s *EdgeState) applyEpoch(epoch uint64, forked bool) {
	old := s.standing.epoch
	if epoch == 0 {
		s.standing.dropped = old
	}
	s.leases.clear()
	//mutant:usage-of-older-copy-reported-again
	if forked {
		s.usage.dropCarried()
	}
	s.usage.join(old)
	recent := s.usage.current
	s.usage.current = tally{}
	s.standing.epoch, s.standing.status, s.standing.damaged = epoch, syncproto.OK, false
	s.outbox.clear()
	s.session.seen = 0
	s.returns = returns{}
	for _, t := range s.usage.late {
		for u, n := range t {
			s.addUnreported(u, n)
		}
	}
	if old == 0 { // nothing was charged yet, or in an epoch whose record was lost, and may be reported
		maps.DeleteFunc(recent, func(u use, _ int64) bool { return u.outcome != charge.Failed })
		s.usage.current = recent
		return
	}
	for u, n := range recent {
		s.countLate(old, u, n)
	}
}

// abandon drops what a retired edge did not report. The writer has batches up to applied
// that were never made here: the state directory is an older copy, and any batch that it
// makes would take a number that is in use.
func (s *EdgeState) abandon(applied uint64) {
	s.outbox.acked = max(s.outbox.acked, applied)
	s.dropUsage()
}

// Damaged is called after Replay when whole records were lost, whichever they are. What was replayed is
// reported; a lost charge is not, at the service's cost. The leases may have been spent, so none is used
// any more: the edge gives all of them back, and the writer takes what it counts as left of them; then
// the edge asks for a new epoch. If even the epoch was lost, the state is like that of an empty
// directory. Charges of earlier epochs may have been in batches that were lost here, which the writer
// notices only for the current epoch, so none of them is reported.
func (s *EdgeState) Damaged() {
	s.leases.clear()
	s.returns = returns{}
	if s.standing.epoch == 0 {
		s.dropUsage()
		s.outbox.clear()
		return
	}
	if s.outbox.inflight != nil && s.outbox.inflight.Seq != s.outbox.sealed {
		s.outbox.inflight = nil
	}
	s.usage.dropEarlier(s.standing.epoch)
	s.standing.damaged = true
	if s.standing.status == syncproto.OK {
		s.standing.status = syncproto.Superseded
	}
	s.eachUnreported(s.addUnreported)
}

// Forget is called at the start, after request ids were lost: unknown ids from before now count as too
// old.
func (s *EdgeState) Forget(now int64) { s.recent.forgotten = max(s.recent.forgotten, now) }
