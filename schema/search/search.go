// Package search keeps the search index of a registry database up to date: the tables
// search_name and search_index, which hold each company and LLP by its name in the form
// of handler/names, at a place that is its rank. docs/search.md has the whole picture.
//
// Invariants, which Check verifies:
//   - search_name has one row for each company and each LLP whose form is not empty, and
//     no other. Its label gives the registered name.
//   - Places grow in the order active first, shorter, alphabetical, by value; an active
//     name's place is below 1<<32, another's is not.
//   - search_index has, for each row of search_name and for nothing else, the terms of its
//     name under its place.
//
// They hold for every record that search_pending does not name.
package search

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Mark notes that the company or LLP with the CIN or LLPIN ?1 is new, or changed its name
// or status, or is gone. Run it in the transaction that changes the record.
const Mark = `INSERT INTO search_pending (value) VALUES (?1)`

// MarkAll notes that every record may have changed. Run it before a bulk load in place of
// Mark for each.
const MarkAll = `INSERT INTO search_pending (value) VALUES ('*')`

// rebuildShare is the share of changed records, one in so many, from which building the
// index anew is cheaper than changing it.
const rebuildShare = 10

// Change is what Refresh did.
type Change struct {
	Rebuilt          bool  // the index was built anew
	Removed, Written int64 // rows of search_name
}

// Refresh brings the index up to date with the records that were marked, and forgets the
// marks. With no marks it writes nothing. It is one transaction, or joins the one that is
// open on the connection: on an error nothing has changed. The connection needs FTS5.
func Refresh(c *sqlite3.Conn) (change Change, err error) {
	pending, all, err := countPending(c)
	if err != nil {
		return change, fmt.Errorf("count marks: %w", err)
	}
	if pending == 0 {
		return change, nil
	}
	defer c.Savepoint().Release(&err)
	if !all {
		held, err := number(c, `SELECT count(*) FROM search_name`)
		if err != nil {
			return change, fmt.Errorf("count names: %w", err)
		}
		all = pending > held/rebuildShare
	}
	if all {
		change, err = rebuild(c)
	} else {
		change, err = update(c)
	}
	if err != nil {
		return Change{}, err
	}
	return change, c.Exec(`DELETE FROM search_pending`)
}

// Rebuild builds the index anew from the company and llp tables, and forgets the marks.
// It is one transaction as Refresh is.
func Rebuild(c *sqlite3.Conn) (change Change, err error) {
	defer c.Savepoint().Release(&err)
	if change, err = rebuild(c); err != nil {
		return Change{}, err
	}
	return change, c.Exec(`DELETE FROM search_pending`)
}

func countPending(c *sqlite3.Conn) (count int64, all bool, err error) {
	count, err = number(c, `SELECT count(*) FROM search_pending`)
	if err != nil || count == 0 {
		return 0, false, err
	}
	whole, err := number(c, `SELECT count(*) FROM search_pending WHERE value = '*'`)
	return count, whole > 0, err
}

// number runs a query that returns one integer.
func number(c *sqlite3.Conn, query string) (int64, error) {
	s, _, err := c.Prepare(query)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	var n int64
	if s.Step() {
		n = s.ColumnInt64(0)
	}
	return n, s.Err()
}
