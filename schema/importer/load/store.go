package load

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"regedge/schema"
	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
	"regedge/schema/search"
)

// Store writes records to one registry database. It compares each with its row first, and
// writes only what changes. Use it from one goroutine. Close it.
type Store struct {
	path   string
	db     *sql.DB       // nil if made by newStore
	pinned *sql.Conn     // of db, in use until Close
	conn   *sqlite3.Conn // the connection below pinned
	now    int64         // Unix seconds: last_updated of everything that this run changes
	table  map[*record.Table]*tableStatements
	// touch sets last_updated of a record whose appointments or partners changed.
	touch   map[*record.Table]*sqlite3.Stmt
	mark    *sqlite3.Stmt // marks a record for the search index
	known   map[*record.Table]*merge.State
	tx      sqlite3.Txn
	open    bool // whether tx is open
	touched map[touchKey]bool
	changed bool                   // this run changed something
	fresh   map[*record.Table]bool // tables that were empty when the run began: no lookups
	names   *indexBuild            // set when the search index is built anew
	// staleLists has the companies (CINs) whose directors lists Settle must update;
	// changedDirectors has the directors (DINs) whose companies it must add first.
	staleLists, changedDirectors map[string]bool
	putList                      *sqlite3.Stmt
	findCompanies                *sqlite3.Stmt
	prepared                     []*sqlite3.Stmt
	districts                    map[string]string // by pincode
	onlyDistrict                 []record.Value    // buffer of mergeCompany
	folder                       string            // for temporary files
	draft                        *draft            // nil for a registry that existed
}

type tableStatements struct {
	rows           walk
	insert, update *sqlite3.Stmt
}

type touchKey struct {
	table *record.Table
	key   string
}

// outcome says how a record was stored: whether it is New, has Changed a row, or left it Unchanged.
type outcome int

const (
	New outcome = iota
	Changed
	Unchanged
	outcomeMissing // rejected: it lacks what a new row must have
)

// Open opens the registry database in a file and migrates it. A missing one is made: in a
// draft beside it, which Finish renames. now is last_updated of what changes, in Unix seconds.
// Temporary files are made beside the file.
func Open(ctx context.Context, path string, now int64) (*Store, error) {
	draft, err := draftOf(path)
	if err != nil {
		return nil, err
	}
	s, err := openStore(ctx, path, draft, now)
	if err != nil {
		return nil, errors.Join(err, draft.close())
	}
	return s, nil
}

func openStore(ctx context.Context, path string, draft *draft, now int64) (*Store, error) {
	file, tuning := path, tuning
	if draft != nil {
		file, tuning = draft.path(), draftTuning
	}
	db, err := schema.OpenFile(file)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s, err := storeOf(ctx, db, path, tuning, now)
	if err != nil {
		db.Close()
		return nil, err
	}
	s.draft = draft
	return s, nil
}

func storeOf(ctx context.Context, db *sql.DB, path, tuning string, now int64) (*Store, error) {
	if err := schema.Migrate(ctx, db, schema.Registry); err != nil {
		return nil, fmt.Errorf("open registry %s: %w", path, err)
	}
	held, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	var raw *sqlite3.Conn
	if err = held.Raw(func(c any) error { raw = c.(driver.Conn).Raw(); return nil }); err == nil {
		err = raw.Exec(tuning)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tune %s: %w", path, err), held.Close())
	}
	s, err := newStore(raw, now, filepath.Dir(path))
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	s.path, s.db, s.pinned = path, db, held
	return s, nil
}

// tuning suits a single bulk writer: the commit is not synced (a power cut may undo it, but never
// corrupts the file); the checkpoint of the WAL is.
const tuning = `PRAGMA synchronous=normal; ` + usualCache

func newStore(conn *sqlite3.Conn, now int64, folder string) (*Store, error) {
	s := &Store{
		conn: conn, now: now, folder: folder, fresh: map[*record.Table]bool{},
		table: map[*record.Table]*tableStatements{}, touch: map[*record.Table]*sqlite3.Stmt{},
		known: map[*record.Table]*merge.State{}, touched: map[touchKey]bool{},
		staleLists: map[string]bool{}, changedDirectors: map[string]bool{}, onlyDistrict: make([]record.Value, record.CompanyColumns),
	}
	err := s.prepareAll()
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("prepare the statements of the import: %w", err)
	}
	return s, nil
}

