package generate

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// figures describe a list of companies, as far as the speed of lookups and searches depends on it.
type figures struct {
	words       map[int]float64 // share of names with the word of a rank
	once        float64         // words that one name has alone, by name
	equal       float64         // names that an earlier company has
	glued       float64         // PRIVATELIMITED
	authorized  map[float64]float64
	paidUp      map[float64]float64 // quantiles of capital, in rupees
	wordsOfName float64
}

// officialSize is how many companies the official figures are of: they depend on the number.
const officialSize = 53_702

// officialFigures describe the current export (RoC-wise Company Master Data of 2025, 17 files).
// docs/performance.md has them, too.
var officialFigures = figures{
	words: map[int]float64{10: 0.0308, 30: 0.0098, 100: 0.0036, 300: 0.00108, 1000: 0.00028, 2000: 0.00013, 3000: 0.00009, 5000: 0.00006},
	once:  0.619, equal: 0.0007, glued: 0.00004, wordsOfName: 4.81,
	authorized: map[float64]float64{0.5: 500_000, 0.9: 5e6, 0.95: 20e6, 0.99: 200e6, 0.995: 400e6, 0.999: 2550e6},
	paidUp:     map[float64]float64{0.5: 100_000, 0.9: 2.5e6, 0.95: 10.5e6, 0.99: 115e6, 0.995: 250e6, 0.999: 1500e6},
}

// gluedInFiles are the least and the most that files of one state have of glued PRIVATELIMITED: the older
// export has 11% in six states.
const gluedInFilesLeast, gluedInFilesMost = 0.00002, 0.11

// TestFiguresAreLikeTheOfficialOnes within tolerances, at the same number of companies.
func TestFiguresAreLikeTheOfficialOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	out := t.TempDir()
	made, err := Run(t.Context(), Config{Companies: officialSize, Seed: 1, Out: out, OlderShare: 0})
	require.NoError(t, err)
	require.NotEmpty(t, made.Files)
	var rows [][]string
	for _, row := range companies(t, out) {
		rows = append(rows, []string{"", row["CompanyName"], "", "", "", "", row["AuthorizedCapital"], row["PaidupCapital"]})
	}
	got, want := figuresOf(t, rows), officialFigures
	within := func(what string, want, got, times float64) {
		t.Helper()
		t.Logf("%-32s official %12.6g  generated %12.6g", what, want, got)
		require.GreaterOrEqual(t, got, want/times, what)
		require.LessOrEqual(t, got, want*times, what)
	}
	for _, rank := range []int{10, 30, 100, 300, 1000, 2000, 3000, 5000} {
		within("word of rank "+strconv.Itoa(rank), want.words[rank], got.words[rank], 1.35)
	}
	within("words of one name", want.once, got.once, 1.15)
	within("words in a name", want.wordsOfName, got.wordsOfName, 1.05)
	within("equal names", want.equal, got.equal, 2)
	for _, at := range []float64{0.5, 0.9, 0.95, 0.99, 0.995, 0.999} {
		times := 2.5
		if at > 0.99 {
			times = 3
		}
		within("authorized capital, quantile "+strconv.FormatFloat(at, 'g', -1, 64), want.authorized[at], got.authorized[at], times)
		within("paid-up capital, quantile "+strconv.FormatFloat(at, 'g', -1, 64), want.paidUp[at], got.paidUp[at], times)
	}
	require.GreaterOrEqual(t, got.glued, gluedInFilesLeast)
	require.LessOrEqual(t, got.glued, gluedInFilesMost)
	require.InDelta(t, gluedNow, got.glued, 0.003)
}

// TestOlderFilesGlueMoreNames as the official ones do.
func TestOlderFilesGlueMoreNames(t *testing.T) {
	out := t.TempDir()
	made, err := Run(t.Context(), Config{Companies: 20_000, Seed: 1, Out: out, OlderShare: 1})
	require.NoError(t, err)
	glued, names := 0, 0
	for _, f := range made.Files {
		if strings.HasPrefix(f.Name, OlderPrefix) {
			for _, row := range readRows(t, out, f.Name) {
				names++
				glued += strings.Count(row["Company_Name"], "PRIVATELIMITED")
			}
		}
	}
	require.InDelta(t, gluedOlder, float64(glued)/float64(names), 0.015)
}

// TestOfficialFiguresAreThoseOfTheFiles where they are beside the checkout.
func TestOfficialFiguresAreThoseOfTheFiles(t *testing.T) {
	rows := realRows(t)
	require.Len(t, rows, officialSize)
	got, want := figuresOf(t, rows), officialFigures
	for rank, share := range want.words {
		require.InEpsilon(t, share, got.words[rank], 0.1, rank)
	}
	require.InEpsilon(t, want.once, got.once, 0.01)
	require.InEpsilon(t, want.equal, got.equal, 0.05)
	require.InEpsilon(t, want.glued, got.glued, 0.1)
	require.InEpsilon(t, want.wordsOfName, got.wordsOfName, 0.01)
	for at, rupees := range want.authorized {
		require.InEpsilon(t, rupees, got.authorized[at], 0.02, at)
		require.InEpsilon(t, want.paidUp[at], got.paidUp[at], 0.02, at)
	}
}

// figuresOf computes the figures of rows of format A.
func figuresOf(t *testing.T, rows [][]string) figures {
	t.Helper()
	n := float64(len(rows))
	words, names := map[string]int{}, map[string]bool{}
	f := figures{words: map[int]float64{}}
	var authorized, paidUp []float64
	for _, row := range rows {
		seen := map[string]bool{}
		for _, word := range strings.Fields(row[1]) {
			f.wordsOfName += 1 / n
			if !seen[word] {
				words[word]++
				seen[word] = true
			}
		}
		if names[row[1]] {
			f.equal += 1 / n
		}
		names[row[1]] = true
		if strings.Contains(row[1], "PRIVATELIMITED") {
			f.glued += 1 / n
		}
		authorized, paidUp = append(authorized, rupees(t, row[6])), append(paidUp, rupees(t, row[7]))
	}
	var counts []int
	for _, count := range words {
		counts = append(counts, count)
		if count == 1 {
			f.once += 1 / n
		}
	}
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	for rank := range officialFigures.words {
		f.words[rank] = float64(counts[rank-1]) / n
	}
	f.authorized, f.paidUp = quantiles(authorized), quantiles(paidUp)
	return f
}

func rupees(t *testing.T, text string) float64 {
	t.Helper()
	if text == "" {
		return 0
	}
	amount, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return amount
}

func quantiles(values []float64) map[float64]float64 {
	slices.Sort(values)
	list := map[float64]float64{}
	for at := range officialFigures.authorized {
		list[at] = values[int(at*float64(len(values)))]
	}
	return list
}
