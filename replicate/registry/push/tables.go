package push

import (
	"fmt"
	"slices"
	"strings"

	"regedge/schema"
)

// kind is a kind of record, by its number in the table content.
type kind int

const (
	company  kind = 1
	llp      kind = 2
	director kind = 3
	pincode  kind = 4
	entry    kind = 5 // an entry of the search
)

// kinds lists all kinds, in the order in which they are hashed and shown.
var kinds = []kind{company, llp, director, pincode, entry}

var kindNames = map[kind]string{
	company: "companies", llp: "LLPs", director: "directors", pincode: "pincodes", entry: "search entries",
}

func (k kind) String() string { return kindNames[k] }

// table is a table whose rows belong to records of a kind.
type table struct {
	name    string
	key     string   // the column that identifies the record
	columns []string // all of them, the primary key first
	primary int      // number of columns of the primary key
	// numbered: a new row gets the rowid that ident.CINNumber gives for its CIN, unless that is
	// taken.
	numbered bool
}

// tables lists the tables of each kind; that of the record itself comes first. Search entries are
// written by entryStatements.
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

// dates are the columns that tell from which source a value comes. Only imports read them, and an
// import changes them in every record that it confirms, so they are not compared.
var dates = []string{"as_of", "older"}

// scan selects every row as its key and a JSON array of the compared columns, by primary key.
func (t *table) scan() string {
	order := strings.Join(t.columns[:t.primary], ", ")
	return fmt.Sprintf(`SELECT %s, json_array(%s) FROM %s ORDER BY %s`, t.key, strings.Join(t.compared(), ", "), t.name, order)
}

// compared are the columns that are hashed: all but the dates.
func (t *table) compared() []string {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c string) bool { return slices.Contains(dates, c) })
}

// rows selects the rows of the records ?1, a JSON array of keys, as one JSON array. Rows of a
// numbered table end with the number of their CIN.
func (t *table) rows() string {
	columns := strings.Join(t.columns, ", ")
	if t.numbered {
		columns += ", cin_number(cin)"
	}
	return t.array(columns)
}

// primaryKeys selects the primary keys of the rows of the records ?1.
func (t *table) primaryKeys() string { return t.array(strings.Join(t.columns[:t.primary], ", ")) }

func (t *table) array(columns string) string {
	return fmt.Sprintf(`SELECT coalesce(json_group_array(json_array(%s)), '[]') FROM %s%s`, columns, t.name, t.named())
}

// named is the condition for rows of the records ?1.
func (t *table) named() string {
	return fmt.Sprintf(` WHERE %s IN (SELECT value FROM json_each(?1))`, t.key)
}

// drop deletes the rows of the records ?1 whose primary keys are not among ?2.
func (t *table) drop() string {
	return fmt.Sprintf(`DELETE FROM %s%s AND (%s) NOT IN (SELECT %s FROM json_each(?2))`,
		t.name, t.named(), strings.Join(t.columns[:t.primary], ", "), elements(t.primary))
}

// put inserts or updates the rows ?1.
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