func (s *Store) prepareAll() (err error) {
	for _, t := range record.Tables {
		statements := &tableStatements{rows: walk{table: t}}
		s.table[t], s.known[t] = statements, merge.NewState(t)
		s.prepare(&statements.rows.statement, walkSQL(t), &err)
		s.prepare(&statements.insert, insertSQL(t), &err)
		s.prepare(&statements.update, updateSQL(t), &err)
		if t.Stamped {
			var touch *sqlite3.Stmt
			s.prepare(&touch, fmt.Sprintf(`UPDATE %s SET last_updated = ?1 WHERE %s = ?2 AND last_updated <> ?1`, t.Name, t.Key[0]), &err)
			s.touch[t] = touch
		}
	}
	s.prepare(&s.mark, search.Mark, &err)
	s.prepare(&s.putList, putList, &err)
	s.prepare(&s.findCompanies, `SELECT cin FROM appointment WHERE din = ?1`, &err)
	return err
}

func (s *Store) prepare(to **sqlite3.Stmt, query string, err *error) {
	if *err != nil {
		return
	}
	*to, _, *err = s.conn.PrepareFlags(query, sqlite3.PREPARE_PERSISTENT)
	s.prepared = append(s.prepared, *to)
}

// Close undoes a run that Finish has not ended.
func (s *Store) Close() error {
	s.rollback()
	if s.names != nil {
		s.names.close()
	}
	return errors.Join(s.closeDatabase(), s.draft.close())
}

// closeDatabase may be called again.
func (s *Store) closeDatabase() error {
	if s.db == nil {
		return nil
	}
	for _, statement := range s.prepared {
		if statement != nil {
			statement.Close()
		}
	}
	err := errors.Join(s.pinned.Close(), s.db.Close())
	s.prepared, s.pinned, s.db = nil, nil, nil
	return err
}

// apply merges the records of one key, from sources of date asOf, into the database and counts
// their outcomes. Records without a column that a new row needs are rejected.
func (s *Store) apply(group []record.Entry, asOf string, w *Written) error {
	first := &group[0].Record
	t, now := first.Table, s.known[first.Table]
	held, err := s.find(first)
	if err != nil {
		return err
	}
	w.noteContradictions(group, now, asOf)
	name, status := indexed(t, now)
	exists, all := held, merge.Effect{}
	for i := range group {
		p := &group[i]
		did := s.merge(t, p.Values, asOf)
		switch {
		case !exists && now.Missing(t) != "":
			now.Reset()
			w.Missing[p.File] = append(w.Missing[p.File], record.Reject{Line: p.Line, Reason: t.Lack, Detail: p.Key[0], Raw: p.Raw})
			continue
		case !exists:
			exists, did.Content = true, true
			w.Counts[p.File][New]++
		case did.Content:
			w.Counts[p.File][Changed]++
		default:
			w.Counts[p.File][Unchanged]++
		}
		all.Content = all.Content || did.Content
		all.Stored = all.Stored || did.Stored
	}
	switch {
	case exists && !held:
		err = s.write(s.table[t].insert, first, true)
	case all.Stored:
		err = s.write(s.table[t].update, first, all.Content)
	}
	if err != nil || !exists || !all.Content {
		return err
	}
	s.changed = true
	s.noteTouched(first)
	s.noteLists(first)
	if newName, newStatus := indexed(t, now); newName != name || newStatus != status {
		return s.markName(first.Key[0])
	}
	return nil
}

// merge merges the values of a source of date asOf into the state at hand.
func (s *Store) merge(t *record.Table, said []record.Value, asOf string) merge.Effect {
	if t == record.CompanyTable {
		return s.mergeCompany(said, asOf)
	}
	return s.known[t].Merge(t, said, asOf)
}

