package importer

import (
	"sort"
	"strings"

	"github.com/tidwall/gjson"
)

// state is a stored record: its values, and for each register the date of the source
// that it was taken from ("" for a register that no source spoke of).
//
// Each register is a last-writer-wins register ordered by (source date, value), and the
// record's date is the greatest of all that spoke of it. Both are maxima, so that the
// state does not depend on the order in which sources are merged, nor on repetition.
type state struct {
	values []value
	dates  []string
	asOf   string

	ours, theirs []value // of one register, while two are compared
}

// newState is the state before the first source.
func newState(t *table) *state {
	n := len(t.columns)
	return &state{
		values: make([]value, n), dates: make([]string, len(t.registers)),
		ours: make([]value, n), theirs: make([]value, n),
	}
}

// reset makes it that state again.
func (s *state) reset() {
	clear(s.values)
	clear(s.dates)
	s.asOf = ""
}

// effect tells what a merge did to a state.
type effect struct {
	content bool // a value differs
	stored  bool // anything that is stored differs: content, or only dates
}

// merge brings what a source of date asOf says into the state.
func (s *state) merge(t *table, said []value, asOf string) effect {
	var did effect
	for i := range t.registers {
		r := &t.registers[i]
		if len(r.columns) == 1 && said[r.columns[0]].kind == null {
			continue
		}
		order := strings.Compare(asOf, s.dates[i])
		if order < 0 {
			continue
		}
		for n, c := range r.columns {
			s.ours[n], s.theirs[n] = s.values[c], said[c]
		}
		n := len(r.columns)
		difference := r.compare(s.theirs[:n], s.ours[:n])
		if order == 0 && difference <= 0 {
			continue
		}
		did.stored = true
		did.content = did.content || difference != 0
		s.dates[i] = asOf
		for n, c := range r.columns {
			s.values[c] = s.theirs[n]
		}
	}
	if asOf > s.asOf {
		s.asOf, did.stored = asOf, true
	}
	return did
}

// mergeNew makes the state that of a record that no source has spoken of before. It reports
// false when none of the sources, all of date asOf, says all that a new record must have; what
// one said before it was there is then forgotten, as a store does.
func (s *state) mergeNew(group []filed, asOf string) (exists bool) {
	s.reset()
	for i := range group {
		t := group[i].table
		s.merge(t, group[i].values, asOf)
		if !exists && s.missing(t) != "" {
			s.reset()
			continue
		}
		exists = true
	}
	return exists
}

// missing is the name of the first required column without a value, "" if none.
func (s *state) missing(t *table) string {
	for _, c := range t.required {
		if s.values[c].kind == null {
			return t.columns[c]
		}
	}
	return ""
}

// older writes the dates of the registers that come from a source before the record's
// date, as the column of that name: NULL or a JSON object with sorted names.
func (s *state) older(t *table) value {
	var fields []string
	for i, date := range s.dates {
		if date != "" && date != s.asOf {
			fields = append(fields, `"`+t.registers[i].name+`":"`+date+`"`)
		}
	}
	if fields == nil {
		return value{}
	}
	sort.Strings(fields)
	return textValue("{" + strings.Join(fields, ",") + "}")
}

// setDates is the inverse of older: it fills the dates of a state read from the database.
func (s *state) setDates(t *table, older string) {
	for i := range t.registers {
		s.dates[i] = ""
		r := &t.registers[i]
		if r.always || s.values[r.columns[0]].kind != null {
			s.dates[i] = s.asOf
		}
	}
	if older == "" {
		return
	}
	gjson.Parse(older).ForEach(func(name, date gjson.Result) bool {
		for i := range t.registers {
			if t.registers[i].name == name.String() {
				s.dates[i] = date.String()
			}
		}
		return true
	})
}
