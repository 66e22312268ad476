package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/schollz/progressbar/v3"

	"regedge/host/hint"
	"regedge/schema/importer"
)

type importCommand struct {
	Files    []string `arg:"" name:"files" help:"Files in any of the official formats, plain, gzip or zstd; - is the standard input."`
	Registry string   `required:"" placeholder:"FILE" help:"The registry database; made when missing."`
	Pincodes []string `env:"-" type:"path" placeholder:"FILE" help:"Post office directories, for the districts. They may stand among the files, too."`
	AsOf     string   `env:"-" placeholder:"DATE" help:"The date of the files, YYYY-MM-DD. By default today."`
	Rejects  string   `env:"-" type:"path" placeholder:"FILE" help:"Where rows go that can't be taken, with line and reason."`
}

// Validate refuses early what would fail later.
func (c *importCommand) Validate() error {
	if isRemote(c.Registry) {
		return errors.New("--registry is a file here: import into one, and bring it to a server from there")
	}
	if c.AsOf == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, c.AsOf); err != nil {
		return errors.New("--as-of is a day, YYYY-MM-DD")
	}
	return nil
}

// importMemory is Go's soft memory limit for an import, in bytes. GOGC stays at 100, and the
// GC runs more often near the limit. SQLite's memory comes on top; an import of all of India
// must stay below 512 MB. With more live memory than this the GC takes up to half of the time.
const importMemory = 350 << 20

// limitMemory sets that limit, unless the operator has set GOMEMLIMIT.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(importMemory)
	}
}

// Run imports the files and prints how many rows of each were new, changed or rejected.
func (c *importCommand) Run(ctx context.Context, m *Main) error {
	limitMemory()
	bar := newProgress(m.Stderr, "importing", "B")
	report, err := importer.Run(ctx, importer.Config{
		Registry: c.Registry, Files: c.Files, Pincodes: c.Pincodes, AsOf: c.AsOf, Rejects: c.Rejects,
		Stdin: m.Stdin, Now: m.Now,
		Progress: func(p importer.Progress) { bar.set(p.Bytes, p.Total) },
	})
	bar.finish()
	if len(report.Files) > 0 {
		if tableErr := report.WriteTable(m.Stdout); err == nil {
			err = tableErr
		}
	}
	if rejected := rejectedRows(&report); err == nil && rejected > 0 && c.Rejects == "" {
		fmt.Fprintf(m.Stderr, "rows that could not be taken: %d; --rejects FILE would keep them\n", rejected)
	}
	if err == nil && nothingTaken(&report) {
		return hint.With(errors.New("no row could be taken"), "the table above, and a rejects file, give the reasons")
	}
	if err != nil && ctx.Err() != nil {
		return hint.With(fmt.Errorf("interrupted: %w", err), "what was written stays; the same command goes on from there")
	}
	return err
}

func rejectedRows(report *importer.Report) (n int64) {
	for _, count := range report.Total().Rejected {
		n += count
	}
	return n
}

// nothingTaken reports whether there were rows and every one was rejected.
func nothingTaken(report *importer.Report) bool {
	total := report.Total()
	return total.New+total.Changed+total.Unchanged == 0 && rejectedRows(report) > 0
}

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, act, unit string) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(act),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetWidth(30),
	}
	if unit == "B" {
		options = append(options, progressbar.OptionShowBytes(true))
	} else {
		options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit))
	}
	return &progress{progressbar.NewOptions64(-1, options...)}
}

// set draws the progress. Errors are ignored: a bar is only for the eye.
func (p *progress) set(done, total int64) {
	if p.bar == nil {
		return
	}
	if total > 0 && p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(done)
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
