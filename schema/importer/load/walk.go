package load

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/importer/record"
)

// walk finds the rows of a table for ascending keys. It steps from row to row, which costs a
// fraction of a search per key, and searches if more than maxSteps rows lie between two keys.
// Meanwhile this connection may write rows up to and including the last key.
type walk struct {
	table     *record.Table
	statement *sqlite3.Stmt
	asked     [2]string // the last key, while started
	started   bool      // the current row is the first one at or after asked
	on        bool      // the statement is on a row
}

// maxSteps is how many rows a walk steps over before it searches, which costs about as much.
const maxSteps = 8

// walkSQL reads rows from the key ?1, or ?1 and ?2, on. The columns of the key come last.
func walkSQL(t *record.Table) string {
	key, from := t.Key[0], "?1"
	if len(t.Key) > 1 {
		key, from = t.Key[0]+", "+t.Key[1], "?1, ?2"
	}
	return fmt.Sprintf(`SELECT %s, as_of, older, %s FROM %s WHERE (%s) >= (%s) ORDER BY %s`,
		strings.Join(t.Columns, ", "), key, t.Name, key, from, key)
}

// to moves to a key and reports whether it has a row: then the statement is on it.
func (w *walk) to(key [2]string) (held bool, err error) {
	if !w.started || compareKeys(key, w.asked) <= 0 {
		return w.search(key)
	}
	w.asked = key
	for range maxSteps {
		if !w.on {
			return false, nil
		}
		if order := w.compare(key); order >= 0 {
			return order == 0, nil
		}
		if w.on = w.statement.Step(); !w.on {
			if err := w.statement.Err(); err != nil {
				return false, w.failed(key, err)
			}
		}
	}
	return w.search(key)
}

// search restarts at a key.
func (w *walk) search(key [2]string) (held bool, err error) {
	w.rest()
	if err = bindKey(w.statement, w.table, key); err == nil {
		w.on = w.statement.Step()
		err = w.statement.Err()
	}
	if err != nil {
		return false, w.failed(key, err)
	}
	w.asked, w.started = key, true
	return w.on && w.compare(key) == 0, nil
}

// rest ends the read. An open read would keep SQLite from restarting its WAL after a commit.
func (w *walk) rest() {
	w.started, w.on = false, false
	_ = w.statement.Reset() // the step that failed has returned its error
}

func (w *walk) failed(key [2]string, err error) error {
	w.rest()
	return fmt.Errorf("read %s %s: %w", w.table.Name, key[0], err)
}

// compare compares the current row with a key, byte by byte as the table does.
func (w *walk) compare(key [2]string) int {
	first := len(w.table.Columns) + 2
	for i := range w.table.Key {
		if c := cmp.Compare(string(w.statement.ColumnRawText(first+i)), key[i]); c != 0 {
			return c
		}
	}
	return 0
}

func compareKeys(a, b [2]string) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}
