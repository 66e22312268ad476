package notice_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/notice"
	"regedge/schema"
)

// TestManyTargetsAreLookedAtOnAServer: a libSQL server refuses to answer with the balances of all.
func TestManyTargetsAreLookedAtOnAServer(t *testing.T) {
	db := sqldtest.Open(t, sqldtest.Primary(t))
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	for _, statement := range []string{
		`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
			INSERT INTO account (id, name, email, plan, suspended, created_at, bought) SELECT i, '', '', 'scale', 0, 0, 9 FROM n`,
		`INSERT INTO notice_target (account, channel, low, low_told, created_at) SELECT id, 'webhook', 9, 0, 0 FROM account`,
		`UPDATE account SET spent = 1 WHERE id = 50000`,
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	told := errors.New("there is something to tell")
	s := notice.New(notice.Config{Ledger: db, Ways: []notice.Way{{Channel: notice.Webhook}}, Now: time.Now,
		Commit: func(context.Context, func(context.Context, *sql.Tx, int64) error) error { return told }})
	require.ErrorIs(t, s.Look(t.Context()), told)
}
