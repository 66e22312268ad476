package searchtest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/search"
)

// Open makes an empty registry database, which is closed at the end of the test.
func Open(t testing.TB) *sqlite3.Conn {
	t.Helper()
	c := Create(t, filepath.Join(t.TempDir(), "registry.db"))
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// Create makes an empty registry database in a file.
func Create(t testing.TB, path string) *sqlite3.Conn {
	t.Helper()
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(context.Background(), db, schema.Registry))
	require.NoError(t, db.Close())
	name, err := schema.FileURI(path, false)
	require.NoError(t, err)
	c, err := sqlite3.Open(name)
	require.NoError(t, err)
	require.NoError(t, schema.Prepare(c, false))
	return c
}

// Put inserts or replaces companies and LLPs in one transaction, and marks them.
func Put(t testing.TB, c *sqlite3.Conn, records ...Record) {
	t.Helper()
	require.NoError(t, c.Exec("BEGIN"))
	run := map[int]*sqlite3.Stmt{
		cinLen: Prepare(t, c, `
			INSERT INTO company (cin, company_name, status, as_of, last_updated)
			VALUES (?1, ?2, ?3, '2025-01-01', 0)
			ON CONFLICT DO UPDATE SET company_name = ?2, status = ?3`),
		llpinLen: Prepare(t, c, `
			INSERT INTO llp (llpin, llp_name, status, as_of, last_updated)
			VALUES (?1, ?2, ?3, '2025-01-01', 0)
			ON CONFLICT DO UPDATE SET llp_name = ?2, status = ?3`),
	}
	mark := Prepare(t, c, search.Mark)
	for _, r := range records {
		Run(t, run[len(r.Value)], r.Value, r.Name, r.Status)
		Run(t, mark, r.Value)
	}
	require.NoError(t, c.Exec("COMMIT"))
}

// Prepare prepares a statement, which is closed at the end of the test.
func Prepare(t testing.TB, c *sqlite3.Conn, query string) *sqlite3.Stmt {
	t.Helper()
	s, _, err := c.Prepare(query)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Run runs a statement with text parameters to its end.
func Run(t testing.TB, s *sqlite3.Stmt, args ...string) {
	t.Helper()
	for i, a := range args {
		require.NoError(t, s.BindText(i+1, a))
	}
	require.NoError(t, s.Exec())
}
