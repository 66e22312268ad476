package meter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// syncPause is the longest time between two syncs, and so the age of what other edges
	// know of this one's counts.
	syncPause = time.Second
	// holdPause is how long the writer may hold a watch open.
	holdPause = 15 * time.Second
	// greetPause is before a Hello that follows another message, so that a writer with
	// unexpected answers is not flooded.
	greetPause = 10 * time.Millisecond
	// retryPause is between two attempts while the writer does not answer.
	retryPause = 500 * time.Millisecond
	// rotatePause is between two attempts to begin a segment.
	rotatePause = time.Second
)

// Run exchanges messages with the writer and syncs the journal until ctx ends. At the end it
// reports what is unreported, if the writer answers quickly. It only repeats the steps
// Exchange, Watch, Flush and Rotate: the simulation calls them itself. Two calls of one step
// must not overlap.
func (m *Meter) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){m.flushLoop, m.exchangeLoop, m.watchLoop} {
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
	return !m.state.Greeting() && !m.state.Idle()
}

// flushLoop syncs the journal and begins new segments.
func (m *Meter) flushLoop(ctx context.Context) {
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

// exchangeLoop syncs whenever there is a reason to, and at least every second.
func (m *Meter) exchangeLoop(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		case <-m.syncNow:
		}
		if err := m.Exchange(ctx); err != nil {
			pause.Reset(retryPause)
			continue
		}
		pause.Reset(m.nextPause())
	}
}

// nextPause is short while there is more to send: a session to open, batches to resend,
// leases to return or to ask for.
func (m *Meter) nextPause() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.state.Greeting():
		return greetPause
	case m.state.Urgent() || m.state.Behind():
		return 0
	}
	return syncPause
}

// watchLoop keeps a message open at the writer, so that recalls and grants arrive as soon as
// they are made.
func (m *Meter) watchLoop(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if err := m.Watch(ctx, holdPause); err != nil {
			pause.Reset(retryPause)
		} else {
			pause.Reset(0)
		}
	}
}

// Flush makes every charge made so far durable.
func (m *Meter) Flush() error {
	err := m.journal.Sync()
	if err != nil {
		m.noteDisk(err)
	}
	return err
}

// Rotate begins a new journal segment when the current one is full or can't be synced.
func (m *Meter) Rotate() error {
	if !m.journal.Full(m.config.SegmentBytes) {
		return nil
	}
	m.archiving.Lock()
	err := m.journal.Rotate(m.state.Snapshot)
	m.archiving.Unlock()
	m.noteDisk(err)
	return err
}

// Check verifies the invariants of package lease.
func (m *Meter) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.state.Check(); err != nil {
		return fmt.Errorf("check leases: %w", err)
	}
	return nil
}

// Epoch is the edge's epoch, 0 before the writer assigned one.
func (m *Meter) Epoch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Epoch()
}
