package search

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/extsort"
)

// Builder makes the whole index anew, in memory that does not grow with the register:
// names are sorted, and their terms gathered, in files. Only Install touches the database,
// so that the rest may go on beside other work. Its methods are for one goroutine at a
// time, in the order Add, Prepare, Install. Close it, also after an error.
type Builder struct {
	names    *extsort.Sorter
	postings *postings
	key      []byte
	added    int64
}

// namesBudget is the memory, in bytes, in which names are sorted.
const namesBudget = 24 << 20

// NewBuilder makes a builder whose files are in folder; they take some hundred bytes a name.
func NewBuilder(folder string) *Builder {
	return &Builder{names: extsort.New(folder, namesBudget), postings: newPostings(folder)}
}

// Close gives back memory and files.
func (b *Builder) Close() error {
	return errors.Join(b.names.Close(), b.postings.sorter.Close())
}

// Add takes a company or LLP, each once: its CIN or LLPIN, its registered name, its status.
func (b *Builder) Add(value, registered, status string) error {
	e, ok := newEntry(value, registered, status)
	if !ok {
		return nil
	}
	b.added++
	b.key = e.appendKey(b.key[:0])
	return b.names.Add(b.key, []byte(e.label))
}

// Prepare puts the names in order and gathers their terms.
func (b *Builder) Prepare() error {
	err := b.each(func(place int64, e *entry) error { return b.postings.add(place, e.name) })
	if err == nil {
		err = b.postings.end()
	}
	if err != nil {
		return fmt.Errorf("gather the terms of the names: %w", err)
	}
	return nil
}

// each hands out the entries in their order, with their places.
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

// Install replaces the index of a database by the one that was prepared, and forgets the
// marks. It is one transaction as Refresh is.
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
	// With delete-all FTS5 lets go of what it has not written yet.
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

// forgetIndex has FTS5 forget what it knows of the index, as it does when a savepoint is
// rolled back, and look at it again when it is next used.
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

// appendKey appends the entry in a form whose bytes order as compare does. A name has no
// zero byte.
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
