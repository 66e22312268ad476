package search

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"regedge/handler/names"
)

// active is the one status whose records come first.
const active = "ACTIVE"

const (
	// inactivePlace is where the places of records that are not active begin.
	inactivePlace = int64(1) << 32
	// placeGap is the room between two neighbours when the index is built anew.
	placeGap = int64(16)
)

// entry is a record as the index orders it.
type entry struct {
	inactive bool
	length   int // characters of name
	name     string
	value    string
	label    string // the registered name, empty where it is name in capitals
}

// newEntry makes the entry of a record. A record whose form is empty has none.
func newEntry(value, registered, status string) (entry, bool) {
	name := names.Name(registered)
	e := formed(value, name, status != active)
	if registered != capitals(name) {
		e.label = registered
	}
	return e, name != ""
}

// capitals is text as SQLite's upper makes it: only ASCII letters change.
func capitals(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// formed is the entry of a name that is in its form.
func formed(value, name string, inactive bool) entry {
	return entry{inactive: inactive, length: utf8.RuneCountInString(name), name: name, value: value}
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

// floor and ceiling bound the places that an entry of this kind may have: floor < place
// < ceiling.
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
