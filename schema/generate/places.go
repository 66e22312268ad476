package generate

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of the number of made-up pincodes; India has 19,307.
const (
	fewestPincodes = 270
	mostPincodes   = 19300
)

// postal is one pincode with its city and district.
type postal struct {
	pincode, city, district string
}

// country is the made-up geography: the pincodes of each state, by index in states.
type country struct {
	postals [][]postal
}

func newCountry(seed uint64, n *namer, companies int) *country {
	c := &country{}
	total := min(max(companies/20, fewestPincodes), mostPincodes)
	for i, s := range states {
		r := stream(seed, ofPlaces, int64(i))
		count := max(4, int(float64(total)*s.weight/100))
		districts := 1 + count/26
		var list []postal
		for k := range count {
			district := n.place(i, k*districts/count)
			city := district
			if r.chance(0.4) {
				city = title(string(coin(nil, &r, 1)))
			}
			list = append(list, postal{fmt.Sprintf("%s%04d", s.value.pin, 1+offset(i)+k), city, district})
		}
		c.postals = append(c.postals, list)
	}
	return c
}

// offset is added to a state's pincodes, so that states with the same first digits share none.
func offset(state int) int {
	used := 0
	for i := range state {
		if states[i].value.pin == states[state].value.pin {
			used += 4500 // more than any state has
		}
	}
	return used
}

// place returns the name of a district; it depends on state and district number only.
func (n *namer) place(state, district int) string {
	return title(n.coined[(state*151+district*7)%len(n.coined)])
}

func title(s string) string { return s[:1] + strings.ToLower(s[1:]) }

// draw returns a random pincode of a state; the first ones are the most frequent.
func (c *country) draw(r *random, state int) *postal {
	list := c.postals[state]
	return &list[r.skewed(len(list))]
}

const formatC = "CircleName,RegionName,DivisionName,OfficeName,Pincode,OfficeType,Delivery,District,StateName,Latitude,Longitude"

// writeOffices writes the directory of post offices: about eight per pincode, a few without a
// district, a few in the neighbouring district.
func (c *country) writeOffices(o *output, seed uint64) {
	for i, s := range states {
		r := stream(seed, ofPlaces, int64(1000+i))
		list := c.postals[i]
		for k := range list {
			for office := range 1 + r.below(15) {
				c.writeOffice(o, &r, s.value, list, k, office)
			}
		}
	}
}

func (c *country) writeOffice(o *output, r *random, s state, list []postal, k, office int) {
	p := &list[k]
	district, name, kind := strings.ToUpper(p.district), s.name, "BO"
	switch u := r.unit(); {
	case u < 0.01:
		district = ""
	case u < 0.02:
		district = "nan"
	case u < 0.05 && office > 0:
		district = strings.ToUpper(list[(k+1)%len(list)].district)
	}
	if r.chance(0.3) {
		name = strings.ToUpper(name)
	}
	if office == 0 {
		kind = "PO"
	}
	o.fields(s.name+" Circle", "nan", p.district+" Division", p.city+" "+strconv.Itoa(office)+" "+kind, p.pincode, kind, "Delivery",
		district, name)
	if r.chance(0.05) {
		o.fields("NA", "NA")
	} else {
		o.fields(decimal(8+r.unit()*26), decimal(68+r.unit()*28))
	}
	o.finish()
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }
