package importer

import (
	"fmt"
	"strings"
)

// offices counts the post offices of each district by pincode, over all pincode files
// of a run.
type offices struct {
	counts map[officeKey]*officeCount
	total  map[officesOf]int64
}

type officeKey struct {
	pincode  string
	district string // in lower case, since the spelling varies in it
}

type officeCount struct {
	n         int
	spellings map[string]int
	states    map[string]int
}

// officesOf names the offices of one pincode in one file of the run.
type officesOf struct {
	file    int
	pincode string
}

func newOffices() *offices {
	return &offices{map[officeKey]*officeCount{}, map[officesOf]int64{}}
}

// takeOffice reads a post office. Those without a district do not vote.
func takeOffice(s *sheet) (record, error) {
	pincode := parsePincode(s.get(fieldPincode))
	if pincode.kind == null {
		return record{}, &rejection{badPincode, cut(s.get(fieldPincode), 20)}
	}
	district := s.get(fieldDistrict)
	if isNone(district) {
		return record{}, &omission{"office without a district"}
	}
	s.offices.add(s.out.file, pincode.s, clean(district), stateName(s.get(fieldState)).s)
	return record{}, s.out.office()
}

func (o *offices) add(file int, pincode, district, state string) {
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
	o.total[officesOf{file, pincode}]++
}

// pincodePlace is the parameter of companyTable's statements for the pincode.
var pincodePlace = fmt.Sprintf("?%d", len(companyTable.key)+companyPincode+1)

// districtOf is an SQL expression for the district of the pincode that the SQL expression
// pincode gives.
func districtOf(pincode string) string {
	return "(SELECT p.district FROM pincode p WHERE p.pincode = " + pincode + ")"
}

// putDistricts brings the districts of the companies in the pincodes ?1, a JSON array, to what
// the pincodes say.
var putDistricts = `UPDATE company SET district = ` + districtOf("company.pincode") + `
WHERE pincode IN (SELECT value FROM json_each(?1))`

// place is what the directory says of one pincode.
type place struct{ district, state string }

// places picks for each pincode the district of most of its offices, of equal ones the
// first in the alphabet, and the state that most of those offices name.
func (o *offices) places() map[string]place {
	best := map[string]*officeCount{}
	names := map[string]string{}
	for key, c := range o.counts {
		was, name := best[key.pincode], mostOf(c.spellings)
		if was == nil || c.n > was.n || c.n == was.n && name < names[key.pincode] {
			best[key.pincode], names[key.pincode] = c, name
		}
	}
	list := make(map[string]place, len(best))
	for pincode, c := range best {
		list[pincode] = place{names[pincode], mostOf(c.states)}
	}
	return list
}

// mostOf is the text with the highest count, of equal ones the first in the alphabet.
func mostOf(counts map[string]int) string {
	best := ""
	for s, n := range counts {
		if best == "" || n > counts[best] || n == counts[best] && s < best {
			best = s
		}
	}
	return best
}
