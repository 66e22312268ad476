package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/ext/fts5"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
)

// newFile makes a database in WAL mode and returns its path and a writer that has it open.
func newFile(t *testing.T, script string) (string, *sqlite3.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.db")
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { writer.Close() })
	require.NoError(t, writer.Exec("PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0;"+script))
	return path, writer
}

func open(t *testing.T, config sqlite.Config) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

const people = `CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, mark BLOB);
	INSERT INTO person VALUES (1, 'Asha', x'00ff'), (2, NULL, NULL), (3, '', x'');`

// database is a Store or a Remote.
type database interface {
	Query(context.Context, string, []handler.Value, *handler.Result) error
}

// every opens a file as a Store and, through database/sql like a server, as a Remote.
func every(t *testing.T, config sqlite.Config) map[string]database {
	t.Helper()
	db, err := driver.Open("file:" + config.Path + "?mode=ro")
	require.NoError(t, err)
	remote := sqlite.NewRemote(db, config)
	t.Cleanup(func() { remote.Close() })
	return map[string]database{"file": open(t, config), "remote": remote}
}

func TestQueryFillsEveryStorageClass(t *testing.T) {
	path, _ := newFile(t, people)
	for name, s := range every(t, sqlite.Config{Path: path}) {
		t.Run(name, func(t *testing.T) { fillsEveryStorageClass(t, s) })
	}
}

func fillsEveryStorageClass(t *testing.T, s database) {
	var got handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT id, name, mark FROM person ORDER BY id", nil, &got))
	require.Equal(t, 3, got.Rows())
	integer := func(n int64) handler.Value { return handler.Value{Kind: handler.Integer, Int: n} }
	require.Equal(t, []handler.Value{
		integer(1), {Kind: handler.Text, Text: "Asha"}, {Kind: handler.Blob, Text: "\x00\xff"},
		integer(2), {}, {},
		integer(3), {Kind: handler.Text}, {Kind: handler.Blob},
	}, got.Values)
}

func TestQueryBindsEveryKind(t *testing.T) {
	path, _ := newFile(t, "")
	args := []handler.Value{
		{Kind: handler.Integer, Int: -5}, {Kind: handler.Text, Text: "é\x00z"},
		{Kind: handler.Blob, Text: "\x01\x02"}, {},
	}
	for name, s := range every(t, sqlite.Config{Path: path}) {
		t.Run(name, func(t *testing.T) {
			var got handler.Result
			require.NoError(t, s.Query(t.Context(), "SELECT ?4, ?3, ?2, ?1", args, &got))
			require.Equal(t, []handler.Value{args[3], args[2], args[1], args[0]}, got.Values)
		})
	}
}

func TestTextsOutliveTheNextQuery(t *testing.T) {
	path, _ := newFile(t, "")
	s := open(t, sqlite.Config{Path: path, Connections: 1})
	var first, second handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT 'first text'", nil, &first))
	require.NoError(t, s.Query(t.Context(), "SELECT 'other text'", nil, &second))
	require.Equal(t, "first text", first.Values[0].Text)
}

func TestNothingCanBeWritten(t *testing.T) {
	path, _ := newFile(t, people)
	other, _ := newFile(t, people)
	s := open(t, sqlite.Config{Path: path})
	var dst handler.Result
	for _, statement := range []string{
		"INSERT INTO person VALUES (9, 'x', NULL)",
		"DELETE FROM person",
		"CREATE TABLE more (a)",
		"CREATE TEMP TABLE more (a)",
		"ATTACH '" + other + "' AS other",
		"PRAGMA query_only=off",
		"PRAGMA wal_checkpoint(TRUNCATE)",
		"PRAGMA journal_mode=delete",
		"VACUUM INTO '" + other + ".copy'",
		"BEGIN",
	} {
		require.Error(t, s.Query(t.Context(), statement, nil, &dst), statement)
	}
	require.NoFileExists(t, other+".copy")
}

func TestClosingNeverCheckpoints(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path})
	var dst handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT * FROM person", nil, &dst))
	before, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, before)
	_, err = writer.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.NoError(t, s.Close()) // the last connection to close
	after, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestCommitsOfTheOwnerAreSeen(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path})
	var dst handler.Result
	count := func() int64 {
		require.NoError(t, s.Query(t.Context(), "SELECT count(*) FROM person", nil, &dst))
		return dst.Values[0].Int
	}
	require.EqualValues(t, 3, count())
	require.NoError(t, writer.Exec("INSERT INTO person VALUES (4, 'Dev', NULL)"))
	require.EqualValues(t, 4, count())
}

