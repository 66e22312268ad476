package source

import (
	"strings"

	"regedge/schema/importer/record"
)

// Offices counts the post offices of each district by pincode, over all pincode files
// of a run.
type Offices struct {
	counts map[officeKey]*officeCount
	Total  map[officesOf]int64
}

type officeKey struct {
	pincode  string
	district string // in lower case, since the case varies
}

type officeCount struct {
	n         int
	spellings map[string]int
	states    map[string]int
}

// officesOf identifies the offices of one pincode in one file of the run.
type officesOf struct {
	File    int
	Pincode string
}

// NewOffices counts no post offices yet.
func NewOffices() *Offices {
	return &Offices{map[officeKey]*officeCount{}, map[officesOf]int64{}}
}

// takeOffice counts a post office. One without a district is left out.
func takeOffice(s *sheet) (record.Record, error) {
	pincode := pincodeOf(s.get(fieldPincode))
	if pincode.Kind == record.Null {
		return record.Record{}, &rejection{badPincode, cut(s.get(fieldPincode), 20)}
	}
	district := s.get(fieldDistrict)
	if isNone(district) || isZero(district) {
		return record.Record{}, &omission{"office without a district"}
	}
	if isFormulaOrError(district) || isDigits(strings.TrimSpace(district)) {
		return record.Record{}, &rejection{"invalid district", cut(clean(district), 60)}
	}
	s.likely.noteDistrict(district, s.get(fieldOffice))
	s.offices.add(s.out.file, pincode.Text, clean(district), stateName(s.get(fieldState)).Text)
	return record.Record{}, s.out.office()
}

func (o *Offices) add(file int, pincode, district, state string) {
	key := officeKey{pincode, strings.ToLower(district)}
	c := o.counts[key]
	if c == nil {
		c = &officeCount{0, map[string]int{}, map[string]int{}}
		o.counts[key] = c
	}
	c.n++
	c.spellings[district]++
	if state != "" {
		c.states[state]++
	}
	o.Total[officesOf{file, pincode}]++
}

// None reports whether no office was read.
func (o *Offices) None() bool { return len(o.Total) == 0 }

// Places returns for each pincode the district of most of its offices, and the state that most
// of those have. The first in the alphabet wins a tie.
func (o *Offices) Places() map[string]record.Place {
	best := map[string]*officeCount{}
	names := map[string]string{}
	for key, c := range o.counts {
		was, name := best[key.pincode], mostOf(c.spellings)
		if was == nil || c.n > was.n || c.n == was.n && name < names[key.pincode] {
			best[key.pincode], names[key.pincode] = c, name
		}
	}
	list := make(map[string]record.Place, len(best))
	for pincode, c := range best {
		list[pincode] = record.Place{District: names[pincode], State: mostOf(c.states)}
	}
	return list
}

// mostOf returns the text with the highest count. The first in the alphabet wins a tie.
func mostOf(counts map[string]int) string {
	best := ""
	for s, n := range counts {
		if best == "" || n > counts[best] || n == counts[best] && s < best {
			best = s
		}
	}
	return best
}
