package meter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

const (
	// syncPause is the longest time between two syncs: what other edges learn of this
	// one's counts is as old at most.
	syncPause = time.Second
	// holdPause is how long the writer may hold a watch open.
	holdPause = 15 * time.Second
	// exchangeLimit bounds a sync that is answered at once.
	exchangeLimit = 5 * time.Second
	// greetPause is before a Hello that follows another message: a writer that answers
	// strangely is not asked in a rush.
	greetPause = 10 * time.Millisecond
	// retryPause is between two attempts while the writer does not answer.
	retryPause = 500 * time.Millisecond
	// rotatePause is between two attempts to begin a segment.
	rotatePause = time.Second
)

// Run keeps in touch with the writer and brings the journal to the disk until ctx ends.
// At the end it reports what is unreported, if the writer answers quickly.
func (m *Meter) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){m.keepSynced, m.keepInTouch, m.keepWatching} {
		loops.Go(func() { loop(ctx) })
	}
	loops.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncPause)
	defer cancel()
	if m.pending() {
		m.exchange(last)
	}
	return nil
}

func (m *Meter) pending() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.book.Greeting() && !m.book.Idle()
}

// keepSynced brings the journal to the disk, and begins new segments.
func (m *Meter) keepSynced(ctx context.Context) {
	tick := time.NewTicker(m.config.JournalSync)
	defer tick.Stop()
	var tried time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m.Flush()
		if m.journal.Full(m.config.SegmentBytes) && time.Since(tried) > rotatePause {
			tried = time.Now()
			m.Rotate()
		}
	}
}

// keepInTouch syncs whenever there is reason to, and at least every second.
func (m *Meter) keepInTouch(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		case <-m.kick:
		}
		if err := m.Exchange(ctx); err != nil {
			pause.Reset(retryPause)
			continue
		}
		pause.Reset(m.nextPause())
	}
}

// nextPause is short while there is more to say: a session to open, batches to resend,
// leases to return or to ask for.
func (m *Meter) nextPause() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.book.Greeting():
		return greetPause
	case m.book.Urgent() || m.book.Behind():
		return 0
	}
	return syncPause
}

// lost notes that the writer did not answer: who waits for it need not wait on.
func (m *Meter) lost(err error) {
	if !m.unreachable.Swap(true) {
		m.config.Logger.Warn("the writer does not answer: serving on leases", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.Lost()
	m.announce()
}

// announce wakes the requests that wait. m.mu is held.
func (m *Meter) announce() {
	close(m.news)
	m.news = make(chan struct{})
}

// exchange says Hello or syncs, once. What the message reports is durable before it
// leaves.
func (m *Meter) exchange(ctx context.Context) error {
	sent := m.now()
	var message syncproto.Message
	// Settled: no charge is in a batch that is dropped after it, since it can't be written.
	m.journal.Settled(func() {
		if m.book.Greeting() {
			message.Hello = m.book.Hello(sent)
		} else {
			message.Sync = m.book.Sync(sent)
		}
	})
	//mutant:batch-sent-before-durable
	if err := m.journal.Flushed(); err != nil {
		m.noteDisk(err)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	reply, err := m.ask(ctx, message)
	if err != nil {
		return err
	}
	received := m.now()
	m.noteSkew(sent, received, reply.NowMillis)
	return m.apply(received, reply, message.Sync != nil)
}

// errAnotherReply says that something between the two sides, a proxy that keeps answers,
// gave the reply to another message.
var errAnotherReply = errors.New("the writer's reply answers another message: is there a cache between?")

func (m *Meter) ask(ctx context.Context, message syncproto.Message) (*syncproto.Reply, error) {
	message.Number = m.asked.Add(1)
	answer, err := m.config.Writer.Sync(ctx, message.Encode())
	if err != nil {
		return nil, err
	}
	reply, err := syncproto.DecodeReply(answer)
	if err != nil {
		return nil, fmt.Errorf("read the writer's reply: %w", err)
	}
	if reply.Answers != message.Number {
		return nil, errAnotherReply
	}
	return reply, nil
}

// apply gives a reply to the book, keeps the acknowledged batch and wakes who waits.
func (m *Meter) apply(now int64, reply *syncproto.Reply, ofSync bool) error {
	m.keeping.Lock()
	defer m.keeping.Unlock()
	m.mu.Lock()
	before := m.book.Standing()
	applied := m.book.Apply(now, reply, ofSync)
	after := m.book.Standing()
	if applied.News {
		m.announce()
	}
	urgent := m.book.Urgent()
	m.mu.Unlock()
	if urgent {
		m.wake()
	}
	m.explain(before, after, applied)
	if applied.Batch != nil {
		return m.keep(*applied.Batch)
	}
	return nil
}

// explain tells an operator when this edge's standing changed.
func (m *Meter) explain(before, after syncproto.Status, applied lease.Applied) {
	log := m.config.Logger
	switch {
	case applied.Abandoned:
		log.Error("this node is retired, and the state directory an older copy: what it did not report is dropped")
	case applied.Forked:
		log.Error("the state directory is an older copy: its leases are void, a new epoch begins")
	case before == after:
	case after == syncproto.Superseded:
		log.Warn("a newer epoch was given to this node: reporting and returning what is left of this one")
	case after == syncproto.Retired:
		log.Error("this node is retired: live keys are answered 503")
	}
}

// keep stores an acknowledged batch for a ledger that comes back from a backup.
func (m *Meter) keep(batch lease.Reported) error {
	//mutant:reported-batches-not-archived
	return m.journal.Keep(batch.Epoch, batch.Batch, syncproto.Day(m.now()))
}

// keepWatching holds a message open at the writer, so that recalls and grants come as
// soon as they are made.
func (m *Meter) keepWatching(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if err := m.watch(ctx, holdPause); err != nil {
			pause.Reset(retryPause)
		} else {
			pause.Reset(0)
		}
	}
}

func (m *Meter) watch(ctx context.Context, hold time.Duration) error {
	m.mu.Lock()
	greeting := m.book.Greeting()
	message := syncproto.Message{Sync: m.book.Watch(m.now(), hold.Milliseconds())}
	m.mu.Unlock()
	if greeting {
		return errNoSession
	}
	ctx, cancel := context.WithTimeout(ctx, hold+exchangeLimit)
	defer cancel()
	reply, err := m.ask(ctx, message)
	if err != nil {
		return err
	}
	if err := m.apply(m.now(), reply, false); err != nil {
		return err
	}
	if reply.Status == syncproto.Stranger {
		return errNoSession
	}
	return nil
}
