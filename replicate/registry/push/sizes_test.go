package push

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/registry/libsql"
)

// TestPartsAreAsManyAsTheRecordsNeed: each costs some 25 bytes, and each level a round trip.
func TestPartsAreAsManyAsTheRecordsNeed(t *testing.T) {
	const width = 1 << 20
	for records, parts := range map[int64]int64{
		0: 2, 8: 2, 9: 4, 16: 4, 17: 8, 128: 32, 129: 64, 100_000: 64,
	} {
		require.EqualValues(t, width/parts, partWidth(width, []span{{records: 3}, {records: records}}), records)
	}
	require.EqualValues(t, 1, partWidth(3, []span{{records: 1000}}), "never none")
}

func TestAListIsCutIntoPieces(t *testing.T) {
	var sizes []int
	var all []int
	for some := range chunks([]int{1, 2, 3, 4, 5, 6, 7}, 3) {
		sizes, all = append(sizes, len(some)), append(all, some...)
	}
	require.Equal(t, []int{3, 3, 1}, sizes)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, all)
	for range chunks([]int{1, 2}, 1) {
		break
	}
	for range chunks([]int(nil), 1) {
		require.Fail(t, "an empty piece")
	}
}

// TestANewGenerationIsWrittenWhenAFifthMoved, or for other terms; but not in the middle of a push.
func TestANewGenerationIsWrittenWhenAFifthMoved(t *testing.T) {
	moved := func(n int) (list []change) {
		for i := range n {
			list = append(list, change{record: rec(entry, i), here: true, there: true})
		}
		return append(list, change{record: rec(entry, n), here: true}, change{record: rec(entry, n+1), there: true},
			change{record: rec(company, 1), here: true, there: true})
	}
	same := state{pushed: true, terms: termsMark(), names: 50}
	require.False(t, same.needsNewGeneration(moved(10)))
	require.True(t, same.needsNewGeneration(moved(11)))
	other := same
	other.terms++
	require.True(t, other.needsNewGeneration(nil))
	other.pushing, other.dirty = "r", true
	require.True(t, other.needsNewGeneration(nil), "nor can the entries of a push before be deleted")
	other.pushed = false
	require.False(t, other.needsNewGeneration(nil), "nothing was pushed before")
	for _, s := range []struct {
		pushing string
		dirty   bool
		anew    bool
	}{{"r", true, false}, {"r", false, true}, {"", true, true}} {
		before := same
		before.pushing, before.dirty = s.pushing, s.dirty
		require.Equal(t, s.anew, before.needsNewGeneration(moved(11)), s)
	}
}

// TestAnIndexOfOtherTermsIsEmptied: its entries can't be deleted one by one.
func TestAnIndexOfOtherTermsIsEmptied(t *testing.T) {
	p := &pusher{}
	statements := func(terms int64) (text string) {
		for _, s := range p.moveSearch(state{terms: terms}) {
			text += s.SQL + "\n"
		}
		return text
	}
	require.NotContains(t, statements(termsMark()), "delete-all")
	require.Contains(t, statements(termsMark()+1), "DELETE FROM search_name\n")
	require.Contains(t, statements(termsMark()+1), "delete-all")
}

// TestRecordsComeBeforeThoseThatNameThem: new pincodes and directors, then what the primary has, then
// what is new.
func TestRecordsComeBeforeThoseThatNameThem(t *testing.T) {
	changes := []change{
		{record: rec(company, 1), here: true}, {record: rec(entry, 1), here: true},
		{record: rec(company, 2), here: true, there: true}, {record: rec(director, 2), here: true},
		{record: rec(director, 3), here: true}, {record: rec(pincode, 4), here: true},
		{record: rec(director, 5), there: true}, {record: rec(llp, 6), here: true}, {record: rec(entry, 6), here: true, there: true},
	}
	at := where(plan(changes, []link{{rec(director, 2), rec(company, 2)}, {rec(director, 3), rec(company, 1)}}))
	require.Equal(t, map[record]int{
		rec(director, 3): 0, rec(pincode, 4): 0,
		rec(company, 2): 1, rec(director, 2): 1, rec(director, 5): 1, rec(llp, 6): 1, rec(entry, 6): 1,
		rec(company, 1): 2, rec(entry, 1): 2,
	}, at)
}

func TestBatchesAreFilledAndBounded(t *testing.T) {
	var changes []change
	for i := range 2*batchRecords + 1 {
		changes = append(changes, change{record: rec(company, i), here: true})
	}
	var sizes []int
	for _, batch := range plan(changes, nil) {
		sizes = append(sizes, len(batch))
	}
	require.Equal(t, []int{batchRecords, batchRecords, 1}, sizes)

	changes = changes[:batchRecords-1]
	pair := []change{{record: rec(director, 1), here: true, there: true}, {record: rec(director, 2), here: true, there: true}}
	for i := range changes {
		changes[i].there = true
	}
	batches := plan(append(changes, pair...), []link{{pair[0].record, pair[1].record}})
	require.Len(t, batches, 2, "a pair that does not fit comes with the next")
}

// TestAPushIsConfirmedFromAShareOn: two in a hundred may go.
func TestAPushIsConfirmedFromAShareOn(t *testing.T) {
	p := &pusher{report: Report{Counts: make([]Count, len(kinds))}}
	for gone, many := range map[int64]bool{0: false, 2: false, 3: true} {
		for _, k := range kinds {
			p.report.Counts[k-1].Removed = gone
			had := map[kind]int64{}
			for _, other := range kinds {
				had[other] = 1000
			}
			had[k] = 100
			require.Equal(t, many, p.removesMany(had), "%d %v", gone, k)
			p.report.Counts[k-1].Removed = 0
		}
	}
	require.Equal(t, "2026-01-02T03:04:05Z", day(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Unix()))
}

func TestTheSizeOfAStatementIsOfItsTexts(t *testing.T) {
	require.EqualValues(t, 9, size(libsql.Statement{SQL: "four", Args: []any{"five.", int64(7), nil}}))
	s := &side{}
	text, err := s.text(t.Context(), strings.Repeat("x", 10))
	require.NoError(t, err)
	require.Empty(t, text)
	require.Zero(t, s.sent, "there is no database")
}

func TestSetsAreJoined(t *testing.T) {
	s := newSets(6)
	s.join(4, 2)
	s.join(5, 4)
	s.join(0, 3)
	s.join(3, 0)
	groups := s.groups()
	slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	require.Equal(t, [][]int{{0, 3}, {1}, {2, 4, 5}}, groups)
	require.Equal(t, 2, s.find(5))
}
