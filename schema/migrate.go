package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// NewerError is returned for a database that a newer program has migrated.
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

// Migrate migrates db to the version of database that this program knows. Call it on every
// start: with nothing to do it writes nothing. A failed migration leaves db at the version
// before it. The error is a *NewerError for a newer database, and an *OtherError for one that
// is not the expected one; neither is changed.
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
	if version == len(steps) {
		return checkLayout(ctx, db, database, steps)
	}
	for _, s := range steps[version:] {
		if err := applyUnlocked(ctx, db, database, s); err != nil {
			return fmt.Errorf("apply migration %s/%s: %w", database, s.name, err)
		}
	}
	return nil
}

// Check returns nil if db is at the version that this program knows, with all tables and columns. It is for
// programs that must not migrate: the error is a *NewerError for a newer database, an *OtherError for an
// unexpected one, and otherwise names the commands that migrate it.
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
	case version == 0:
		return fmt.Errorf("the %s database is %w", database, ErrEmpty)
	case version < len(steps):
		return fmt.Errorf("the %s database has schema version %d, this program needs %d: let its owner (import, push or writer) of this version open it once",
			database, version, len(steps))
	}
	return checkLayout(ctx, db, database, steps)
}

// A migration that meets a lock is retried: a libSQL server does not wait for locks, and the
// writer's heartbeats come every second.
const (
	lockedPause    = 50 * time.Millisecond
	lockedPatience = 30 * time.Second
)

// applyUnlocked applies one migration, and retries while the database is locked.
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

// isLocked recognises a lock by SQLite's message, which is all that a server passes on.
func isLocked(err error) bool { return strings.Contains(err.Error(), "database is locked") }

// apply applies one migration, unless another process already has.
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
