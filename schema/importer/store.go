package importer

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/search"
)

// store writes records to one registry database, each compared with what is there
// first: what would not change is not written.
type store struct {
	conn  *sqlite3.Conn
	now   int64 // Unix seconds: last_updated of everything that this run changes
	table map[*table]*tableStatements
	// touch set last_updated of a record whose appointments or partners changed.
	touch   map[*table]*sqlite3.Stmt
	mark    *sqlite3.Stmt // tells the search index of a changed name
	dirty   *sqlite3.Stmt // notes that there is something to release
	known   map[*table]*state
	tx      sqlite3.Txn
	open    bool // tx is
	touched map[touchKey]bool
	changed bool            // in the present transaction
	fresh   map[*table]bool // empty when the run began: nothing is looked for in them
	names   *indexing       // set when the search index is built anew
	// boards and seats are the companies, and the directors, whose boards are to be
	// brought up to date in the present transaction.
	boards, seats map[string]bool
	putBoard      *sqlite3.Stmt
	findSeats     *sqlite3.Stmt
	prepared      []*sqlite3.Stmt
	folder        string // for temporary files
}

type tableStatements struct {
	rows           walk
	insert, update *sqlite3.Stmt
}

type touchKey struct {
	table *table
	key   string
}

// outcome is what became of a record.
type outcome int

const (
	outcomeNew outcome = iota
	outcomeChanged
	outcomeUnchanged
	outcomeMissing // it lacks what a new record must have
)

func newStore(conn *sqlite3.Conn, now int64, folder string) (*store, error) {
	s := &store{
		conn: conn, now: now, folder: folder, fresh: map[*table]bool{},
		table: map[*table]*tableStatements{}, touch: map[*table]*sqlite3.Stmt{},
		known: map[*table]*state{}, touched: map[touchKey]bool{},
		boards: map[string]bool{}, seats: map[string]bool{},
	}
	err := s.prepareAll()
	if err != nil {
		s.close()
		return nil, fmt.Errorf("prepare the statements of the import: %w", err)
	}
	return s, nil
}

func (s *store) prepareAll() (err error) {
	for _, t := range tables {
		statements := &tableStatements{rows: walk{table: t}}
		s.table[t], s.known[t] = statements, newState(t)
		s.prepare(&statements.rows.statement, t.walkSQL(), &err)
		s.prepare(&statements.insert, t.insertSQL(), &err)
		s.prepare(&statements.update, t.updateSQL(), &err)
		if t.stamped {
			var touch *sqlite3.Stmt
			s.prepare(&touch, fmt.Sprintf(`UPDATE %s SET last_updated = ?1 WHERE %s = ?2 AND last_updated <> ?1`, t.name, t.key[0]), &err)
			s.touch[t] = touch
		}
	}
	s.prepare(&s.mark, search.Mark, &err)
	s.prepare(&s.putBoard, putBoard, &err)
	s.prepare(&s.findSeats, `SELECT cin FROM appointment WHERE din = ?1`, &err)
	s.prepare(&s.dirty, `INSERT OR IGNORE INTO unreleased (id, since) VALUES (1, ?1)`, &err)
	return err
}

func (s *store) prepare(to **sqlite3.Stmt, query string, err *error) {
	if *err != nil {
		return
	}
	*to, _, *err = s.conn.PrepareFlags(query, sqlite3.PREPARE_PERSISTENT)
	s.prepared = append(s.prepared, *to)
}

func (s *store) close() {
	if s.names != nil {
		s.names.close()
	}
	for _, statement := range s.prepared {
		if statement != nil {
			statement.Close()
		}
	}
}

// apply merges the records of one key, of sources of date asOf, into the database, and
// counts what became of each. It belongs in a transaction. Records that lack what a new
// one must have are rejects.
func (s *store) apply(group []filed, asOf string, w *written) error {
	first := &group[0].record
	t, now := first.table, s.known[first.table]
	held, err := s.find(first)
	if err != nil {
		return err
	}
	name, status := t.indexed(now)
	exists, all := held, effect{}
	for i := range group {
		p := &group[i]
		did := now.merge(t, p.values, asOf)
		switch {
		case !exists && now.missing(t) != "":
			now.reset()
			w.missing[p.file] = append(w.missing[p.file], reject{p.line, p.lack(), p.key[0], p.raw})
			continue
		case !exists:
			exists, did.content = true, true
			w.counts[p.file][outcomeNew]++
		case did.content:
			w.counts[p.file][outcomeChanged]++
		default:
			w.counts[p.file][outcomeUnchanged]++
		}
		all.content = all.content || did.content
		all.stored = all.stored || did.stored
	}
	switch {
	case exists && !held:
		err = s.write(s.table[t].insert, first, true)
	case all.stored:
		err = s.write(s.table[t].update, first, all.content)
	}
	if err != nil || !exists || !all.content {
		return err
	}
	s.changed = true
	s.noteTouched(first)
	s.noteBoards(first)
	if newName, newStatus := t.indexed(now); newName != name || newStatus != status {
		return s.markName(first.key[0])
	}
	return nil
}

