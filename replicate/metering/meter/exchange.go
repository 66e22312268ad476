package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

// exchangeLimit bounds a sync that is answered at once.
const exchangeLimit = 5 * time.Second

var errNoSession = errors.New("no session with the writer")

// Exchange says Hello or syncs, once, and applies the reply. An error ends the wait of all
// requests that wait for the writer. Calls at the same time take turns.
func (m *Meter) Exchange(ctx context.Context) error {
	m.exchanging.Lock()
	defer m.exchanging.Unlock()
	ctx, span := m.traceSync(ctx)
	err := m.exchange(ctx)
	m.endSync(span, err)
	if err == nil {
		m.unreachable.Store(false)
		m.lostBy = nil
	} else if ctx.Err() == nil {
		m.writerLost(err)
	}
	return err
}

// When the writer's disk is full, exchanges without changes succeed between others that fail: at most
// lostLines log lines per lostSpan say so.
const (
	lostLines = 4
	lostSpan  = time.Minute
)

// writerLost records that an exchange failed and wakes the requests that wait for the writer. Until one
// succeeds, each cause is logged once.
func (m *Meter) writerLost(err error) {
	m.unreachable.Store(true)
	if time.Since(m.lostSince) >= lostSpan {
		m.lostSince, m.lostTold = time.Now(), 0
	}
	if cause := lostBy(err); !slices.Contains(m.lostBy, cause) && m.lostTold < lostLines {
		m.lostBy = append(m.lostBy, cause)
		m.lostTold++
		m.config.Logger.Warn(cause+": serving on leases", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Lost()
	m.announce()
}

// Reasons why an exchange fails although the writer may be reachable.
var (
	errToken   = errors.New("the token is refused")
	errNoReply = errors.New("not a reply")
	errJournal = errors.New("write the journal")
	// errAnotherReply is returned for the reply to another message, as a caching proxy may send.
	errAnotherReply = errors.New("the writer's reply answers another message: is there a cache between?")
)

// lostBy says why an exchange failed, for an operator.
func lostBy(err error) string {
	switch {
	case errors.Is(err, errToken):
		return "the writer refuses this node's token; regedge node token, at the centre, makes another"
	case errors.Is(err, errNoReply), errors.Is(err, errAnotherReply):
		return "the writer answers with an error"
	case errors.Is(err, errJournal):
		return "nothing is reported to the writer while the journal can't be written"
	}
	return "the writer does not answer"
}

// announce wakes the requests that wait. m.mu is held.
func (m *Meter) announce() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// exchange says Hello or syncs, once. What the message reports is durable before it is sent.
func (m *Meter) exchange(ctx context.Context) error {
	sent := m.now()
	var message syncproto.Message
	m.mu.Lock()
	epoch, seq, lacking := m.state.Lacking()
	m.mu.Unlock()
	if lacking {
		_, _ = m.journal.Batch(epoch, seq) // into its cache: it may read gigabytes, and under the locks below charges would wait
	}
	// Barrier: no charge of a sealed batch is dropped later because it can't be written.
	m.journal.Barrier(func() {
		m.noteClock()
		if m.state.Greeting() {
			message.Hello = m.state.Hello(sent)
		} else {
			message.Sync = m.state.Sync(sent)
		}
	})
	//mutant:batch-sent-before-durable
	if err := m.journal.Commit(); err != nil {
		m.noteDisk(err)
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	reply, err := m.send(ctx, message)
	if err != nil {
		return err
	}
	received := m.now()
	m.noteSkew(sent, received, reply.NowMillis)
	return m.apply(received, reply, message.Sync != nil)
}

// send numbers a message, sends it and returns the reply.
func (m *Meter) send(ctx context.Context, message syncproto.Message) (*syncproto.Reply, error) {
	message.Number = m.lastMessage.Add(1)
	answer, err := m.config.Writer.Sync(ctx, message.Encode())
	if err != nil {
		return nil, err
	}
	reply, err := syncproto.DecodeReply(answer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoReply, err)
	}
	if reply.Answers != message.Number {
		return nil, errAnotherReply
	}
	return reply, nil
}

// apply applies a reply to the edge's state, archives the batch that it acknowledges and
// wakes the requests that wait.
func (m *Meter) apply(now int64, reply *syncproto.Reply, ofSync bool) error {
	m.archiving.Lock()
	defer m.archiving.Unlock()
	m.mu.Lock()
	before := m.state.Standing()
	applied := m.state.Apply(now, reply, ofSync)
	after := m.state.Standing()
	if applied.News {
		m.announce()
	}
	urgent := m.state.Urgent()
	m.mu.Unlock()
	if urgent {
		m.wake()
	}
	m.logStanding(before, after, applied)
	if applied.Batch != nil {
		return m.archive(*applied.Batch, now, reply.NowMillis)
	}
	return nil
}

// logStanding tells an operator that this edge's standing changed.
func (m *Meter) logStanding(before, after syncproto.Status, applied lease.Applied) {
	log := m.config.Logger
	switch {
	case applied.Abandoned:
		log.Error("this node is retired, and the state directory an older copy: what it did not report is dropped")
	case applied.Forked:
		log.Error("the state directory is an older copy: its leases are void, a new epoch begins")
	case before == after:
	case after == syncproto.Superseded:
		log.Warn("a newer epoch was given to this node: reporting and returning what is left of this one. Does this come again and again? " +
			"Then another process runs with this node's token; regedge node add, at the centre, makes one of its own for each")
	case after == syncproto.Retired:
		log.Error("this node is retired: live keys are answered 503")
	}
}

// archive stores an acknowledged batch for a ledger that is restored from a backup. A wrong clock, of
// edge or writer, must not make the batch too old.
func (m *Meter) archive(batch lease.Reported, now, writers int64) error {
	day, today := syncproto.Day(max(now, writers)), syncproto.Day(min(now, writers))
	//mutant:reported-batches-not-archived
	if err := m.journal.Archive(batch.Epoch, batch.Batch, day, today); err != nil {
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	return nil
}

// Watch asks the writer for news, which it may delay by hold until there is some.
func (m *Meter) Watch(ctx context.Context, hold time.Duration) error {
	m.mu.Lock()
	greeting := m.state.Greeting()
	message := syncproto.Message{Sync: m.state.Watch(m.now(), hold.Milliseconds())}
	m.mu.Unlock()
	if greeting {
		return errNoSession
	}
	ctx, cancel := context.WithTimeout(ctx, hold+exchangeLimit)
	defer cancel()
	reply, err := m.send(ctx, message)
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
