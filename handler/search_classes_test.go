package handler

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	classes := readClasses(t)
	records := append(searchtest.Real(t), searchtest.Others(t)...)
	if len(records) == 0 {
		t.Log("without ../shared/data: searching the names of testdata")
		records = searchtest.Sample(t)
		for _, set := range classes {
			records = withWanted(records, set)
		}
	}
	s := newSearcher(t, records)
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		t.Run(class, func(t *testing.T) {
			first, five := s.success(t, classes[class])
			require.GreaterOrEqual(t, first, wantFirstOfClass, "success at 1")
			require.GreaterOrEqual(t, five, wantFiveOfClass, "success at 5")
		})
	}
}

func readClasses(t *testing.T) map[string][]judged {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(searchtest.Root(t), "testdata", "search", "classes.tsv"))
	require.NoError(t, err)
	classes := map[string][]judged{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 4, line)
		if f[0] != "class" {
			classes[f[0]] = append(classes[f[0]], judged{f[1], f[2], f[3]})
		}
	}
	require.Len(t, classes, 7)
	return classes
}
