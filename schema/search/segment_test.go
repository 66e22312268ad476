package search_test

import (
	"fmt"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
	"regedge/schema/search"
)

// texts lists the first column of a query.
func texts(t testing.TB, c *sqlite3.Conn, query string) (list []string) {
	t.Helper()
	s := searchtest.Prepare(t, c, query)
	for s.Step() {
		list = append(list, s.ColumnText(0))
	}
	require.NoError(t, s.Err())
	return list
}

const integrityCheck = `INSERT INTO search_index (search_index) VALUES ('integrity-check')`

// twin is an index of the same names at the same places, made by FTS5.
const twin = `
CREATE VIRTUAL TABLE temp.twin USING fts5 (terms, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '` + names.TermMarks + `'");
CREATE VIRTUAL TABLE temp.twin_rows USING fts5vocab (temp, twin, instance);
CREATE VIRTUAL TABLE temp.index_rows USING fts5vocab (main, search_index, instance)`

// TestTheIndexIsWhatFTS5WouldMake compares the index with the one that FTS5 makes of the same
// terms, also with pages so small that lists and their skip lists have many.
func TestTheIndexIsWhatFTS5WouldMake(t *testing.T) {
	for _, pageBytes := range []int{32, 64, 1000, 4050} {
		t.Run(fmt.Sprintf("pages of %d bytes", pageBytes), func(t *testing.T) {
			c := searchtest.Open(t)
			made := texts(t, c, `SELECT sql FROM sqlite_schema WHERE name = 'search_index'`)
			require.Contains(t, made[0], "tokenchars '"+names.TermMarks+"'")
			require.NoError(t, c.Exec(fmt.Sprintf(`INSERT INTO search_index (search_index, rank) VALUES ('pgsz', %d)`, pageBytes)))
			searchtest.Put(t, c, longLists(4000)...)
			require.True(t, refresh(t, c).Rebuilt)
			require.NoError(t, c.Exec(integrityCheck))

			require.NoError(t, c.Exec(twin))
			putTwin(t, c, "")
			const rows = `SELECT term || ' ' || doc FROM temp.%s_rows ORDER BY term, doc`
			require.Equal(t, texts(t, c, fmt.Sprintf(rows, "twin")), texts(t, c, fmt.Sprintf(rows, "index")))
			for _, query := range []string{`"=rare"`, `"=common" AND "=rare"`, `"=common" AND "=w7"`, `"=w3" OR "=w1999"`, `"=none"`} {
				const found = `SELECT rowid FROM %s WHERE %s MATCH '%s' ORDER BY rowid`
				require.Equal(t, texts(t, c, fmt.Sprintf(found, "temp.twin", "twin", query)),
					texts(t, c, fmt.Sprintf(found, "search_index", "search_index", query)), query)
			}
		})
	}
}

// longLists returns names of which all have one word and few have another.
func longLists(count int) (list []searchtest.Record) {
	for i := range count {
		name := fmt.Sprintf("COMMON W%d", i)
		if i%1000 == 0 {
			name += " RARE"
		}
		list = append(list, searchtest.Record{Value: fmt.Sprintf("U00000GA2020PTC%06d", i), Name: name, Status: "ACTIVE"})
	}
	return list
}

// putTwin adds the names that where selects to the twin.
func putTwin(t *testing.T, c *sqlite3.Conn, where string) {
	t.Helper()
	put := searchtest.Prepare(t, c, `INSERT INTO temp.twin (rowid, terms) VALUES (?1, ?2)`)
	read := searchtest.Prepare(t, c, `SELECT place, name FROM search_name `+where)
	for read.Step() {
		require.NoError(t, put.BindInt64(1, read.ColumnInt64(0)))
		require.NoError(t, put.BindRawText(2, names.AppendTerms(nil, read.ColumnText(1))))
		require.NoError(t, put.Exec())
	}
	require.NoError(t, read.Err())
}

// TestFTS5UpdatesARebuiltIndex updates an index by FTS5's statements after it was written
// without them, on the connection that wrote it and on another.
func TestFTS5UpdatesARebuiltIndex(t *testing.T) {
	path := t.TempDir() + "/registry.db"
	c, list := searchtest.Create(t, path), longLists(3000)
	defer c.Close()
	searchtest.Put(t, c, list...)
	refresh(t, c)
	for round := range 3 {
		for i := range 3 {
			list[round*100+i].Name += fmt.Sprintf(" ROUND %d", round)
		}
		searchtest.Put(t, c, list[round*100:round*100+3]...)
		require.Equal(t, search.Change{Removed: 3, Written: 3}, refresh(t, c))
		require.NoError(t, c.Exec(integrityCheck))
		if round == 1 {
			require.NoError(t, c.Exec(`INSERT INTO search_pending VALUES ('*')`))
			require.True(t, refresh(t, c).Rebuilt)
		}
	}
	other := searchtest.Create(t, path)
	defer other.Close()
	require.NoError(t, search.Check(other))
	require.Len(t, texts(t, other, `SELECT rowid FROM search_index WHERE search_index MATCH '"=round"'`), 9)
	require.NoError(t, c.Exec(`INSERT INTO search_index (search_index) VALUES ('optimize')`))
	require.NoError(t, search.Check(other))
}

// TestTheWriterIsCheckedAgainstThisSQLite fails on a version of SQLite whose FTS5 nobody has
// compared this package's writer with.
func TestTheWriterIsCheckedAgainstThisSQLite(t *testing.T) {
	linked := texts(t, searchtest.Open(t), `SELECT sqlite_version()`)
	require.Equal(t, []string{search.CheckedSQLite}, linked, "SQLite changed: compare its ext/fts5/fts5_index.c "+
		"with segment.go and install.go, run the tests of schema/search, then change CheckedSQLite")
}

