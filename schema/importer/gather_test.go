package importer

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContactsFollowTheirCompaniesInOneRun checks that records of one key, from several
// files, are merged in the order of the files' ranks, whatever their place in the run.
func TestContactsFollowTheirCompaniesInOneRun(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05",
		w.file("cin,email,phone,website\nU00000GA2020PTC000000,a@example.com,,\nU99999GA2020PTC999999,b@example.com,,\n"),
		w.file(manyCompanies(3)))
	require.EqualValues(t, 1, report.Files[0].Changed)
	require.EqualValues(t, 1, report.Files[0].Rejected["company not held"])
	require.EqualValues(t, 3, report.Files[1].New)
	require.Equal(t, "a@example.com", w.row("SELECT email FROM company WHERE cin = 'U00000GA2020PTC000000'"))
	require.Contains(t, w.rejected(), "U99999GA2020PTC999999,b@example.com", "the row is kept")
}

func TestNothingIsLeftBesideTheRegistry(t *testing.T) {
	w := newFixture(t)
	w.run("2025-05-05", w.file(manyCompanies(10_000)))
	left, err := filepath.Glob(filepath.Join(w.folder, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// manyAppointments are two appointments for each of so many companies, and their directors.
func manyAppointments(n int) (directors, appointments string) {
	var d, a strings.Builder
	d.WriteString("din,name,disqualified\n")
	a.WriteString("cin,din,designation,appointment_date,cessation_date,cessation_reason\n")
	for i := range n {
		fmt.Fprintf(&d, "%d,MADE-UP NUMBER %d,no\n", 1000+i*7919%n, i)
		fmt.Fprintf(&a, "U%05dGA2020PTC%06d,%d,Director,2021-01-02,,\n", i%7, i, 1000+i)
		fmt.Fprintf(&a, "U%05dGA2020PTC%06d,%d,,,,\n", i%7, i, 1000+i*31%n)
	}
	return d.String(), a.String()
}

// TestAnImportThatWasInterruptedAmongAppointmentsLeavesTheirIndex ends a run in which the index by
// director is not there.
func TestAnImportThatWasInterruptedAmongAppointmentsLeavesTheirIndex(t *testing.T) {
	const companies = 3000
	directors, appointments := manyAppointments(companies)
	const place = "Pincode,District,StateName\n110001,Central,Delhi\n"
	whole := newFixture(t)
	whole.run("2025-01-01", whole.file(place), whole.file(manyCompanies(companies)), whole.file(directors), whole.file(appointments))
	require.Len(t, whole.lists(), companies)

	w := newFixture(t)
	w.text("2025-01-01", place)
	files := []string{w.file(manyCompanies(companies)), w.file(directors), w.file(appointments)}
	ctx, cancel := context.WithCancel(context.Background())
	config := w.config("2025-01-01", files...)
	config.Progress = func(p Progress) {
		if p.Written > 2*companies {
			cancel()
		}
	}
	_, err := Run(ctx, config)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "0", w.row("SELECT count(*) FROM appointment"))
	const index = "SELECT sql FROM sqlite_schema WHERE name = 'appointment_by_director'"
	require.Equal(t, whole.row(index), w.row(index))

	again := w.run("2025-01-01", files...)
	require.NotEmpty(t, again.Release)
	require.Equal(t, whole.row(index), w.row(index))
	require.Equal(t, "ok", w.row("PRAGMA integrity_check"))
	requireSame(t, whole.content(), w.content())
}
