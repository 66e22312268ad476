package load

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/extsort"
	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
)

// openConn makes an empty registry and returns a connection to it.
func openConn(t *testing.T) *sqlite3.Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(context.Background(), db, schema.Registry))
	require.NoError(t, db.Close())
	name, err := schema.FileURI(path, false)
	require.NoError(t, err)
	conn, err := sqlite3.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, schema.Prepare(conn, false))
	return conn
}

// openedStore makes an empty registry and a store of it.
func openedStore(t *testing.T) (*sqlite3.Conn, *Store) {
	t.Helper()
	conn := openConn(t)
	return conn, storeOn(t, conn)
}

func storeOn(t *testing.T, conn *sqlite3.Conn) *Store {
	t.Helper()
	s, err := newStore(conn, 1, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestARecordLacksWhatItsTableMustHave: such a row is rejected alone, where the table would end the import.
func TestARecordLacksWhatItsTableMustHave(t *testing.T) {
	conn := openConn(t)
	for _, table := range record.Tables {
		var must, required []string
		s, _, err := conn.Prepare(`SELECT name FROM pragma_table_info(?1) WHERE "notnull" AND dflt_value IS NULL`)
		require.NoError(t, err)
		require.NoError(t, s.BindText(1, table.Name))
		for s.Step() {
			if slices.Contains(table.Columns, s.ColumnText(0)) {
				must = append(must, s.ColumnText(0))
			}
		}
		require.NoError(t, s.Close())
		for _, column := range table.Required {
			required = append(required, table.Columns[column])
		}
		require.ElementsMatch(t, must, required, table.Name)
	}
}

func TestFullDiskUndoesTheRun(t *testing.T) {
	conn, s := openedStore(t)
	require.NoError(t, s.StartBulk())
	require.NoError(t, s.BeginTable(record.CompanyTable))
	require.NoError(t, conn.Exec("PRAGMA max_page_count = 60"))
	_, err := writeBatch(s, madeUpBatch(5000), "2025-01-01")
	require.ErrorIs(t, err, sqlite3.FULL)
	require.NoError(t, s.Close())
	s = storeOn(t, conn)
	held, err := s.exists("SELECT 1 FROM company")
	require.NoError(t, err)
	require.False(t, held)

	require.NoError(t, conn.Exec("PRAGMA max_page_count = 100000"))
	require.NoError(t, s.StartBulk())
	counts, err := writeBatch(s, madeUpBatch(5000), "2025-01-01")
	require.NoError(t, err)
	require.EqualValues(t, 5000, counts[New])
}

// writeBatch applies records as a run does.
func writeBatch(s *Store, records []record.Entry, asOf string) (counts, error) {
	w := NewWritten(1)
	if err := s.ApplyBatch(records, asOf, w); err != nil {
		return counts{}, err
	}
	return w.Counts[0], s.Settle()
}

func madeUpBatch(n int) (list []record.Entry) {
	for i := range n {
		p := record.Entry{Record: record.Record{Table: record.CompanyTable, Values: make([]record.Value, record.CompanyColumns)}, Line: i + 2}
		p.Key[0] = fmt.Sprintf("U%05dGA2020PTC%06d", i%7, i)
		p.Values[record.CompanyName] = record.TextOf(fmt.Sprintf("MADE-UP NUMBER %d PRIVATE LIMITED", i))
		p.Values[record.CompanyStatus] = record.TextOf("ACTIVE")
		p.Values[record.CompanyIncorporation] = record.TextOf("2020-01-01")
		list = append(list, p)
	}
	return list
}

func TestUnchangedRecordsAreNotWritten(t *testing.T) {
	conn, s := openedStore(t)
	_, err := writeBatch(s, madeUpBatch(100), "2025-01-01")
	require.NoError(t, err)
	before := conn.TotalChanges()
	for _, asOf := range []string{"2025-01-01", "2021-01-01"} {
		counts, err := writeBatch(s, madeUpBatch(100), asOf)
		require.NoError(t, err)
		require.EqualValues(t, 100, counts[Unchanged])
		require.Equal(t, before, conn.TotalChanges())
	}
}

func TestRecordsAreFoundByTheirKey(t *testing.T) {
	conn := openConn(t)
	for _, table := range record.Tables {
		for _, query := range []string{walkSQL(table), updateSQL(table)} {
			statement, _, err := conn.Prepare("EXPLAIN QUERY PLAN " + query)
			require.NoError(t, err)
			require.True(t, statement.Step())
			require.Contains(t, statement.ColumnText(3), "SEARCH "+table.Name+" USING")
			require.NotContains(t, statement.ColumnText(3), "SCAN")
			require.NoError(t, statement.Close())
		}
	}
}

func TestARowThatCanNotBeReadIsAnError(t *testing.T) {
	conn, s := openedStore(t)
	require.NoError(t, conn.Exec("ALTER TABLE company RENAME TO elsewhere"))
	_, err := writeBatch(s, madeUpBatch(1), "2025-01-01")
	require.ErrorContains(t, err, "read company U00000GA2020PTC000000: ")
}

// TestCountsBeginAnewAfterTheyAreReported: those of a large table are reported several times.
func TestCountsBeginAnewAfterTheyAreReported(t *testing.T) {
	w := NewWritten(2)
	w.Records = 3
	w.Counts[1][Changed] = 3
	w.Missing[0] = []record.Reject{{Line: 1}}
	w.Contradictions[1] = Contradiction{1, 2, "status of A"}
	w.WithOthers[1] = Contradiction{1, 2, "status of A"}
	w.Forget()
	require.Equal(t, NewWritten(2), w)
}

// TestAnIndexThatCouldNotBeBuiltMakesNoRelease: searches would miss names.
func TestAnIndexThatCouldNotBeBuiltMakesNoRelease(t *testing.T) {
	_, s := openedStore(t)
	require.NoError(t, s.StartBulk())
	s.StartIndex(nil, "2025-01-01")
	_, err := writeBatch(s, madeUpBatch(1), "2025-01-01")
	require.NoError(t, err)
	s.names.wait.Wait()
	s.names.failure = syscall.ENOSPC
	released, _, err := s.Finish("one")
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.False(t, released)
}

// TestANameThatCanNotBeMarkedEndsTheImport: else the search would not find it.
func TestANameThatCanNotBeMarkedEndsTheImport(t *testing.T) {
	conn, s := openedStore(t)
	require.NoError(t, conn.Exec(`CREATE TRIGGER full BEFORE INSERT ON search_pending BEGIN SELECT RAISE(ABORT, 'there is no room'); END`))
	_, err := writeBatch(s, madeUpBatch(1), "2025-01-01")
	require.ErrorContains(t, err, "for the search index: ")
	require.ErrorContains(t, err, "there is no room")
}

// TestARecordThatTheIndexCanNotReadEndsIt with an error: its name would be missing.
func TestARecordThatTheIndexCanNotReadEndsIt(t *testing.T) {
	sorter := extsort.New(t.TempDir(), 1<<20)
	defer sorter.Close()
	require.NoError(t, sorter.Add([]byte("ABC-0001"), []byte{0x80}))
	rows, err := sorter.Rows()
	require.NoError(t, err)
	x := newIndexBuild(t.TempDir())
	defer x.close()
	x.start([]merge.Sorted{{Table: record.LLPTable, Rows: rows}}, "2025-01-01")
	x.wait.Wait()
	require.ErrorContains(t, x.failure, "damaged")
}
