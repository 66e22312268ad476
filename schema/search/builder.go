package search

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/extsort"
)

// Builder builds the whole index anew, in memory that does not grow with the registry: it sorts
// names and collects their terms in files. Only Install uses the database, so the other steps may
// run in parallel with other work. Use a Builder from one goroutine at a time; call Add, Prepare and
// Install in this order, and Close at the end, also after an error.
type Builder struct {
	names    *extsort.Sorter
	postings *postings
	key      []byte
	added    int64
	dropped  atomic.Bool
}

// ErrDropped is returned by Add and Prepare after Drop.
var ErrDropped = errors.New("search index dropped")

// namesBudget is the memory, in bytes, in which names are sorted.
const namesBudget = 24 << 20

// NewBuilder makes a builder with its files in folder. They take about a hundred bytes per name.
func NewBuilder(folder string) *Builder {
	return &Builder{names: extsort.New(folder, namesBudget), postings: newPostings(folder)}
}

// Close frees memory and deletes the files.
func (b *Builder) Close() error {
	return errors.Join(b.names.Close(), b.postings.sorter.Close())
}

// Drop makes Add and Prepare end soon, for an index that is no longer needed. It may be called in any goroutine.
func (b *Builder) Drop() { b.dropped.Store(true) }

// Add adds a company or LLP: its CIN or LLPIN, its registered name and its status. Each may be
// added once.
func (b *Builder) Add(value, registered, status string) error {
	if b.dropped.Load() {
		return ErrDropped
	}
	e, ok := newEntry(value, registered, status)
	if !ok {
		return nil
	}
	b.added++
	b.key = e.appendKey(b.key[:0])
	return b.names.Add(b.key, []byte(e.label))
}

// Prepare sorts the names and collects their terms.
func (b *Builder) Prepare() error {
	err := b.each(func(place int64, e *entry) error {
		if b.dropped.Load() {
			return ErrDropped
		}
		return b.postings.add(place, e.name)
	})
	if err == nil {
		err = b.postings.end()
	}
	if err != nil {
		return fmt.Errorf("collect the terms of the names: %w", err)
	}
	return nil
}

// each calls do with the entries in order and their places.
func (b *Builder) each(do func(place int64, e *entry) error) error {
	rows, err := b.names.Rows()
	if err != nil {
		return err
	}
	place := int64(0)
	for rows.Next() {
		e := entryOfKey(rows.Key())
		e.label = string(rows.Value())
		place = max(place, e.floor()) + placeGap
		if err := do(place, &e); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Install replaces a database's index with the prepared one and deletes the marks, in one
// transaction, like Refresh.
func (b *Builder) Install(c *sqlite3.Conn) (change Change, err error) {
	defer c.Savepoint().Release(&err)
	if change, err = b.install(c); err != nil {
		return Change{}, err
	}
	return change, c.Exec(`DELETE FROM search_pending`)
}

func (b *Builder) install(c *sqlite3.Conn) (Change, error) {
	removed, err := number(c, `SELECT count(*) FROM search_name`)
	if err != nil {
		return Change{}, fmt.Errorf("count names: %w", err)
	}
	// delete-all also discards changes that FTS5 has not flushed yet.
	if err := c.Exec(`DELETE FROM search_name; DELETE FROM search_common;
		INSERT INTO search_index (search_index) VALUES ('delete-all')`); err != nil {
		return Change{}, fmt.Errorf("empty the index: %w", err)
	}
	if err := b.writeNames(c); err != nil {
		return Change{}, fmt.Errorf("write the names: %w", err)
	}
	if err := b.writeTerms(c); err != nil {
		return Change{}, fmt.Errorf("write the terms: %w", err)
	}
	if err := c.Exec(forgetIndex); err != nil {
		return Change{}, fmt.Errorf("read the index again: %w", err)
	}
	return Change{Rebuilt: true, Removed: removed, Written: b.added}, nil
}

// forgetIndex makes FTS5 drop its cached structure of the index, as it does when a savepoint is
// rolled back, and read it again at the next use.
const forgetIndex = `SAVEPOINT search_forget; ROLLBACK TO search_forget; RELEASE search_forget`

const insertName = `INSERT INTO search_name (place, value, name, label) VALUES (?1, ?2, ?3, ?4)`

// bindName binds the parameters of insertName.
func bindName(s *sqlite3.Stmt, place int64, e *entry) error {
	return errors.Join(s.BindInt64(1, place), s.BindText(2, e.value), s.BindText(3, e.name), s.BindText(4, e.label))
}

func (b *Builder) writeNames(c *sqlite3.Conn) error {
	insert, _, err := c.Prepare(insertName)
	if err != nil {
		return err
	}
	defer insert.Close()
	return b.each(func(place int64, e *entry) error {
		return errors.Join(bindName(insert, place, e), insert.Exec())
	})
}

// appendKey appends the entry as a key whose bytes sort as compare does. A name has no zero
// byte.
func (e *entry) appendKey(dst []byte) []byte {
	rank := uint32(e.length)
	if e.inactive {
		rank |= inactiveBit
	}
	dst = binary.BigEndian.AppendUint32(dst, rank)
	dst = append(append(dst, e.name...), 0)
	return append(dst, e.value...)
}

const inactiveBit = 1 << 31

// entryOfKey is the inverse of appendKey.
func entryOfKey(key []byte) entry {
	rank, text := binary.BigEndian.Uint32(key), string(key[4:])
	end := len(text)
	for i := range len(text) {
		if text[i] == 0 {
			end = i
			break
		}
	}
	return entry{
		inactive: rank&inactiveBit != 0, length: int(rank &^ inactiveBit),
		name: text[:end], value: text[min(end+1, len(text)):],
	}
}

// records selects all records that the index may contain.
const records = `
SELECT cin, company_name, status FROM company UNION ALL
SELECT llpin, llp_name, status FROM llp`

// rebuild builds the index anew from the tables.
func rebuild(c *sqlite3.Conn) (change Change, err error) {
	b := NewBuilder(folderOf(c))
	defer b.Close()
	if err := readAll(c, b.Add); err != nil {
		return Change{}, fmt.Errorf("read names: %w", err)
	}
	if err := b.Prepare(); err != nil {
		return Change{}, err
	}
	return b.install(c)
}

// folderOf returns the folder of the database's file: a disk with room for the database has
// room for sorting its names.
func folderOf(c *sqlite3.Conn) string {
	if name := c.Filename("main"); name != nil && name.String() != "" {
		return filepath.Dir(name.String())
	}
	return os.TempDir()
}

// readAll calls do with each record.
func readAll(c *sqlite3.Conn, do func(value, registered, status string) error) error {
	s, _, err := c.Prepare(records)
	if err != nil {
		return err
	}
	defer s.Close()
	for s.Step() {
		if err := do(s.ColumnText(0), s.ColumnText(1), s.ColumnText(2)); err != nil {
			return err
		}
	}
	return s.Err()
}