func TestLimits(t *testing.T) {
	path, _ := newFile(t, "")
	for name, s := range every(t, sqlite.Config{Path: path, MaxRows: 10, MaxBytes: 100}) {
		t.Run(name, func(t *testing.T) { keepsItsLimits(t, s) })
	}
}

func keepsItsLimits(t *testing.T, s database) {
	var dst handler.Result
	series := "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i < ?1) SELECT i FROM n"
	upTo := func(n int64) []handler.Value { return []handler.Value{{Kind: handler.Integer, Int: n}} }

	require.NoError(t, s.Query(t.Context(), series, upTo(10), &dst))
	require.ErrorIs(t, s.Query(t.Context(), series, upTo(11), &dst), sqlite.ErrTooLarge)
	require.Zero(t, dst.Rows())

	text := "SELECT printf('%.*c', ?1, 'x')"
	require.NoError(t, s.Query(t.Context(), text, upTo(100), &dst))
	require.ErrorIs(t, s.Query(t.Context(), text, upTo(101), &dst), sqlite.ErrTooLarge)
}

const endless = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"

func TestAStatementIsBoundedInTime(t *testing.T) {
	path, _ := newFile(t, "")
	for name, s := range every(t, sqlite.Config{Path: path, Connections: 1, Timeout: 20 * time.Millisecond}) {
		t.Run(name, func(t *testing.T) {
			var dst handler.Result
			require.ErrorIs(t, s.Query(t.Context(), endless, nil, &dst), sqlite.ErrTimeout)
			worksOn(t, s)
		})
	}
}

// worksOn waits for a statement that is in time: a busy machine may take longer than a short Timeout for one.
func worksOn(t *testing.T, s database) {
	t.Helper()
	require.Eventually(t, func() bool {
		var dst handler.Result
		err := s.Query(t.Context(), "SELECT 1", nil, &dst)
		if err != nil {
			require.ErrorIs(t, err, sqlite.ErrTimeout)
		}
		return err == nil
	}, time.Minute, time.Millisecond)
}

func TestAStatementEndsWithItsRequest(t *testing.T) {
	path, _ := newFile(t, "")
	s := open(t, sqlite.Config{Path: path, Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	var dst handler.Result
	require.ErrorIs(t, s.Query(ctx, endless, nil, &dst), context.Canceled)
}

func TestMisuseIsAnError(t *testing.T) {
	path, _ := newFile(t, "")
	s := open(t, sqlite.Config{Path: path})
	var dst handler.Result
	for name, statement := range map[string]string{
		"syntax": "SELEC 1", "none": "  -- nothing", "two": "SELECT 1; SELECT 2",
		"missing parameter": "SELECT ?1", "float": "SELECT 1.5",
	} {
		require.Error(t, s.Query(t.Context(), statement, nil, &dst), name)
	}
	require.Error(t, s.Query(t.Context(), "SELECT 1", make([]handler.Value, 1), &dst))
}

func TestFullTextSearchIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.db")
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, fts5.Register(writer))
	require.NoError(t, writer.Exec(`CREATE VIRTUAL TABLE names USING fts5(name, tokenize = 'trigram');
		INSERT INTO names (rowid, name) VALUES (7, 'nova steel works')`))
	require.NoError(t, writer.Close())
	s := open(t, sqlite.Config{Path: path})
	var dst handler.Result
	match := []handler.Value{{Kind: handler.Text, Text: "steel"}}
	require.NoError(t, s.Query(t.Context(), "SELECT rowid FROM names WHERE names MATCH ?1", match, &dst))
	require.EqualValues(t, 7, dst.Values[0].Int)
}

func TestAReplacedFileIsReadAfterRefresh(t *testing.T) {
	t.Run("by statements", func(t *testing.T) { replacedFile(t, 0) })
	t.Run("by connections that are held", func(t *testing.T) { replacedFile(t, time.Hour) })
}

