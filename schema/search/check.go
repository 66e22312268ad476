package search

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/names"
)

// Check verifies the invariants of the package (see its comment) and returns the first
// violation as an error. The database must have no marks; all of it is read.
func Check(c *sqlite3.Conn) error {
	want := make(map[string]entry)
	err := readAll(c, func(value, registered, status string) error {
		if e, ok := newEntry(value, registered, status); ok {
			want[value] = e
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
	var before *entry
	for rows.Step() {
		place, value := rows.ColumnInt64(0), rows.ColumnText(1)
		e := formed(value, rows.ColumnText(2), rows.ColumnText(3), place >= inactivePlace)
		if want[value] != e {
			return fmt.Errorf("row of %s at place %d is %+v, want %+v", value, place, e, want[value])
		}
		if before != nil && before.compare(&e) >= 0 {
			return fmt.Errorf("%s at place %d is out of order", value, place)
		}
		delete(want, value)
		before = &e
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for value := range want {
		return fmt.Errorf("no row for %s", value)
	}
	return checkTerms(c)
}

// checkTerms compares for each term how many names the index has with it and how many it should
// have.
func checkTerms(c *sqlite3.Conn) error {
	want, err := countTerms(c)
	if err != nil {
		return err
	}
	if err := c.Exec(`CREATE VIRTUAL TABLE temp.search_term USING fts5vocab (main, search_index, row)`); err != nil {
		return err
	}
	defer c.Exec(`DROP TABLE temp.search_term`)
	rows, _, err := c.Prepare(`SELECT term, doc FROM temp.search_term`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Step() {
		term, count := rows.ColumnText(0), rows.ColumnInt64(1)
		if count != want[term] {
			return fmt.Errorf("term %q has %d names, want %d", term, count, want[term])
		}
		delete(want, term)
	}
	for term, n := range want {
		return fmt.Errorf("term %q has no name, want %d", term, n)
	}
	return rows.Err()
}

func countTerms(c *sqlite3.Conn) (map[string]int64, error) {
	rows, _, err := c.Prepare(`SELECT name FROM search_name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := make(map[string]int64)
	for rows.Step() {
		for _, term := range names.Terms(rows.ColumnText(0)) {
			counts[term]++
		}
	}
	return counts, rows.Err()
}
