package simulation

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// A segment has some fifty charges, or in some runs a few, so that edges have more reported
// batches in their archive alone.
const segmentBytes, smallSegmentBytes = 4096, 768

// timeoutMillis is how long an edge waits for an answer that is not held back.
const timeoutMillis = 5_000

// edge is a node: its name, its token and its disks.
type edge struct {
	sim      *sim
	name     string
	number   int64
	token    string
	retired  bool
	process  *process // nil while it is down
	disk     *disk
	aside    *disk // of an earlier epoch, may be put back
	snapshot *disk

	syncFails   bool
	fullUntil   int64
	skew        int64
	setBack     int64 // by how much the clock went back since the last sync that was answered began
	setBackEver int64 // the same since the beginning
	cutUntil    int64
	downSince   int64

	epoch uint64 // as last seen
	// mayExceed says that it ran once on an older copy of a disk, or lost records: it may report more
	// than its leases had.
	mayExceed bool
	sending   bool
	asked     int // restores of the ledger before the pending message was sent
	arrived   int
	deceived  bool // it believes an earlier reply to be one to its last message
	// told is the sum of grants of a lease in a window that the edge read last, see noteTold.
	told map[toldLease]int64
	// misled says that it got a forged reply since the writer last greeted it, with numbers of at least forgedUpto
	// and forgedApplied; unseen that the writer's own may have passed them. greeted says that the pending message
	// is a Hello that the writer answered.
	misled, unseen, greeted   bool
	forgeNext                 bool // the reply to the next message is forged
	forgedUpto, forgedApplied uint64
	replied                   bool             // the reply to the pending message arrived
	batch                     *syncproto.Batch // the newest that was sent, in batchEpoch
	batchEpoch                uint64
	// asks counts its messages but for those of watches, and askedLast is how many there were with the last that
	// was answered; spentAt is by account how many there were before the last charge.
	asks, askedLast uint64
	spentAt         map[int64]uint64
	messages        [][]byte
	replies         [][]byte
	requests        []*request // the newest
	unsynced        counts     // charges that a power cut may lose, by key
	failedStart     bool       // the last process ended while it started
	// untold are the ended epochs of which the edge may not have been told all, see noteUntold.
	untold map[uint64]bool
	voids  counts // charges that were voided, by key
}

// process is one run of an edge.
type process struct {
	edge    *edge
	meter   *meter.Meter
	dead    bool
	crashIn int
	watches bool // the message to be sent is of the meter's watch
	// flushing says that it syncs its journal, syncing that a sync hangs, writing that a write does.
	flushing, syncing, writing bool
}

func (e *edge) now() time.Time { return time.UnixMilli(e.sim.clock.Load() + e.skew) }

// setClock sets how far the edge's clock is off.
func (e *edge) setClock(skew int64) {
	e.setBack += max(e.skew-skew, 0)
	e.setBackEver += max(e.skew-skew, 0)
	e.skew = skew
}

// boot starts the process, which may crash while it starts.
func (e *edge) boot() {
	s := e.sim
	p := &process{edge: e}
	e.disk.unmount()
	if s.faulty(8) {
		p.crashIn = 1 + s.random.IntN(12)
	}
	m, err := meter.Open(meter.Config{
		Files: mount{e.disk, p}, Writer: p, Now: e.now, Elapsed: s.elapsed, Random: s.fillFrom(s.random),
		WaitLimit: time.Nanosecond, SegmentBytes: s.segmentBytes,
	})
	if err != nil {
		require.True(s.t, p.dead || s.diskFailed(err), "the meter does not open: %v", err)
		e.failedStart = true
		return
	}
	if s.clock.Load()-e.downSince > dayMillis && e.downSince != 0 {
		s.count(backAfterDays)
	}
	s.forgetDoubtful(e.disk, m.Epoch())
	e.noteRecovered(m.Recovered())
	p.meter, e.process, e.epoch = m, p, m.Epoch()
	s.detail("%s boots in epoch %d", e.name, e.epoch)
	e.checkProcess(p)
}

// noteRecovered excuses what flipped bits took. A process that ended while it started may have found the
// damage before.
func (e *edge) noteRecovered(found journal.Replayed) {
	s := e.sim
	if found.IDsLost || e.disk.rotten {
		e.requests = nil
	}
	if found.Lost || e.disk.rotten && e.failedStart {
		require.True(s.t, e.disk.rotten, "%s: records lost without a flipped bit", e.name)
		s.count(recordsLost)
		s.recordsLost(e)
	}
	e.disk.rotten, e.failedStart = false, false
}

