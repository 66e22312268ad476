package push

import (
	"fmt"
	"strings"

	"regedge/schema"
	"regedge/schema/content"
)

// kind is a kind of record, by its number in the table content.
type kind = content.Kind

const (
	company  = content.Company
	llp      = content.LLP
	director = content.Director
	pincode  = content.Pincode
	entry    = content.Entry
)

var kinds = content.Kinds

// record identifies a record.
type record = content.Record

// table has the statements for a table whose rows belong to records. Those of the search are written
// by entryStatements.
type table content.Table

// rows selects the rows of the records ?1, a JSON array of keys, as one JSON array. Rows of a
// numbered table end with the number of their CIN.
func (t *table) rows() string {
	columns := strings.Join(t.Columns, ", ")
	if t.Numbered {
		columns += ", cin_number(cin)"
	}
	return t.array(columns)
}

// primaryKeys selects the primary keys of the rows of the records ?1.
func (t *table) primaryKeys() string { return t.array(strings.Join(t.Columns[:t.Primary], ", ")) }

func (t *table) array(columns string) string {
	return fmt.Sprintf(`SELECT coalesce(json_group_array(json_array(%s)), '[]') FROM %s%s`, columns, t.Name, t.named())
}

// named is the condition for rows of the records ?1.
func (t *table) named() string {
	return fmt.Sprintf(` WHERE %s IN (SELECT value FROM json_each(?1))`, t.Key)
}

// drop deletes the rows of the records ?1 whose primary keys are not among ?2.
func (t *table) drop() string {
	return fmt.Sprintf(`DELETE FROM %s%s AND (%s) NOT IN (SELECT %s FROM json_each(?2))`,
		t.Name, t.named(), strings.Join(t.Columns[:t.Primary], ", "), elements(t.Primary))
}

// put inserts or updates the rows ?1.
func (t *table) put() string {
	var changes []string
	for _, column := range t.Columns[t.Primary:] {
		changes = append(changes, column+" = excluded."+column)
	}
	columns, values := strings.Join(t.Columns, ", "), elements(len(t.Columns))
	if t.Numbered {
		columns += ", rowid"
		values += ", " + schema.FreeRow(t.Name, fmt.Sprintf("value ->> %d", len(t.Columns)))
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM json_each(?1) WHERE true ON CONFLICT (%s) DO UPDATE SET %s`,
		t.Name, columns, values, strings.Join(t.Columns[:t.Primary], ", "), strings.Join(changes, ", "))
}

// elements are the first n elements of each value of json_each.
func elements(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("value ->> %d", i)
	}
	return strings.Join(list, ", ")
}
