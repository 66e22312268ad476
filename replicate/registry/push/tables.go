package push

import (
	"fmt"
	"slices"
	"strings"

	"regedge/schema"
)

// kind is a kind of record, as the table content numbers them.
type kind int

const (
	company  kind = 1
	llp      kind = 2
	director kind = 3
	pincode  kind = 4
	entry    kind = 5 // of the search
)

// kinds lists all, in the order in which they are hashed and shown.
var kinds = []kind{company, llp, director, pincode, entry}

var kindNames = map[kind]string{
	company: "companies", llp: "LLPs", director: "directors", pincode: "pincodes", entry: "search entries",
}

func (k kind) String() string { return kindNames[k] }

// table is a table that holds records of a kind, or what belongs to them.
type table struct {
	name    string
	key     string   // the column that names the record
	columns []string // all of them, the primary key first
	primary int      // columns of the primary key
	// numbered is set for the table of companies, which has a new one in the row that its CIN
	// says, unless it is taken.
	numbered bool
}

// tables of each kind: the one of the record itself comes first. Entries of the search
// are no such tables: batch.go has theirs.
var tables = map[kind][]table{
	company: {
		{"company", "cin", split(`cin company_name status incorporation_date category sub_category class roc
			authorized_capital paid_up_capital listed main_division business_activity principal_business state
			pincode address_line city email phone website as_of older last_updated district directors`), 1, true},
		{"appointment", "cin", split(`cin din designation appointment_date cessation_date cessation as_of older`), 2, false},
	},
	llp: {
		{"llp", "llpin", split(`llpin llp_name status incorporation_date main_division business_activity contribution
			state pincode address_line city as_of older last_updated`), 1, false},
		{"partner", "llpin", split(`llpin who din name status joined_on left_on as_of older`), 2, false},
	},
	director: {
		{"director", "din", split(`din name disqualified designation appointment_date as_of older last_updated`), 1, false},
	},
	pincode: {
		{"pincode", "pincode", split(`pincode district state`), 1, false},
	},
}

func split(names string) []string { return strings.Fields(names) }

// dates are the columns that say which source a value is of. Only an import reads them, and
// one of a later day changes them in every record that it confirms: for their sake alone
// nothing is pushed.
var dates = []string{"as_of", "older"}

// scan reads every row as (key, JSON array of its columns but the dates), by primary key.
func (t *table) scan() string {
	order := strings.Join(t.columns[:t.primary], ", ")
	return fmt.Sprintf(`SELECT %s, json_array(%s) FROM %s ORDER BY %s`, t.key, strings.Join(t.compared(), ", "), t.name, order)
}

// compared are the columns for whose sake a row is pushed.
func (t *table) compared() []string {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c string) bool { return slices.Contains(dates, c) })
}

// rows reads the rows of the records ?1, a JSON array of keys, as one JSON array. Those of a
// numbered table end with the number of their CIN.
func (t *table) rows() string {
	columns := strings.Join(t.columns, ", ")
	if t.numbered {
		columns += ", cin_number(cin)"
	}
	return t.array(columns)
}

// primaryKeys reads the primary keys of the rows of the records ?1.
func (t *table) primaryKeys() string { return t.array(strings.Join(t.columns[:t.primary], ", ")) }

func (t *table) array(columns string) string {
	return fmt.Sprintf(`SELECT coalesce(json_group_array(json_array(%s)), '[]') FROM %s%s`, columns, t.name, t.named())
}

// named is the condition that a row belongs to the records ?1.
func (t *table) named() string {
	return fmt.Sprintf(` WHERE %s IN (SELECT value FROM json_each(?1))`, t.key)
}

// drop deletes the rows of the records ?1 whose primary keys are not among ?2.
func (t *table) drop() string {
	return fmt.Sprintf(`DELETE FROM %s%s AND (%s) NOT IN (SELECT %s FROM json_each(?2))`,
		t.name, t.named(), strings.Join(t.columns[:t.primary], ", "), elements(t.primary))
}

// put writes the rows ?1.
func (t *table) put() string {
	var changes []string
	for _, column := range t.columns[t.primary:] {
		changes = append(changes, column+" = excluded."+column)
	}
	columns, values := strings.Join(t.columns, ", "), elements(len(t.columns))
	if t.numbered {
		columns += ", rowid"
		values += ", " + schema.FreeRow(t.name, fmt.Sprintf("value ->> %d", len(t.columns)))
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM json_each(?1) WHERE true ON CONFLICT (%s) DO UPDATE SET %s`,
		t.name, columns, values, strings.Join(t.columns[:t.primary], ", "), strings.Join(changes, ", "))
}

// elements are the first n elements of each value of json_each.
func elements(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("value ->> %d", i)
	}
	return strings.Join(list, ", ")
}