// indexed is what the search index knows of a record: nothing, or its name and status.
func (t *table) indexed(s *state) (name, status value) {
	switch t {
	case companyTable:
		return s.values[companyName], s.values[companyStatusColumn]
	case llpTable:
		return s.values[llpName], s.values[llpStatusColumn]
	}
	return value{}, value{}
}

// find reads the record's row, if there is one, into s.known. It is quick where records come
// in the order of their keys.
func (s *store) find(r *record) (held bool, err error) {
	t, was := r.table, s.known[r.table]
	was.reset()
	if s.fresh[t] {
		return false, nil
	}
	rows := &s.table[t].rows
	if held, err = rows.to(r.key); err != nil || !held {
		return false, err
	}
	for i := range t.columns {
		was.values[i] = columnValue(rows.statement, i, r.values[i])
	}
	was.asOf = columnText(rows.statement, len(t.columns), was.asOf)
	was.setDates(t, columnText(rows.statement, len(t.columns)+1, ""))
	return true, nil
}

// rest lets go of what the transaction reads.
func (s *store) rest() {
	for _, t := range tables {
		s.table[t].rows.rest()
	}
}

// write stores s.known as the record's row; stamp sets last_updated.
func (s *store) write(statement *sqlite3.Stmt, r *record, stamp bool) error {
	t, now := r.table, s.known[r.table]
	err := bindKey(statement, t, r.key)
	n := len(t.key)
	for _, v := range now.values {
		n++
		err = firstError(err, bindValue(statement, n, v))
	}
	err = firstError(err, bindValue(statement, n+1, textValue(now.asOf)))
	err = firstError(err, bindValue(statement, n+2, now.older(t)))
	if t.stamped {
		last := value{}
		if stamp {
			last = numberValue(s.now)
		}
		err = firstError(err, bindValue(statement, n+3, last))
	}
	if err == nil {
		err = finish(statement)
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", t.name, r.key[0], err)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// noteTouched remembers the records whose lists the record is part of. Those of a fresh
// table have the time of this run already.
func (s *store) noteTouched(r *record) {
	touch := func(t *table, key string) {
		if !s.fresh[t] {
			s.touched[touchKey{t, key}] = true
		}
	}
	switch r.table {
	case appointmentTable:
		touch(companyTable, r.key[0])
		touch(directorTable, r.key[1])
	case partnerTable:
		touch(llpTable, r.key[0])
	}
}

// settle ends the work of a transaction: the boards are brought up to date, the touched
// records get last_updated, and the change is noted as not yet released.
func (s *store) settle() error {
	if err := s.settleBoards(); err != nil {
		return err
	}
	for key := range s.touched {
		touch := s.touch[key.table]
		err := firstError(touch.BindInt64(1, s.now), touch.BindText(2, key.key), finish(touch))
		if err != nil {
			return fmt.Errorf("touch %s %s: %w", key.table.name, key.key, err)
		}
	}
	clear(s.touched)
	if !s.changed {
		return nil
	}
	s.changed = false
	return s.noteDirty()
}

func (s *store) noteDirty() error {
	if err := firstError(s.dirty.BindInt64(1, s.now), finish(s.dirty)); err != nil {
		return fmt.Errorf("note what is to be released: %w", err)
	}
	return nil
}

// markName tells the search index that a name or status is new. One that is built anew finds
// out by itself.
func (s *store) markName(value string) error {
	if s.names != nil {
		return nil
	}
	if err := firstError(s.mark.BindText(1, value), finish(s.mark)); err != nil {
		return fmt.Errorf("mark %s for the search index: %w", value, err)
	}
	return nil
}