// indexed returns the values that the search index has of a record: its name and status, or none.
func indexed(t *record.Table, s *merge.State) (name, status record.Value) {
	switch t {
	case record.CompanyTable:
		return s.Values[record.CompanyName], s.Values[record.CompanyStatus]
	case record.LLPTable:
		return s.Values[record.LLPName], s.Values[record.LLPStatus]
	}
	return record.Value{}, record.Value{}
}

// find reads the record's row, if there is one, into s.known. It is fast for records in key
// order (walk).
func (s *Store) find(r *record.Record) (held bool, err error) {
	t, was := r.Table, s.known[r.Table]
	was.Reset()
	if s.fresh[t] {
		return false, nil
	}
	rows := &s.table[t].rows
	if held, err = rows.to(r.Key); err != nil || !held {
		return false, err
	}
	for i := range t.Columns {
		was.Values[i] = columnValue(rows.statement, i, r.Values[i])
	}
	was.AsOf = columnText(rows.statement, len(t.Columns), was.AsOf)
	was.SetDates(t, columnText(rows.statement, len(t.Columns)+1, ""))
	if t == record.CompanyTable {
		s.dropNamed()
	}
	return true, nil
}

// IsFresh reports whether a table was empty when the run began.
func (s *Store) IsFresh(t *record.Table) bool { return s.fresh[t] }

// rest ends the reads of all tables.
func (s *Store) rest() {
	for _, t := range record.Tables {
		s.table[t].rows.rest()
	}
}

// write stores s.known as the record's row; stamp sets last_updated.
func (s *Store) write(statement *sqlite3.Stmt, r *record.Record, stamp bool) error {
	t, now := r.Table, s.known[r.Table]
	err := bindKey(statement, t, r.Key)
	n := len(t.Key)
	for i, v := range now.Values {
		n++
		if t == record.CompanyTable && i == record.CompanyDistrict {
			v = s.districtOf()
		}
		err = cmp.Or(err, bindValue(statement, n, v))
	}
	err = cmp.Or(err, bindValue(statement, n+1, record.TextOf(now.AsOf)))
	err = cmp.Or(err, bindValue(statement, n+2, now.Older(t)))
	if t.Stamped {
		last := record.Value{}
		if stamp {
			last = record.NumberOf(s.now)
		}
		err = cmp.Or(err, bindValue(statement, n+3, last))
	}
	if err == nil {
		err = finish(statement)
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", t.Name, r.Key[0], err)
	}
	return nil
}

// noteTouched remembers the records whose last_updated follows a changed appointment or
// partner. Rows of a fresh table have the time of this run already.
func (s *Store) noteTouched(r *record.Record) {
	touch := func(t *record.Table, key string) {
		if !s.fresh[t] {
			s.touched[touchKey{t, key}] = true
		}
	}
	switch r.Table {
	case record.AppointmentTable:
		touch(record.CompanyTable, r.Key[0])
		touch(record.DirectorTable, r.Key[1])
	case record.PartnerTable:
		touch(record.LLPTable, r.Key[0])
	}
}

// Settle updates the data derived from applied records: directors lists, and last_updated of
// touched records. Call it after each table, and from time to time to bound the memory of
// pending updates.
func (s *Store) Settle() error {
	s.rest()
	if err := s.updateLists(); err != nil {
		return err
	}
	for key := range s.touched {
		touch := s.touch[key.table]
		err := cmp.Or(touch.BindInt64(1, s.now), touch.BindText(2, key.key), finish(touch))
		if err != nil {
			return fmt.Errorf("touch %s %s: %w", key.table.Name, key.key, err)
		}
	}
	clear(s.touched)
	return nil
}

// markName marks a record whose name or status changed, unless the whole search index is
// rebuilt anyway.
func (s *Store) markName(value string) error {
	if s.names != nil {
		return nil
	}
	if err := cmp.Or(s.mark.BindText(1, value), finish(s.mark)); err != nil {
		return fmt.Errorf("mark %s for the search index: %w", value, err)
	}
	return nil
}
