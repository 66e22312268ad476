package writer

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/schema"
)

var benchKeys = flag.Int("keys", 200_000, "keys of BenchmarkFirstStart, two for each account")

// fillKeys makes a ledger with accounts and keys, two for each account.
func fillKeys(t testing.TB, dir string, keys int) *sql.DB {
	t.Helper()
	db, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	for _, statement := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) INSERT INTO account (id, name, email, plan, suspended, created_at, bought)
			SELECT i, 'made-up', '', 'scale', 0, 0, 1000 FROM n`,
		`INSERT INTO api_key (account, name, hash, shown, created_at) SELECT id, 'first', randomblob(32), 'abcd', 0 FROM account WHERE ?1`,
		`INSERT INTO api_key (account, name, hash, shown, created_at) SELECT id, 'second', randomblob(32), 'abcd', 0 FROM account WHERE ?1`,
	} {
		_, err := db.Exec(statement, keys/2)
		require.NoError(t, err)
	}
	return db
}

// TestEveryColumnOfAccessIsProjected: one that a migration adds and the projection lacks would keep its default at all edges.
func TestEveryColumnOfAccessIsProjected(t *testing.T) {
	access := OpenAccess(t, t.TempDir())
	require.NoError(t, schema.Migrate(t.Context(), access, schema.Access))
	for _, table := range projection {
		var columns []string
		rows, err := access.Query("SELECT name FROM pragma_table_info(?)", table.name)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var column string
			require.NoError(t, rows.Scan(&column))
			columns = append(columns, column)
		}
		require.NoError(t, rows.Err())
		_, written, _ := strings.Cut(table.insert, "(")
		written, _, _ = strings.Cut(written, ")")
		require.ElementsMatch(t, columns, strings.Split(written, ", "), table.name)
		require.Len(t, columns, table.columns, table.name)
		for _, column := range columns[1:] {
			require.Regexp(t, `\b`+column+` = excluded\.`+column+`\b`, table.upsert)
			require.Regexp(t, `^SELECT .*\b`+column+`\b.* FROM `, table.access, "compared")
		}
	}
}

// contents is what the access database should hold, and holds.
func contents(t *testing.T, ledger, access *sql.DB) (want, have [][]row) {
	t.Helper()
	for _, table := range projection {
		rows, err := readRows(t.Context(), ledger, table.ledger+" ORDER BY id", table.columns)
		require.NoError(t, err)
		want = append(want, rows)
		rows, err = readRows(t.Context(), access, table.access+" ORDER BY id", table.columns)
		require.NoError(t, err)
		have = append(have, rows)
	}
	return want, have
}

// TestTheAccessDatabaseIsComparedPageByPage spoils an access database of many pages in several ways.
// Each time a comparison makes it what the ledger says.
func TestTheAccessDatabaseIsComparedPageByPage(t *testing.T) {
	dir := t.TempDir()
	ledger, access := fillKeys(t, dir, 3*comparedRows), OpenAccess(t, dir)
	p := newProjector(Config{Ledger: ledger, Access: access}.withDefaults(), func(d time.Duration) time.Duration { return d })
	require.NoError(t, p.update(t.Context()))
	for name, spoil := range map[string][]string{
		"empty":            {`DELETE FROM api_key`, `DELETE FROM account`, `DELETE FROM plan`},
		"some are missing": {`DELETE FROM api_key WHERE abs(random()) % 3 = 0`},
		"the first page":   {fmt.Sprintf(`DELETE FROM api_key WHERE id <= %d`, comparedRows)},
		"the last page":    {fmt.Sprintf(`DELETE FROM api_key WHERE id > %d`, 2*comparedRows)},
		"strays after all": {fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO api_key (id, account, hash) SELECT 10000000 + i, 1, randomblob(32) FROM n`, 2*comparedRows)},
		"other values": {`UPDATE account SET plan = 'free' WHERE abs(random()) % 2 = 0`, `UPDATE api_key SET hash = randomblob(32) WHERE id % 7 = 0`},
		"a plan":       {`INSERT INTO plan VALUES ('0', 0, 0, 0, 0, 0), ('zzz', 0, 0, 0, 0, 0)`},
		"nothing":      nil,
	} {
		for _, statement := range spoil {
			_, err := access.Exec(statement)
			require.NoError(t, err, name)
		}
		p.compareAll()
		require.NoError(t, p.update(t.Context()), name)
		want, have := contents(t, ledger, access)
		require.Equal(t, want, have, name)
	}
}

