package meter

import (
	"context"
	"fmt"
	"time"
)

// Run does nothing but call the steps below, again and again. Who owns time, as the
// simulation does, calls them itself instead; no two calls of the same step overlap.

// Exchange says Hello or syncs, once, and follows the reply. After an error the requests
// that wait for the writer are told not to.
func (m *Meter) Exchange(ctx context.Context) error {
	err := m.exchange(ctx)
	if err == nil {
		m.unreachable.Store(false)
	} else if ctx.Err() == nil {
		m.lost(err)
	}
	return err
}

// Watch asks the writer for news that it may hold back for the time of hold.
func (m *Meter) Watch(ctx context.Context, hold time.Duration) error {
	return m.watch(ctx, hold)
}

// Flush makes every charge durable that was made so far.
func (m *Meter) Flush() error {
	err := m.journal.Sync()
	if err != nil {
		m.noteDisk(err)
	}
	return err
}

// Rotate begins a new journal segment when the present one is full, or can't be synced.
func (m *Meter) Rotate() error {
	if !m.journal.Full(m.config.SegmentBytes) {
		return nil
	}
	m.keeping.Lock()
	err := m.journal.Rotate(m.book.Snapshot)
	m.keeping.Unlock()
	m.noteDisk(err)
	return err
}

// Check holds the invariants of package lease against what this edge holds.
func (m *Meter) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.book.Check(); err != nil {
		return fmt.Errorf("check leases: %w", err)
	}
	return nil
}

// Epoch is the edge's epoch, 0 before the writer gave one.
func (m *Meter) Epoch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.book.Epoch()
}
