package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// segmentBytes makes a segment of some fifty charges.
const segmentBytes = 4096

// timeoutMillis is how long an edge waits for an answer that is not held back.
const timeoutMillis = 5_000

// edge is a node: a name, a token, and the disks that it has had.
type edge struct {
	world    *world
	name     string
	number   int64
	token    string
	retired  bool
	process  *process // nil while it is down
	disk     *disk
	aside    *disk // of an earlier epoch, to come back
	snapshot *disk

	syncFails bool
	fullUntil int64
	skew      int64
	setBack   int64 // how much older than it seems the writer's last word may be
	cutUntil  int64
	downSince int64

	epoch    uint64 // as last seen
	copied   bool   // ran on an older copy once
	sending  bool
	asked    int // restores of the ledger when the message under way was sent
	arrived  int
	told     bool // the writer's own reply came
	messages [][]byte
	replies  [][]byte
	requests []*request // the newest
	unsynced counts     // charges that a power cut may take, by key
}

// process is one run of an edge.
type process struct {
	edge    *edge
	meter   *meter.Meter
	dead    bool
	crashIn int
}

func (e *edge) now() time.Time { return time.UnixMilli(e.world.now + e.skew) }

// setClock makes the edge's clock wrong.
func (e *edge) setClock(skew int64) {
	e.setBack += max(e.skew-skew, 0)
	e.skew = skew
}

// boot starts the process, unless it ends while it starts.
func (e *edge) boot() {
	w := e.world
	p := &process{edge: e}
	e.disk.unmount()
	if w.faulty(8) {
		p.crashIn = 1 + w.random.IntN(12)
	}
	m, err := meter.Open(meter.Config{
		Files: mount{e.disk, p}, Writer: p, Now: e.now, Random: w.fill,
		WaitLimit: time.Nanosecond, SegmentBytes: segmentBytes,
	})
	if err != nil {
		require.True(w.t, p.dead || w.diskFailed(err), "the meter does not open: %v", err)
		return
	}
	if w.now-e.downSince > dayMillis && e.downSince != 0 {
		w.count(backAfterDays)
	}
	w.forgotten(e.disk, m.Epoch())
	p.meter, e.process, e.epoch = m, p, m.Epoch()
	w.detail("%s boots in epoch %d", e.name, e.epoch)
	e.checkProcess(p)
}

// kill ends the process where it is.
func (e *edge) kill() {
	if e.process != nil {
		e.world.detail("%s ends", e.name)
		e.process.dead = true
		e.disk.unmount()
		e.disk.copied = e.disk.wasCopied // what the writer said of it may not have been written yet
		e.process, e.sending = nil, false
		e.downSince = e.world.now
	}
}

// checkProcess buries a process that ended, and holds its invariants while it lives.
func (e *edge) checkProcess(p *process) {
	if p.dead {
		if e.process == p {
			e.kill()
		}
		return
	}
	require.NoError(e.world.t, p.meter.Check(), e.name)
	if epoch := p.meter.Epoch(); epoch != e.epoch {
		e.world.detail("%s: epoch %d after %d", e.name, epoch, e.epoch)
		e.disk.heard, e.disk.heardEpoch = e.disk.doubtful, epoch
		e.epoch, e.disk.copied, e.disk.doubtful = epoch, false, counts{}
		if e.asked != e.world.restores { // the ledger that ended the epoch is not there any more
			e.world.excuse(e)
		}
		e.world.broke(e)
	}
}

// exchange has the edge speak to the writer once.
func (e *edge) exchange() {
	p := e.process
	if p == nil || e.sending {
		return
	}
	e.sending = true
	w := e.world
	e.asked = w.restores
	w.detail("%s exchanges", e.name)
	e.told = false
	err := p.meter.Exchange(context.Background())
	if e.process == p {
		e.sending = false
	}
	w.detail("%s exchanged: %v", e.name, err)
	e.checkProcess(p)
	if e.process == p {
		e.trusted(err == nil && e.told)
	}
}

// trusted notes that the writer has seen the disk that the edge runs on, if it has. What
// an older copy served and did not report is lost when the node is retired.
func (e *edge) trusted(seen bool) {
	if !seen || !e.disk.copied {
		return
	}
	if w := e.world; len(w.query(fmt.Sprintf(`SELECT 1 FROM node WHERE retired = 1 AND name = '%s'`, e.name))) > 0 {
		w.excuse(e)
	}
	e.disk.copied, e.disk.doubtful = false, counts{}
}

// watch asks for news on the other lane.
func (e *edge) watch() {
	if p := e.process; p != nil {
		p.meter.Watch(context.Background(), 0)
		e.checkProcess(p)
	}
}

// flush is what the edge does every few milliseconds.
func (e *edge) flush() {
	if p := e.process; p != nil {
		if p.meter.Flush() == nil && !p.dead {
			clear(e.unsynced)
		}
		p.meter.Rotate()
		e.checkProcess(p)
	}
}

// Sync carries a message over the network, with what can happen to it. The world goes on
// meanwhile.
func (p *process) Sync(_ context.Context, message []byte) ([]byte, error) {
	e, w := p.edge, p.edge.world
	before, begin := e.arrived, w.now
	if w.now < e.cutUntil && !w.calm {
		w.count(partitioned)
		return nil, errNetwork
	}
	w.remember(&e.messages, message)
	if w.faulty(14) {
		w.count(requestLost)
		return nil, errNetwork
	}
	w.mayWait()
	if p.dead {
		return nil, errDead
	}
	reply, err := w.centre.deliver(e.token, message)
	e.explain(message, reply)
	if err == nil && w.faulty(12) {
		w.count(repeated)
		w.centre.deliver(e.token, message)
	}
	if err == nil && w.faulty(14) {
		w.count(answerLost)
		err = errNetwork
	}
	if err == nil {
		w.mayWait()
	}
	if w.faulty(250) {
		w.now += timeoutMillis + 1
	}
	switch {
	case p.dead:
		return nil, errDead
	case err != nil:
		return nil, err
	case w.now-begin > timeoutMillis:
		w.count(timedOut)
		return nil, context.DeadlineExceeded
	case e.arrived != before:
		w.count(overtaken)
	}
	e.arrived++
	if w.faulty(60) && len(e.replies) > 0 {
		w.count(staleReply)
		return e.replies[w.random.IntN(len(e.replies))], nil
	}
	w.remember(&e.replies, reply)
	e.setBack, e.told = 0, true
	return reply, nil
}

// explain notes what was said, for the trace of one seed.
func (e *edge) explain(message, reply []byte) {
	if !e.world.traced {
		return
	}
	m, err := syncproto.DecodeMessage(message)
	require.NoError(e.world.t, err)
	said := fmt.Sprintf("%+v", m.Hello)
	if m.Sync != nil {
		said = fmt.Sprintf("session %d seen %d wants %v declared %v %v batch %+v", m.Sync.Session, m.Sync.Seen, m.Sync.Wants, m.Sync.Declared, m.Sync.DeclaredLast, m.Sync.Batch)
	}
	if r, err := syncproto.DecodeReply(reply); err == nil {
		said += fmt.Sprintf(" -> %+v", *r)
	}
	e.world.note("%s: %s", e.name, said)
}
