package importer

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"regedge/schema/importer/load"
	"regedge/schema/importer/record"
)

// Held counts the records of a release.
type Held = load.Held

// Contradiction counts the rows of a file that contradict an earlier one about the same record.
type Contradiction = load.Contradiction

// Report sums up a run.
type Report struct {
	Files   []FileReport  `json:"files"`   // in the order of the configuration
	Release string        `json:"release"` // id of the release that was written, empty if nothing changed
	Held    Held          `json:"held"`    // record counts of the newest release
	Elapsed time.Duration `json:"-"`
	// PincodesGone counts the pincodes that the registry had and the directories of this run lack.
	PincodesGone int64 `json:"pincodes_gone,omitempty"`
}

// FileReport counts the rows of one file, or the parts of its documents. A post office counts
// under the outcome of its pincode.
type FileReport struct {
	Name   string `json:"name"`
	Format string `json:"format,omitempty"`
	// Lacking lists the format's usual columns that the file lacks, and the file's columns that are not read.
	// The values of those columns stay as they were.
	Lacking string `json:"lacking,omitempty"`
	// CutOff says what is probably cut off: the rows after the last, or texts, with their number and one of them.
	CutOff string `json:"cut_off,omitempty"`
	// Doubtful says what is probably wrong, though the file was read: unknown districts of a directory, with one of them.
	Doubtful string `json:"doubtful,omitempty"`

	Read      int64 `json:"read"` // = New + Changed + Unchanged + all Rejected + all LeftOut
	New       int64 `json:"new"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`

	Rejected map[string]int64  `json:"rejected"`             // by reason: invalid
	First    map[string]string `json:"first_rejected"`       // by reason: line and content of the first
	LeftOut  map[string]int64  `json:"left_out"`             // by reason: not data of this service
	Unread   map[string]int64  `json:"values_taken_as_none"` // invalid optional values, by kind; their rows count above

	// Contradictions are with the file's first row about the same record, WithOthers with another source of the same date: an
	// earlier file of the run, or what the registry has. Their rows count above.
	Contradictions Contradiction `json:"contradictions"`
	WithOthers     Contradiction `json:"contradictions_with_others"`
}

func newFileReport(name, format string) FileReport {
	return FileReport{
		Name: name, Format: format,
		Rejected: map[string]int64{}, First: map[string]string{}, LeftOut: map[string]int64{}, Unread: map[string]int64{},
	}
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// check verifies that every row is accounted for.
func (f *FileReport) check() error {
	if ended := f.New + f.Changed + f.Unchanged + sum(f.Rejected) + sum(f.LeftOut); ended != f.Read {
		return fmt.Errorf("invariant broken: %s: read %d, but new, changed, unchanged, rejected and left out are %d",
			f.Name, f.Read, ended)
	}
	return nil
}

// Total is the sum of all files.
func (r *Report) Total() FileReport {
	t := newFileReport("total", "")
	for i := range r.Files {
		f := &r.Files[i]
		t.Read += f.Read
		t.New += f.New
		t.Changed += f.Changed
		t.Unchanged += f.Unchanged
		add(t.Rejected, f.Rejected)
		add(t.LeftOut, f.LeftOut)
		add(t.Unread, f.Unread)
		t.Contradictions.Records += f.Contradictions.Records
		t.WithOthers.Records += f.WithOthers.Records
		for reason, first := range f.First {
			if t.First[reason] == "" {
				t.First[reason] = f.Name + ", " + first
			}
		}
	}
	return t
}

func add(to, from map[string]int64) {
	for reason, n := range from {
		to[reason] += n
	}
}

// WriteTable prints the report as text.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "file\tformat\tread\tnew\tchanged\tunchanged\trejected\tleft out")
	total := r.Total()
	for _, f := range append(slices.Clone(r.Files), total) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n",
			f.Name, f.Format, f.Read, f.New, f.Changed, f.Unchanged, sum(f.Rejected), sum(f.LeftOut))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Files {
		if f := &r.Files[i]; f.Lacking != "" {
			fmt.Fprintf(w, "%s lacks %s\n", f.Name, f.Lacking)
		}
		if f := &r.Files[i]; f.CutOff != "" {
			fmt.Fprintf(w, "%s may be cut off: %s; if so, export it again, with room for all of it\n", f.Name, f.CutOff)
		}
		if f := &r.Files[i]; f.Doubtful != "" {
			fmt.Fprintf(w, "%s: %s\n", f.Name, f.Doubtful)
		}
	}
	writeReasons(w, "rejected", total.Rejected)
	for _, reason := range slices.Sorted(maps.Keys(total.First)) {
		fmt.Fprintf(w, "  %s: first in %s%s\n", reason, total.First[reason], r.adviceOn(reason))
	}
	if r.PincodesGone > 0 {
		fmt.Fprintf(w, "pincodes removed, with the districts of their companies, since the directory has them no more: %d; "+
			"is it cut off, or of one state alone? Import all of it in one run\n", r.PincodesGone)
	}
	r.writeContradictions(w)
	writeReasons(w, "left out", total.LeftOut)
	writeReasons(w, "values taken as none", total.Unread)
	release := "nothing changed, no new release"
	if r.Release != "" {
		release = "release " + r.Release
	}
	_, err := fmt.Fprintf(w, "%s, %.1f s\n%s", release, r.Elapsed.Seconds(), r.Held.Lacking())
	return err
}

