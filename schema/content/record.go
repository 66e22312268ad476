package content

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Kind is a kind of record, by its number in the table content.
type Kind int

const (
	Company  Kind = 1
	LLP      Kind = 2
	Director Kind = 3
	Pincode  Kind = 4
	Entry    Kind = 5 // a search entry
)

// Kinds lists all kinds, in the order in which they are hashed and shown.
var Kinds = []Kind{Company, LLP, Director, Pincode, Entry}

var kindNames = map[Kind]string{
	Company: "companies", LLP: "LLPs", Director: "directors", Pincode: "pincodes", Entry: "search entries",
}

func (k Kind) String() string { return kindNames[k] }

// Record identifies a record.
type Record struct {
	Kind Kind
	Key  string
}

// Bucket is a hash of the record's key, so that changed records are spread evenly over the buckets.
func (r Record) Bucket() int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", r.Kind, r.Key))
	return int64(binary.BigEndian.Uint32(sum[:]))
}

// Hash hashes a record's content. It is never negative, so that the sums of halves stay exact.
func Hash(content []byte) int64 {
	sum := sha256.Sum256(content)
	return int64(binary.BigEndian.Uint64(sum[:]) & math.MaxInt64)
}

// Table is a table whose rows belong to records of a kind.
type Table struct {
	Name    string
	Key     string   // the column that identifies the record
	Columns []string // all of them, the primary key first
	Primary int      // number of columns of the primary key
	// Numbered means that a new row gets the rowid that ident.CINNumber gives for its CIN, unless
	// that is taken.
	Numbered bool
}

// Tables lists the tables of each kind; that of the record itself comes first.
var Tables = map[Kind][]Table{
	Company: {
		{"company", "cin", strings.Fields(`cin company_name status incorporation_date category sub_category class roc
			authorized_capital paid_up_capital listed main_division business_activity principal_business state
			pincode address_line city email phone website as_of older last_updated district directors`), 1, true},
		{"appointment", "cin", strings.Fields(`cin din designation appointment_date cessation_date cessation as_of older`), 2, false},
	},
	LLP: {
		{"llp", "llpin", strings.Fields(`llpin llp_name status incorporation_date main_division business_activity contribution
			state pincode address_line city as_of older last_updated`), 1, false},
		{"partner", "llpin", strings.Fields(`llpin who din name status joined_on left_on as_of older`), 2, false},
	},
	Director: {
		{"director", "din", strings.Fields(`din name disqualified designation appointment_date as_of older last_updated`), 1, false},
	},
	Pincode: {
		{"pincode", "pincode", strings.Fields(`pincode district state`), 1, false},
	},
	Entry: {
		{"search_name", "value", strings.Fields(`place value name label`), 1, false},
	},
}

// dates are the columns that record the source of each value. Only imports read them, and an import
// changes them in every record that it confirms, so they are not compared.
var dates = []string{"as_of", "older"}

// compared are the columns that are hashed: all but the dates.
func (t *Table) compared() []string {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c string) bool { return slices.Contains(dates, c) })
}

// scan returns a query for rows as key and JSON array of the compared columns, in key order: all
// rows, or those whose keys are in ?1, a JSON array.
func (t *Table) scan(all bool) string {
	where, order := "", t.Key
	if !all {
		where = fmt.Sprintf(" WHERE %s IN (SELECT value FROM json_each(?1))", t.Key)
	}
	if own := strings.Join(t.Columns[:t.Primary], ", "); strings.HasPrefix(own, t.Key) {
		order = own
	}
	return fmt.Sprintf(`SELECT %s, json_array(%s) FROM %s%s ORDER BY %s`,
		t.Key, strings.Join(t.compared(), ", "), t.Name, where, order)
}
