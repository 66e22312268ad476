package ledger

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/schema"
)

// TestTheSumOfAKeyReadsItsAccountsMonth, and not all usage: each limited key is summed at a start.
func TestTheSumOfAKeyReadsItsAccountsMonth(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"), false)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	for query, args := range map[string][]any{selectKeyLimits: {1, 2, charge.Found, 0}, selectKeySpent: {1, 2, charge.Found, 7}} {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+query, args...)
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int64
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			plan = append(plan, detail)
		}
		require.NoError(t, rows.Err())
		require.Contains(t, strings.Join(plan, "; "), "SEARCH u USING PRIMARY KEY (account=? AND hour>? AND hour<?)")
	}
}

func TestTheHourOfAMonthIsItsFirst(t *testing.T) {
	const january1970 = 12 * 1970
	require.EqualValues(t, 0, hourOf(january1970))
	require.EqualValues(t, 31*24, hourOf(january1970+1))
}
