package generate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
)

// enough companies for the proportions to show.
const enough = 20_000

func TestRunWritesTheSameBytesForTheSameSeed(t *testing.T) {
	for _, how := range []Compression{Plain, Gzip, Zstd} {
		t.Run("compressed by "+string(how), func(t *testing.T) {
			one, again, other := folder(t, 2000, 7, how), folder(t, 2000, 7, how), folder(t, 2000, 8, how)
			require.Equal(t, one, again)
			for name := range one {
				if !strings.Contains(name, "2021") { // of these some have no row, and are left out
					require.Contains(t, other, name)
					require.NotEqual(t, one[name], other[name], name)
				}
			}
		})
	}
}

func TestRunCompressesWhatItWritesPlain(t *testing.T) {
	plain := folder(t, 1000, 3, Plain)
	for name, data := range folder(t, 1000, 3, Gzip) {
		r, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		requireReads(t, r, plain[strings.TrimSuffix(name, ".gz")])
	}
	for name, data := range folder(t, 1000, 3, Zstd) {
		r, err := zstd.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		requireReads(t, r, plain[strings.TrimSuffix(name, ".zst")])
		r.Close()
	}
}

func TestRunListsEveryFileWithItsRows(t *testing.T) {
	out := t.TempDir()
	summary, err := Run(context.Background(), Config{Companies: 500, Seed: 1, Out: out, OlderShare: 1})
	require.NoError(t, err)
	var rows int64
	listed := map[string]bool{}
	for _, file := range summary.Files {
		require.Len(t, readRows(t, out, file.Name), int(file.Rows), file.Name)
		rows += file.Rows
		listed[file.Name] = true
	}
	require.Equal(t, rows, summary.Rows())
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, entries, len(listed))
	require.Equal(t, "pincodes.csv", summary.Files[0].Name)
}

func TestCompaniesHaveUniqueValidCINs(t *testing.T) {
	out := generated(t, enough)
	seen, malformed, lower := map[string]bool{}, 0, 0
	for _, row := range companies(t, out) {
		written, ok := ident.CIN(row["CIN"])
		if !ok {
			malformed++
			require.Contains(t, row["CIN"][15:], "O", "only letters for zeros are malformed")
			continue
		}
		if written != row["CIN"] {
			lower++
		}
		require.False(t, seen[written], written)
		seen[written] = true
		require.Equal(t, row["CompanyRegistrationdate_date"][:4], written[8:12])
		require.Equal(t, row["nic_code"], written[1:6])
		require.LessOrEqual(t, row["CompanyRegistrationdate_date"], lastDay)
	}
	require.Len(t, seen, enough-malformed)
	require.LessOrEqual(t, malformed+lower, 10)
}

func TestRegistrationNumbersGrowWithTheDate(t *testing.T) {
	out := generated(t, enough)
	dates := map[string]string{}
	for _, row := range companies(t, out) {
		if cin, ok := ident.CIN(row["CIN"]); ok {
			dates[cin[6:8]+ident.RegistrationNumber(cin)] = row["CompanyRegistrationdate_date"]
		}
	}
	last, state := "", ""
	for _, key := range slices.Sorted(maps.Keys(dates)) {
		if key[:2] == state {
			require.LessOrEqual(t, last, dates[key], key)
		}
		last, state = dates[key], key[:2]
	}
}

func TestProportionsFollowTheRealFiles(t *testing.T) {
	rows := companies(t, generated(t, enough))
	share := func(of func(map[string]string) bool) float64 {
		n := 0
		for _, row := range rows {
			if of(row) {
				n++
			}
		}
		return float64(n) / float64(len(rows))
	}
	has := func(column, part string) func(map[string]string) bool {
		return func(row map[string]string) bool { return strings.Contains(row[column], part) }
	}
	for _, one := range []struct {
		what      string
		low, high float64
		of        func(map[string]string) bool
	}{
		{"active", 0.60, 0.67, func(row map[string]string) bool { return row["CompanyStatus"] == "Active" }},
		{"struck off", 0.29, 0.35, func(row map[string]string) bool { return row["CompanyStatus"] == "Strike Off" }},
		{"private", 0.88, 0.93, has("CompanyClass", "Private")},
		{"one person", 0.03, 0.06, has("CompanyClass", "One Person")},
		{"named private limited", 0.76, 0.88, has("CompanyName", "PRIVATE LIMITED")},
		{"pincode of zeros", 0.11, 0.145, has("Registered_Office_Address", ",000000-India")},
		{"pincode NA", 0.001, 0.004, has("Registered_Office_Address", ",NA-India")},
		{"replacement character", 0.0002, 0.0015, has("Registered_Office_Address", "\uFFFD")},
		{"runs of spaces", 0.4, 0.7, has("Registered_Office_Address", "   ")},
		{"a lakh of capital", 0.3, 0.45, has("AuthorizedCapital", "100000.00")},
		{"of Maharashtra", 0.17, 0.21, has("CompanyStateCode", "maharashtra")},
		{"split words", 0.0001, 0.005, func(row map[string]string) bool {
			whole := strings.ReplaceAll(row["CompanyName"], " ", "")
			return strings.Contains(whole, "PRIVATE") && !strings.Contains(row["CompanyName"], "PRIVATE")
		}},
		{"names of 25 to 45 letters", 0.70, 0.86, func(row map[string]string) bool {
			return len(row["CompanyName"]) >= 25 && len(row["CompanyName"]) < 45
		}},
		{"incorporated since 2015", 0.45, 0.60, func(row map[string]string) bool { return row["CompanyRegistrationdate_date"] >= "2015" }},
	} {
		got := share(one.of)
		require.GreaterOrEqual(t, got, one.low, one.what)
		require.LessOrEqual(t, got, one.high, one.what)
	}
}

