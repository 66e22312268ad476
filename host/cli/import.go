package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/host/hint"
	"regedge/replicate/registry/sqld"
	"regedge/schema/importer"
	"regedge/schema/verify"
)

type importCommand struct {
	Files    []string `arg:"" name:"files" optional:"" help:"Files in any of the official formats, plain, gzip or zstd; - is the standard input."`
	Registry string   `required:"" placeholder:"FILE" help:"The registry database; made when missing."`
	Pincodes []string `env:"-" type:"path" placeholder:"FILE" help:"Post office directories, for the districts. They may stand among the files, too."`
	AsOf     string   `env:"-" placeholder:"DATE" help:"The date of the files, YYYY-MM-DD. By default today."`
	Rejects  string   `env:"-" type:"path" placeholder:"FILE" help:"Where rows go that can't be taken, with line and reason."`
	Most     *int64   `name:"max-rejected" env:"-" placeholder:"N" help:"Fail, and change nothing, if more rows than this can't be taken. By default any number may be rejected, but not all."`
	Verify   bool     `env:"-" help:"Read the whole registry and say whether it is whole: after the import of the files, or alone."`
	JSON     bool     `name:"json" env:"-" help:"Print JSON instead of a table."`
}

// Validate refuses early what would fail later.
func (c *importCommand) Validate() error {
	if isRemote(c.Registry) {
		return fmt.Errorf("--registry or REGEDGE_REGISTRY is a file here, not %s: import into one with --registry FILE, and push it from there", c.Registry)
	}
	if len(c.Files)+len(c.Pincodes) > 0 && sqld.OfServer(c.Registry) {
		return fmt.Errorf("--registry: %s is the database of a primary or a replica, to which its server alone writes: import into another file, and push that", c.Registry)
	}
	if len(c.Files)+len(c.Pincodes) == 0 && !c.Verify {
		return errors.New("expected \"<files> ...\": what to import, or --verify")
	}
	if slices.Contains(c.Files, "") {
		return errors.New("one of the files has an empty name: is it from a variable of the shell that is not set?")
	}
	if c.Rejects == "-" {
		return errors.New("--rejects is the name of a file; the standard output has the table")
	}
	if c.Most != nil && *c.Most < 0 {
		return errors.New("--max-rejected is 0 or more")
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

// limitMemory sets such a limit, unless the operator has set GOMEMLIMIT.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// Run imports the files and prints how many rows of each were new, changed or rejected.
func (c *importCommand) Run(ctx context.Context, m *Main) error {
	limitMemory(importMemory)
	if len(c.Files)+len(c.Pincodes) == 0 {
		return c.verify(ctx, m)
	}
	report, err := c.importFiles(ctx, m)
	if report == nil {
		return err
	}
	if err == nil && c.Verify && c.JSON {
		return c.verifyInto(ctx, m, report)
	}
	if err = errors.Join(c.print(m, report, nil), err); err != nil || !c.Verify {
		return err
	}
	return c.verify(ctx, m)
}

func (c *importCommand) verify(ctx context.Context, m *Main) error {
	return verifyFile(ctx, m, c.Registry, func(verified *verify.Report) error {
		if c.JSON {
			return printJSON(m.Stdout, verified)
		}
		return writeVerified(m, verified)
	})
}

// verifyInto prints one JSON document of the import and its verification, even if that failed.
func (c *importCommand) verifyInto(ctx context.Context, m *Main, report *importer.Report) error {
	printed := false
	err := verifyFile(ctx, m, c.Registry, func(verified *verify.Report) error {
		printed = true
		return c.print(m, report, verified)
	})
	if !printed {
		err = errors.Join(c.print(m, report, nil), err)
	}
	return err
}

// importFiles returns no report when nothing was imported. An error beside one says that no row was taken.
func (c *importCommand) importFiles(ctx context.Context, m *Main) (*importer.Report, error) {
	bar := newProgress(m.Stderr, m.Now, "importing", "B")
	report, err := importer.Run(ctx, importer.Config{
		Registry: c.Registry, Files: c.Files, Pincodes: c.Pincodes, AsOf: c.AsOf, Rejects: c.Rejects, MaxRejected: c.Most,
		Stdin: m.Stdin, Now: m.Now,
		Progress: func(p importer.Progress) { bar.set(p.Bytes, p.Total) },
		Waiting: func(file string) {
			fmt.Fprintf(m.Stderr, "regedge: waiting for %s: nothing happens there; a pipe needs somebody at its other end\n", shownLines(file))
		},
	})
	bar.finish()
	if err != nil {
		return nil, explainImport(ctx, err, report.Release)
	}
	if nothingTaken(&report) {
		err = hint.With(errors.New("no row could be taken"), "the table above, and a rejects file, give the reasons")
	}
	return &report, err
}

// print prints the report, and in JSON also the verification, unless that is nil.
func (c *importCommand) print(m *Main, report *importer.Report, verified *verify.Report) (err error) {
	if c.JSON {
		err = printJSON(m.Stdout, struct {
			*importer.Report
			Total    importer.FileReport `json:"total"`
			Elapsed  float64             `json:"elapsed_seconds"`
			Verified *verify.Report      `json:"verified,omitempty"`
		}{report, report.Total(), report.Elapsed.Seconds(), verified})
	} else {
		var table strings.Builder
		_ = report.WriteTable(&table) // a Builder takes all
		_, err = io.WriteString(m.Stdout, shownLines(table.String()))
	}
	if err != nil && report.Release != "" { // on a full disk, say
		err = fmt.Errorf("release %s was written, but what was imported can't be printed: %w", report.Release, err)
	}
	if rejected := rejectedRows(report); err == nil && rejected > 0 && c.Rejects == "" {
		fmt.Fprintf(m.Stderr, "rows that could not be taken: %d; --rejects FILE would keep them\n", rejected)
	}
	return err
}

// explainImport adds hints. release is the one written despite the error; if empty, the registry
// is unchanged.
func explainImport(ctx context.Context, err error, release string) error {
	var registry *importer.RegistryError
	ofRegistry := errors.As(err, &registry)
	switch {
	case release != "":
		return hint.With(fmt.Errorf("release %s was written, then: %w", release, err), "the registry is whole; regedge import --verify says so")
	case ctx.Err() != nil:
		return hint.With(errors.New("interrupted: the registry is as it was before"), "the same command begins again")
	case errors.Is(err, importer.ErrTooManyRejected):
		return hint.With(err, "the registry is as it was; --rejects FILE lists the rows, and --max-rejected allows more")
	case errors.Is(err, fs.ErrNotExist) && ofRegistry:
		return hint.With(err, "make that folder first, or name another with --registry")
	case errors.Is(err, fs.ErrNotExist):
		return hint.With(err, "a relative path begins at the current folder, and a pattern in quotes is not expanded")
	case ofRegistry && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, sqlite3.READONLY) || errors.Is(err, sqlite3.CANTOPEN)):
		return hint.With(err, "an import needs to write the registry and its folder: name one with --registry that this user may write to")
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
