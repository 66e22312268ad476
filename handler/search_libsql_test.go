package handler

import (
	"database/sql"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/names"
	"regedge/internal/testkit"
	"regedge/internal/testkit/misspelt"
	"regedge/internal/testkit/searchtest"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// TestSearchOnLibSQL runs the statement on a libSQL server, which is built on another version of
// SQLite.
func TestSearchOnLibSQL(t *testing.T) {
	db := startLibSQL(t)
	records := searchtest.Sample(t)
	s := newSearcher(t, records)
	copySearch(t, db, s)

	random := rand.New(rand.NewPCG(8, 8))
	queries := append([]string{}, oddQueries...)
	for range 200 {
		queries = append(queries, vary(random, records[random.IntN(len(records))].Name))
	}
	remote := &searcher{store: libSQL{db}}
	for _, q := range queries {
		require.Equal(t, s.reference.find(q, 7), remote.matches(t, q, 7), "%q", q)
	}
	for range 100 {
		if q := misspelt.Typo(random, records[random.IntN(len(records))].Name); q != "" {
			_, want := s.search(t, q, 5)
			_, got := remote.search(t, q, 5)
			require.Equal(t, want, got, "%q", q)
		}
	}
}

// libSQL runs the statements of a search on a libSQL server.
type libSQL struct{ *sql.DB }

func (l libSQL) Query(statement string, args []Value) (*Result, error) {
	var list []any
	for _, v := range args {
		if v.Kind == Integer {
			list = append(list, v.Int)
		} else {
			list = append(list, v.Text)
		}
	}
	columns := 2
	if statement == forgivingStatement {
		columns = 3
	}
	texts, into := make([]sql.NullString, columns), make([]any, columns)
	for i := range texts {
		into[i] = &texts[i]
	}
	if err := l.DB.QueryRow(statement, list...).Scan(into...); err != nil {
		return nil, err
	}
	result := &Result{Columns: columns}
	for _, t := range texts {
		result.Values = append(result.Values, text(t.String))
	}
	return result, nil
}

func startLibSQL(t *testing.T) *sql.DB {
	t.Helper()
	server := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t)})
	db := sqldtest.Open(t, server)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	return db
}

// copySearch copies the search tables of s to db.
func copySearch(t *testing.T, db *sql.DB, s *searcher) {
	t.Helper()
	tx, err := db.Begin()
	require.NoError(t, err)
	run := func(query string, args ...any) {
		_, err := tx.Exec(query, args...)
		require.NoError(t, err, query)
	}
	rows := searchtest.Prepare(t, s.conn, `SELECT place, value, name, label FROM search_name`)
	for rows.Step() {
		place, name := rows.ColumnInt64(0), rows.ColumnText(2)
		run(`INSERT INTO search_name VALUES (?1, ?2, ?3, ?4)`, place, rows.ColumnText(1), name, rows.ColumnText(3))
		run(`INSERT INTO search_index (rowid, terms) VALUES (?1, ?2)`, place, string(names.AppendTerms(nil, name)))
	}
	require.NoError(t, rows.Err())
	run(firstRelease)
	require.NoError(t, tx.Commit())
}
