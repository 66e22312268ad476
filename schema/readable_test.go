package schema

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
)

// nextVersion is a migration as the next program may bring: it only adds.
const nextVersion = `
-- A table and a column that this program does not know.
CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;
INSERT INTO later (id) VALUES (1);
ALTER TABLE heartbeat ADD COLUMN later TEXT;
CREATE INDEX heartbeat_by_beat ON heartbeat (beat);`

// migrateAhead makes a database whose version is ahead of this program's by so many, and
// returns this program's version beside it.
func migrateAhead(t *testing.T, database Database, ahead int) (db *sql.DB, known int) {
	t.Helper()
	steps, err := migrations(files, database)
	require.NoError(t, err)
	known = len(steps)
	for i := range ahead {
		text := fmt.Sprintf("CREATE TABLE later_%d (id INTEGER PRIMARY KEY)", i)
		if i == 0 && database != Ledger { // which has no heartbeat
			text = nextVersion
		}
		steps = append(steps, migration{known + 1 + i, "later.sql", text})
	}
	db = openTemp(t)
	require.NoError(t, migrate(context.Background(), db, database, steps))
	return db, known
}

// TestTheDesignNamesTheVersionOfEachSchema: who plans an upgrade reads it there.
func TestTheDesignNamesTheVersionOfEachSchema(t *testing.T) {
	design, err := os.ReadFile("../docs/design.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(design), "\n## Schema and protocol versions\n\n")
	sentence, _, _ := strings.Cut(section, "\n\n")
	for _, database := range []Database{Registry, Access, Ledger} {
		steps, err := migrations(files, database)
		require.NoError(t, err)
		require.Regexp(t, fmt.Sprintf(`(?m)\*\*%s\*\* (?:is )?at version %d\b`, database, len(steps)), sentence,
			`docs/design.md, "Schema and protocol versions"`)
	}
}

func TestAReaderManagesOneVersionMore(t *testing.T) {
	ctx := context.Background()
	for _, database := range []Database{Registry, Access} {
		t.Run(string(database), func(t *testing.T) {
			for _, ahead := range []int{0, 1} {
				db, _ := migrateAhead(t, database, ahead)
				require.NoError(t, CheckReadable(ctx, db, database), "%d ahead", ahead)
			}
			db, known := migrateAhead(t, database, 2)
			var newer *NewerError
			require.ErrorAs(t, CheckReadable(ctx, db, database), &newer)
			require.Equal(t, NewerError{database, known + 2, known + 1}, *newer)
			require.NoError(t, Readable(database, database, oldestReadable[database]))
			require.ErrorContains(t, Readable(database, database, oldestReadable[database]-1), "let its owner")
		})
	}
	require.Error(t, Readable(Ledger, Ledger, 1))
	require.Equal(t, &OtherError{Registry, Access}, Readable(Registry, Access, 1))
	require.EqualError(t, Readable(Registry, Access, 1), "this is the access database: name the registry database")
	require.Error(t, CheckReadable(ctx, openTemp(t), Access), "an empty database")
}

func TestAWriterRefusesOneVersionMore(t *testing.T) {
	ctx := context.Background()
	for _, database := range []Database{Registry, Access, Ledger} {
		t.Run(string(database), func(t *testing.T) {
			db, known := migrateAhead(t, database, 1)
			for name, err := range map[string]error{
				"Migrate": Migrate(ctx, db, database), "Check": Check(ctx, db, database),
			} {
				var newer *NewerError
				require.ErrorAs(t, err, &newer, name)
				require.Equal(t, NewerError{database, known + 1, known}, *newer, name)
			}
		})
	}
}

// TestAnOlderDatabaseIsMigrated has a database of this program opened by the next one, which
// knows one migration more.
func TestAnOlderDatabaseIsMigrated(t *testing.T) {
	ctx := context.Background()
	for _, database := range []Database{Registry, Access} {
		db, known := migrateAhead(t, database, 0)
		_, err := db.Exec("INSERT INTO heartbeat (id, beat) VALUES (1, 5)")
		require.NoError(t, err)
		steps, err := migrations(files, database)
		require.NoError(t, err)
		require.NoError(t, migrate(ctx, db, database, append(steps, migration{known + 1, "later.sql", nextVersion})))
		version, err := Version(ctx, db, database)
		require.NoError(t, err)
		require.Equal(t, known+1, version)
		var beat, later int
		require.NoError(t, db.QueryRow("SELECT (SELECT beat FROM heartbeat WHERE later IS NULL), (SELECT count(*) FROM later)").Scan(&beat, &later))
		require.Equal(t, []int{5, 1}, []int{beat, later}, "the rows are kept and new ones added")
	}
}

// TestLookupsReadTheOldestReadableVersion prepares each statement of the lookups on a database of that
// version: edges are upgraded before the databases that they read.
func TestLookupsReadTheOldestReadableVersion(t *testing.T) {
	prepared := 0
	for name, statement := range handler.Statements() {
		database := Registry
		if name == "access" {
			database = Access
		}
		steps, err := migrations(files, database)
		require.NoError(t, err)
		db := openTemp(t)
		require.NoError(t, migrate(context.Background(), db, database, steps[:oldestReadable[database]]))
		query, err := db.Prepare(statement)
		require.NoError(t, err, "%s: ask for the column only where it is there, or raise oldestReadable a release later", name)
		require.NoError(t, query.Close())
		prepared++
	}
	require.Greater(t, prepared, 5)
}

// additive matches a statement that no older reader notices.
const additive = `(?s)^((--[^\n]*\n)|\s)*(CREATE TABLE|CREATE INDEX|CREATE TRIGGER|ALTER TABLE \w+ ADD COLUMN|INSERT INTO)\b`

// TestMigrationsOfReplicasOnlyAdd checks what CheckReadable relies on.
func TestMigrationsOfReplicasOnlyAdd(t *testing.T) {
	for _, database := range []Database{Registry, Access} {
		steps, err := migrations(files, database)
		require.NoError(t, err)
		for _, step := range append(steps[oldestReadable[database]:], migration{0, "the fixture", nextVersion}) {
			for _, statement := range statements(step.sql) {
				require.Regexp(t, additive, statement, "%s adds only", step.name)
			}
		}
	}
	for _, text := range []string{"DROP TABLE company", "ALTER TABLE company DROP COLUMN city", "UPDATE company SET city = ''", "DELETE FROM plan"} {
		require.NotRegexp(t, additive, text)
	}
}

// TestMigrationsSuitTablesWithRows: SQLite adds a column that is NOT NULL without a default to an empty table alone, so that
// only databases in use would not be migrated, and their programs would not start.
func TestMigrationsSuitTablesWithRows(t *testing.T) {
	const demanded = `SELECT t.name || '.' || c.name FROM pragma_table_list t, pragma_table_info(t.name) c
		WHERE t.type = 'table' AND c."notnull" AND c.dflt_value IS NULL AND NOT c.pk ORDER BY 1`
	const bad = "ALTER TABLE schema_version ADD COLUMN bad TEXT NOT NULL"
	for _, database := range []Database{Registry, Access, Ledger} {
		steps, err := migrations(files, database)
		require.NoError(t, err)
		db := openTemp(t)
		for n, step := range steps {
			tables, before := textsOf(t, db, "SELECT name FROM pragma_table_list"), textsOf(t, db, demanded)
			require.NoError(t, migrate(t.Context(), db, database, steps[:n+1]))
			for _, column := range textsOf(t, db, demanded) {
				table, _, _ := strings.Cut(column, ".")
				require.True(t, slices.Contains(before, column) || !slices.Contains(tables, table), "%s/%s: %s needs a DEFAULT", database, step.name, column)
			}
		}
		_, err = db.Exec(bad)
		require.ErrorContains(t, err, "NOT NULL", "the table has rows")
	}
}
