package search

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Mark is the statement that marks the company or LLP with the CIN or LLPIN ?1 as new, gone, or
// changed in name or status. Run it in the transaction that changes the record.
const Mark = `INSERT INTO search_pending (value) VALUES (?1)`

// everyRecord marks all records at once. Interrupted imports of earlier versions left it in files.
const everyRecord = "*"

// rebuildShare: with more than 1/rebuildShare of the records changed, a rebuild is cheaper than
// updates.
const rebuildShare = 10

// Change reports what Refresh did.
type Change struct {
	Rebuilt          bool  // the index was built anew
	Removed, Written int64 // rows of search_name
}

// Refresh brings the index up to date with the marked records, and deletes the marks. Without
// marks it writes nothing. It runs in one transaction, or within the one open on the connection:
// after an error nothing has changed. The connection needs FTS5.
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
		names, err := number(c, `SELECT count(*) FROM search_name`)
		if err != nil {
			return change, fmt.Errorf("count names: %w", err)
		}
		all = pending > names/rebuildShare
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

func countPending(c *sqlite3.Conn) (count int64, all bool, err error) {
	count, err = number(c, `SELECT count(*) FROM search_pending`)
	if err != nil || count == 0 {
		return 0, false, err
	}
	whole, err := number(c, `SELECT count(*) FROM search_pending WHERE value = '`+everyRecord+`'`)
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

// prepare prepares statements, and returns a function that closes them. After an error none is open.
func prepare(c *sqlite3.Conn, queries map[**sqlite3.Stmt]string) (closeAll func(), err error) {
	closeAll = func() {
		for statement := range queries {
			(*statement).Close() // also one that is nil
		}
	}
	for statement, query := range queries {
		if *statement, _, err = c.Prepare(query); err != nil {
			closeAll()
			return nil, fmt.Errorf("prepare %q: %w", query, err)
		}
	}
	return closeAll, nil
}
