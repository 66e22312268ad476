package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
)

func openTemp(t *testing.T) *sql.DB {
	t.Helper()
	db, err := OpenFile(filepath.Join(t.TempDir(), "a ?#%.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestMigrateMakesEveryDatabase(t *testing.T) {
	folders, err := files.ReadDir("migrations")
	require.NoError(t, err)
	for _, folder := range folders {
		database := Database(folder.Name())
		t.Run(folder.Name(), func(t *testing.T) {
			require.Contains(t, []Database{Registry, Access, Ledger}, database)
			db, ctx := openTemp(t), context.Background()
			require.NoError(t, Migrate(ctx, db, database))
			require.NoError(t, Check(ctx, db, database))
			before := dumpVersions(t, db)
			require.NotEmpty(t, before)
			require.NoError(t, Migrate(ctx, db, database), "a second run")
			require.Equal(t, before, dumpVersions(t, db))
			requireOnly(t, db, database)
		})
	}
}

// TestPlansOfANewLedgerAreTheContracts: docs/contract.md, "Limits", says which exist from the start.
func TestPlansOfANewLedgerAreTheContracts(t *testing.T) {
	contract, err := os.ReadFile("../docs/contract.md")
	require.NoError(t, err)
	db := openTemp(t)
	require.NoError(t, Migrate(t.Context(), db, Ledger))
	var rows string
	require.NoError(t, db.QueryRow(`SELECT group_concat(
		CASE WHEN api_access THEN printf('| `+"`%s`"+` | yes | %,d | %,d | %s | %s |', id, per_minute, monthly_volume, iif(email, 'yes', 'no'), iif(phone, 'yes', 'no'))
			ELSE printf('| `+"`%s`"+` | no | | | | |', id) END, char(10)) FROM (SELECT * FROM plan ORDER BY per_minute)`).Scan(&rows))
	require.Contains(t, string(contract), "|---|---|---|---|---|---|\n"+rows+"\n\n")
}

// TestADatabaseFromBeforeTheFirstReleaseIsRefused: its version is the same, but tables and columns came since.
func TestADatabaseFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		database    Database
		older, want string
	}{
		"tables": {Ledger, "DROP TABLE notice; DROP TABLE owner_token",
			"the ledger database was made by a regedge before the first release, and lacks table notice, table owner_token: make it anew"},
		"columns": {Ledger, "ALTER TABLE api_key DROP COLUMN limited_until; ALTER TABLE api_key DROP COLUMN allowed; DROP TABLE request_log",
			"the ledger database was made by a regedge before the first release, and lacks column allowed of table api_key, column limited_until of table api_key, table request_log: make it anew"},
		"access": {Access, "ALTER TABLE api_key DROP COLUMN limited_until",
			"the access database was made by a regedge before the first release, and lacks column limited_until of table api_key: make it anew, empty: the writer fills it from the ledger"},
		"registry": {Registry, "ALTER TABLE pushing DROP COLUMN dirty",
			"the registry database was made by a regedge before the first release, and lacks column dirty of table pushing: make it anew, by an import"},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := openTemp(t), context.Background()
			require.NoError(t, Migrate(ctx, db, c.database))
			_, err := db.Exec(c.older)
			require.NoError(t, err)
			require.EqualError(t, Migrate(ctx, db, c.database), c.want)
			require.EqualError(t, Check(ctx, db, c.database), c.want)
			if c.database == Access {
				require.EqualError(t, CheckReadable(ctx, db, c.database), c.want)
			}
		})
	}
}

