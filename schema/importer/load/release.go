package load

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"regedge/schema/content"
	"regedge/schema/importer/record"
	"regedge/schema/search"
)

// releaseTime is the time format of a release's id.
const releaseTime = "20060102T150405Z"

const insertRelease = `
INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES (?1, ?2,
  (SELECT count(*) FROM company), (SELECT count(*) FROM llp), (SELECT count(*) FROM director),
  (SELECT count(*) FROM appointment), (SELECT count(*) FROM partner))`

// NewReleaseID makes an id such as 20261121T071500Z-1a2b3c from a time and 24 random bits.
func NewReleaseID(now time.Time, random io.Reader) (string, error) {
	var salt [3]byte
	if _, err := io.ReadFull(random, salt[:]); err != nil {
		return "", fmt.Errorf("read random bytes for the release id: %w", err)
	}
	return now.UTC().Format(releaseTime) + "-" + hex.EncodeToString(salt[:]), nil
}

// Finish ends a run: if anything changed since the newest release, it brings the search index and the
// hashes of records up to date and writes the next release under id. It reports whether it did so, and
// the record counts of the newest release. Readers see all of the run from then on, and none of it before.
func (s *Store) Finish(id string) (released bool, held Held, err error) {
	begun, err := s.exists(`SELECT 1 FROM unreleased`) // by an earlier version of this program
	if err == nil && (begun || s.changed) {
		released, err = true, s.release(id)
	}
	if err == nil {
		held, err = s.held()
	}
	if err == nil {
		err = s.commit()
	}
	if err != nil {
		return false, held, err
	}
	err = s.publish(released)
	return released && (s.draft == nil || s.draft.published()), held, err
}

func (s *Store) release(id string) (err error) {
	if s.names != nil {
		err = s.names.install(s.conn)
	} else {
		_, err = search.Refresh(s.conn)
	}
	if err != nil {
		return fmt.Errorf("bring the search index up to date: %w", err)
	}
	if err := content.Refresh(s.conn); err != nil {
		return fmt.Errorf("bring the hashes up to date: %w", err)
	}
	if err := s.exec(insertRelease, record.TextOf(id), record.NumberOf(s.now)); err != nil {
		return fmt.Errorf("write release %s: %w", id, err)
	}
	return s.exec(`DELETE FROM unreleased`)
}

// publish leaves the registry in one file: it checkpoints the WAL, or renames the draft to the
// registry's name if a release was written.
func (s *Store) publish(released bool) error {
	if s.draft == nil {
		if err := s.exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			return fmt.Errorf("move the log into %s: %w", s.path, err)
		}
		return nil
	}
	if !released {
		return nil
	}
	err := s.exec(draftFinal)
	if err = cmp.Or(err, s.closeDatabase()); err != nil {
		return fmt.Errorf("complete %s: %w", s.path, err)
	}
	return s.draft.publish()
}

// StartBulk begins the run's one transaction and finds out which tables are empty. Empty tables
// are filled without lookups, and the search index and the index of appointments are then built
// once, at the end.
func (s *Store) StartBulk() error {
	if err := s.begin(); err != nil {
		return err
	}
	for _, t := range record.Tables {
		held, err := s.exists(`SELECT 1 FROM ` + t.Name + ` LIMIT 1`)
		if err != nil {
			return err
		}
		s.fresh[t] = !held
	}
	if s.fresh[record.CompanyTable] && s.fresh[record.LLPTable] {
		s.names = newIndexBuild(s.folder)
	}
	if err := s.readDistricts(); err != nil {
		return err
	}
	return s.exec(createIndex) // an interrupted run of an earlier version of this program left it out
}

// BeginTable prepares for the records of a table.
func (s *Store) BeginTable(t *record.Table) error {
	if t == record.AppointmentTable && s.fresh[t] {
		return s.exec(dropIndex)
	}
	return nil
}

// EndTable builds the index that BeginTable dropped.
func (s *Store) EndTable(t *record.Table) error {
	if t != record.AppointmentTable || !s.fresh[t] {
		return nil
	}
	err := cmp.Or(s.exec(littleCache), s.exec(createIndex))
	if err = cmp.Or(err, s.exec(usualCache)); err != nil {
		return fmt.Errorf("index the appointments: %w", err)
	}
	return nil
}

// The page cache of an import holds the upper levels of the whole country's indexes. While
// SQLite builds an index, it sorts in as much memory again as the cache limit, so the cache is
// kept small then.
const (
	usualCache  = `PRAGMA cache_size=-65536`
	littleCache = `PRAGMA cache_size=-16384`
)

// The index of appointments by director, as in the schema. Filling it in company order would
// cost more than all other work on an appointment.
const (
	createIndex = `CREATE INDEX IF NOT EXISTS appointment_by_director ON appointment (din)`
	dropIndex   = `DROP INDEX IF EXISTS appointment_by_director`
)

// exists reports whether a query returns a row.
func (s *Store) exists(query string) (bool, error) {
	statement, _, err := s.conn.Prepare(query)
	if err != nil {
		return false, err
	}
	defer statement.Close()
	held := statement.Step()
	return held, cmp.Or(statement.Err(), statement.Reset())
}

// exec runs one statement with the given parameters, or several without.
func (s *Store) exec(query string, args ...record.Value) error {
	if len(args) == 0 {
		return s.conn.Exec(query)
	}
	statement, _, err := s.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer statement.Close()
	for i, v := range args {
		if err := bindValue(statement, i+1, v); err != nil {
			return err
		}
	}
	return finish(statement)
}
