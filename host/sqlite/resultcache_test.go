package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
)

// nameOf returns how many people have a name, and the id of the first.
func nameOf(t *testing.T, s *sqlite.Store, name string) (rows int, id int64) {
	t.Helper()
	var result handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT id FROM person WHERE name = ?1", []handler.Value{{Kind: handler.Text, Text: name}}, &result))
	if result.Rows() > 0 {
		id = result.Values[0].Int
	}
	return result.Rows(), id
}

func TestResultIsCachedUntilTheDatabaseChanges(t *testing.T) {
	path, writer := newFile(t, people)
	require.NoError(t, writer.Exec("INSERT INTO person (id, name) VALUES (10, 'Devi')"))
	now := time.Unix(1000, 0)
	s := open(t, sqlite.Config{Path: path, Connections: 1, ReadTx: time.Second, CacheResults: true, Now: func() time.Time { return now }})
	for step, change := range []struct {
		act  string
		rows int
		id   int64
	}{
		{"", 1, 10},
		{"UPDATE person SET id = 11 WHERE id = 10", 1, 11},
		{"DELETE FROM person WHERE id = 11", 0, 0},
		{"INSERT INTO person (id, name) VALUES (12, 'Devi')", 1, 12},
		{"UPDATE person SET name = 'Asha' WHERE id = 12", 0, 0},
	} {
		if change.act != "" {
			require.NoError(t, writer.Exec(change.act))
		}
		now = now.Add(2 * time.Second)
		for range 3 {
			rows, id := nameOf(t, s, "Devi")
			require.Equal(t, change.rows, rows, "step %d", step)
			require.Equal(t, change.id, id, "step %d", step)
			now = now.Add(2 * time.Second) // a transaction of its own each time
		}
	}
}

// TestNothingIsCachedWithoutTransactions: it would be looked up for ever, since changes are only seen when one begins.
func TestNothingIsCachedWithoutTransactions(t *testing.T) {
	path, writer := newFile(t, people)
	require.NoError(t, writer.Exec("INSERT INTO person (id, name) VALUES (10, 'Devi')"))
	s := open(t, sqlite.Config{Path: path, Connections: 1, CacheResults: true})
	for id := int64(10); id < 13; id++ {
		_, found := nameOf(t, s, "Devi")
		require.Equal(t, id, found)
		require.NoError(t, writer.Exec("UPDATE person SET id = id + 1 WHERE name = 'Devi'"))
	}
}

func TestCachedResultsMatchStatementAndParameter(t *testing.T) {
	path, writer := newFile(t, people)
	const many = 5000                                                            // more than a connection caches
	require.NoError(t, writer.Exec("CREATE INDEX person_name ON person (name)")) // or each statement reads all of them
	require.NoError(t, writer.Exec(fmt.Sprintf(`INSERT INTO person (id, name)
		WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, 'name' || i FROM n`, 99+many)))
	s := open(t, sqlite.Config{Path: path, Connections: 1, ReadTx: time.Hour, CacheResults: true})
	for range 2 {
		for i := 100; i < 100+many; i++ {
			_, id := nameOf(t, s, fmt.Sprint("name", i))
			require.EqualValues(t, i, id)
		}
	}
	var result handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT 'another' WHERE ?1 IS NOT NULL", []handler.Value{{Kind: handler.Text, Text: "name100"}}, &result))
	require.Equal(t, "another", result.Values[0].Text)
	require.NoError(t, s.Query(t.Context(), "SELECT id FROM person WHERE name = ?1", []handler.Value{{Kind: handler.Blob, Text: "name100"}}, &result))
	require.Zero(t, result.Rows(), "a blob is no text")
}
