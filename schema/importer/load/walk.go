package load

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/importer/record"
)

// walk finds the rows of a table for keys that are asked for in their order. It goes from
// row to row, which costs a part of what a search of its own for each key would, and
// searches where more than maxSteps rows lie between one key and the next. The rows at and
// before the last key may be written meanwhile, by this connection.
type walk struct {
	table     *record.Table
	statement *sqlite3.Stmt
	asked     [2]string // the last key that was asked for, while under way
	under     bool      // under way: there is no row between asked and the present one
	on        bool      // the statement stands on a row, which is at asked or behind it
}

// maxSteps is how many rows a walk passes by before it searches, which costs about as much.
const maxSteps = 8

// walkSQL reads records from a key on: ?1 and ?2. The columns of the key come last.
func walkSQL(t *record.Table) string {
	key, from := t.Key[0], "?1"
	if len(t.Key) > 1 {
		key, from = t.Key[0]+", "+t.Key[1], "?1, ?2"
	}
	return fmt.Sprintf(`SELECT %s, as_of, older, %s FROM %s WHERE (%s) >= (%s) ORDER BY %s`,
		strings.Join(t.Columns, ", "), key, t.Name, key, from, key)
}

// to moves to a key and reports whether it is held: then the statement stands on its row.
func (w *walk) to(key [2]string) (held bool, err error) {
	if !w.under || compareKeys(key, w.asked) <= 0 {
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

// search begins anew at a key.
func (w *walk) search(key [2]string) (held bool, err error) {
	w.rest()
	if err = bindKey(w.statement, w.table, key); err == nil {
		w.on = w.statement.Step()
		err = w.statement.Err()
	}
	if err != nil {
		return false, w.failed(key, err)
	}
	w.asked, w.under = key, true
	return w.on && w.compare(key) == 0, nil
}

// rest lets go of the table. A read that stays open would keep SQLite from using its log
// anew after a commit.
func (w *walk) rest() {
	w.under, w.on = false, false
	_ = w.statement.Reset() // its error was returned by the step that met it
}

func (w *walk) failed(key [2]string, err error) error {
	w.rest()
	return fmt.Errorf("read %s %s: %w", w.table.Name, key[0], err)
}

// compare orders the present row and a key as the table does, byte by byte.
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
