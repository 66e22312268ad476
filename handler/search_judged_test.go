package handler

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
)

// judged is a query and the company that it should find.
type judged struct{ query, cin, name string }

// The share of queries whose company must be the first match, or one of the first five.
const (
	wantFirst = 0.92
	wantFive  = 0.98
)

func TestSearchFindsWhatPeopleWant(t *testing.T) {
	set := readJudged(t)
	records := searchtest.Real(t)
	if len(records) == 0 {
		t.Log("without ../shared/data: searching the names of testdata")
		records = withWanted(searchtest.Sample(t), set)
	}
	s := newSearcher(t, records)
	t.Run("judged queries", func(t *testing.T) {
		s.judge(t, set)
	})
	t.Run("derived queries", func(t *testing.T) {
		s.judge(t, deriveJudged(records, 1000))
	})
}

// withWanted adds the wanted companies to records.
func withWanted(records []searchtest.Record, set []judged) []searchtest.Record {
	have := make(map[string]bool)
	for _, r := range records {
		have[r.Value] = true
	}
	for _, j := range set {
		if !have[j.cin] {
			have[j.cin] = true
			records = append(records, searchtest.Record{Value: j.cin, Name: j.name, Status: "ACTIVE"})
		}
	}
	return records
}

// judge checks how often the wanted company is the first match, and among the first five.
func (s *searcher) judge(t *testing.T, set []judged) {
	t.Helper()
	first, five := s.success(t, set)
	require.GreaterOrEqual(t, first, wantFirst, "success at 1")
	require.GreaterOrEqual(t, five, wantFive, "success at 5")
}

// success returns how often the wanted company is the first match, and among the first five. It logs
// every miss.
func (s *searcher) success(t *testing.T, set []judged) (first, five float64) {
	t.Helper()
	hits := map[int]int{}
	for _, j := range set {
		rank := s.rank(t, j)
		for _, n := range []int{1, 5, 10} {
			if rank <= n {
				hits[n]++
			}
		}
		if rank > 1 {
			t.Logf("rank %2d: %q wants %s", rank, j.query, j.name)
		}
	}
	share := func(n int) float64 { return float64(hits[n]) / float64(len(set)) }
	t.Logf("%d queries: success at 1 %.3f, at 5 %.3f, at 10 %.3f", len(set), share(1), share(5), share(10))
	return share(1), share(5)
}

// rank returns the position, from 1, of the first match that is the wanted company or has the
// same name; 11 if there is none.
func (s *searcher) rank(t *testing.T, j judged) int {
	t.Helper()
	list := s.matches(t, j.query, 10)
	for i, m := range list {
		if m.Value == j.cin || names.Name(m.Label) == names.Name(j.name) {
			return i + 1
		}
	}
	return 11
}

func readJudged(t *testing.T) []judged {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(searchtest.Root(t), "testdata", "search", "judged.tsv"))
	require.NoError(t, err)
	var set []judged
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 3, line)
		set = append(set, judged{f[0], f[1], f[2]})
	}
	require.Equal(t, judged{"query", "cin", "company_name"}, set[0])
	require.Greater(t, len(set), 300)
	return set[1:]
}

// deriveJudged makes queries from random names: a prefix of at least two thirds, a word left out
// of at least three, abbreviations, two words swapped. The legal ending is left out, except in
// abbreviated names.
func deriveJudged(records []searchtest.Record, count int) []judged {
	random := rand.New(rand.NewPCG(11, 12))
	var set []judged
	for len(set) < count {
		r := records[random.IntN(len(records))]
		words := strings.Fields(strings.TrimSuffix(strings.TrimSuffix(r.Name, " LIMITED"), " PRIVATE"))
		if query := derive(random, r.Name, words, len(set)%4); query != "" {
			set = append(set, judged{query, r.Value, r.Name})
		}
	}
	return set
}

// derive makes a query in one of four ways. It returns "" if the name is unsuitable.
func derive(random *rand.Rand, name string, words []string, way int) string {
	text := strings.Join(words, " ")
	i := random.IntN(len(words))
	switch way {
	case 0:
		from := len(text) * 2 / 3
		return text[:from+random.IntN(len(text)-from)+1]
	case 1:
		if len(words) < 3 || i == 0 {
			return ""
		}
		return strings.Join(append(words[:i:i], words[i+1:]...), " ")
	case 2:
		return strings.NewReplacer("PRIVATE", "Pvt.", "LIMITED", "Ltd", " AND ", " & ", "COMPANY", "Co.",
			"INTERNATIONAL", "Intl", "CORPORATION", "Corp").Replace(name)
	}
	if i == 0 || len(words[i]) == 1 || len(words[i-1]) == 1 {
		return ""
	}
	words[i], words[i-1] = words[i-1], words[i]
	return strings.Join(words, " ")
}