func TestRunRefusesWhatItCannotMake(t *testing.T) {
	for want, config := range map[string]Config{
		"companies must be":  {Companies: 0, Out: t.TempDir()},
		"must be 1 to":       {Companies: MostCompanies + 1, Out: t.TempDir()},
		"share of older":     {Companies: 1, OlderShare: 1.5, Out: t.TempDir()},
		"not NaN":            {Companies: 1, OlderShare: math.NaN(), Out: t.TempDir()},
		"folder to write to": {Companies: 1},
		"is not known":       {Companies: 1, Compress: "lha", Out: t.TempDir()},
	} {
		_, err := Run(context.Background(), config)
		require.ErrorContains(t, err, want)
	}
}

func TestRunLeavesNoIncompleteFileWhenItIsCancelled(t *testing.T) {
	out := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	config := Config{Companies: enough, Out: out, Progress: func(done, total int64) {
		require.Less(t, done, total)
		cancel()
	}}
	_, err := Run(ctx, config)
	require.ErrorIs(t, err, context.Canceled)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	for _, entry := range entries {
		require.False(t, strings.HasSuffix(entry.Name(), partial), entry.Name())
		require.NotEqual(t, "directors.csv", entry.Name())
	}
}

func TestRunLeavesNoIncompleteFileWhenOneCannotBeCompleted(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(out, "pincodes.csv"), 0o755), "a folder is in the place of the file")
	_, err := Run(context.Background(), Config{Companies: 1, Out: out, Overwrite: true})
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(out, "pincodes.csv"+partial))
}

// TestAFileWithoutRowsReplacesOne of an earlier run: it must not be imported beside the others.
func TestAFileWithoutRowsReplacesOne(t *testing.T) {
	out := t.TempDir()
	older := filepath.Join(out, "directors.csv")
	require.NoError(t, os.WriteFile(older, []byte("an earlier run's"), 0o600))
	config := DirectorsConfig{Out: out}
	_, err := Directors(t.Context(), config)
	require.ErrorIs(t, err, ErrExists)
	require.FileExists(t, older)
	config.Overwrite = true
	_, err = Directors(t.Context(), config)
	require.NoError(t, err)
	require.NoFileExists(t, older)
}

func TestProgressReachesItsTotal(t *testing.T) {
	var last, of int64
	_, err := Run(context.Background(), Config{Companies: 10_000, Out: t.TempDir(), Progress: func(done, total int64) {
		require.Greater(t, done, last)
		last, of = done, total
	}})
	require.NoError(t, err)
	require.Equal(t, of, last)
	require.Equal(t, int64(10_580), of)
}

func TestNoStateOverflowsItsRegistrationNumbers(t *testing.T) {
	for _, companies := range []int{1, 27, 1000, MostCompanies} {
		sum := 0
		for _, count := range stateCounts(companies) {
			require.LessOrEqual(t, count, 999_999)
			sum += count
		}
		require.Equal(t, companies, sum)
	}
}

func TestCoprimeStepsVisitEveryNumber(t *testing.T) {
	for n := 1; n < 300; n++ {
		seen, step := map[int]bool{}, coprime(n)
		for k := range n {
			seen[k*step%n] = true
		}
		require.Len(t, seen, n)
	}
}

func TestACancelledContextIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, Config{Companies: 100, Out: t.TempDir()})
	require.True(t, errors.Is(err, context.Canceled), err)
}

func BenchmarkRun(b *testing.B) {
	for _, how := range []Compression{Plain, Gzip, Zstd} {
		b.Run("compressed by "+string(how), func(b *testing.B) {
			var rows int64
			for range b.N {
				summary, err := Run(context.Background(), Config{Companies: enough, Out: b.TempDir(), Compress: how})
				require.NoError(b, err)
				rows += summary.Rows()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// TestAFileThatCouldNotBeWrittenGetsNoName: an import would take it for a whole one.
func TestAFileThatCouldNotBeWrittenGetsNoName(t *testing.T) {
	for _, how := range []Compression{Plain, Gzip, Zstd} {
		o, err := create(t.TempDir(), "directors.csv", how, directorsHeader, "\n")
		require.NoError(t, err)
		o.fields("00000001", "A")
		o.finish()
		require.NoError(t, o.file.Close()) // as a disk that fails
		require.ErrorIs(t, o.close(), os.ErrClosed)
		require.NoFileExists(t, o.path)
	}
}

// unended is a compressor whose last bytes find no room.
type unended struct{ io.WriteCloser }

func (u unended) Close() error { return errors.Join(syscall.ENOSPC, u.WriteCloser.Close()) }

// TestACompressedFileWithoutItsEndGetsNoName: an import would say that it is cut off.
func TestACompressedFileWithoutItsEndGetsNoName(t *testing.T) {
	for _, how := range []Compression{Gzip, Zstd} {
		o, err := create(t.TempDir(), "directors.csv", how, directorsHeader, "\n")
		require.NoError(t, err)
		o.compressor = unended{o.compressor}
		require.ErrorIs(t, o.close(), syscall.ENOSPC)
		require.NoFileExists(t, o.path)
	}
}

// TestPartnersNeedNoDirectors: the boards of few companies may be empty.
func TestPartnersNeedNoDirectors(t *testing.T) {
	g := newGenerator(Config{Companies: 1, Out: t.TempDir()})
	require.NoError(t, g.openBoards())
	o, err := g.create("partners.csv", partnersHeader, "\n")
	require.NoError(t, err)
	for i := range int64(50) {
		r := stream(g.seed, ofLLP, i)
		g.partner(&r, o, llpin(i), i, g.calendar.starts[0])
	}
	require.EqualValues(t, 50, o.rows)
	for _, o := range g.open {
		o.abandon()
	}
}
