package simulation

import (
	"strings"

	"regedge/replicate/metering/syncproto"
)

// rot flips bits in a segment of the journal while its edge is down.
func (s *sim) rot(e *edge) {
	if s.rotOne(e, isSegment, func(n *inode) int { return n.shown }) {
		s.count(bitsFlipped)
		e.disk.rotten = true
		e.boot()
	}
}

// rotOne ends an edge's process and flips bits in one of those of its files of which there is anything to
// flip. It reports whether there was one.
func (s *sim) rotOne(e *edge, chosen func(name string) bool, size func(*inode) int) bool {
	var names []string
	for _, name := range e.disk.names() {
		if n := e.disk.files[name]; n != nil && chosen(name) && size(n) > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false
	}
	name := names[s.random.IntN(len(names))]
	s.note("bits flip in %s of %s", name, e.name)
	e.kill()
	n := e.disk.files[name]
	n.fold()
	e.disk.flipped += n.rot(s.random, size(n))
	return true
}

// isArchive reports whether a file has reported batches, and was not set aside.
func isArchive(name string) bool {
	return strings.HasPrefix(name, "batches-") && strings.HasSuffix(name, ".log")
}

// rotArchive flips bits in the batches that an edge has reported. A ledger that is restored lacks those that
// can't be read any more: as many as bits flipped, at most.
func (s *sim) rotArchive(e *edge) {
	filled := s.fillArchive(e)
	if !s.rotOne(e, isArchive, func(n *inode) int { return n.end }) {
		return
	}
	s.count(archiveFlipped)
	s.disturbed++
	e.disk.archiveRotten = true
	e.mayExceed = true // a batch that closed a lease may be lost, and those before and after it not
	if s.restored {
		s.excuseUnreported(e)
	}
	e.boot()
	if p := e.process; p != nil && s.random.IntN(2) == 0 {
		p.meter.CheckArchive()
		e.checkProcess(p)
	}
	if filled {
		s.centre.restore()
	}
}

// fillArchive has an edge report more batches than its journal keeps, undisturbed, after a backup of the
// ledger. It does nothing in runs with large segments.
func (s *sim) fillArchive(e *edge) bool {
	if s.segmentBytes != smallSegmentBytes || s.depth > 0 || s.awaitsEdges {
		return false
	}
	s.calm = true
	s.centre.end(&s.centre.former)
	e.cutUntil, e.fullUntil, e.syncFails = 0, 0, false
	s.centre.backup = nil
	s.centre.restore() // makes a backup
	for id := int64(1); id <= accounts; id++ {
		s.sell(topUp, id, shiftedCredits)
	}
	s.askForAll(e, 6)
	s.calm = false
	return true
}

// noteSent notices the batch of a message, and one without content, which an edge sends in place of one that it
// has lost.
func (e *edge) noteSent(message []byte) {
	m, err := syncproto.DecodeMessage(message)
	e.sim.must(err, "read the edge's message")
	if m.Sync != nil && m.Sync.Batch != nil {
		e.batch, e.batchEpoch = m.Sync.Batch, e.epoch
	}
	if m.Hello != nil && m.Hello.Acked > m.Hello.Sealed && e.retired {
		e.disk.abandoned = true // another disk of the retired edge, which has no epoch either, reported more
	}
	if m.Sync == nil || m.Sync.Batch == nil || !m.Sync.Batch.Empty() || e.disk.recordsLost || e.disk.everCopied || e.disk.abandoned {
		return
	}
	b := m.Sync.Batch
	if e.disk.batchesLost == nil {
		e.disk.batchesLost = map[[2]uint64]bool{}
	}
	if at := [2]uint64{b.Of, b.Seq}; !e.disk.batchesLost[at] {
		e.disk.batchesLost[at] = true
		e.sim.batchesLost++
	}
	if n := len(e.disk.batchesLost); n > e.disk.flipped {
		e.sim.fail("%s lost %d reported batches, and %d bits flipped", e.name, n, e.disk.flipped)
	}
}