// kill ends the process.
func (e *edge) kill() {
	if e.process != nil {
		e.sim.detail("%s ends", e.name)
		e.process.dead = true
		e.disk.unmount()
		e.disk.copied = e.disk.everCopied // the writer's reply about it may not be on disk yet
		e.process, e.sending = nil, false
		e.downSince = e.sim.clock.Load()
	}
}

// checkProcess cleans up after a process that crashed, and checks the invariants of one that
// runs.
func (e *edge) checkProcess(p *process) {
	if p.dead {
		if e.process == p {
			e.kill()
		}
		return
	}
	e.sim.must(p.meter.Check(), e.name)
	if epoch := p.meter.Epoch(); epoch != e.epoch {
		e.sim.detail("%s: epoch %d after %d", e.name, epoch, e.epoch)
		if e.misled { // it may have forgotten batches, or begun the epoch for a forged reply
			e.sim.excuseUnreported(e)
		}
		e.disk.learned, e.disk.learnedEpoch = e.disk.doubtful, epoch
		e.epoch, e.disk.copied, e.disk.doubtful = epoch, false, counts{}
		if e.asked != e.sim.restores { // the ledger that ended the epoch was replaced by a backup
			e.sim.excuseUnreported(e)
		}
		e.sim.noteEpochEnd(e)
	}
}

// exchange has the edge exchange messages with the writer once.
func (e *edge) exchange() {
	p := e.process
	if p == nil || e.sending || p.syncing {
		return
	}
	e.sending = true
	s := e.sim
	e.asked = s.restores
	s.detail("%s exchanges", e.name)
	e.replied, e.greeted = false, false
	defer p.sends(p.watches)
	p.sends(false)
	err := p.meter.Exchange(context.Background())
	if e.process == p {
		e.sending = false
	}
	s.detail("%s exchanged: %v", e.name, err)
	e.checkProcess(p)
	e.noteGreeted()
	if e.process == p {
		e.deceived = e.deceived && !(err == nil && e.replied)
		e.noteSeen(err == nil && e.replied)
	}
}

// noteSeen records that the writer has seen the edge's disk. What an older copy served and
// did not report is lost when the node is retired.
func (e *edge) noteSeen(seen bool) {
	if !seen || !e.disk.copied || e.disk.forgedEpoch != 0 { // the writer can't see that there are two disks of a forged epoch
		return
	}
	if s := e.sim; len(s.query(fmt.Sprintf(`SELECT 1 FROM node WHERE retired = 1 AND name = '%s'`, e.name))) > 0 {
		s.excuseUnreported(e)
	}
	e.disk.copied, e.disk.doubtful = false, counts{}
}

// watch asks for news as the meter's watch loop does.
func (e *edge) watch() {
	if p := e.process; p != nil && !p.syncing {
		defer p.sends(p.watches)
		p.sends(true)
		p.meter.Watch(context.Background(), 0)
		e.checkProcess(p)
	}
}

// flush syncs the journal and rotates it when due, as the meter's flush loop does.
func (e *edge) flush() {
	if p := e.process; p != nil && !p.syncing {
		before := maps.Clone(e.unsynced)
		p.flushing = true
		err := p.meter.Flush()
		if p.flushing = false; err == nil && !p.dead {
			for key, n := range before { // what was charged meanwhile is not durable
				e.unsynced[key] = max(e.unsynced[key]-n, 0)
			}
		}
		p.meter.Rotate()
		e.checkProcess(p)
	}
}

func (p *process) sends(watch bool) { p.watches = watch }

// Sync sends a message over the network, which may lose, delay or repeat it. Other steps run
// meanwhile.
func (p *process) Sync(_ context.Context, message []byte) ([]byte, error) {
	e, s := p.edge, p.edge.sim
	before, begin, setBack, watch := e.arrived, s.clock.Load(), e.setBack, p.watches
	if !watch {
		e.asks++
	}
	asks := e.asks
	if s.clock.Load() < e.cutUntil && !s.calm {
		s.count(partitioned)
		return nil, errNetwork
	}
	s.remember(&e.messages, message)
	if !p.dead { // it may have ended in a write before this, and have another disk since
		e.noteSent(message)
	}
	if s.faulty(14) {
		s.count(requestLost)
		return nil, errNetwork
	}
	if !watch && !p.dead && s.faulty(2) {
		s.takeWhileReturning(e)
	}
	s.maybeDelay()
	if p.dead {
		return nil, errDead
	}
	if s.forges && !e.disk.copied && !e.disk.everCopied && (s.faulty(12) || e.forgeNext) {
		e.forgeNext = false
		if s.random.IntN(2) == 0 {
			s.centre.deliver(e.token, message)
		}
		return e.forged(message), nil
	}
	reply, err := s.centre.deliver(e.token, message)
	e.explain(message, reply)
	if err == nil && s.faulty(12) {
		s.count(repeated)
		s.centre.deliver(e.token, message)
	}
	if err == nil && s.faulty(14) {
		s.count(answerLost)
		err = errNetwork
	}
	if err == nil {
		s.maybeDelay()
	}
	if s.faulty(250) {
		s.clock.Add(timeoutMillis + 1)
	}
	switch {
	case p.dead:
		return nil, errDead
	case err != nil:
		return nil, err
	case s.clock.Load()-begin > timeoutMillis:
		s.count(timedOut)
		return nil, context.DeadlineExceeded
	case e.arrived != before:
		s.count(overtaken)
	}
	e.arrived++
	if s.faulty(60) && len(e.replies) > 0 {
		s.count(staleReply)
		return e.stale(message, e.replies[s.random.IntN(len(e.replies))]), nil
	}
	s.remember(&e.replies, reply)
	e.noteTrue(message, reply)
	r, err := syncproto.DecodeReply(reply)
	s.must(err, "read the writer's reply")
	e.noteTold(r)
	if !watch {
		e.replied = true
		e.setBack -= setBack
		e.askedLast = asks
	}
	return reply, nil
}

