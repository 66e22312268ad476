package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// OtherError says that a database is not the one that was asked for.
type OtherError struct {
	Database Database // asked for
	Found    Database // empty for a database that is none of the three
}

func (e *OtherError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("this is not a database of regedge, but of another program: name the %s database, or a file that is not there yet", e.Database)
	}
	return fmt.Sprintf("this is the %s database: name the %s database", e.Found, e.Database)
}

// SelectVersion reads the number of migrations that a database has seen, and which of
// the three it is. It fails for an empty database, which has no such table.
const SelectVersion = `SELECT coalesce(max(version), 0), coalesce(max(database), '') FROM schema_version`

// selectTables counts the tables that tell an empty database from a foreign one. A
// server's own tables count as nothing.
const selectTables = `SELECT coalesce(sum(name = 'schema_version'), 0), count(*) FROM sqlite_schema
WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'libsql_*'`

// Version is the number of migrations of database that db has seen, 0 for an empty
// database. What is not the database asked for is an *OtherError.
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
