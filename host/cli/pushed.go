package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"regedge/replicate/registry/push"
)

// pushed is the result of push and rollback for programs.
type pushed struct {
	Release string `json:"release"` // current now; in a dry run, the one that would be
	DryRun  bool   `json:"dry_run"`
	// Counts has each kind of record: companies, llps, directors, pincodes, search_entries.
	Counts        map[string]pushedCount `json:"counts"`
	Doubts        []string               `json:"doubts"`         // why the push had, or would have, to be confirmed
	WouldGo       int64                  `json:"would_go"`       // the number for the --yes of a push
	Whole         bool                   `json:"whole_file"`     // handed over as a file
	SearchRebuilt bool                   `json:"search_rebuilt"` // the whole search was written anew
	Transactions  int                    `json:"transactions"`
	Sent          int64                  `json:"sent_bytes"`
	Received      int64                  `json:"received_bytes"`
	Elapsed       float64                `json:"elapsed_seconds"`
}

// pushedCount counts the records of a kind that differ.
type pushedCount struct {
	Added   int64 `json:"added"`
	Changed int64 `json:"changed"`
	Removed int64 `json:"removed"`
}

func pushedOf(report *push.Report, dry bool) *pushed {
	p := &pushed{
		Release: report.Release, DryRun: dry, Counts: map[string]pushedCount{}, Doubts: append([]string{}, report.Doubts...), WouldGo: report.WouldGo(),
		Whole: report.Whole, SearchRebuilt: report.NewGeneration, Transactions: report.Transactions,
		Sent: report.Sent, Received: report.Received, Elapsed: report.Elapsed.Seconds(),
	}
	for _, c := range report.Counts {
		p.Counts[strings.ReplaceAll(strings.ToLower(c.Kind), " ", "_")] = pushedCount{c.Added, c.Changed, c.Removed}
	}
	return p
}

// writePushed prints the differences, and the cost of pushing them.
func writePushed(w io.Writer, report *push.Report, dry bool) error {
	if err := writeCounts(w, report); err != nil {
		return err
	}
	if report.NewGeneration {
		fmt.Fprintln(w, "\nThe search is written anew: its index was built anew since the last push.")
	}
	if report.Whole {
		fmt.Fprintln(w, "\nSo many differ that the file is handed over whole.")
	}
	if dry && len(report.Doubts) > 0 {
		fmt.Fprintf(w, "\nIt has to be confirmed with --yes %d: %s.\n", report.WouldGo(), strings.Join(report.Doubts, "; "))
	}
	if dry {
		_, err := fmt.Fprintf(w, "\nNothing was written. Release %s would be current.\n", report.Release)
		return err
	}
	seconds := max(report.Elapsed.Seconds(), 0.001)
	_, err := fmt.Fprintf(w, "\nRelease %s is current: %d records in %d transactions, %s (%.0f a second), %d bytes sent, %d received.\n",
		report.Release, report.Records(), report.Transactions, report.Elapsed.Round(time.Millisecond),
		float64(report.Records())/seconds, report.Sent, report.Received)
	return err
}

// writeCounts prints the differences.
func writeCounts(w io.Writer, report *push.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, "RECORDS", "NEW", "CHANGED", "GONE")
	for _, c := range report.Counts {
		row(table, c.Kind, c.Added, c.Changed, c.Removed)
	}
	return table.Flush()
}
