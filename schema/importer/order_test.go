package importer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

// TestOrderOfImportsDoesNotMatter imports real files of two dates in several orders, each
// file as a run of its own and then all of a date at once.
func TestOrderOfImportsDoesNotMatter(t *testing.T) {
	if testing.Short() { // as under the race detector, where other tests import all the same parts
		t.Skip("imports the official files three times over")
	}
	now, before, pincodes := officialFiles(t)
	type part struct{ file, asOf string }
	var parts []part
	for _, f := range now {
		parts = append(parts, part{f, "2025-05-05"})
	}
	for _, f := range before {
		parts = append(parts, part{f, "2021-03-31"})
	}
	parts = append(parts, part{pincodes[0], "2025-05-05"})
	first := newFixture(t)
	first.run("2025-05-05", append(slices.Clone(pincodes), now...)...)
	first.run("2021-03-31", before...)
	want := first.content()
	require.NotEmpty(t, want["company"])
	require.Len(t, want["search"], len(want["company"]))
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			w := newFixture(t)
			for _, p := range parts {
				w.run(p.asOf, p.file)
			}
			requireSame(t, want, w.content())
		})
	}
}

// requireSame compares dumps and shows no more than the first difference.
func requireSame(t *testing.T, want, got map[string][]string) {
	t.Helper()
	for name := range want {
		require.Len(t, got[name], len(want[name]), name)
		for i := range want[name] {
			require.Equal(t, want[name][i], got[name][i], name)
		}
	}
}

func TestSecondImportWritesNothing(t *testing.T) {
	now, before, pincodes := officialFiles(t)
	w := newFixture(t)
	w.run("2025-05-05", append(slices.Clone(pincodes), now...)...)
	w.run("2021-03-31", before...)
	want := w.everything()
	require.Len(t, want["all of release"], 2)
	again := w.run("2025-05-05", append(slices.Clone(pincodes), now...)...)
	require.Empty(t, again.Release)
	total := again.Total()
	require.Zero(t, total.New+total.Changed)
	require.Positive(t, total.Unchanged)
	require.Empty(t, w.run("2021-03-31", before...).Release)
	requireSame(t, want, w.everything())
}

// manyCompanies is a file of n rows, more than one batch.
func manyCompanies(n int) string {
	var b strings.Builder
	b.WriteString("CIN,CompanyName,CompanyStatus\n")
	for i := range n {
		fmt.Fprintf(&b, "U%05dGA2020PTC%06d,MADE-UP COMPANY %d PRIVATE LIMITED,Active\n", i%7, i, i)
	}
	return b.String()
}

// TestEachRecordOfALargeTableIsCountedOnce, though they are counted in several parts.
func TestEachRecordOfALargeTableIsCountedOnce(t *testing.T) {
	const directors = settleRecords + 2*record.BatchRecords
	var text strings.Builder
	text.WriteString("din,name,disqualified\n")
	for i := range directors {
		fmt.Fprintf(&text, "%08d,MADE-UP PERSON,no\n", i+1)
	}
	f := newFixture(t).text("2025-05-05", text.String())
	require.EqualValues(t, directors, f.New)
	require.EqualValues(t, directors, f.Read)
}

// TestAnInterruptedImportChangesNothing interrupts one after its first batch, and one before its
// release, into no file and into one with a release.
func TestAnInterruptedImportChangesNothing(t *testing.T) {
	text := manyCompanies(3*record.BatchRecords + 17)
	interrupt := map[string]func(*Config) (context.Context, error){
		"among the records": func(c *Config) (context.Context, error) {
			ctx, cancel := context.WithCancel(t.Context())
			c.Progress = func(p Progress) {
				require.LessOrEqual(t, p.Bytes, p.Total)
				if p.Written > 0 {
					cancel()
				}
			}
			return ctx, context.Canceled
		},
		"before the release": func(c *Config) (context.Context, error) {
			c.Random = failingReader{}
			return t.Context(), errNoRandom
		},
	}
	if testing.Short() {
		delete(interrupt, "before the release") // goroutines do the same in the other
	}
	for name, set := range interrupt {
		t.Run(name, func(t *testing.T) {
			whole, w := newFixture(t), newFixture(t)
			path := w.file(text)
			interrupted := func() {
				config := w.config("2025-01-01", path)
				ctx, want := set(&config)
				report, err := Run(ctx, config)
				require.ErrorIs(t, err, want)
				require.Empty(t, report.Release)
			}
			interrupted()
			require.Empty(t, w.registryFiles(), "no registry, and no draft of one")

			for _, f := range []*fixture{whole, w} {
				f.text("2024-01-01", manyCompanies(record.BatchRecords)+"U00001GA2020PTC900000,ANOTHER,Active\n")
			}
			before := w.everything()
			interrupted()
			requireSame(t, before, w.everything())

			require.NotEmpty(t, w.run("2025-01-01", path).Release)
			whole.text("2025-01-01", text)
			requireSame(t, whole.content(), w.content())
		})
	}
}

// TestWhatAnEarlierVersionLeftIsReleased completes a file whose import an earlier version of the
// program began.
func TestWhatAnEarlierVersionLeftIsReleased(t *testing.T) {
	w := newFixture(t)
	path := w.file(manyCompanies(10))
	w.run("2025-01-01", path)
	want := w.content()
	w.exec(`DELETE FROM release; INSERT INTO unreleased VALUES (1, 0); INSERT INTO search_pending VALUES ('*');
		DELETE FROM search_name; DROP INDEX appointment_by_director`)
	report := w.run("2025-01-01", path)
	require.EqualValues(t, 10, report.Files[0].Unchanged)
	require.NotEmpty(t, report.Release)
	requireSame(t, want, w.content())
	require.Equal(t, "1", w.row("SELECT count(*) FROM sqlite_schema WHERE name = 'appointment_by_director'"))
	require.Equal(t, "0", w.row("SELECT count(*) FROM unreleased"), "else no push takes the file")
}

// TestARunWithNothingToKeepMakesNoRegistry since there is no release in it.
func TestARunWithNothingToKeepMakesNoRegistry(t *testing.T) {
	w := newFixture(t)
	w.text("2025-01-01", headerA+"x"+rowA[21:])
	require.Empty(t, w.registryFiles())
}

var errNoRandom = errors.New("no randomness")

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errNoRandom }

// BenchmarkImport imports the real companies and pincodes into an empty registry,
// search index included.
func BenchmarkImport(b *testing.B) {
	config := Config{
		Files: realFiles(b, "companies/datagov-rocwise-2025/*"), Pincodes: realFiles(b, "pincodes/*"),
		AsOf: "2025-06-01",
	}
	rows := int64(0)
	for b.Loop() {
		config.Registry = filepath.Join(b.TempDir(), "r.db")
		report, err := Run(context.Background(), config)
		require.NoError(b, err)
		rows += report.Total().Read
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
