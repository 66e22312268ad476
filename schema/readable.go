package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// oldestReadable is the version of a database from which on its readers find all that
// they need. Migrations of what is replicated only add, so that a reader also manages
// with one version more than it knows: nodes may be upgraded one after another.
var oldestReadable = map[Database]int{Registry: 1, Access: 1}

// CheckReadable reports whether a program that only reads db can: it is the database
// asked for (else an *OtherError), its version is at most one newer than this program
// knows (else a *NewerError), and it has all that is read.
func CheckReadable(ctx context.Context, db *sql.DB, database Database) error {
	version, err := Version(ctx, db, database)
	if err != nil {
		return err
	}
	return Readable(database, database, version)
}

// Readable is CheckReadable of what SelectVersion said.
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
	case version < oldest:
		return fmt.Errorf("the %s database has schema version %d, this program needs %d: let its owner (import, push or writer) of this version open it once",
			database, version, oldest)
	}
	return nil
}
