package record

import "strings"

// Record holds the values that one row or document of a source gives for one row of a table.
type Record struct {
	Table  *Table
	Key    [2]string // the second is empty in a table whose primary key is one column
	Values []Value   // NULL where the source says nothing
}

// New makes a record of a table. key has the columns of its primary key, one or two.
func New(t *Table, values []Value, key ...string) Record {
	r := Record{Table: t, Values: values}
	copy(r.Key[:], key)
	return r
}

// BatchRecords is the number of records that one import stage hands to the next at a time:
// enough for the stages to run in parallel, few enough to bound the memory.
const BatchRecords = 5000

// Reject is a row that can't be taken.
type Reject struct {
	Line   int
	Reason string // from a small set: the report counts by it
	Detail string // may be empty
	Raw    string // the row as the rejects file has it
}

// Entry is a record on its way to the database, with its origin in case it is rejected.
type Entry struct {
	Record
	File int // index of its file in the run
	Line int
	Raw  string
}

// Value is one column of a record. The zero value is NULL.
type Value struct {
	Kind Kind
	Int  int64
	Text string
}

// Kind tells what a value holds.
type Kind uint8

const (
	// Null is no value.
	Null Kind = iota
	Number
	Text
)

// TextOf makes a text; the empty text is NULL.
func TextOf(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{Kind: Text, Text: s}
}

// NumberOf makes an integer.
func NumberOf(n int64) Value { return Value{Kind: Number, Int: n} }

// compareValues is a total order: NULL, then numbers, then texts by their bytes.
func compareValues(a, b Value) int {
	switch {
	case a.Kind != b.Kind:
		return int(a.Kind) - int(b.Kind)
	case a.Kind == Number && a.Int < b.Int:
		return -1
	case a.Kind == Number && a.Int > b.Int:
		return 1
	}
	return strings.Compare(a.Text, b.Text)
}

// Complete reports whether the record has every column that a new row must have.
func (r *Record) Complete() bool {
	for _, c := range r.Table.Required {
		if r.Values[c].Kind == Null {
			return false
		}
	}
	return true
}

// Place is the district and the state of a pincode.
type Place struct{ District, State string }
