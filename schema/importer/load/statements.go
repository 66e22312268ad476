package load

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema"
	"regedge/schema/importer/record"
)

// insertSQL inserts a record: its key, columns, as_of, older and, if stamped, last_updated.
// The directors list of a company is derived.
func insertSQL(t *record.Table) string {
	columns := append(append(append([]string{}, t.Key...), t.Columns...), "as_of", "older")
	if t.Stamped {
		columns = append(columns, "last_updated")
	}
	places := make([]string, len(columns))
	for i := range places {
		places[i] = "?" + strconv.Itoa(i+1)
	}
	if t == record.CompanyTable {
		columns, places = append(columns, "directors"), append(places, listNow)
	}
	if t.Row != "" {
		columns, places = append(columns, "rowid"), append(places, schema.FreeRow(t.Name, t.Row))
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, t.Name, strings.Join(columns, ", "), strings.Join(places, ", "))
}

// updateSQL updates a record, with the parameters of insertSQL; last_updated NULL leaves it
// as it is.
func updateSQL(t *record.Table) string {
	var sets []string
	n := len(t.Key)
	for _, c := range append(append([]string{}, t.Columns...), "as_of", "older") {
		n++
		sets = append(sets, c+" = ?"+strconv.Itoa(n))
	}
	if t.Stamped {
		sets = append(sets, fmt.Sprintf("last_updated = coalesce(?%d, last_updated)", n+1))
	}
	return fmt.Sprintf(`UPDATE %s SET %s WHERE %s`, t.Name, strings.Join(sets, ", "), keySQL(t))
}

func keySQL(t *record.Table) string {
	where := t.Key[0] + " = ?1"
	if len(t.Key) > 1 {
		where += " AND " + t.Key[1] + " = ?2"
	}
	return where
}

func bindKey(statement *sqlite3.Stmt, t *record.Table, key [2]string) error {
	for i := range t.Key {
		if err := statement.BindText(i+1, key[i]); err != nil {
			return err
		}
	}
	return nil
}

func bindValue(statement *sqlite3.Stmt, n int, v record.Value) error {
	switch v.Kind {
	case record.Number:
		return statement.BindInt64(n, v.Int)
	case record.Text:
		return statement.BindText(n, v.Text)
	}
	return statement.BindNull(n)
}

// finish runs a statement without rows and resets it.
func finish(statement *sqlite3.Stmt) error {
	statement.Step()
	return statement.Reset()
}

// columnValue reads a column. A text equal to said's is shared, not copied: most are equal.
func columnValue(statement *sqlite3.Stmt, i int, said record.Value) record.Value {
	switch statement.ColumnType(i) {
	case sqlite3.INTEGER:
		return record.NumberOf(statement.ColumnInt64(i))
	case sqlite3.TEXT:
		return record.TextOf(columnText(statement, i, said.Text))
	}
	return record.Value{}
}

// columnText reads a text column, and returns said if it is equal.
func columnText(statement *sqlite3.Stmt, i int, said string) string {
	if raw := statement.ColumnRawText(i); string(raw) != said {
		return string(raw)
	}
	return said
}
