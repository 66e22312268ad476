package push

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// Errors of Run.
var (
	// ErrTakenOver means that another push was started later and has taken over.
	ErrTakenOver = errors.New("another push has taken over")
	// ErrNotPushed means that the primary's content was not written by a push.
	ErrNotPushed = errors.New("the primary holds a registry that was not pushed: begin with an empty one")
)

// Config is the configuration of Run.
type Config struct {
	// Snapshots is the folder of the snapshots, Release the id of the one to push.
	Snapshots, Release string
	// File, in a dry run, is the registry file that Prepare has prepared: without a snapshot.
	File string
	// Primary is the registry at the primary, as libsql.Open opens it. The caller closes it.
	Primary *sql.DB
	// PrimaryDir, if set, is the directory of the primary, on this machine: there it takes a whole
	// database (sqld.Seed), for a push in which more than a twentieth differs.
	PrimaryDir sqld.Seed
	// DryRun compares and writes nothing.
	DryRun bool
	// Rollback says that an earlier release is meant.
	Rollback bool
	// Confirm, if set, is asked before anything is written by a push that may be a mistake
	// (Report.Doubts). Its error ends the push.
	Confirm func(Report) error
	// Ask, if set, is asked instead of Confirm, by every push except the first.
	Ask func(Report) error
	// Progress, if set, is called as the push goes on.
	Progress func(Progress)
	// Failed, if set, is called when a call of the primary failed and will be retried after a pause.
	Failed func(err error, attempt, attempts int, pause time.Duration)
	Now    func() time.Time
	// Pause waits between attempts; it is time.Sleep, cut short by ctx, when nil.
	Pause func(ctx context.Context, d time.Duration)
}

// Stage is the current stage of a push.
type Stage int

// The stages of a push. Their unit is the record, except for pages of a file that is copied, parts of a registry
// that is compared, and bytes of a file that is handed over. Waiting, for another push, has none.
const (
	Hashing Stage = iota
	Waiting
	Copying
	Comparing
	Writing
	HandingOver
)

// Progress counts the finished units of a stage, and their total.
type Progress struct {
	Stage       Stage
	Done, Total int64
}

func report(to func(Progress), stage Stage, done, total int64) {
	if to != nil {
		to(Progress{stage, done, total})
	}
}

// Count counts the records of a kind that differ.
type Count struct {
	Kind                    string
	Added, Changed, Removed int64
}

// Report sums up what a push did or, in a dry run, would do.
type Report struct {
	Release        string
	Counts         []Count
	Doubts         []string // why the push may be a mistake, in sentences
	PartsRemoved   int64    // appointments and partners that go, if Doubts name them
	Transactions   int
	Sent, Received int64 // bytes of statements with parameters, and of results, before they are encoded
	Compared       int64 // bytes of Received that were read to find the differences
	Whole          bool  // the file was handed over whole, not record by record
	NewGeneration  bool  // the whole search was written again, at other places
	Elapsed        time.Duration
}

// Records is the number of records that differ.
func (r Report) Records() (n int64) {
	for _, c := range r.Counts {
		n += c.Added + c.Changed + c.Removed
	}
	return n
}

// WouldGo is the number that confirms a push: the records that the primary loses, and the parts that Doubts name.
func (r Report) WouldGo() int64 { return r.Removed() + r.PartsRemoved }

// Removed is the number of records that the primary loses.
func (r Report) Removed() (n int64) {
	for _, c := range r.Counts {
		n += c.Removed
	}
	return n
}

// pusher is one run.
type pusher struct {
	config      Config
	local       *sql.DB
	here, there *side
	blank       bool // a dry run found the primary without a schema
	token       string
	generation  int64
	lastDigest  string // of the primary's newest release
	sequence    int64  // of the last transaction
	report      Report
}

