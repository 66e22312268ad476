package meter

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

// Meter decides and charges. Its methods may be called from any goroutine.
type Meter struct {
	config  Config
	journal *journal.Journal
	kick    chan struct{} // asks for a sync now

	// keeping is held from the acknowledgement of a batch until it is kept, and while a
	// segment begins: the one of the acknowledgement goes only when the batch is kept. It is
	// taken before all other locks.
	keeping sync.Mutex

	mu   sync.Mutex // guards book, news, and the journal's open group
	book *lease.EdgeState
	news chan struct{} // closed when leases changed

	asked       atomic.Uint64 // number of the last message
	unreachable atomic.Bool   // the last exchange failed
	skewMillis  atomic.Int64  // the writer's clock less this one's
	failure     atomic.Pointer[error]
	stats       counters
}

// Open takes the state directory and replays its journal. journal.ErrInUse when another
// process owns it.
func Open(config Config) (*Meter, error) {
	config = config.withDefaults()
	m := &Meter{config: config, kick: make(chan struct{}, 1), news: make(chan struct{})}
	m.book = lease.New(bookLog{m})
	dir := config.Files
	if dir == nil {
		var err error
		if dir, err = journal.OpenDir(config.State); err != nil {
			return nil, err
		}
	}
	if config.Synced != nil {
		dir = timed{dir, config.Now, config.Synced}
	}
	j, found, err := journal.Open(dir, owner{m}, m.book.ReplayID, m.book.Replay)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open meter: %w", err), dir.Close())
	}
	if found.Torn > 0 {
		config.Logger.Warn("the journal's torn end was dropped", "bytes", found.Torn)
	}
	m.journal = j
	var random [16]byte
	config.Random(random[:])
	m.book.Boot(binary.LittleEndian.Uint64(random[:8]))
	m.asked.Store(binary.LittleEndian.Uint64(random[8:]))
	for _, batch := range m.book.TakeReplayed() {
		if err := j.KeepAgain(batch.Epoch, batch.Batch, syncproto.Day(m.now())); err != nil {
			return nil, errors.Join(fmt.Errorf("open meter: %w", err), j.Close())
		}
	}
	if err := j.Flushed(); err != nil {
		return nil, errors.Join(fmt.Errorf("open meter: %w", err), j.Close())
	}
	return m, nil
}

func (c Config) withDefaults() Config {
	if c.JournalSync <= 0 {
		c.JournalSync = DefaultJournalSync
	}
	if c.WaitLimit <= 0 {
		c.WaitLimit = DefaultWaitLimit
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = journal.DefaultSegment
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = func(p []byte) { rand.Read(p) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// bookLog gives the book's records to the journal.
type bookLog struct{ m *Meter }

func (l bookLog) Append(record []byte, droppable bool) { l.m.journal.Append(record, droppable) }

func (l bookLog) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	batch, err := l.m.journal.Batch(epoch, seq)
	if err != nil {
		l.m.config.Logger.Error("a batch that the writer lacks can't be read: it is tried again", "error", err)
	}
	return batch, err
}

// owner shows the meter to its journal.
type owner struct{ m *Meter }

func (o owner) Lock()              { o.m.mu.Lock() }
func (o owner) Unlock()            { o.m.mu.Unlock() }
func (o owner) Drop(record []byte) { o.m.book.Drop(record) }

func (m *Meter) now() int64 { return m.config.Now().UnixMilli() }

// Charge gives the verdict on a request and charges it. It waits for the writer only
// when this edge holds no lease for it, at most Config.WaitLimit. It is idempotent by
// the request's id. The charge is in the journal when Charge returns.
func (m *Meter) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	v := m.charge(ctx, &r)
	m.stats.count(v.Code)
	return v
}

func (m *Meter) charge(ctx context.Context, r *charge.Request) charge.Verdict {
	a, group, news := m.decide(r, false)
	if a.Wait {
		if a, group = m.await(ctx, r, a, news); a.Wait {
			return a.Verdict
		}
	}
	for written := false; a.Logged; written = true {
		if err := m.write(group); err != nil {
			return lease.Unavailable(a.Verdict)
		}
		if !a.Repeated || written {
			break
		}
		// The id's own record may have been in a group that failed meanwhile.
		a, group, _ = m.decide(r, true)
	}
	return a.Verdict
}

// decide asks the book once. The group holds the charge's record; news is closed when
// it is worth to ask again.
func (m *Meter) decide(r *charge.Request, again bool) (lease.Answer, *journal.Group, <-chan struct{}) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.book.Charge(now, r, again)
	return a, m.journal.Group(), m.news
}

// await waits until the writer's news decide, or the wait's limit is over.
func (m *Meter) await(ctx context.Context, r *charge.Request, a lease.Answer, news <-chan struct{}) (lease.Answer, *journal.Group) {
	m.stats.waited.Add(1)
	m.wake()
	limit := time.NewTimer(m.config.WaitLimit)
	defer limit.Stop()
	var group *journal.Group
	for a.Wait && !m.unreachable.Load() {
		select {
		case <-news:
			a, group, news = m.decide(r, true)
			if a.Wait {
				m.wake()
			}
		case <-limit.C:
			return a, nil
		case <-ctx.Done():
			return a, nil
		}
	}
	return a, group
}

// wake asks for a sync now.
func (m *Meter) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// write writes a group and notes how that went, for Ready.
func (m *Meter) write(g *journal.Group) error {
	err := m.journal.Write(g)
	m.noteDisk(err)
	return err
}

func (m *Meter) noteDisk(err error) {
	if err == nil {
		if m.failure.Load() != nil {
			m.failure.Store(nil)
			m.config.Logger.Info("the journal can be written again")
		}
		return
	}
	if failure := err; m.failure.Swap(&failure) == nil { // a variable of its own: err would be on the heap each time
		m.config.Logger.Error("the journal can't be written: live keys are answered 503", "error", err)
	}
}

// Void takes the charge of a request id back, if there is one. After a nil error no
// charge of that id stands or ever will, even after a power cut: unlike a charge, a void
// waits for the disk. lease.ErrForgotten for an id that is too old.
func (m *Meter) Void(_ context.Context, id string) error {
	for written := false; ; written = true {
		var voided lease.Voided
		var err error
		now := m.now()
		// Settled: the charge is in the journal, or never was.
		m.journal.Settled(func() { voided, err = m.book.Void(now, id) })
		if err != nil {
			return fmt.Errorf("void charge: %w", err)
		}
		err = m.journal.Flushed()
		m.noteDisk(err)
		if err != nil {
			return fmt.Errorf("void charge: %w", err)
		}
		if !voided.Repeated || written {
			return nil
		}
	}
}

// Doubt notes that the verdict on id may not have reached the component. Unless the id
// is asked again or voided within seconds, it is reported as charge_unresolved.
func (m *Meter) Doubt(id string) {
	m.stats.doubted.Add(1)
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.Doubt(now, id)
}

// Close syncs and closes the journal and gives the state directory up. Call it after
// Run returned.
func (m *Meter) Close() error {
	if err := m.journal.Close(); err != nil {
		return fmt.Errorf("close meter: %w", err)
	}
	return nil
}