func TestMigrateWaitsForAnotherWriter(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "access.db"), context.Background()
	other, err := OpenFile(path)
	require.NoError(t, err)
	defer other.Close()
	writing, err := other.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = writing.Exec("CREATE TABLE foreign_table (x)")
	require.NoError(t, err)

	db, err := OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA busy_timeout = 0") // as a libSQL server, which does not wait
	require.NoError(t, err)
	steps, err := migrations(files, Access)
	require.NoError(t, err)
	require.True(t, isLocked(apply(ctx, db, Access, steps[0])))

	migrated := make(chan error, 1)
	go func() { migrated <- Migrate(ctx, db, Access) }()
	select {
	case err := <-migrated:
		t.Fatalf("migrated beside another writer: %v", err)
	case <-time.After(3 * lockedPause):
	}
	require.NoError(t, writing.Rollback())
	require.NoError(t, <-migrated)
	require.NoError(t, Check(ctx, db, Access))
}

// TestADatabaseThatBecameAnotherMeanwhileIsNotMigrated: two programs may begin with the same empty file.
func TestADatabaseThatBecameAnotherMeanwhileIsNotMigrated(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	access, err := migrations(files, Access)
	require.NoError(t, err)
	registry, err := migrations(files, Registry)
	require.NoError(t, err)
	require.NoError(t, apply(ctx, db, Access, access[0]))
	before := dumpVersions(t, db)
	for _, step := range registry {
		var other *OtherError
		require.ErrorAs(t, apply(ctx, db, Registry, step), &other)
		require.Equal(t, OtherError{Registry, Access}, *other)
	}
	require.Equal(t, before, dumpVersions(t, db))
}

// requireOnly holds that a database is taken for no other.
func requireOnly(t *testing.T, db *sql.DB, database Database) {
	t.Helper()
	before, ctx := dumpVersions(t, db), context.Background()
	for _, asked := range []Database{Registry, Access, Ledger} {
		if asked == database {
			continue
		}
		for name, err := range map[string]error{
			"Migrate": Migrate(ctx, db, asked), "Check": Check(ctx, db, asked), "CheckReadable": CheckReadable(ctx, db, asked),
		} {
			var other *OtherError
			require.ErrorAs(t, err, &other, name)
			require.Equal(t, OtherError{asked, database}, *other, name)
		}
	}
	require.Equal(t, before, dumpVersions(t, db))
}

func TestADatabaseOfAnotherProgramIsNotTouched(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	_, err := db.Exec("CREATE TABLE bookmark (id INTEGER PRIMARY KEY)")
	require.NoError(t, err)
	for name, err := range map[string]error{
		"Migrate": Migrate(ctx, db, Registry), "Check": Check(ctx, db, Registry), "CheckReadable": CheckReadable(ctx, db, Registry),
	} {
		var other *OtherError
		require.ErrorAs(t, err, &other, name)
		require.ErrorContains(t, err, "another program")
	}
	var tables int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables))
	require.Equal(t, 1, tables)
}

func TestADatabaseThatDoesNotSayWhichItIsIsNotTouched(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	_, err := db.Exec("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL); INSERT INTO schema_version VALUES (1, 0)")
	require.NoError(t, err)
	require.Error(t, Migrate(ctx, db, Access))
	require.Error(t, CheckReadable(ctx, db, Access))
	require.Equal(t, []int{1}, dumpVersions(t, db))
}

func dumpVersions(t *testing.T, db *sql.DB) (list []int) {
	t.Helper()
	rows, err := db.Query("SELECT version FROM schema_version ORDER BY version")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var v int
		require.NoError(t, rows.Scan(&v))
		list = append(list, v)
	}
	return list
}

func TestMigrateRefusesANewerDatabase(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	require.NoError(t, Migrate(ctx, db, Access))
	_, err := db.Exec("INSERT INTO schema_version SELECT 99, 0, max(database) FROM schema_version")
	require.NoError(t, err)
	var newer *NewerError
	err = Migrate(ctx, db, Access)
	require.ErrorAs(t, err, &newer)
	require.Equal(t, 99, newer.Found)
	require.ErrorContains(t, err, "version 99")
	require.ErrorAs(t, Check(ctx, db, Access), &newer)
}

func TestCheckRefusesAnOlderDatabase(t *testing.T) {
	require.ErrorContains(t, Check(context.Background(), openTemp(t), Access), "version 0")
}