// Run pushes a release. After an error, also when ctx is done, every transaction was written whole
// or not at all, and another Run with the same release continues. Errors wrap ErrTakenOver,
// ErrNotPushed, ErrNoSnapshot, ErrDiffers, ErrNotTaken, sqld.ErrForeign, what Confirm returned,
// libsql.ErrUnauthorized and *schema.NewerError.
func Run(ctx context.Context, config Config) (report Report, err error) {
	started := config.Now()
	if config.Pause == nil {
		config.Pause = pause
	}
	p := &pusher{config: config, there: &side{db: config.Primary}, token: rand.Text()}
	p.report.Release, p.report.Counts = config.Release, noCounts()
	if p.local, err = openLocal(ctx, &config); err != nil {
		return p.report, err
	}
	defer func() { err = errors.Join(err, p.local.Close()) }()
	p.here = &side{db: p.local}
	err = p.run(ctx)
	p.report.Sent, p.report.Received = p.there.sent, p.there.received
	p.report.Elapsed = config.Now().Sub(started)
	return p.report, err
}

func openLocal(ctx context.Context, config *Config) (*sql.DB, error) {
	if config.DryRun && config.File != "" {
		return schema.OpenReadOnly(config.File)
	}
	return openSnapshot(ctx, config.Snapshots, config.Release)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *pusher) run(ctx context.Context) error {
	if err := p.checkSchema(ctx); err != nil {
		return err
	}
	before, err := p.readState(ctx)
	if err != nil {
		return err
	}
	if before.current == p.config.Release && before.pushing == "" {
		return nil
	}
	if !before.pushed && before.names > 0 {
		return ErrNotPushed
	}
	limit, err := p.listLimit(ctx)
	if err != nil {
		return err
	}
	changes, err := p.compare(ctx, limit)
	if err != nil {
		return err
	}
	p.report.NewGeneration = !p.report.Whole && before.needsNewGeneration(changes)
	if p.report.Whole && !p.config.DryRun {
		if err := p.config.PrimaryDir.Check(); errors.Is(err, sqld.ErrNoPrimary) {
			return fmt.Errorf("%w: %w", ErrNotTaken, err)
		} else if err != nil {
			return fmt.Errorf("hand the file over: %w", err)
		}
	}
	if err := p.confirm(ctx, before); err != nil {
		return err
	}
	if p.config.DryRun {
		return p.foresee(ctx)
	}
	if err := p.begin(ctx, before); err != nil {
		return err
	}
	if p.report.Whole {
		return p.handOver(ctx)
	}
	if p.report.NewGeneration {
		if changes, err = p.compare(ctx, math.MaxInt); err != nil {
			return err
		}
	}
	if err := p.write(ctx, changes); err != nil {
		return err
	}
	return p.finish(ctx)
}

// checkSchema migrates the primary to this program's version. A dry run checks the version
// instead, and accepts an empty primary.
func (p *pusher) checkSchema(ctx context.Context) error {
	if !p.config.DryRun {
		return libsql.Explain(schema.Migrate(ctx, p.config.Primary, schema.Registry))
	}
	version, err := schema.Version(ctx, p.config.Primary, schema.Registry)
	if err == nil && version == 0 {
		p.blank, p.there.db = true, nil
		return nil
	}
	if err == nil {
		err = schema.Check(ctx, p.config.Primary, schema.Registry)
	}
	if err != nil {
		return fmt.Errorf("primary: %w", libsql.Explain(err))
	}
	return nil
}

// write writes the changes in batches, one transaction each.
func (p *pusher) write(ctx context.Context, changes []change) error {
	links, err := p.findLinks(ctx, changes)
	if err != nil {
		return err
	}
	done, total := int64(0), int64(0)
	batches := plan(changes, links)
	vacate(batches, links)
	for _, batch := range batches {
		total += int64(len(batch))
	}
	for _, batch := range batches {
		list, err := p.statements(ctx, batch)
		if err != nil {
			return err
		}
		if err := p.commit(ctx, list); err != nil {
			return err
		}
		p.report.Transactions++
		done += int64(len(batch))
		report(p.config.Progress, Writing, done, total)
	}
	return nil
}
