package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// OtherError is returned for a database that is not the expected one.
type OtherError struct {
	Database Database // expected
	Found    Database // empty if it is none of the three
}

func (e *OtherError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("this is not a database of regedge, but of another program: name the %s database, or a file that is not there yet", e.Database)
	}
	return fmt.Sprintf("this is the %s database: name the %s database", e.Found, e.Database)
}

// SelectVersion reads the version of a database, and which of the three it is. It fails on an
// empty database, which has no such table.
const SelectVersion = `SELECT coalesce(max(version), 0), coalesce(max(database), '') FROM schema_version`

// selectTables tells an empty database from another program's. The tables of SQLite and of a
// libSQL server do not count.
const selectTables = `SELECT coalesce(sum(name = 'schema_version'), 0), count(*) FROM sqlite_schema
WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'libsql_*'`

// Version returns the version of db: the number of migrations that were applied, 0 for an empty
// database. The error is an *OtherError if db is not the expected database.
func Version(ctx context.Context, db *sql.DB, database Database) (int, error) {
	var versions, tables, version int
	err := db.QueryRowContext(ctx, selectTables).Scan(&versions, &tables)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read schema version of the %s database: %w", database, err)
	case tables == 0:
		return 0, nil
	case versions == 0:
		return 0, &OtherError{Database: database}
	}
	var found Database
	if err := db.QueryRowContext(ctx, SelectVersion).Scan(&version, &found); err != nil {
		return 0, fmt.Errorf("read schema version of the %s database: %w", database, err)
	}
	if version > 0 && found != database {
		return 0, &OtherError{database, found}
	}
	return version, nil
}