func TestFailedMigrationLeavesTheVersionBefore(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	steps := []migration{
		{1, "0001_a.sql", "CREATE TABLE a (x); INSERT INTO a VALUES (1)"},
		{2, "0002_b.sql", "CREATE TABLE b (x); INSERT INTO nowhere VALUES (1)"},
	}
	require.ErrorContains(t, migrate(ctx, db, "test", steps), "0002_b.sql")
	version, err := Version(ctx, db, "test")
	require.NoError(t, err)
	require.Equal(t, 1, version)
	_, err = db.Exec("SELECT * FROM b")
	require.Error(t, err, "table b was rolled back")

	steps[1].sql = "CREATE TRIGGER refuse BEFORE INSERT ON schema_version BEGIN SELECT raise(ABORT, 'no such version'); END"
	require.ErrorContains(t, migrate(ctx, db, "test", steps), "no such version")

	steps[1].sql = "CREATE TABLE b (x)"
	require.NoError(t, migrate(ctx, db, "test", steps))
	require.NoError(t, apply(ctx, db, "test", steps[1]), "another process was faster")
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	for name, second := range map[string]string{
		"gap": "0003_b.sql", "no number": "b.sql", "repeated": "1_b.sql", "not sql": "0002_b.txt",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrations(fstest.MapFS{
				"migrations/test/0001_a.sql": {Data: []byte("SELECT 1")},
				"migrations/test/" + second:  {Data: []byte("SELECT 1")},
			}, "test")
			require.Error(t, err)
		})
	}
	_, err := migrations(files, "no such")
	require.Error(t, err)
}

func TestStatementsAreSplitWhereTheyEnd(t *testing.T) {
	got := statements(`-- a; comment
CREATE TABLE a (x TEXT DEFAULT ';''"'); /* ; */
CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN
  UPDATE a SET x = CASE x WHEN 1 THEN 2 END; DELETE FROM a;
END;
;;
SELECT "a;b", ` + "`c;d`" + ` -- last`)
	require.Len(t, got, 3)
	require.Contains(t, got[0], "CREATE TABLE a")
	require.Contains(t, got[1], "DELETE FROM a;\nEND;")
	require.Contains(t, got[2], "SELECT")
	require.Empty(t, statements("-- nothing\n;"))
	require.Len(t, statements("SELECT 'open"), 1)
}

// TestATriggerEndsAtItsEnd, in lower case too, and not at a word that has END in it.
func TestATriggerEndsAtItsEnd(t *testing.T) {
	for _, trigger := range []string{
		"create trigger t after insert on a begin delete from a; end;",
		"create temporary trigger t after insert on a begin update a set x = case x when 1 then 2 end; end;",
		"CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT aend, zend, Aend, Zend, _end, enda, endz, endA, endZ, end_, end0, end9; END;",
		"CREATE TRIGGER begin_t AFTER INSERT ON a BEGIN SELECT 'end', \"end\", `end` /* end */; END;",
	} {
		require.Equal(t, []string{trigger, "SELECT 1;"}, statements(trigger+"SELECT 1;"))
	}
}

func FuzzStatementsKeepEveryByte(f *testing.F) {
	f.Add("CREATE TABLE a (x); SELECT ';'")
	f.Add("/* open")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range statements(text) {
			require.Contains(t, text, s)
		}
	})
}

func TestReadOnlyFileIsNeverWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	_, err := OpenReadOnly(path)
	require.Error(t, err, "a missing file is not made")
	w, err := OpenFile(path)
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, Migrate(context.Background(), w, Access))
	r, err := OpenReadOnly(path)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, Check(context.Background(), r, Access))
	_, err = r.Exec("DELETE FROM plan")
	require.Error(t, err)
	_, err = r.Exec("PRAGMA query_only=off; DELETE FROM plan")
	require.Error(t, err)
	_, err = w.Exec("CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('word')")
	require.NoError(t, err)
	var n int
	require.NoError(t, r.QueryRow("SELECT count(*) FROM f WHERE f MATCH 'word'").Scan(&n))
	require.Equal(t, 1, n)
}

