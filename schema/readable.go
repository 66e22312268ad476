package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// oldestReadable is the oldest version of a database that this program's readers can use.
// Migrations of replicated databases only add, so that a reader can also use one version more
// than it knows, and edges can be upgraded one after another.
var oldestReadable = map[Database]int{Registry: 1, Access: 1}

// ErrEmpty says that a database has no tables.
var ErrEmpty = errors.New("empty (schema version 0): let its owner (import, push or writer) fill it")

// CheckReadable returns nil if this program can read db: it is the expected database (else an
// *OtherError), at most one version newer than this program knows (else a *NewerError),
// not older than oldestReadable, and access has all columns of that version.
func CheckReadable(ctx context.Context, db *sql.DB, database Database) error {
	version, err := Version(ctx, db, database)
	if err != nil {
		return err
	}
	if err := Readable(database, database, version); err != nil || database != Access {
		return err
	}
	steps, err := migrations(files, database) // readers use all of access; push alone uses the rest of registry
	if err != nil {
		return err
	}
	return checkLayout(ctx, db, database, steps[:oldestReadable[database]])
}

// Readable is CheckReadable for a result of SelectVersion.
func Readable(database, found Database, version int) error {
	steps, err := migrations(files, database)
	if err != nil {
		return err
	}
	oldest, replicated := oldestReadable[database]
	switch {
	case !replicated:
		return fmt.Errorf("the %s database is for its owner alone", database)
	case found != database:
		return &OtherError{database, found}
	case version > len(steps)+1:
		return &NewerError{database, version, len(steps) + 1}
	case version == 0:
		return fmt.Errorf("the %s database is %w", database, ErrEmpty)
	case version < oldest:
		return fmt.Errorf("the %s database has schema version %d, this program needs %d: let its owner (import, push or writer) of this version open it once",
			database, version, oldest)
	}
	return nil
}
