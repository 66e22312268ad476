package search

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/names"
)

// errFull says that there is no free place between two neighbours.
var errFull = errors.New("no free place between neighbours")

// update brings the marked records up to date, one by one. It rebuilds the index if there is no
// free place for one.
func update(c *sqlite3.Conn) (Change, error) {
	u, err := newUpdater(c)
	if err != nil {
		return Change{}, err
	}
	defer u.close()
	if err := u.removeOld(); err != nil {
		return Change{}, err
	}
	for i := range u.fresh {
		err := u.insertInOrder(&u.fresh[i])
		if errors.Is(err, errFull) {
			err = u.spread(&u.fresh[i])
		}
		if errors.Is(err, errFull) {
			return rebuild(c)
		}
		if err != nil {
			return Change{}, fmt.Errorf("place %s: %w", u.fresh[i].value, err)
		}
		u.change.Written++
	}
	return u.change, nil
}

// updater is one run of update.
type updater struct {
	writer
	marked, row, nearest, last, between *sqlite3.Stmt
	close                               func()
	fresh                               []entry // to be placed
	change                              Change
}

// selectMarked reads the record of each mark, NULLs if it is gone.
const selectMarked = `
SELECT m.value, coalesce(c.company_name, l.llp_name), coalesce(c.status, l.status)
FROM (SELECT DISTINCT value FROM search_pending) m
LEFT JOIN company c ON c.cin = m.value
LEFT JOIN llp l ON l.llpin = m.value`

const selectRow = `SELECT place, name, label FROM search_name WHERE value = ?1`

// selectNearest reads the last row with ?1 < place <= ?2.
const selectNearest = `
SELECT place, value, name, label FROM search_name
WHERE place > ?1 AND place <= ?2 ORDER BY place DESC LIMIT 1`

// selectBetween reads the rows with ?1 < place < ?2, at most ?3.
const selectBetween = `
SELECT place, value, name, label FROM search_name
WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3`

const selectLast = `SELECT max(place) FROM search_name WHERE place < ?1`

func newUpdater(c *sqlite3.Conn) (u *updater, err error) {
	u = new(updater)
	u.close, err = prepare(c, map[**sqlite3.Stmt]string{
		&u.marked: selectMarked, &u.row: selectRow, &u.nearest: selectNearest, &u.last: selectLast, &u.between: selectBetween,
		&u.nameInsert:  insertName,
		&u.nameDelete:  `DELETE FROM search_name WHERE place = ?1`,
		&u.indexInsert: `INSERT INTO search_index (rowid, terms) VALUES (?1, ?2)`,
		&u.indexDelete: `INSERT INTO search_index (search_index, rowid, terms) VALUES ('delete', ?1, ?2)`,
	})
	return u, err
}

// removeOld deletes the outdated rows, and collects in fresh the entries to insert.
func (u *updater) removeOld() error {
	for u.marked.Step() {
		value := u.marked.ColumnText(0)
		want, wanted := entry{}, false
		if u.marked.ColumnType(1) != sqlite3.NULL {
			want, wanted = newEntry(value, u.marked.ColumnText(1), u.marked.ColumnText(2))
		}
		same, err := u.removeUnlike(value, &want, wanted)
		if err != nil {
			return fmt.Errorf("remove %s: %w", value, err)
		}
		if wanted && !same {
			u.fresh = append(u.fresh, want)
		}
	}
	return u.marked.Err()
}

// removeUnlike deletes the row of value unless it equals the wanted one, and reports whether it does.
func (u *updater) removeUnlike(value string, want *entry, wanted bool) (same bool, err error) {
	if err := u.row.BindText(1, value); err != nil {
		return false, err
	}
	defer u.row.Reset()
	if !u.row.Step() {
		return false, u.row.Err()
	}
	place, name := u.row.ColumnInt64(0), u.row.ColumnText(1)
	if wanted && name == want.name && u.row.ColumnText(2) == want.label && want.inactive == (place >= inactivePlace) {
		return true, nil
	}
	if err := u.row.Reset(); err != nil {
		return false, err
	}
	u.change.Removed++
	return false, u.remove(place, name)
}

// insertInOrder inserts e between its neighbours. It returns errFull if they are too close.
func (u *updater) insertInOrder(e *entry) error {
	before, after, err := u.neighbours(e)
	if err != nil {
		return err
	}
	at := before + placeGap
	if after != 0 {
		at = before + (after-before)/2
	}
	if at == before || at >= e.ceiling() {
		return errFull
	}
	return u.insert(at, e)
}

const (
	// spreadPlaces is the smallest range of places that is respaced.
	spreadPlaces = 64 * placeGap
	// spreadGap is the minimal gap between rows afterwards; below it, a larger range is respaced.
	spreadGap = placeGap / 2
	// mostSpread is the maximal number of rows in a range.
	mostSpread = 1 << 16
)

