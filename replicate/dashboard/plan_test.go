package dashboard

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// parameters is how many values a query takes.
func parameters(query string) int {
	for n := 9; n > 0; n-- {
		if strings.Contains(query, fmt.Sprint("?", n)) {
			return n
		}
	}
	return strings.Count(query, "?")
}

// TestQueriesFindTheirRowsByAnIndex holds that no page reads a whole table that grows
// with use.
func TestQueriesFindTheirRowsByAnIndex(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	for name, query := range map[string]string{
		"credits":    selectCredits,
		"chart":      selectDays,
		"missed":     selectMissed,
		"last use":   selectLastHours,
		"newest":     selectNewestKeys,
		"key words":  selectKeyWords,
		"activity":   selectOwnActivity,
		"session":    selectSession,
		"invitation": selectInvitation,
	} {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+query, make([]any, parameters(query))...)
		require.NoError(t, err, name)
		for rows.Next() {
			var id, parent, unused int
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			for _, table := range []string{"usage", "credit_entry", "audit", "session", "pool", "api_key", "invitation"} {
				require.NotRegexp(t, "^SCAN "+table+"( |$)", step, name)
			}
			require.NotRegexp(t, "^SCAN (u|k|p|s|a|i)$", step, name)
		}
		require.NoError(t, rows.Err())
		rows.Close()
	}
}
