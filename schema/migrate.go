package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// NewerError says that a database was made by a newer program than this one.
type NewerError struct {
	Database Database
	Found    int // version of the database
	Known    int // newest version that this program knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the %s database has schema version %d, this program knows versions up to %d: use a newer regedge, or another database",
		e.Database, e.Found, e.Known)
}

const createVersions = `CREATE TABLE IF NOT EXISTS schema_version (
  version    INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL,
  database   TEXT    NOT NULL -- registry, access or ledger, the same in every row
) STRICT`

const insertVersion = `INSERT INTO schema_version (version, applied_at, database) VALUES (?, unixepoch(), ?)`

// Migrate brings db to the newest version of database that this program knows. It may
// be called on every start: with nothing to do it writes nothing. A migration that
// fails leaves db at the version before it. A database of a newer program is a
// *NewerError, one that is not the database asked for an *OtherError; neither is touched.
func Migrate(ctx context.Context, db *sql.DB, database Database) error {
	steps, err := migrations(files, database)
	if err != nil {
		return err
	}
	return migrate(ctx, db, database, steps)
}

func migrate(ctx context.Context, db *sql.DB, database Database, steps []migration) error {
	version, err := Version(ctx, db, database)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return &NewerError{database, version, len(steps)}
	}
	for _, s := range steps[version:] {
		if err := applyUnlocked(ctx, db, database, s); err != nil {
			return fmt.Errorf("apply migration %s/%s: %w", database, s.name, err)
		}
	}
	return nil
}

// Check reports whether db is at the version that this program knows, for those who may
// not write to it: a newer one is a *NewerError, one that is not the database asked for
// an *OtherError, an older one names Migrate's command.
func Check(ctx context.Context, db *sql.DB, database Database) error {
	steps, err := migrations(files, database)
	if err != nil {
		return err
	}
	version, err := Version(ctx, db, database)
	switch {
	case err != nil:
		return err
	case version > len(steps):
		return &NewerError{database, version, len(steps)}
	case version < len(steps):
		return fmt.Errorf("the %s database has schema version %d, this program needs %d: let its owner (import, push or writer) of this version open it once",
			database, version, len(steps))
	}
	return nil
}

// A migration that finds another process writing tries again: a libSQL server does not
// wait for a lock, and the writer's heartbeats come every second.
const (
	lockedPause    = 50 * time.Millisecond
	lockedPatience = 30 * time.Second
)

// applyUnlocked runs one migration as soon as the database is not locked.
func applyUnlocked(ctx context.Context, db *sql.DB, database Database, step migration) error {
	for until := time.Now().Add(lockedPatience); ; {
		err := apply(ctx, db, database, step)
		if err == nil || !isLocked(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(lockedPause):
		case <-ctx.Done():
			return err
		}
	}
}

// isLocked knows a lock by SQLite's words, which are all that a server passes on.
func isLocked(err error) bool { return strings.Contains(err.Error(), "database is locked") }

// apply runs one migration unless another process was faster.
func apply(ctx context.Context, db *sql.DB, database Database, step migration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, createVersions); err != nil {
		return err
	}
	var version int
	var found Database
	if err := tx.QueryRowContext(ctx, SelectVersion).Scan(&version, &found); err != nil {
		return err
	}
	if version > 0 && found != database {
		return &OtherError{database, found}
	}
	if version >= step.version {
		return nil
	}
	for _, statement := range statements(step.sql) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, insertVersion, step.version, database); err != nil {
		return err
	}
	return tx.Commit()
}
