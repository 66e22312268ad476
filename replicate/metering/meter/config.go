package meter

import (
	"context"
	"log/slog"
	"time"

	"regedge/replicate/metering/journal"
)

// Defaults of Config, and what they trade.
const (
	// DefaultJournalSync bounds what a power cut can lose (guarantee G2).
	DefaultJournalSync = 10 * time.Millisecond
	// DefaultWaitLimit is how long a request waits for the writer before it is answered
	// 503 (guarantee G5).
	DefaultWaitLimit = time.Second
)

// Transport carries one sync message to the writer and brings its reply. An error says
// nothing of whether the message arrived.
type Transport interface {
	Sync(ctx context.Context, message []byte) ([]byte, error)
}

// Config is what a Meter needs. State and Writer must be set.
type Config struct {
	// State is the state directory: the journal and its lock. One process owns it.
	State string
	// Files replaces the directory State with other storage.
	Files journal.Dir
	// Writer is the way to the writer: see OverHTTP.
	Writer Transport
	// JournalSync is the longest time between a charge and its journal's fsync.
	JournalSync time.Duration
	// WaitLimit bounds how long a request waits for a lease.
	WaitLimit time.Duration
	// SegmentBytes is the size at which a journal segment is full,
	// journal.DefaultSegment when 0.
	SegmentBytes int64
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Random fills p with random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Synced, if set, is told how long each fsync of the journal took.
	Synced func(took time.Duration)
	// Logger takes what an operator should know, nothing when nil.
	Logger *slog.Logger
}
