package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema"
)

// insertSQL adds a record: its key, columns, as_of, older and, if stamped, last_updated; a
// company's board last, and its district, which follows from its pincode.
func (t *table) insertSQL() string {
	columns := append(append(append([]string{}, t.key...), t.columns...), "as_of", "older")
	if t.stamped {
		columns = append(columns, "last_updated")
	}
	places := make([]string, len(columns))
	for i := range places {
		places[i] = "?" + strconv.Itoa(i+1)
	}
	if t == companyTable {
		columns = append(columns, "district", "directors")
		places = append(places, districtOf(pincodePlace), boardNow)
	}
	if t.row != "" {
		columns, places = append(columns, "rowid"), append(places, schema.FreeRow(t.name, t.row))
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, t.name, strings.Join(columns, ", "), strings.Join(places, ", "))
}

// updateSQL writes a record: the parameters are those of insertSQL, last_updated NULL to
// keep it.
func (t *table) updateSQL() string {
	var sets []string
	n := len(t.key)
	for _, c := range append(append([]string{}, t.columns...), "as_of", "older") {
		n++
		sets = append(sets, c+" = ?"+strconv.Itoa(n))
	}
	if t.stamped {
		sets = append(sets, fmt.Sprintf("last_updated = coalesce(?%d, last_updated)", n+1))
	}
	if t == companyTable {
		sets = append(sets, "district = "+districtOf(pincodePlace))
	}
	return fmt.Sprintf(`UPDATE %s SET %s WHERE %s`, t.name, strings.Join(sets, ", "), t.keySQL())
}

func (t *table) keySQL() string {
	where := t.key[0] + " = ?1"
	if len(t.key) > 1 {
		where += " AND " + t.key[1] + " = ?2"
	}
	return where
}

func bindKey(statement *sqlite3.Stmt, t *table, key [2]string) error {
	for i := range t.key {
		if err := statement.BindText(i+1, key[i]); err != nil {
			return err
		}
	}
	return nil
}

func bindValue(statement *sqlite3.Stmt, n int, v value) error {
	switch v.kind {
	case number:
		return statement.BindInt64(n, v.n)
	case text:
		return statement.BindText(n, v.s)
	}
	return statement.BindNull(n)
}

// finish steps a statement without rows to its end and resets it.
func finish(statement *sqlite3.Stmt) error {
	statement.Step()
	return statement.Reset()
}

// columnValue reads a column. What is the same as in said is not copied: most values are.
func columnValue(statement *sqlite3.Stmt, i int, said value) value {
	switch statement.ColumnType(i) {
	case sqlite3.INTEGER:
		return numberValue(statement.ColumnInt64(i))
	case sqlite3.TEXT:
		return textValue(columnText(statement, i, said.s))
	}
	return value{}
}

// columnText reads a column of text, or returns said where it is the same.
func columnText(statement *sqlite3.Stmt, i int, said string) string {
	if raw := statement.ColumnRawText(i); string(raw) != said {
		return string(raw)
	}
	return said
}
