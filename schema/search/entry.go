package search

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"regedge/handler/fastbytes"
	"regedge/handler/names"
)

// active is the status of the records that come first.
const active = "ACTIVE"

const (
	// inactivePlace is the first place of records that are not active.
	inactivePlace = int64(1) << 32
	// placeGap is the distance between neighbours in a new index.
	placeGap = int64(16)
)

// entry is a record as the index orders it.
type entry struct {
	inactive bool
	length   int // characters of the registered name
	name     string
	value    string
	label    string // the registered name, empty if it is name in capitals
}

// newEntry makes the entry of a record. It reports false for a record whose form is empty.
func newEntry(value, registered, status string) (entry, bool) {
	name := names.Name(registered)
	label := registered
	if registered == fastbytes.Upper(name) {
		label = ""
	}
	return formed(value, name, label, status != active), name != ""
}

// formed makes an entry of a name in its form, and its label.
func formed(value, name, label string, inactive bool) entry {
	registered := label
	if label == "" {
		registered = name // in capitals
	}
	return entry{inactive: inactive, length: utf8.RuneCountInString(registered), name: name, value: value, label: label}
}

// compare orders entries as the search does within a tier, best first.
func (e *entry) compare(o *entry) int {
	if e.inactive != o.inactive {
		if o.inactive {
			return -1
		}
		return 1
	}
	if n := cmp.Compare(e.length, o.length); n != 0 {
		return n
	}
	if n := strings.Compare(e.name, o.name); n != 0 {
		return n
	}
	return strings.Compare(e.value, o.value)
}

// floor and ceiling bound the places of entries of this kind: floor < place < ceiling.
func (e *entry) floor() int64 {
	if e.inactive {
		return inactivePlace - 1
	}
	return 0
}

func (e *entry) ceiling() int64 {
	if e.inactive {
		return 1 << 62
	}
	return inactivePlace
}

// Terms returns the text of a name's row in search_index, which FTS5 needs to insert or delete it.
// Push uses it to copy the index from one database to another.
func Terms(name string) string { return string(names.AppendTerms(nil, name)) }
