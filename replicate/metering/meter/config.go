package meter

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"regedge/replicate/metering/journal"
)

// Defaults of Config.
const (
	// DefaultJournalSync, with the duration of a sync, bounds what a power cut can lose:
	// docs/design.md, "Life of a charge".
	DefaultJournalSync = 10 * time.Millisecond
	// DefaultWaitLimit is how long a request waits for the writer before it is answered
	// 503: docs/design.md, "Guarantees", G5.
	DefaultWaitLimit = time.Second
	// DefaultLastReport is long enough for a writer that has just started, and short enough for an
	// operator who stops an edge without a writer.
	DefaultLastReport = 5 * time.Second
)

// Transport sends one sync message to the writer and returns its reply. After an error the
// message may have arrived or not.
type Transport interface {
	Sync(ctx context.Context, message []byte) ([]byte, error)
}

// Config configures a Meter. State and Writer are required.
type Config struct {
	// State is the state directory: the journal and its lock. One process owns it.
	State string
	// Files replaces the directory State by other storage.
	Files journal.Dir
	// Writer is the connection to the writer: see OverHTTP.
	Writer Transport
	// JournalSync is the interval at which syncs of the journal start. A sync that takes
	// longer delays the next one.
	JournalSync time.Duration
	// WaitLimit bounds how long a request waits for a lease.
	WaitLimit time.Duration
	// LastReport bounds for how long Run, at its end, tries to report charges.
	LastReport time.Duration
	// SegmentBytes is the size at which a journal segment is full,
	// journal.DefaultSegment when 0.
	SegmentBytes int64
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Elapsed is the time since some fixed moment, by a clock that nobody sets. If it is nil, the
	// monotonic reading of Now is used, which time.Now has.
	Elapsed func() time.Duration
	// Random fills p with random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Synced, if set, is called with the duration of each fsync of the journal.
	Synced func(took time.Duration)
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// Tracer, if not nil, traces syncs.
	Tracer Tracer
}

func (c Config) withDefaults() Config {
	if c.JournalSync <= 0 {
		c.JournalSync = DefaultJournalSync
	}
	if c.WaitLimit <= 0 {
		c.WaitLimit = DefaultWaitLimit
	}
	if c.LastReport <= 0 {
		c.LastReport = DefaultLastReport
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = journal.DefaultSegment
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Elapsed == nil {
		now, began := c.Now, c.Now()
		c.Elapsed = func() time.Duration { return now().Sub(began) }
	}
	if c.Random == nil {
		c.Random = func(p []byte) { rand.Read(p) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// openDir opens the configured storage.
func (c Config) openDir() (journal.Dir, error) {
	dir := c.Files
	if dir == nil {
		var err error
		if dir, err = journal.OpenDir(c.State); err != nil {
			return nil, err
		}
	}
	dir = tellingDir{dir, c.Now, c.Logger}
	if c.Synced != nil {
		dir = timedDir{dir, c.Now, c.Synced}
	}
	return dir, nil
}

// timedDir measures the syncs of its files.
type timedDir struct {
	journal.Dir
	now    func() time.Time
	synced func(time.Duration)
}

func (d timedDir) Append(name string) (journal.File, error) {
	file, err := d.Dir.Append(name)
	if err != nil {
		return nil, err
	}
	return timedFile{file, d}, nil
}

type timedFile struct {
	journal.File
	dir timedDir
}

func (f timedFile) Sync() error {
	began := f.dir.now()
	err := f.File.Sync()
	f.dir.synced(f.dir.now().Sub(began))
	return err
}
