package meter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

// Meter decides and charges. Its methods may be called from any goroutine.
type Meter struct {
	config  Config
	journal *journal.Journal
	syncNow chan struct{} // asks for an exchange now

	// exchanging is held for an exchange, and guards lostBy, lostSince and lostTold. It is taken first.
	exchanging sync.Mutex

	// archiving is held from the acknowledgement of a batch until the batch is archived, and
	// while a segment begins. Package journal, "Locks", has the order of all locks.
	archiving journal.Lock

	mu      journal.Lock // guards state, changed, and the journal's pending group
	state   *lease.EdgeState
	changed chan struct{} // closed and replaced when leases changed

	lastMessage atomic.Uint64         // number of the last message
	unreachable atomic.Bool           // the last exchange failed
	skewMillis  atomic.Int64          // the writer's clock less this one's
	diskError   atomic.Pointer[error] // of the last write or sync of the journal, nil for none
	hung        atomic.Int64          // 1 while a write hangs, plus the charges given up and not yet taken back: hung.go
	givenUp     atomic.Int64          // charges given up so far; grows after hung
	stats       counters
	waiters     waiters
	listing     atomic.Bool      // the state directory is being listed for Corrupt
	corrupt     atomic.Int64     // the last result of Corrupt
	recovered   journal.Replayed // what Open found; valid once opened is closed
	replaced    int64            // replaced segments already logged
	lostBy      []string         // the reasons logged since the last good exchange
	lostSince   time.Time        // since when lostTold counts
	lostTold    int              // log lines about failures since
	// renewed is when this edge last had to ask for a new epoch, and renewalPause how long it waited then.
	renewed      time.Time
	renewalPause time.Duration
	opened       chan struct{} // closed once the journal is open
	// waiting is the span of a traced request that began to wait since the last sync, nil for none.
	waiting atomic.Pointer[trace.SpanContext]
}

// newMeter makes a meter whose journal is not open.
func newMeter(config Config) *Meter {
	m := &Meter{
		config: config.withDefaults(), syncNow: make(chan struct{}, 1), changed: make(chan struct{}), opened: make(chan struct{}),
		archiving: journal.NewLock(journal.RankArchiving), mu: journal.NewLock(journal.RankOwner),
	}
	m.state = lease.New(stateLog{m})
	m.journal = journal.New(owner{m})
	return m
}

// stateLog writes the edge state's records to the journal.
type stateLog struct{ m *Meter }

func (l stateLog) Append(record []byte, droppable bool) { l.m.journal.Append(record, droppable) }

func (l stateLog) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	batch, err := l.m.journal.Batch(epoch, seq)
	if err != nil {
		l.m.config.Logger.Error("a batch that the writer lacks can't be read: it is tried again", "error", err)
	}
	return batch, err
}

// owner is the meter as the journal's Owner.
type owner struct{ m *Meter }

func (o owner) Lock()              { o.m.mu.Lock() }
func (o owner) Unlock()            { o.m.mu.Unlock() }
func (o owner) Drop(record []byte) { o.m.state.Drop(record) }

func (m *Meter) now() int64 { return m.config.Now().UnixMilli() }

// Charge decides on a request and charges it. It waits for the writer only if this edge holds no lease for the
// request, for at most Config.WaitLimit, and only if few other requests of its account wait. It is idempotent by the
// request's id. When Charge returns, the charge is written to the journal and survives the end of the process; Flush
// makes it durable. A charge that can't be written within writeLimit is taken back.
func (m *Meter) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	v, _ := m.answer(ctx, &r)
	return v
}

// answer is Charge, and reports whether the request's charge was answered before, under its id or its Idempotency-Key.
func (m *Meter) answer(ctx context.Context, r *charge.Request) (v charge.Verdict, repeated bool) {
	v, repeated = m.charge(ctx, r)
	m.stats.count(v.Code)
	return v, repeated
}

// Exceeded tells whether Charge would refuse a request for its rate, and with which verdict. It
// counts a refusal in Stats, and nothing else.
func (m *Meter) Exceeded(r charge.Request) (v charge.Verdict, exceeded bool) {
	now := m.now()
	m.mu.Lock()
	v, exceeded = m.state.Exceeded(now, &r)
	m.mu.Unlock()
	if exceeded {
		m.stats.count(v.Code)
	}
	return v, exceeded
}

