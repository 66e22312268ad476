package push

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func rec(k kind, n int) record { return record{Kind: k, Key: strconv.Itoa(n)} }

// where maps each record to the number of its batch.
func where(batches [][]change) map[record]int {
	at := make(map[record]int)
	for i, batch := range batches {
		for _, c := range batch {
			at[c.record] = i
		}
	}
	return at
}

func TestLinkedRecordsAreInOneBatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var changes []change
	var links []link
	for i := range 6000 {
		here, there := true, random.IntN(3) > 0
		if there {
			here = random.IntN(10) > 0
		}
		for _, k := range []kind{company, director, entry} {
			changes = append(changes, change{record: rec(k, i), here: here, there: there})
		}
		if random.IntN(2) == 0 {
			links = append(links, link{rec(director, i), rec(company, random.IntN(6000))})
		}
	}
	there := make(map[record]bool)
	for _, c := range changes {
		there[c.record] = c.there
	}
	batches := plan(changes, links)
	at := where(batches)
	require.Len(t, at, len(changes), "each record once")
	for _, l := range links {
		if there[l.a] || there[l.b] {
			require.Equal(t, at[l.a], at[l.b], "%v", l)
		} else {
			require.LessOrEqual(t, at[l.a], at[l.b], "a new director comes before its new company")
		}
	}
	for i := range 6000 {
		require.Equal(t, at[rec(company, i)], at[rec(entry, i)])
	}
	for _, batch := range batches {
		require.LessOrEqual(t, len(batch), togetherRecords)
	}
}

func TestALargeSetIsCut(t *testing.T) {
	var changes []change
	var links []link
	for i := range togetherRecords + 10 {
		changes = append(changes, change{record: rec(company, i), here: true, there: true})
		links = append(links, link{rec(company, 0), rec(company, i)})
	}
	batches := plan(changes, links)
	require.Len(t, batches, 2)
	require.Len(t, batches[0], togetherRecords)
}

// TestACutLeavesNoPlaceToTwoEntries: the one that has it leaves it with the batch of the one that takes it.
func TestACutLeavesNoPlaceToTwoEntries(t *testing.T) {
	of := func(n int) []change { return []change{{record: rec(entry, n), here: true, there: true}} }
	gone := change{record: rec(entry, 2), there: true}
	batches := [][]change{of(1), of(2), of(3)}
	vacate(batches, []link{
		{rec(entry, 1), rec(entry, 2)}, {rec(entry, 3), rec(entry, 1)}, // the second has left before
		{rec(company, 1), rec(entry, 3)}, {rec(entry, 1), rec(entry, 9)},
	})
	require.Equal(t, [][]change{append(of(1), gone), of(2), of(3)}, batches)
}
