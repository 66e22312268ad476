package handler

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"regedge/internal/testkit/searchtest"
)

// wantFirstOfClass and wantFiveOfClass are the shares of a class whose company must be the first match,
// or one of the first five.
const (
	wantFirstOfClass = 0.85
	wantFiveOfClass  = 0.92
)

// TestSearchByClassOfQuery judges the classes of testdata/search/classes.tsv, each by itself.
func TestSearchByClassOfQuery(t *testing.T) {
	classes := readClasses(t, "classes.tsv")
	require.Len(t, classes, 7)
	s := searcherOf(t, classes)
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		t.Run(class, func(t *testing.T) {
			first, five := s.success(t, classes[class])
			require.GreaterOrEqual(t, first, wantFirstOfClass, "success at 1")
			require.GreaterOrEqual(t, five, wantFiveOfClass, "success at 5")
		})
	}
}

// wantFoundOrSuggested are the shares of each class of testdata/search/people.tsv whose company must be the
// first match, or the first suggestion if nothing matches.
var wantFoundOrSuggested = map[string]float64{
	"a word or town too many": 0.85, "abbreviations": 0.95, "an identifier": 0.9, "beginnings": 1, "city renamed": 1,
	"full name": 1, "initials": 0.95, "joined": 1, "number or word": 0.85, "one typo": 0.95, "other scripts": 0.85, "pasted": 0.85,
	"phonetic": 0.9, "punctuation": 0.9, "several typos": 0.85, "split": 0.95, "word order": 1, "words missing": 1,
}

// TestWhatPeopleTypeIsFoundOrSuggested judges 507 queries as people type them, which were written by somebody who
// did not know the search, before any of them was tried.
func TestWhatPeopleTypeIsFoundOrSuggested(t *testing.T) {
	classes := readClasses(t, "people.tsv")
	s := searcherOf(t, classes)
	for class, want := range wantFoundOrSuggested {
		set, right := classes[class], 0
		require.NotEmpty(t, set, class)
		for _, q := range set {
			found, suggestions := s.search(t, q.query, defaultLimit)
			if first := gjson.Get(found, "0.value").String(); first == q.cin || first == "" && rankOf(q.name, suggestions) == 1 {
				right++
				continue
			}
			t.Logf("%s: %q wants %q, got %s %s", class, q.query, q.name, found, suggestions)
		}
		share := float64(right) / float64(len(set))
		t.Logf("%s: %d of %d", class, right, len(set))
		require.GreaterOrEqual(t, share, want, class)
	}
	require.Len(t, classes, len(wantFoundOrSuggested))
}

// searcherOf searches the official companies, or, without these, names of testdata and those that are wanted.
func searcherOf(t *testing.T, classes map[string][]judged) *searcher {
	t.Helper()
	records := append(searchtest.Real(t), searchtest.Others(t)...)
	if len(records) == 0 {
		t.Log("without ../shared/data: searching the names of testdata")
		records = searchtest.Sample(t)
		for _, class := range slices.Sorted(maps.Keys(classes)) {
			records = withWanted(records, classes[class])
		}
	}
	return newSearcher(t, records)
}

func readClasses(t *testing.T, file string) map[string][]judged {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(searchtest.Root(t), "testdata", "search", file))
	require.NoError(t, err)
	classes := map[string][]judged{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 4, line)
		if f[0] != "class" {
			classes[f[0]] = append(classes[f[0]], judged{f[1], f[2], f[3]})
		}
	}
	return classes
}