// TestAnAccessDatabaseIsFilledOnceItIsCompared, also if it refuses a row. One that was lost meanwhile is another.
func TestAnAccessDatabaseIsFilledOnceItIsCompared(t *testing.T) {
	dir := t.TempDir()
	ledger, access := fillKeys(t, dir, 4), OpenAccess(t, dir)
	p := newProjector(Config{Ledger: ledger, Access: access}.withDefaults(), func(d time.Duration) time.Duration { return d })
	require.False(t, p.filled)
	require.NoError(t, p.update(t.Context()))
	require.True(t, p.filled)

	p.lost()
	require.False(t, p.filled)
	ended, end := context.WithCancel(t.Context())
	end()
	require.Error(t, p.update(ended))
	require.False(t, p.filled)
	for statement, filled := range map[string]bool{
		`CREATE TRIGGER refused BEFORE INSERT ON api_key WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'it takes none'); END`: true,
		`ALTER TABLE api_key RENAME TO elsewhere`: false,
	} {
		p.lost()
		require.NoError(t, p.migrate(t.Context()))
		_, err := access.Exec(`DELETE FROM api_key; ` + statement)
		require.NoError(t, err)
		require.Error(t, p.compareIfAsked(t.Context()))
		require.Equal(t, filled, p.filled, statement)
		_, err = access.Exec(map[bool]string{true: `DROP TRIGGER refused`, false: `ALTER TABLE elsewhere RENAME TO api_key`}[filled])
		require.NoError(t, err)
	}
	refused, away := errors.New("SQLite error: FOREIGN KEY constraint failed"), errors.New("connection refused")
	for _, c := range []struct{ first, next, want error }{
		{nil, nil, nil}, {refused, nil, refused}, {nil, away, away}, {away, refused, away}, {refused, away, away}, {refused, refused, refused},
	} {
		require.Equal(t, c.want, worse(c.first, c.next), "what is worse than a refused row is not hidden by one")
	}

	p.lost()
	require.NoError(t, p.compareIfAsked(t.Context()), "that of before, which has its tables")
	require.False(t, p.filled)
}

// TestAnEmptyLedgerTakesNoKeys: a writer that was started where the ledger's disk is not mounted took all of them.
func TestAnEmptyLedgerTakesNoKeys(t *testing.T) {
	dir := t.TempDir()
	ledger, access := fillKeys(t, dir, 4), OpenAccess(t, dir)
	jitter := func(d time.Duration) time.Duration { return d }
	require.NoError(t, newProjector(Config{Ledger: ledger, Access: access}.withDefaults(), jitter).update(t.Context()))
	before, _ := contents(t, ledger, access)

	empty := fillKeys(t, t.TempDir(), 0)
	_, err := empty.Exec(`DELETE FROM account; UPDATE plan SET per_minute = 1`)
	require.NoError(t, err)
	p := newProjector(Config{Ledger: empty, Access: access}.withDefaults(), jitter)
	err = p.update(t.Context())
	require.ErrorIs(t, err, errEmptyLedger)
	p.logOutcome(err)
	require.Equal(t, EmptyLedgerRemark, p.why())
	_, have := contents(t, ledger, access)
	require.Equal(t, before, have)
	behind, _ := p.behind()
	require.Equal(t, 1, behind, "readiness and its metric say so")
	closed := OpenAccess(t, t.TempDir())
	require.NoError(t, closed.Close())
	require.Error(t, newProjector(Config{Ledger: empty, Access: closed}.withDefaults(), jitter).refuseEmpty(t.Context()), "what can not be read may have keys")

	_, err = empty.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at, bought) VALUES (7, 'made-up', '', 'scale', 0, 0, 0)`)
	require.NoError(t, err)
	require.NoError(t, p.update(t.Context()), "a new ledger is meant")
	want, have := contents(t, empty, access)
	require.Equal(t, want, have)
}

// TestARevocationDoesNotWaitForAComparison revokes a key while the first rows of a large table are
// compared.
func TestARevocationDoesNotWaitForAComparison(t *testing.T) {
	dir := t.TempDir()
	ledger, access := fillKeys(t, dir, 3*comparedRows), OpenAccess(t, dir)
	p := newProjector(Config{Ledger: ledger, Access: access}.withDefaults(), func(d time.Duration) time.Duration { return d })
	require.NoError(t, p.update(t.Context()))
	revoked := int64(1 + rand.IntN(3*comparedRows))
	pages := 0
	p.compareAll()
	p.compare, p.comparing = false, true
	behind, _ := p.behind()
	require.Equal(t, 1, behind, "a comparison that goes on counts")
	require.NoError(t, p.eachDifference(t.Context(), projection[keyTable], func([]row, []any) error {
		if pages++; pages == 1 {
			_, err := ledger.Exec(`UPDATE api_key SET revoked_at = 1 WHERE id = ?`, revoked)
			p.add(changedRow{table: keyTable, id: revoked, takes: true})
			return err
		}
		var left int
		err := access.QueryRow(`SELECT count(*) FROM api_key WHERE id = ?`, revoked).Scan(&left)
		require.Zero(t, left, "the key works on")
		return err
	}))
	require.Greater(t, pages, 1)
}

// BenchmarkFirstStart is the start of a writer whose access database is empty: until it serves, and
// until edges know every key.
func BenchmarkFirstStart(b *testing.B) {
	for _, kind := range []string{"file", "server"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dir := b.TempDir()
				config := Config{Ledger: fillKeys(b, dir, *benchKeys), OperatorToken: "operator-token-of-tests"}
				if kind == "server" {
					config.Access = sqldtest.Open(b, sqldtest.Primary(b))
				} else {
					config.Access = OpenAccess(b, dir)
				}
				b.StartTimer()
				begun := time.Now()
				w, err := Open(b.Context(), config)
				require.NoError(b, err)
				serves := time.Since(begun)
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				for changes := 1; changes > 0; changes, _ = w.projector.behind() {
					time.Sleep(time.Millisecond)
				}
				b.ReportMetric(serves.Seconds(), "s/until-it-serves")
				b.ReportMetric(time.Since(begun).Seconds(), "s/until-all-keys-work")
				cancel()
				require.NoError(b, <-done)
			}
		})
	}
}