// stale is an earlier reply, of this writer or one before. In half of the cases it says that it answers the
// message, as one of a writer would that is not honest, or that runs from a copy. Nothing of it may be
// charged or granted twice, unless it confirms an older copy of a disk. That an account is empty is believed.
func (e *edge) stale(message, reply []byte) []byte {
	if e.sim.random.IntN(2) == 0 || e.disk.copied {
		return reply
	}
	m, err := syncproto.DecodeMessage(message)
	e.sim.must(err, "read the edge's message")
	if e.standsForCopy(&m) {
		return reply
	}
	r, err := syncproto.DecodeReply(reply)
	e.sim.must(err, "read the writer's reply")
	e.sim.count(replayedReply)
	e.sim.detail("%s gets an earlier reply as an answer: %+v", e.name, *r)
	e.deceived = true
	e.noteUntold(&m, r)
	if m.Sync != nil && r.Session == m.Sync.Session && r.Since <= m.Sync.Seen && r.Upto > m.Sync.Seen && e.noteTold(r) { // else it takes no rows
		e.sim.countedTwice = true
	}
	r.Answers = m.Number
	return r.Encode()
}

// toldLease is a lease of an edge in a window of time.
type toldLease struct {
	epoch uint64
	pool  syncproto.Pool
}

// noteTold notes the grants of its leases in windows that the edge reads, and reports whether they are fewer than before of
// one. The edge takes it that the writer began the window again, and adds its grants once more to those of its epoch:
// when it says Hello, it seems to know of grants that the ledger lacks.
func (e *edge) noteTold(r *syncproto.Reply) (less bool) {
	for _, row := range r.Rows {
		if row.Pool.Window == 0 {
			continue
		}
		of := toldLease{e.epoch, row.Pool}
		less = less || row.Granted < e.told[of]
		e.told[of] = row.Granted
	}
	return less
}

// noteUntold notes an earlier reply to Hello that comes as the first answer to Sync and says that the epoch has ended: the edge
// takes it that there is no news of it, leaves it, and is never told what else was granted there.
func (e *edge) noteUntold(m *syncproto.Message, r *syncproto.Reply) {
	if m.Sync != nil && m.Sync.Seen == 0 && r.Upto == 0 && r.Status == syncproto.Superseded && r.Session == m.Sync.Session {
		e.untold[r.Epoch] = true
	}
}

// standsForCopy reports whether a message greets from a disk that stands for an older copy: an empty one beside an earlier one
// of the node, since who gives it an epoch of that one makes such a copy of it, or one that lost records: a seal may be among them.
func (e *edge) standsForCopy(m *syncproto.Message) bool {
	return m.Hello != nil && (m.Hello.Epoch == 0 && e.aside != nil || e.disk.recordsLost)
}

// explain traces a message and its reply.
func (e *edge) explain(message, reply []byte) {
	if !e.sim.traced {
		return
	}
	m, err := syncproto.DecodeMessage(message)
	require.NoError(e.sim.t, err)
	said := fmt.Sprintf("%+v", m.Hello)
	if m.Sync != nil {
		said = fmt.Sprintf("session %d seen %d wants %v declared %v %v batch %+v", m.Sync.Session, m.Sync.Seen, m.Sync.Wants, m.Sync.Declared, m.Sync.DeclaredLast, m.Sync.Batch)
	}
	if r, err := syncproto.DecodeReply(reply); err == nil {
		said += fmt.Sprintf(" -> %+v", *r)
	}
	e.sim.note("%s: %s", e.name, said)
}
