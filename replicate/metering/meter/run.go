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
	// greetPause precedes a Hello that follows another message, so that unexpected replies don't lead
	// to a flood.
	greetPause = 10 * time.Millisecond
	// A pause precedes a new epoch that follows another within renewalSpan. It doubles from leastRenewal to
	// mostRenewal: two processes with one token take the epoch from each other, and the writer stores every
	// one.
	leastRenewal = time.Second
	mostRenewal  = time.Minute
	renewalSpan  = 10 * mostRenewal
	// lastPause is between two attempts to report at the end.
	lastPause = 100 * time.Millisecond
	// retryPause is between two attempts while the writer does not answer.
	retryPause = 500 * time.Millisecond
	// rotatePause is between two attempts to begin a segment, and between two to open the journal.
	rotatePause = time.Second
	// archivePause is how often the reported batches are read: some gigabytes for a busy edge.
	archivePause = 24 * time.Hour
	// checkPause is how often the journal's file is looked at.
	checkPause = time.Second / 2
)

// Run exchanges messages with the writer and syncs the journal until ctx ends. It then reports
// unreported usage, if the writer answers within Config.LastReport, and logs how many charges are left.
// It only repeats the steps Exchange, Watch, Flush, Rotate and CheckFile: the simulation calls them
// itself. Two calls of one step must not overlap, but for those of Exchange.
func (m *Meter) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){m.flushLoop, m.exchangeLoop, m.watchLoop, m.archiveLoop, m.hangLoop} {
		loops.Go(func() { loop(ctx) })
	}
	loops.Wait()
	m.reportRest(context.WithoutCancel(ctx))
	return nil
}

// reportRest reports unreported usage, with retries while the writer does not answer.
func (m *Meter) reportRest(ctx context.Context) {
	last, cancel := context.WithTimeout(ctx, m.config.LastReport)
	defer cancel()
	err := error(nil)
	for m.unreported() && last.Err() == nil {
		greeting, unsettled := m.greeting(), m.Stats().Unsettled
		err = m.exchange(last)
		greeted := greeting && !m.greeting()
		if err != nil || !greeted && m.unreported() && m.Stats().Unsettled == unsettled { // such as with a batch that can't be read
			wait(last, lastPause)
		}
	}
	if m.pending() {
		soon, cancel := context.WithTimeout(last, syncPause)
		defer cancel()
		_ = m.exchange(soon) // leases to return
	}
	if charges := m.Stats().Unsettled; charges != 0 {
		m.config.Logger.Error("charges were not reported before the end: the next run reports them", "charges", charges, "error", err)
	}
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// unreported reports whether the writer lacks usage of the journal.
func (m *Meter) unreported() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.HasUnreported()
}

// greeting reports whether the next message is a Hello.
func (m *Meter) greeting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Greeting()
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
	for !m.isOpen() {
		wait(ctx, rotatePause)
		if ctx.Err() != nil {
			return
		}
		m.noteDisk(m.open())
	}
	var tried, checked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(checked) > checkPause || m.diskError.Load() != nil {
			checked = time.Now()
			m.CheckFile()
		}
		m.Flush()
		if time.Since(tried) < rotatePause {
			continue
		}
		switch {
		case m.journal.Full(m.config.SegmentBytes):
			tried = time.Now()
			m.Rotate()
		case m.diskError.Load() != nil: // an edge that is not ready may get no charge to try it with
			tried = time.Now()
			m.noteDisk(m.journal.Probe())
		}
	}
}

// archiveLoop checks the reported batches after the start, and each day.
func (m *Meter) archiveLoop(ctx context.Context) {
	for m.awaitOpen(ctx) && ctx.Err() == nil {
		m.CheckArchive()
		wait(ctx, archivePause)
	}
}

// CheckArchive tells an operator which reported batches can't be read any more: a ledger that is
// restored from a backup would lack them.
func (m *Meter) CheckArchive() {
	damaged, err := m.journal.CheckArchive()
	for _, name := range damaged {
		m.config.Logger.Error("batches that were reported are damaged: the file is set aside, and what can be read of it is kept for a restored ledger", "file", name)
	}
	if err != nil {
		m.config.Logger.Error("the reported batches can't be checked", "error", err)
	}
}

// awaitOpen waits until the journal is open, and reports whether it is.
func (m *Meter) awaitOpen(ctx context.Context) bool {
	select {
	case <-m.opened:
		return true
	case <-ctx.Done():
		return false
	}
}

// exchangeLoop syncs whenever there is a reason to, and at least every second.
func (m *Meter) exchangeLoop(ctx context.Context) {
	if !m.awaitOpen(ctx) {
		return
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		case <-m.syncNow:
		}
		greeting := m.greeting()
		if err := m.Exchange(ctx); err != nil {
			pause.Reset(retryPause)
			continue
		}
		if greeting && !m.greeting() {
			pause.Reset(0) // another process with this node's token may end the session within a second
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
	case m.state.Settled():
		return m.renewal()
	case m.state.Greeting():
		return greetPause
	case m.state.Urgent() || m.state.Behind():
		return 0
	}
	return syncPause
}

// renewal is the pause before this edge asks for a new epoch.
func (m *Meter) renewal() time.Duration {
	if m.renewed.IsZero() || time.Since(m.renewed) > renewalSpan {
		m.renewalPause = greetPause
	} else {
		m.renewalPause = min(max(2*m.renewalPause, leastRenewal), mostRenewal)
	}
	m.renewed = time.Now()
	return m.renewalPause
}

// watchLoop keeps a message open at the writer, so that recalls and grants arrive as soon as
// they are made.
func (m *Meter) watchLoop(ctx context.Context) {
	if !m.awaitOpen(ctx) {
		return
	}
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

// CheckFile looks whether somebody else deleted, replaced or truncated the journal's file. The next
// Rotate then begins a new segment from memory: the lost one's charges are gone only if the process
// ends before.
func (m *Meter) CheckFile() {
	m.journal.Check()
	if n := m.journal.Replaced(); n > m.replaced {
		m.replaced = n
		m.config.Logger.Error("the journal's file was deleted, replaced or cut by another process: a new one begins")
	}
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
