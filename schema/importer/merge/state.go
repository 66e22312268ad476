package merge

import (
	"sort"
	"strings"

	"github.com/tidwall/gjson"

	"regedge/schema/importer/record"
)

// State is a stored record: its values, and for each unit the date of the source that it comes
// from ("" before any source had it).
//
// Of each unit the greatest (source date, value) wins, and the record's date is the greatest of
// its sources. Both are maxima, so that the state does not depend on the order in which
// sources are merged, nor on repetition.
type State struct {
	Values []record.Value
	dates  []string
	AsOf   string

	ours, theirs []record.Value // buffers of Merge
}

// NewState returns the state of a table's record before the first source.
func NewState(t *record.Table) *State {
	n := len(t.Columns)
	return &State{
		Values: make([]record.Value, n), dates: make([]string, len(t.Units)),
		ours: make([]record.Value, n), theirs: make([]record.Value, n),
	}
}

// Reset returns to the state before the first source.
func (s *State) Reset() {
	clear(s.Values)
	clear(s.dates)
	s.AsOf = ""
}

// Effect tells what a merge did to a state.
type Effect struct {
	Content bool // a value differs
	Stored  bool // anything that is stored differs: content, or only dates
}

// Merge merges the values of a source of date asOf.
func (s *State) Merge(t *record.Table, said []record.Value, asOf string) Effect {
	var did Effect
	for i := range t.Units {
		r := &t.Units[i]
		if len(r.Columns) == 1 && said[r.Columns[0]].Kind == record.Null {
			continue
		}
		order := strings.Compare(asOf, s.dates[i])
		if order < 0 {
			continue
		}
		for n, c := range r.Columns {
			s.ours[n], s.theirs[n] = s.Values[c], said[c]
		}
		n := len(r.Columns)
		difference := r.Compare(s.theirs[:n], s.ours[:n])
		if order == 0 && difference <= 0 {
			continue
		}
		did.Stored = true
		did.Content = did.Content || difference != 0
		s.dates[i] = asOf
		for n, c := range r.Columns {
			s.Values[c] = s.theirs[n]
		}
	}
	if asOf > s.AsOf {
		s.AsOf, did.Stored = asOf, true
	}
	return did
}

// Contradicted returns the first column of which a source of the state's own date has another value than the state, "" if there is
// none. It looks at columns that are units of their own.
func (s *State) Contradicted(t *record.Table, said []record.Value, asOf string) string {
	for i := range t.Units {
		c := t.Units[i].Columns[0]
		if s.dates[i] == asOf && len(t.Units[i].Columns) == 1 && said[c].Kind != record.Null && said[c] != s.Values[c] {
			return t.Columns[c]
		}
	}
	return ""
}

// Drop forgets the value of a column that is a unit of its own.
func (s *State) Drop(t *record.Table, column int) {
	s.Values[column] = record.Value{}
	for i := range t.Units {
		if t.Units[i].Columns[0] == column {
			s.dates[i] = ""
		}
	}
}

// MergeNew resets the state and merges the records of one key, from sources of date asOf. It
// reports false if none of them is complete enough for a new row. Records before the first
// complete one are dropped, as load.Store does.
func (s *State) MergeNew(group []record.Entry, asOf string) (exists bool) {
	s.Reset()
	for i := range group {
		t := group[i].Table
		s.Merge(t, group[i].Values, asOf)
		if !exists && s.Missing(t) != "" {
			s.Reset()
			continue
		}
		exists = true
	}
	return exists
}

// Missing returns the name of the first required column without a value, "" if none.
func (s *State) Missing(t *record.Table) string {
	for _, c := range t.Required {
		if s.Values[c].Kind == record.Null {
			return t.Columns[c]
		}
	}
	return ""
}

// Older returns the column older: NULL, or a JSON object with the dates of the units that come
// from an earlier source than the record's date, sorted by name.
func (s *State) Older(t *record.Table) record.Value {
	var fields []string
	for i, date := range s.dates {
		if date != "" && date != s.AsOf {
			fields = append(fields, `"`+t.Units[i].Name+`":"`+date+`"`)
		}
	}
	if fields == nil {
		return record.Value{}
	}
	sort.Strings(fields)
	return record.TextOf("{" + strings.Join(fields, ",") + "}")
}

// SetDates is the inverse of Older: it sets the dates of a state read from the database.
func (s *State) SetDates(t *record.Table, older string) {
	for i := range t.Units {
		s.dates[i] = ""
		r := &t.Units[i]
		if r.Always || s.Values[r.Columns[0]].Kind != record.Null {
			s.dates[i] = s.AsOf
		}
	}
	if older == "" {
		return
	}
	gjson.Parse(older).ForEach(func(name, date gjson.Result) bool {
		for i := range t.Units {
			if t.Units[i].Name == name.String() {
				s.dates[i] = date.String()
			}
		}
		return true
	})
}