// spread inserts e where its neighbours are too close: it respaces the rows around it evenly, and all other
// rows keep their places. Companies of one group, such as ten solar parks, have adjacent names; rebuilding the
// index for them would change the place of every name, and a push would send them all. It returns errFull if
// there are too many rows around e.
func (u *updater) spread(e *entry) error {
	before, _, err := u.neighbours(e)
	if err != nil {
		return err
	}
	for places := spreadPlaces; ; places *= 4 {
		low, high := max(before-places/2, e.floor()), min(before+places/2, e.ceiling())
		rows, at, err := u.rowsBetween(low, high, e.inactive)
		if err != nil {
			return err
		}
		if len(rows) > mostSpread {
			return errFull
		}
		gap := (high - low) / int64(len(rows)+2)
		if gap < spreadGap {
			continue
		}
		for i := range rows {
			if err := u.remove(at[i], rows[i].name); err != nil {
				return err
			}
		}
		next, _ := slices.BinarySearchFunc(rows, e, func(row entry, e *entry) int { return row.compare(e) })
		rows = slices.Insert(rows, next, *e)
		for i := range rows {
			if err := u.insert(low+gap*int64(i+1), &rows[i]); err != nil {
				return err
			}
		}
		u.change.Removed += int64(len(at))
		u.change.Written += int64(len(at)) // e itself is counted by the caller
		return nil
	}
}

// rowsBetween reads the rows with low < place < high and their places, at most one more than mostSpread.
func (u *updater) rowsBetween(low, high int64, inactive bool) (rows []entry, at []int64, err error) {
	if err := errors.Join(u.between.BindInt64(1, low), u.between.BindInt64(2, high), u.between.BindInt64(3, mostSpread+1)); err != nil {
		return nil, nil, err
	}
	defer u.between.Reset()
	for u.between.Step() {
		at = append(at, u.between.ColumnInt64(0))
		rows = append(rows, formed(u.between.ColumnText(1), u.between.ColumnText(2), u.between.ColumnText(3), inactive))
	}
	return rows, at, u.between.Err()
}

// neighbours finds the places of the rows before and after e by binary search. Without a row
// before e, before is the floor of e; without a row after it, after is 0.
func (u *updater) neighbours(e *entry) (before, after int64, err error) {
	low, high := e.floor(), int64(0)
	if high, err = u.lastPlace(e.ceiling()); err != nil {
		return 0, 0, err
	}
	before = low
	for low < high {
		middle := low + (high-low+1)/2
		row, at, err := u.nearestTo(low, middle, e.inactive)
		switch {
		case err != nil:
			return 0, 0, err
		case at == 0:
			low = middle
		case row.compare(e) < 0:
			low, before = middle, at
		default:
			high, after = at-1, at
		}
	}
	return before, after, nil
}

func (u *updater) lastPlace(below int64) (int64, error) {
	if err := u.last.BindInt64(1, below); err != nil {
		return 0, err
	}
	defer u.last.Reset()
	u.last.Step()
	return u.last.ColumnInt64(0), u.last.Err()
}

// nearestTo returns the last row with low < place <= middle and its place, 0 if there is none.
func (u *updater) nearestTo(low, middle int64, inactive bool) (entry, int64, error) {
	if err := u.nearest.BindInt64(1, low); err != nil {
		return entry{}, 0, err
	}
	if err := u.nearest.BindInt64(2, middle); err != nil {
		return entry{}, 0, err
	}
	defer u.nearest.Reset()
	if !u.nearest.Step() {
		return entry{}, 0, u.nearest.Err()
	}
	return formed(u.nearest.ColumnText(1), u.nearest.ColumnText(2), u.nearest.ColumnText(3), inactive), u.nearest.ColumnInt64(0), nil
}

// writer holds the statements that change the index, and a buffer for terms.
type writer struct {
	nameInsert, nameDelete   *sqlite3.Stmt
	indexInsert, indexDelete *sqlite3.Stmt
	terms                    []byte
}

// insert inserts e at a free place.
func (w *writer) insert(place int64, e *entry) error {
	if err := errors.Join(bindName(w.nameInsert, place, e), w.nameInsert.Exec()); err != nil {
		return err
	}
	return w.index(w.indexInsert, place, e.name)
}

// remove deletes the row at place, which has name.
func (w *writer) remove(place int64, name string) error {
	if err := w.nameDelete.BindInt64(1, place); err != nil {
		return err
	}
	if err := w.nameDelete.Exec(); err != nil {
		return err
	}
	return w.index(w.indexDelete, place, name)
}

func (w *writer) index(s *sqlite3.Stmt, place int64, name string) error {
	w.terms = names.AppendTerms(w.terms[:0], name)
	if err := s.BindInt64(1, place); err != nil {
		return err
	}
	if err := s.BindRawText(2, w.terms); err != nil {
		return err
	}
	return s.Exec()
}
