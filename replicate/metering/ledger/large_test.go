package ledger_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/ledger"
	"regedge/schema"
)

// TestALargeLedgerIsLoaded: a libSQL server refuses to answer with all accounts or leases at once. The last of the
// rows that are read at once is the last of all, or there is one more, or the next are of another node.
func TestALargeLedgerIsLoaded(t *testing.T) {
	file, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer file.Close()
	for name, of := range map[string]struct {
		db   *sql.DB
		rows []int
	}{
		"a file":   {file, []int{ledger.RowsAtOnce - 1, ledger.RowsAtOnce, ledger.RowsAtOnce + 1, 2 * ledger.RowsAtOnce}},
		"a server": {sqldtest.Open(t, sqldtest.Primary(t)), []int{40_000}},
	} {
		t.Run(name, func(t *testing.T) {
			exec := func(statement string, args ...any) {
				_, err := of.db.Exec(statement, args...)
				require.NoError(t, err)
			}
			require.NoError(t, schema.Migrate(t.Context(), of.db, schema.Ledger))
			_, err := ledger.TakeGeneration(t.Context(), of.db, 0, false, ledger.Holder{})
			require.NoError(t, err)
			exec(`INSERT INTO node (name, token_hash, created_at) VALUES ('a', x'00', 0), ('b', x'01', 0)`)
			exec(`INSERT INTO node_epoch (node, epoch, boot, applied, granted, forked) VALUES ('a', 2, 1, 1, 9, 0), ('b', 1, 1, 1, 9, 0)`)
			stored := 0
			for _, rows := range of.rows {
				exec(`WITH RECURSIVE n (i) AS (SELECT ?1 + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
					INSERT INTO account (id, name, email, plan, suspended, created_at, bought, leased) SELECT i, '', '', 'scale', 0, 0, 9, 3 FROM n`, stored, rows)
				exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at, monthly_credits) SELECT id, id, '', CAST(id AS BLOB), '', 0, 5 FROM account WHERE id > ?`, stored)
				exec(`INSERT INTO key_month (key, month, spent) SELECT id, 1, 1 FROM account WHERE id > ?`, stored)
				exec(`INSERT INTO lease (node, epoch, kind, subject, time_window, granted, spent, returned, ends_at, lost)
					SELECT iif(id % 2, 'a', 'b'), iif(id % 2, 2, 1), 1, id, 0, 5, 1, 1, 9, 0 FROM account WHERE id > ?`, stored)
				stored = rows
				l, err := ledger.Load(t.Context(), of.db)
				require.NoError(t, err)
				require.NoError(t, l.LoadKeyLimits(t.Context(), of.db, 0))
				require.Equal(t, ledger.Sizes{Accounts: rows, Keys: rows, KeyLimits: rows, Leases: rows, Leased: int64(3 * rows)}, l.Sizes())
			}
		})
	}
}
