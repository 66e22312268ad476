package search

import (
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/ncruces/go-sqlite3"
)

// Check verifies the invariants of the package (see its comment) and returns the first
// violation as an error. The database must have no marks. All of it is read, in memory that
// does not grow with it; the check of the terms needs a temporary table.
func Check(c *sqlite3.Conn) error {
	if err := checkRows(c); err != nil {
		return err
	}
	return checkTerms(c)
}

// checkRows compares the rows of search_name with the records. Both are read in file order and compared
// by the sums of their entries' hashes: equal sums mean equal entries, except with a probability of
// one in 2^64.
func checkRows(c *sqlite3.Conn) error {
	seed := maphash.MakeSeed()
	var want, got uint64
	err := readAll(c, func(value, registered, status string) error {
		if e, named := newEntry(value, registered, status); named {
			want += maphash.Comparable(seed, e)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read names: %w", err)
	}
	rows, _, err := c.Prepare(`SELECT place, value, name, label FROM search_name ORDER BY place`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var before entry
	var disorder error
	for n := 0; rows.Step(); n++ {
		place, e := rowOf(rows)
		if n > 0 && before.compare(&e) >= 0 && disorder == nil {
			disorder = fmt.Errorf("%s at place %d is out of order", e.value, place)
		}
		got += maphash.Comparable(seed, e)
		before = e
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case want != got:
		return differingRow(c)
	}
	return disorder
}

// rowOf is the current row of a statement that selects place, value, name and label.
func rowOf(rows *sqlite3.Stmt) (place int64, e entry) {
	place = rows.ColumnInt64(0)
	return place, formed(rows.ColumnText(1), rows.ColumnText(2), rows.ColumnText(3), place >= inactivePlace)
}

// recordsByValue selects all records that the index may contain, by CIN and LLPIN.
const recordsByValue = records + ` ORDER BY 1`

const rowsByValue = `SELECT place, value, name, label FROM search_name ORDER BY value`

// differingRow walks the records and the rows of search_name in parallel and describes the first
// difference. Its reads are random, which takes some minutes at the country's size.
func differingRow(c *sqlite3.Conn) error {
	want, _, err := c.Prepare(recordsByValue)
	if err != nil {
		return err
	}
	defer want.Close()
	rows, _, err := c.Prepare(rowsByValue)
	if err != nil {
		return err
	}
	defer rows.Close()
	more := rows.Step()
	for want.Step() {
		e, named := newEntry(want.ColumnText(0), want.ColumnText(1), want.ColumnText(2))
		switch {
		case !named:
			continue
		case !more || rows.ColumnText(1) > e.value:
			return fmt.Errorf("no row for %s", e.value)
		case rows.ColumnText(1) < e.value:
			return fmt.Errorf("row of %s without a record", rows.ColumnText(1))
		}
		if place, got := rowOf(rows); got != e {
			return fmt.Errorf("row of %s at place %d is %+v, want %+v", got.value, place, got, e)
		}
		more = rows.Step()
	}
	if err := errors.Join(want.Err(), rows.Err()); err != nil {
		return err
	}
	if more {
		return fmt.Errorf("row of %s without a record", rows.ColumnText(1))
	}
	return errors.New("the rows differ from the records")
}
