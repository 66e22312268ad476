package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

// TestAWalkFindsWhatIsThere asks a walk for random keys, near and far, held and not, mostly
// in order, while rows at the last key are written, added and committed.
func TestAWalkFindsWhatIsThere(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		_, s := openedStore(t)
		held := map[[2]string]string{}
		put := func(key [2]string, designation string) {
			require.NoError(t, s.exec(`INSERT OR REPLACE INTO appointment (cin, din, designation, as_of) VALUES (?1, ?2, ?3, '2025-01-01')`,
				record.TextOf(key[0]), record.TextOf(key[1]), record.TextOf(designation)))
			held[key] = designation
		}
		some := func() [2]string {
			return [2]string{fmt.Sprintf("C%02d", random.IntN(40)), fmt.Sprintf("D%02d", random.IntN(20))}
		}
		require.NoError(t, s.begin())
		for range 20 + random.IntN(400) {
			put(some(), "before")
		}
		asked := make([][2]string, 300)
		for i := range asked {
			asked[i] = some()
		}
		slices.SortFunc(asked, compareKeys)
		for range 5 {
			asked[random.IntN(len(asked))] = some() // out of order
		}
		rows := &s.table[record.AppointmentTable].rows
		for i, key := range asked {
			want, exists := held[key]
			got, err := rows.to(key)
			require.NoError(t, err)
			require.Equal(t, exists, got, "seed %d, key %v", seed, key)
			if got {
				require.Equal(t, want, rows.statement.ColumnText(record.AppointmentDesignation))
				require.Equal(t, 0, rows.compare(key))
			}
			switch random.IntN(4) {
			case 0:
				put(key, fmt.Sprintf("a longer designation, number %d", i))
			case 1:
				require.NoError(t, s.commit())
				require.False(t, rows.statement.Busy(), "a commit leaves nothing being read")
				require.NoError(t, s.begin())
			}
		}
		require.NoError(t, s.commit())
	}
}

// TestAWalkSearchesFarAway counts how often a walk searches: once for rows that are near to
// each other, each time for rows far apart.
func TestAWalkSearchesFarAway(t *testing.T) {
	_, s := openedStore(t)
	_, err := writeBatch(s, madeUpBatch(1000), "2025-01-01")
	require.NoError(t, err)
	var keys [][2]string
	for _, p := range madeUpBatch(1000) {
		keys = append(keys, p.Key)
	}
	slices.SortFunc(keys, compareKeys)
	rows := &s.table[record.CompanyTable].rows
	searches := func(gap int) int {
		rows.rest()
		rows.statement.Status(sqlite3.STMTSTATUS_RUN, true)
		for i := 0; i < len(keys); i += gap {
			held, err := rows.to(keys[i])
			require.NoError(t, err)
			require.True(t, held)
		}
		rows.rest()
		return rows.statement.Status(sqlite3.STMTSTATUS_RUN, true)
	}
	require.Equal(t, 1, searches(1))
	require.Equal(t, 1, searches(maxSteps-1))
	require.Equal(t, 1000/100, searches(100))
}

// TestAWalkThatIsInterruptedFindsOutNothing: a row that was not read is not one that is missing.
func TestAWalkThatIsInterruptedFindsOutNothing(t *testing.T) {
	conn, s := openedStore(t)
	batch := madeUpBatch(5)
	_, err := writeBatch(s, batch, "2025-01-01")
	require.NoError(t, err)
	rows := &s.table[record.CompanyTable].rows
	held, err := rows.to(batch[0].Key)
	require.NoError(t, err)
	require.True(t, held)
	ctx, cancel := context.WithCancel(t.Context())
	conn.SetInterrupt(ctx)
	cancel()
	_, err = rows.to(batch[4].Key)
	require.ErrorIs(t, err, sqlite3.INTERRUPT)
}

// atLast is a context that ends when it is asked for the last time of left.
type atLast struct {
	context.Context
	left int
}

func (a *atLast) Err() error {
	if a.left--; a.left <= 0 {
		return context.Canceled
	}
	return nil
}

// TestPincodesThatCanNotBeReadAreNotGone: companies there would lose their districts.
func TestPincodesThatCanNotBeReadAreNotGone(t *testing.T) {
	conn, s := openedStore(t)
	require.NoError(t, conn.Exec(`INSERT INTO pincode (pincode, district, state) VALUES ('403001', 'North Goa', 'Goa'), ('403601', 'South Goa', 'Goa'), ('403802', 'South Goa', 'Goa')`))
	held, err := s.places()
	require.NoError(t, err)
	require.Len(t, held, 3)
	for row := 2; row <= 3; row++ {
		usual := conn.SetInterrupt(&atLast{t.Context(), row})
		require.ErrorIs(t, s.readDistricts(), sqlite3.INTERRUPT, row)
		conn.SetInterrupt(usual)
	}
	require.NoError(t, s.readDistricts())
	require.Len(t, s.districts, 3)
}
