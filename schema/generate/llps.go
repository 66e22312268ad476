package generate

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
)

const (
	llpsHeader    = "llpin,llp_name,status,incorporation_date,main_division,business_activity,contribution,address_line,city,state,pincode"
	monthlyHeader = "LLPIN,LLP Name,Founded,Roc Location,Status,Industrial Activity,Activity Description,Description," +
		"Obligation Of Contribution,Number Of Partners,Number Of Designated Partners,State,District,Address"
	partnersHeader = "llpin,din,name,status,joined_on,left_on"
)

// llpShare is the number of LLPs per company.
const llpShare = 0.058

// lastMonth is the first day that the monthly list covers.
const lastMonth = "2025-04-06"

// firstLLP is the first year with LLPs: the LLP Act is of 2008.
const firstLLP = 2009

var llpStatuses = newShares([]share[string]{
	{"Active", 75}, {"Strike Off", 15}, {"Under process of striking off", 3}, {"Dissolved", 2}, {"Inactive", 2},
	{"Defunct", 2}, {"Under Liquidation", 0.5}, {"Under CIRP", 0.5},
})

var partnerCounts = newShares([]share[int]{{2, 77}, {3, 13}, {4, 5}, {5, 2}, {7, 1.5}, {12, 0.9}, {25, 0.3}, {60, 0.05}, {0, 0.2}})

var contributions = []int64{10000, 20000, 50000, 100000, 100000, 100000, 200000, 500000, 1000000, 5000000}

// divisions are values of the column main_division.
var divisions = []string{"", "Computer programming, consultancy and related activities", "Legal and accounting activities",
	"Real estate activities", "Wholesale trade, except of motor vehicles and motorcycles", "Construction of buildings",
	"Activities of head offices; management consultancy activities", "Education", "Human health activities"}

// llpin is the LLPIN of LLP number i. It begins with Z, which no real LLPIN does yet.
func llpin(i int64) string {
	letters := i / 10000
	return string([]byte{'Z', byte('A' + letters/26%26), byte('A' + letters%26)}) + "-" + padded(int(i%10000), 4)
}

func (g *generator) llpCount() int64 { return int64(math.Ceil(float64(g.Companies) * llpShare)) }

// llps writes the LLPs, their partners, and one foreign company for every 40 LLPs.
func (g *generator) llps(ctx context.Context) error {
	var out llpOutputs
	var errs [4]error
	out.plain, errs[0] = g.create("llps.csv", llpsHeader, "\n")
	out.monthly, errs[1] = g.create("llps-monthly.csv", monthlyHeader, "\n")
	out.column, errs[2] = g.create("companies-llps-foreign.csv", formatA, "\n")
	out.partners, errs[3] = g.create("partners.csv", partnersHeader, "\n")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	count := g.llpCount()
	for i := range count {
		if err := g.report(ctx); err != nil {
			return err
		}
		g.llp(i, count, &out)
		if i%40 == 0 {
			g.foreign(i, out.column)
		}
	}
	for _, o := range []*output{out.column, out.plain, out.monthly, out.partners} {
		if err := g.complete(o, lastDay); err != nil {
			return err
		}
	}
	return nil
}

// foreign writes a foreign company, whose number is F and 5 digits.
func (g *generator) foreign(i int64, o *output) {
	name := g.names.company(-1-g.llpCount()-i, private)
	o.fields("F"+padded(int(i/40), 5), name, "ROC Delhi", "", "", "", "0.00", "0.00", "2012-04-01",
		"1 MADE-UP ROAD,NEW DELHI,New Delhi,Delhi,110001-India", "Unlisted", "Active", "delhi", "Foreign", "62013", "Business Services")
	o.finish()
}

// llp writes LLP number i of count, and its partners. LLPs of the last month go to the monthly list,
// a third of the others among the companies of format A, the rest to llps.csv.
func (g *generator) llp(i, count int64, out *llpOutputs) {
	r := stream(g.seed, ofLLP, i)
	first := g.calendar.starts[firstLLP-firstYear]
	u := (float64(i) + 0.5) / float64(count)
	day := first + int(u*float64(len(g.calendar.days)-first))
	date := g.calendar.days[day]
	state := stateShares.index(r.unit())
	p := g.country.draw(&r, state)
	s := states[state].value
	id, name := llpin(i), g.names.company(-1-i, partnership)
	status, contribution := llpStatuses.draw(&r), strconv.FormatInt(pick(&r, contributions), 10)
	line, activity, division := strconv.Itoa(1+r.skewed(900))+" MADE-UP ROAD", industries.draw(&r).name, pick(&r, divisions)
	partners := partnerCounts.draw(&r)
	switch {
	case date >= lastMonth:
		o := out.monthly
		o.fields(id, name, date[8:]+"-"+date[5:7]+"-"+date[:4], "ROC "+s.registrar, "Active", "62", activity, division, contribution,
			strconv.Itoa(partners), "2", s.name, p.district, line+", "+p.city+", "+p.district+", "+s.name+", "+p.pincode)
		o.finish()
	case r.chance(1.0 / 3):
		o := out.column
		o.fields(id, name, "ROC "+s.registrar, "", "", "", contribution+".00", "0.00", date,
			line+","+p.city+","+p.district+","+s.name+","+p.pincode+"-India", "Unlisted", status, strings.ToLower(s.name), "Indian", "62013", activity)
		o.finish()
	default:
		out.plain.fields(id, name, status, date, division, activity, contribution, line, p.city, s.name, p.pincode)
		out.plain.finish()
	}
	person := int64(dins/2 + r.below(dins/4))
	for k := range partners {
		g.partner(&r, out.partners, id, person+int64(k), day)
	}
}

// llpOutputs are the files of LLPs and partners.
type llpOutputs struct{ monthly, column, plain, partners *output }

// partner writes a partner. Three in ten are also directors; the others are in no file of directors.
func (g *generator) partner(r *random, o *output, llpin string, person int64, founded int) {
	u := r.unit()
	if u > 0.7 && g.boards.count > 0 {
		person %= g.boards.count
	}
	number := din(person)
	if u < 0.03 {
		number = ""
	}
	day, joined, left := founded, "", ""
	if r.chance(0.3) {
		day = g.calendar.after(r, founded)
	}
	if !r.chance(0.03) {
		joined = g.calendar.days[day]
	}
	if r.chance(0.1) {
		left = g.calendar.days[g.calendar.after(r, day)]
	}
	status := pick(r, partnerStatuses)
	name := stream(g.seed, ofDirector, person)
	o.fields(llpin, number, string(g.names.person(nil, &name)), status, joined, left)
	o.finish()
}

var partnerStatuses = []string{"Active", "Active", "Active", "Active", "", "Inactive", "Retired"}