// TestListsThatFTS5GivesASkipListHaveOne, by the lowest bit of the page in the table of first terms.
func TestListsThatFTS5GivesASkipListHaveOne(t *testing.T) {
	const pageBytes = 64
	for count := 50; count < 500; count += 10 {
		c := searchtest.Open(t)
		require.NoError(t, c.Exec(fmt.Sprintf(`INSERT INTO search_index (search_index, rank) VALUES ('pgsz', %d)`, pageBytes)))
		searchtest.Put(t, c, longLists(count)...)
		require.True(t, refresh(t, c).Rebuilt)
		require.NoError(t, c.Exec(twin))
		require.NoError(t, c.Exec(fmt.Sprintf(`INSERT INTO temp.twin (twin, rank) VALUES ('pgsz', %d)`, pageBytes)))
		putTwin(t, c, "")
		require.NoError(t, c.Exec(`INSERT INTO temp.twin (twin) VALUES ('optimize')`))
		const first = `SELECT hex(term) || ' ' || pgno FROM %s ORDER BY term`
		require.Equal(t, texts(t, c, fmt.Sprintf(first, "temp.twin_idx")), texts(t, c, fmt.Sprintf(first, "search_index_idx")), count)
	}
}

// TestPagesAreThoseOfFTS5: leaves, skip lists of several levels, and the numbers of names and terms.
func TestPagesAreThoseOfFTS5(t *testing.T) {
	for _, test := range []struct {
		pageBytes int
		records   []searchtest.Record
	}{{1000, longLists(500)}, {32, equalNames(5000)}} {
		c := searchtest.Open(t)
		require.NoError(t, c.Exec(fmt.Sprintf(`INSERT INTO search_index (search_index, rank) VALUES ('pgsz', %d)`, test.pageBytes)))
		searchtest.Put(t, c, test.records...)
		require.True(t, refresh(t, c).Rebuilt)
		require.NoError(t, c.Exec(twin+fmt.Sprintf(`; INSERT INTO temp.twin (twin, rank) VALUES ('pgsz', %d), ('automerge', 0);`, test.pageBytes)))
		for half := range 2 { // two segments, which FTS5 then merges in one go
			require.NoError(t, c.Exec("BEGIN"))
			putTwin(t, c, fmt.Sprintf("WHERE place / 16 %% 2 = %d", half))
			require.NoError(t, c.Exec("COMMIT"))
		}
		require.NoError(t, c.Exec(`INSERT INTO temp.twin (twin) VALUES ('optimize')`))
		const pages = `SELECT (id & (1 << 37) - 1) || ' ' || hex(block) FROM %s WHERE id <> 10 ORDER BY id` // without the segment's number
		want, got := texts(t, c, fmt.Sprintf(pages, "temp.twin_data")), texts(t, c, fmt.Sprintf(pages, "search_index_data"))
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	}
}

// equalNames returns companies of one name: lists of equal steps, whose skip lists are long.
func equalNames(count int) (list []searchtest.Record) {
	for i := range count {
		list = append(list, searchtest.Record{Value: fmt.Sprintf("U00000GA2020PTC%06d", i), Name: "QZ", Status: "ACTIVE"})
	}
	return list
}

// TestAnIndexOfNothing is valid, and takes names.
func TestAnIndexOfNothing(t *testing.T) {
	c, list := searchtest.Open(t), longLists(20)
	change, err := search.Rebuild(c)
	require.NoError(t, err)
	require.Equal(t, search.Change{Rebuilt: true}, change)
	require.NoError(t, search.Check(c))
	require.NoError(t, c.Exec(integrityCheck))
	require.Empty(t, texts(t, c, `SELECT rowid FROM search_index WHERE search_index MATCH '"=common"'`))
	require.Equal(t, []string{"10"}, texts(t, c, `SELECT id FROM search_index_data WHERE id > 1`), "a structure without a segment")
	searchtest.Put(t, c, list...)
	refresh(t, c)
	require.NoError(t, c.Exec(`DELETE FROM company; INSERT INTO search_pending VALUES ('*')`))
	require.Equal(t, search.Change{Rebuilt: true, Removed: 20}, refresh(t, c))
	require.NoError(t, c.Exec(integrityCheck))
}

// TestFewChangesDoNotWriteTheIndexAgain: FTS5 merges the segments of changes with each other, and leaves the one that
// was built as it is.
func TestFewChangesDoNotWriteTheIndexAgain(t *testing.T) {
	c := searchtest.Open(t)
	records := longLists(4000)
	searchtest.Put(t, c, records...)
	require.True(t, refresh(t, c).Rebuilt)
	const segments = `SELECT segid || ' ' || count(*) FROM search_index_idx GROUP BY segid ORDER BY segid`
	built := texts(t, c, segments)
	require.Len(t, built, 1)
	for range 40 {
		for n := range 10 {
			records[n*7].Name += " AND SONS"
			searchtest.Put(t, c, records[n*7])
		}
		change, err := search.Refresh(c)
		require.NoError(t, err)
		require.False(t, change.Rebuilt)
	}
	require.NoError(t, search.Check(c))
	require.Contains(t, texts(t, c, segments), built[0])
	require.Less(t, len(texts(t, c, segments)), 40, "segments of changes are merged")
	require.NoError(t, c.Exec(integrityCheck))
}