func (r *Report) writeContradictions(w io.Writer) {
	for i := range r.Files {
		f := &r.Files[i]
		writeContradiction(w, f.Name, "an earlier one", &f.Contradictions, "")
		writeContradiction(w, f.Name, "another source of the same date", &f.WithOthers, "is one of them older? Import each with its own --as-of; ")
	}
}

func writeContradiction(w io.Writer, file, with string, c *Contradiction, advice string) {
	if c.Records > 0 {
		fmt.Fprintf(w, "rows of %s that contradict %s: %d, the first in line %d: %s; %sdocs/import-formats.md, \"Which source wins\", says which counts\n",
			file, with, c.Records, c.Line, c.What, advice)
	}
}

// advice says what to do about rejects that are not clear by themselves. Corrected rows can be imported
// as a file of their own, with the header.
var advice = map[string]string{
	"invalid capital":              "; write whole rupees, as 150000 or 1,50,000",
	"rounded amount":               "; a spreadsheet shows so few digits of it: give the column the format of a number, and export it again",
	"invalid date":                 "; write it as YYYY-MM-DD",
	"invalid yes or no":            "; write yes or no, or Listed or Unlisted",
	"invalid CIN":                  "; it has 21 characters, as U55101GA2006PTC900001, with no letter in place of a digit",
	"invalid DIN":                  "; it has up to 8 digits",
	"invalid LLPIN":                "; it has three letters and four digits, as AAB-1234",
	"no companyData":               "; docs/import-formats.md, \"Formats\", says what a document has",
	"document too long":            "; a document has at most 8 MiB",
	"document cut off":             "; was the file fetched whole? Fetch it again",
	"document nested too deep":     "; a document has at most 1,000 levels",
	"unknown status":               "; docs/contract.md, \"Statuses\", lists those that are known",
	"date after that of the files": "; is it right, and --as-of?",
	"row cut off":                  "; was the file fetched whole? Fetch it again",
	"wrong number of fields":       "; is there a separator in a value without quotes, or are empty values at the end left out? A row has all its separators",
	"zero bytes":                   "; the file is damaged: fetch it again",
	"quote never closed":           "; is there a quote too many at the beginning of a value, a column missing, or the file cut off?",
	"row too long":                 "; a row has at most 64 KiB: is there a quote too many, or a line end missing?",
	"CIN of a made-up company":     "; the state code ZZ means a company of the sandbox, no state has it",
	record.NotHeld:                 "; import its company first, then these rows again",
}

// adviceOn is what the table says about a reason, after the first reject.
func (r *Report) adviceOn(reason string) string {
	for i := range r.Files {
		if f := &r.Files[i]; f.First[reason] != "" && ofRows[reason] && f.New+f.Changed+f.Unchanged == 0 {
			return advice[reason] + rowsInJSON
		}
	}
	return advice[reason]
}

// ofRows are the reasons for which rows in JSON are rejected, since they are read as documents. They mean nothing in a
// file that contained a document.
var ofRows = map[string]bool{"no companyData": true, "text between documents": true, "document too long": true, "document cut off": true}

// rowsInJSON is what to do if a JSON file consists of rows, as from data.gov.in and its API.
const rowsInJSON = "; rows in JSON, as the API of data.gov.in gives them, are not read: get them as CSV (format=csv)"

func writeReasons(w io.Writer, title string, counts map[string]int64) {
	if len(counts) > 0 {
		fmt.Fprintf(w, "%s: %s\n", title, reasons(counts))
	}
}

// reasons lists counts, as "invalid CIN 2, no name 1".
func reasons(counts map[string]int64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, counts[reason]))
	}
	return strings.Join(parts, ", ")
}