// TestALaterConnectionMakesNoFile where the database was moved away: what it wrote
// there would be another database.
func TestALaterConnectionMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?mode=rwc.db")
	db, err := OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxIdleConns(0)
	require.NoError(t, os.Rename(path, path+".away"))
	_, err = db.Exec("CREATE TABLE t (n)")
	require.ErrorContains(t, err, "unable to open")
	require.NoFileExists(t, path)
	require.NoError(t, os.Rename(path+".away", path))
	_, err = db.Exec("CREATE TABLE t (n)")
	require.NoError(t, err)
}

func TestEveryConnectionIsPrepared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	for _, test := range []struct {
		open func(string) (*sql.DB, error)
		want []string // with the milliseconds for which a statement waits for a lock
	}{{OpenFile, []string{"10000", "wal", "1", "0"}}, {OpenReadOnly, []string{"10000", "wal", "1", "1"}}} {
		db, err := test.open(path)
		require.NoError(t, err)
		db.SetMaxIdleConns(0)
		for i, pragma := range []string{"busy_timeout", "journal_mode", "foreign_keys", "query_only"} {
			var got string
			require.NoError(t, db.QueryRow("PRAGMA "+pragma).Scan(&got))
			require.Equal(t, test.want[i], got, pragma)
		}
		var number int64
		require.NoError(t, db.QueryRow("SELECT cin_number('U10000GJ2000PTC000123')").Scan(&number))
		require.Equal(t, ident.CINNumber("U10000GJ2000PTC000123"), number)
		require.NoError(t, db.Close())
	}
}

func TestATransactionBeginsWithTheWriteLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	other, err := OpenFile(path)
	require.NoError(t, err)
	defer other.Close()
	other.SetMaxOpenConns(1)
	_, err = other.Exec("PRAGMA busy_timeout = 0")
	require.NoError(t, err)
	_, err = other.Begin()
	require.ErrorIs(t, err, sqlite3.BUSY)
}

// TestAFreeRowIsTheWantedOne, unless that is taken.
func TestAFreeRowIsTheWantedOne(t *testing.T) {
	db := openTemp(t)
	_, err := db.Exec("CREATE TABLE t (x); INSERT INTO t (rowid, x) VALUES (5, 'taken')")
	require.NoError(t, err)
	for wanted, want := range map[string]string{"4": "4", "5": "none", "'5'": "none", "6": "6"} {
		var got string
		require.NoError(t, db.QueryRow("SELECT coalesce("+FreeRow("t", wanted)+", 'none')").Scan(&got))
		require.Equal(t, want, got, wanted)
	}
}

func TestAFileThatIsNoDatabaseIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "companies.csv")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("cin,name\n", 1000)), 0o600))
	for _, open := range []func(string) (*sql.DB, error){OpenFile, OpenReadOnly, OpenPrivate} {
		_, err := open(path)
		require.EqualError(t, err, "open database "+path+": this file is no database")
		require.ErrorIs(t, err, ErrNoDatabase)
	}
	_, err := OpenReadOnly(filepath.Dir(path))
	require.ErrorIs(t, err, syscall.EISDIR)
	missing := filepath.Join(filepath.Dir(path), "none", "a.db")
	for _, open := range []func(string) (*sql.DB, error){OpenFile, OpenReadOnly, OpenPrivate} {
		_, err = open(missing)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

func TestADatabaseThatWasCutShortIsCalledThat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	db, err := OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, Migrate(context.Background(), db, Registry))
	require.NoError(t, db.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()/2))
	for _, open := range []func(string) (*sql.DB, error){OpenFile, OpenReadOnly} {
		_, err := open(path)
		require.ErrorIs(t, err, sqlite3.CORRUPT)
		require.ErrorContains(t, err, fmt.Sprintf("it has %d of %d bytes; put a whole copy in its place", info.Size()/2, info.Size()))
	}
}

func TestAClosedDatabaseHasNoOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	for _, open := range []func(string) (*sql.DB, error){OpenFile, OpenReadOnly, OpenPrivate} {
		db, err := open(path)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		require.Empty(t, testkit.OpenFiles(t, path))
	}
}

// TestADatabaseThatCannotBeReadIsNotEmpty: its owner would be told to fill it.
func TestADatabaseThatCannotBeReadIsNotEmpty(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	require.ErrorIs(t, CheckReadable(ctx, db, Access), ErrEmpty)
	require.ErrorIs(t, Check(ctx, db, Access), ErrEmpty)
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, CheckReadable(ended, db, Access), context.Canceled)
	require.ErrorIs(t, Check(ended, db, Access), context.Canceled)
	require.ErrorIs(t, Migrate(ended, db, Access), context.Canceled)
}

// TestWhatADatabaseRefusesIsKnown, also from a server's text.
func TestWhatADatabaseRefusesIsKnown(t *testing.T) {
	db := openTemp(t)
	_, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER CHECK (x > 0) NOT NULL UNIQUE) STRICT; INSERT INTO t VALUES (1, 1)")
	require.NoError(t, err)
	for _, statement := range []string{
		"INSERT INTO t VALUES (2, 0)", "INSERT INTO t VALUES (2, NULL)", "INSERT INTO t VALUES (2, 1)", "INSERT INTO t VALUES (2, 'x')", "INSERT INTO t VALUES ('x', 2)",
	} {
		_, err := db.Exec(statement)
		require.True(t, Refused(err), statement)
		require.True(t, Refused(errors.New(err.Error())), "the text of %v", err)
	}
	for _, text := range []string{"CHECK constraint failed: x", "cannot store TEXT value in INTEGER column t.x", "datatype mismatch"} {
		require.True(t, Refused(errors.New("SQLite error: "+text)), text)
	}
	_, err = db.Exec("INSERT INTO none VALUES (1)")
	require.False(t, Refused(err))
	require.False(t, Refused(sqlite3.FULL))
	require.False(t, Refused(nil))
}

func TestForeignKeysHoldOnEveryConnection(t *testing.T) {
	db := openTemp(t)
	require.NoError(t, Migrate(context.Background(), db, Access))
	db.SetMaxIdleConns(0)
	_, err := db.Exec("INSERT INTO account (id, plan) VALUES (1, 'none')")
	require.ErrorContains(t, err, "FOREIGN KEY")
}

func TestMigrateMakesARemoteDatabase(t *testing.T) {
	for _, database := range []Database{Registry, Access} {
		t.Run(string(database), func(t *testing.T) {
			ctx := context.Background()
			db := sqldtest.Open(t, sqldtest.Primary(t))
			require.NoError(t, Migrate(ctx, db, database))
			require.NoError(t, Check(ctx, db, database))
			before := dumpVersions(t, db)
			require.NoError(t, Migrate(ctx, db, database), "a second run")
			require.Equal(t, before, dumpVersions(t, db))
			requireOnly(t, db, database)
			if database == Access {
				_, err := db.Exec("ALTER TABLE api_key DROP COLUMN limited_until")
				require.NoError(t, err)
				require.ErrorContains(t, Migrate(ctx, db, database), "lacks column limited_until of table api_key")
			}
		})
	}
}

// TestTheTablesOfALibSQLServerDoNotCount: a primary that is empty but for them is filled, and not taken for
// another program's.
func TestTheTablesOfALibSQLServerDoNotCount(t *testing.T) {
	db, err := OpenFile(filepath.Join(t.TempDir(), "primary.db"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE libsql_wasm_func_table (name TEXT PRIMARY KEY, body TEXT)")
	require.NoError(t, err)
	version, err := Version(t.Context(), db, Registry)
	require.NoError(t, err)
	require.Zero(t, version)
	require.NoError(t, Migrate(t.Context(), db, Registry))
}
