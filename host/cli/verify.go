package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ncruces/go-sqlite3"

	"regedge/host/hint"
	"regedge/schema/verify"
)

// verifyFile verifies a registry file and shows the report. It fails if the file is damaged.
func verifyFile(ctx context.Context, m *Main, path string, show func(*verify.Report) error) error {
	steps := newProgress(m.Stderr, m.Now, "verifying", "steps")
	report, err := verify.File(ctx, path, verify.Thorough, steps.set)
	steps.finish()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hint.With(err, "--registry names the file to verify")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sqlite3.CANTOPEN):
		return hint.With(err, "let the user that this runs as read the file and write to its folder: SQLite makes files beside it")
	case err != nil:
		return err
	}
	if err = show(&report); err != nil || report.Whole() {
		return err
	}
	return hint.With(fmt.Errorf("%s is not whole: problems: %d", path, len(report.Problems)),
		"import the same files into a new registry, or restore the file from a copy")
}

// refuseBroken fails for a damaged registry, by a quick check: edges would serve the damage after a push.
// A registry without a release, or with changes after it, is left to the push, which explains it.
func refuseBroken(ctx context.Context, path string) error {
	report, err := verify.File(ctx, path, verify.Quick, nil)
	if err != nil || report.Whole() || report.Unfinished {
		return err
	}
	return hint.With(fmt.Errorf("%s is not whole, and nothing was written: %s", path, strings.Join(report.Problems, "; ")),
		"regedge import --registry FILE --verify says more; import the same files into a new registry, or restore the file from a copy")
}

func writeVerified(m *Main, report *verify.Report) error {
	table := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	row(table, "TABLE", "RECORDS", "SHA-256")
	for _, t := range report.Tables {
		row(table, t.Name, t.Records, t.Digest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(report.Unlinked)) {
		fmt.Fprintf(m.Stdout, "%s: %d (kept, and not answered)\n", what, report.Unlinked[what])
	}
	for _, problem := range report.Problems {
		fmt.Fprintf(m.Stdout, "not whole: %s\n", shownLines(problem))
	}
	if !report.Whole() {
		return nil
	}
	_, err := fmt.Fprintf(m.Stdout, "release %s is whole, %.1f s\n", shown(report.Release), report.Elapsed.Seconds())
	return err
}