func (m *Meter) charge(ctx context.Context, r *charge.Request) (v charge.Verdict, repeated bool) {
	givenUp := m.givenUp.Load() // before hung
	if m.hung.Load() != 0 && !r.Sandbox {
		return lease.UnavailableAtOnce(r), false
	}
	a, group, changed := m.decide(r, false)
	if a.Wait {
		if a, group = m.await(ctx, r, a, changed); a.Wait {
			return a.Verdict, false
		}
	}
	for written := false; a.Logged; written = true {
		if err := m.writeCharge(r, group); err != nil {
			return lease.Unavailable(a.Verdict), false
		}
		if !a.Repeated || written {
			break
		}
		if a.Verdict.Replayed && m.replays(r) {
			break
		}
		// The id's own record may have been in a group that failed meanwhile.
		a, group, _ = m.decide(r, true)
	}
	if a.Logged && a.Repeated && m.givenUp.Load() != givenUp { // the charge that it repeats may be taken back
		return lease.Unavailable(a.Verdict), false
	}
	return a.Verdict, a.Repeated && a.Verdict.Code == ""
}

// decide lets the edge's state decide on a request. The group holds the charge's record; the channel is closed when
// leases change, so that it is worth trying again.
func (m *Meter) decide(r *charge.Request, again bool) (lease.Answer, *journal.Group, <-chan struct{}) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.IdempotencyHash != "" {
		m.noteClock()
	}
	a := m.state.Charge(now, r, again)
	return a, m.journal.Group(), m.changed
}

// noteClock tells the edge's state both clocks, read together. m.mu is held.
func (m *Meter) noteClock() {
	//mutant:idempotency-keys-forgotten-at-a-jump
	m.state.NoteClock(m.now(), 1+m.config.Elapsed().Milliseconds())
}

// replays checks again the charge because of which a request was not charged: its record may have failed to be written
// meanwhile. It does not matter if that charge has become too old by now.
func (m *Meter) replays(r *charge.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Replays(r)
}

// await waits until a change of the leases decides the request, or for Config.WaitLimit. It does not
// wait when too many do, and stops when it has to make room.
func (m *Meter) await(ctx context.Context, r *charge.Request, a lease.Answer, changed <-chan struct{}) (_ lease.Answer, group *journal.Group) {
	m.noteWait(ctx)
	m.wake()
	if m.unreachable.Load() || !m.isOpen() {
		return a, nil
	}
	place := m.waiters.enter(r.Account, m.now())
	if place == nil {
		m.stats.crowded.Add(1)
		return a, nil
	}
	defer func() { m.waiters.leave(place, !a.Wait) }()
	m.stats.waited.Add(1)
	limit := time.NewTimer(m.config.WaitLimit)
	defer limit.Stop()
	for a.Wait && !m.unreachable.Load() {
		select {
		case <-changed:
			a, group, changed = m.decide(r, true)
			if a.Wait {
				m.noteWait(ctx)
				m.wake()
			}
		case <-place.gone:
			m.stats.crowded.Add(1)
			return a, nil
		case <-limit.C:
			return a, nil
		case <-ctx.Done():
			return a, nil
		}
	}
	return a, group
}

// wake asks for an exchange now.
func (m *Meter) wake() {
	select {
	case m.syncNow <- struct{}{}:
	default:
	}
}

// write writes a group and records the outcome for Ready.
func (m *Meter) write(g *journal.Group) error {
	err := m.journal.Write(g)
	m.noteDisk(err)
	return err
}

// Void undoes the charge of a request id, if there is one. After a nil error no charge of
// that id stands or ever will, even after a power cut: unlike a charge, a void waits for the
// disk. lease.ErrForgotten for an id that is too old.
func (m *Meter) Void(_ context.Context, id string) error {
	for written := false; ; written = true {
		var voided lease.Voided
		var err error
		now := m.now()
		// Barrier: the charge is in the journal, or never was.
		var group *journal.Group
		m.journal.Barrier(func() {
			voided, err = m.state.Void(now, id)
			group = m.journal.Group()
		})
		if err != nil {
			return fmt.Errorf("void charge: %w", err)
		}
		err = m.journal.CommitGroup(group)
		m.noteDisk(err)
		if err != nil {
			return fmt.Errorf("void charge: %w", err)
		}
		if !voided.Repeated || written {
			return nil
		}
	}
}

// Doubt records that the verdict on a request may not have reached the component. Unless the request
// is repeated or voided within seconds, its charge is reported as charge_unresolved.
func (m *Meter) Doubt(r *charge.Request, v charge.Verdict) {
	m.stats.doubted.Add(1)
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Replayed {
		m.state.DoubtReplayed(now, r)
	} else {
		m.state.Doubt(now, r.ID)
	}
}

// delivered records that the verdict on a request whose charge was answered before reached the component.
func (m *Meter) delivered(r *charge.Request, v charge.Verdict) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Delivered(now, r, v.Replayed)
}

// Close syncs and closes the journal and releases the state directory. Call it after Run
// returned.
func (m *Meter) Close() error {
	if err := m.journal.Close(); err != nil {
		return fmt.Errorf("close meter: %w", err)
	}
	return nil
}
