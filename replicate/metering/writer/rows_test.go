package writer

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
)

// breaksOff is a query whose second row fails, as it does on a damaged page.
const breaksOff = `SELECT abs(value) FROM (SELECT 1 AS value UNION ALL SELECT -9223372036854775808)`

// TestAListThatBreaksOffIsNoShorterList: what is missing would be taken for gone. Of tokens and keys that
// is access, and of the projection rows that are then deleted.
func TestAListThatBreaksOffIsNoShorterList(t *testing.T) {
	w, _ := openUnrun(t)
	db := w.config.Ledger
	_, err := collect(t.Context(), db, breaksOff, nil, func(rows *sql.Rows) (n int64, err error) { return n, rows.Scan(&n) })
	require.ErrorContains(t, err, "overflow")
	_, err = readRows(t.Context(), db, breaksOff, 1)
	require.ErrorContains(t, err, "overflow")

	_, err = db.Exec(`ALTER TABLE node RENAME TO away`)
	require.NoError(t, err)
	_, err = db.Exec(`CREATE VIEW node AS SELECT 'one' AS name, zeroblob(32) AS token_hash, 0 AS retired UNION ALL SELECT 'two', abs(-9223372036854775808), 0`)
	require.NoError(t, err)
	_, _, err = loadTokens(t.Context(), db)
	require.ErrorContains(t, err, "overflow")
}
