package search

import "github.com/ncruces/go-sqlite3"

// Rebuild builds the index anew from the tables company and llp, and deletes the marks, whatever is
// marked. It is one transaction, as Refresh is.
func Rebuild(c *sqlite3.Conn) (change Change, err error) {
	defer c.Savepoint().Release(&err)
	if change, err = rebuild(c); err != nil {
		return Change{}, err
	}
	return change, c.Exec(`DELETE FROM search_pending`)
}