func replacedFile(t *testing.T, hold time.Duration) {
	path, _ := newFile(t, "CREATE TABLE t (v); INSERT INTO t VALUES (1); PRAGMA wal_checkpoint(TRUNCATE)")
	next, writer := newFile(t, "CREATE TABLE t (v); INSERT INTO t VALUES (2); PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, writer.Close())
	s := open(t, sqlite.Config{Path: path, ReadTx: hold})
	value := func() int64 {
		var dst handler.Result
		require.NoError(t, s.Query(t.Context(), "SELECT v FROM t", nil, &dst))
		return dst.Values[0].Int
	}
	require.EqualValues(t, 1, value())
	for _, suffix := range []string{"-wal", "-shm"} {
		require.NoError(t, os.Remove(path+suffix))
	}
	require.NoError(t, os.Rename(next, path))
	require.NoError(t, s.Refresh())
	require.EqualValues(t, 2, value())
}

func TestOpenNamesTheFileThatIsWrong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.db")
	_, err := sqlite.Open(sqlite.Config{Path: missing})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)
	require.NoFileExists(t, missing)

	noise := filepath.Join(t.TempDir(), "noise.db")
	require.NoError(t, os.WriteFile(noise, []byte(strings.Repeat("not a database ", 100)), 0o600))
	_, err = sqlite.Open(sqlite.Config{Path: noise})
	require.ErrorIs(t, err, sqlite3.NOTADB)
	require.ErrorContains(t, err, noise)
}

func TestAClosedStoreSaysSo(t *testing.T) {
	path, _ := newFile(t, "")
	s := open(t, sqlite.Config{Path: path})
	require.NoError(t, s.Close())
	var dst handler.Result
	require.ErrorIs(t, s.Query(t.Context(), "SELECT 1", nil, &dst), sqlite.ErrClosed)
}

func TestManyCallersShareFewConnections(t *testing.T) {
	path, _ := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 2})
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			var dst handler.Result
			for range 50 {
				id := int64(caller%3 + 1)
				err := s.Query(t.Context(), "SELECT id FROM person WHERE id = ?1",
					[]handler.Value{{Kind: handler.Integer, Int: id}}, &dst)
				if err != nil || dst.Values[0].Int != id {
					t.Errorf("id %d: %v %v", id, dst.Values, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Some of these characters have a meaning in the URIs that SQLite accepts as file names.
func TestAPathWithEveryCharacter(t *testing.T) {
	for _, name := range []string{"plain.db", "a b.db", "100%.db", "50%41.db", "what?mode=rwc.db", "part#2.db", "é:ü.db", "a+b&c=d.db"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name+".d")
			require.NoError(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, name)
			writer, err := sqlite3.Open(path)
			require.NoError(t, err)
			require.NoError(t, writer.Exec("PRAGMA journal_mode=wal;"+people))
			require.NoError(t, writer.Close())
			fillsEveryStorageClass(t, open(t, sqlite.Config{Path: path}))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, entry := range entries {
				require.True(t, strings.HasPrefix(entry.Name(), name), entry.Name())
			}
			t.Chdir(dir)
			fillsEveryStorageClass(t, open(t, sqlite.Config{Path: name}))
			fillsEveryStorageClass(t, open(t, sqlite.Config{Path: "./" + name}))
		})
	}
}

func BenchmarkPointRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "some.db")
	writer, err := sqlite3.Open(path)
	require.NoError(b, err)
	defer writer.Close()
	require.NoError(b, writer.Exec("PRAGMA journal_mode=wal;"+people))
	s, err := sqlite.Open(sqlite.Config{Path: path})
	require.NoError(b, err)
	defer s.Close()
	var dst handler.Result
	args := []handler.Value{{Kind: handler.Integer, Int: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Query(b.Context(), "SELECT id, name, mark FROM person WHERE id = ?1", args, &dst); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAPinnedStoreKeepsToItsFile(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 3, Pinned: true})
	require.False(t, s.Replaced())
	count := func() int64 {
		var dst handler.Result
		require.NoError(t, s.Query(t.Context(), "SELECT count(*) FROM person", nil, &dst))
		return dst.Values[0].Int
	}
	require.EqualValues(t, 3, count())
	require.NoError(t, writer.Close())
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		require.NoError(t, os.RemoveAll(name))
	}
	other, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Exec("CREATE TABLE person (id)"))
	require.True(t, s.Replaced())
	var together sync.WaitGroup
	for range 12 {
		together.Go(func() { require.EqualValues(t, 3, count()) })
	}
	together.Wait()
}

func TestAnotherIndexOfTheLogIsNoticed(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 2, Pinned: true})
	require.False(t, s.Replaced())
	require.NoError(t, os.Remove(path+"-shm"))
	require.False(t, s.Replaced(), "nobody has the database open by another")
	require.NoError(t, writer.Close())
	other, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Exec("DELETE FROM person"))
	require.True(t, s.Replaced())
}
