package generate

import (
	"math"
	"strconv"
	"strings"
)

const (
	formatA = "CIN,CompanyName,CompanyROCcode,CompanyCategory,CompanySubCategory,CompanyClass,AuthorizedCapital,PaidupCapital," +
		"CompanyRegistrationdate_date,Registered_Office_Address,Listingstatus,CompanyStatus,CompanyStateCode," +
		"CompanyIndian/Foreign Company,nic_code,CompanyIndustrialClassification"
	formatB = "CORPORATE_IDENTIFICATION_NUMBER,Company_Name,Company_status,Company_class,Company_Category,Company_sub_category," +
		"DATE_OF_REGISTRATION,REGISTERED_STATE,AUTHORIZED_CAP,PAIDUP_CAPITAL,Industrial_Class,PRINCIPAL_BUSINESS_ACTIVITY_AS_PER_CIN," +
		"Registered_Office_Address,REGISTRAR_OF_COMPANIES,EMAIL_ADDR,Latest_Year_AR,Latest_Year_BS"
)

// company is one made-up company, with values as the official files spell them.
type company struct {
	cin, name, date     string
	day                 int // index of date in calendar.days
	kind                kind
	status, listing     string
	authorized, paidUp  int64
	nic, activity       string
	state               int
	address, oldAddress string
}

// kind is an ownership code of a CIN and the columns that follow from it.
type kind struct {
	code, category, sub, class string
	form                       form
}

const (
	byShares    = "Company limited by shares"
	byGuarantee = "Company limited by guarantee"
	unlimited   = "Unlimited company"
	nonGovt     = "Non-government company"
	foreign     = "subsidiary of company incorporated outside India"
	stateGovt   = "State government company"
	unionGovt   = "Union government company"
	guarantee   = "Guarantee and association Company"
)

// kinds have the official files' shares in per cent. See company for one-person
// companies, which exist since 2014.
var kinds = newShares([]share[kind]{
	{kind{"PTC", byShares, nonGovt, "Private", private}, 80.6},
	{kind{"OPC", byShares, nonGovt, "One Person Company", onePerson}, 8.5},
	{kind{"PLC", byShares, nonGovt, "Public", public}, 4.2},
	{kind{"NPL", byShares, nonGovt, "Private", nonProfit}, 2.5},
	{kind{"NPL", byGuarantee, guarantee, "Private", nonProfit}, 0.4},
	{kind{"PTC", byShares, nonGovt, "Private", producer}, 2.6},
	{kind{"SGC", byShares, stateGovt, "Public", public}, 0.3},
	{kind{"PLN", byGuarantee, nonGovt, "Public", nonProfit}, 0.24},
	{kind{"FTC", byShares, foreign, "Private", private}, 0.3},
	{kind{"ULT", unlimited, nonGovt, "Private", private}, 0.09},
	{kind{"GOI", byShares, unionGovt, "Public", public}, 0.05},
	{kind{"ULL", unlimited, nonGovt, "Public", public}, 0.03},
	{kind{"GAT", byGuarantee, guarantee, "Private", nonProfit}, 0.02},
	{kind{"GAP", byGuarantee, guarantee, "Public", nonProfit}, 0.01},
	{kind{"FLC", byShares, foreign, "Public", public}, 0.01},
})

var companyStatuses = newShares([]share[string]{
	{"Active", 34167}, {"Strike Off", 17205}, {"Under process of striking off", 1027}, {"Amalgamated", 442},
	{"Inactive for e-filing", 399}, {"Converted to LLP", 187}, {"Under Liquidation", 124}, {"Dissolved (Liquidated)", 47},
	{"Under CIRP", 44}, {"Dormant under section 455", 42}, {"Dissolved under section 54", 8}, {"Dissolved", 3},
	{"Strike Off-AwaitingPublication", 3}, {"Not available for efiling", 2}, {"Dissolved under section 59(8)", 2}, {"Captured", 1},
})

var authorizedCapitals = newShares([]share[int64]{
	{100000, 19572}, {1000000, 9317}, {500000, 5354}, {1500000, 4953}, {200000, 1260}, {5000000, 1214}, {2500000, 1210},
	{10000000, 1192}, {2000000, 878}, {300000, 520}, {0, 500}, {10000, 474}, {3000000, 457}, {20000000, 437}, {50000000, 372},
	{50000, 279}, {30000000, 242}, {4000000, 222}, {100000000, 200}, {7500000, 160}, {1000000000, 40}, {20000000000, 3},
})

// industry is an industrial classification with the two-digit NIC divisions that it covers.
type industry struct {
	name  string
	codes []int
}

var industries = newShares([]share[industry]{
	{industry{"Business Services", []int{62, 72, 74, 82}}, 8980},
	{industry{"Trading", []int{46, 51, 52, 55}}, 8400},
	{industry{"Community, personal and Social Services", []int{80, 85, 88, 92, 93}}, 7543},
	{industry{"Construction", []int{41, 45}}, 4595},
	{industry{"Manufacturing (Metals and Chemicals, and products thereof)", []int{24, 27, 28}}, 4058},
	{industry{"Agriculture and Allied Activities", []int{1, 5}}, 3280},
	{industry{"Transport, storage and Communications", []int{60, 63, 64}}, 3074},
	{industry{"Manufacturing (Machinery and Equipments)", []int{29, 31, 33}}, 2591},
	{industry{"Finance", []int{65, 67}}, 2062},
	{industry{"Manufacturing (Food stuffs)", []int{15}}, 2017},
	{industry{"Real Estate and Renting", []int{70}}, 1747},
	{industry{"Manufacturing (Textiles)", []int{17, 18}}, 1181},
	{industry{"Electricity, Gas and Water companies", []int{40}}, 1142},
	{industry{"Manufacturing (Paper and Paper products, Publishing, printingand reproduction of recorded media)", []int{21, 22}}, 707},
	{industry{"Others", []int{99}}, 672},
	{industry{"Mining and Quarrying", []int{10, 14}}, 593},
	{industry{"Insurance", []int{66}}, 22},
})

// company makes company number i. Its registration number is serial, out of count companies in its
// state.
func (g *generator) company(i int64, state, serial, count int) company {
	r := stream(g.seed, ofCompany, i)
	c := company{state: state, kind: kinds.draw(&r), status: companyStatuses.draw(&r), listing: "Unlisted"}
	c.day = g.calendar.incorporation((float64(serial) - 0.5) / float64(count))
	c.date = g.calendar.days[c.day]
	if c.kind.code == "OPC" && c.date < "2014" {
		c.kind = kinds.values[0]
	}
	c.name = g.names.company(i, c.kind.form)
	business := industries.draw(&r)
	c.activity = business.name
	c.nic = padded(pick(&r, business.codes)*1000+r.below(30)*10+r.below(10), 5)
	c.capitals(&r)
	letter := "U"
	if c.kind.class == "Public" && r.chance(0.05) {
		letter, c.listing = "L", "Listed"
	}
	c.cin = letter + c.nic + states[state].value.code + c.date[:4] + c.kind.code + padded(serial, 6)
	g.locate(&c, &r)
	return c
}

func (c *company) capitals(r *random) {
	c.authorized = authorizedCapitals.draw(r)
	switch u := r.unit(); {
	case u < 0.03: // a few hold nearly all: the tail falls as 1/x, as in the official figures
		c.authorized = int64(min(largeCapital/math.Pow(1-r.unit(), 1/largeFall), mostCapital)) / 100000 * 100000
	case u < 0.06:
		c.authorized = int64(1+r.skewed(400)) * 50000
	}
	switch u := r.unit(); {
	case c.authorized <= 100000 && u < 0.85, u < 0.3:
		c.paidUp = c.authorized
	case u < 0.37:
		c.paidUp = 0
	case u < 0.6:
		c.paidUp = c.authorized / 10
	default:
		c.paidUp = int64(r.unit()*float64(c.authorized)) / 10 * 10
	}
}

// The authorized capital of large companies in rupees: the least, the most, and how fast it falls.
const (
	largeCapital = 50_000_000
	mostCapital  = 1_000_000_000_000
	largeFall    = 0.9
)

// locate gives a company its address, spelled as in each of the two formats.
func (g *generator) locate(c *company, r *random) {
	at := c.state
	if r.chance(0.02) { // moved to another state after incorporation
		at = r.below(len(states))
	}
	p := g.country.draw(r, at)
	street := strconv.Itoa(1+r.skewed(900)) + ", MADE-UP ROAD"
	if r.chance(0.5) {
		street = "PLOT NO. " + street + ",   " + strings.ToUpper(p.city) + " EXTENSION"
	}
	if r.chance(0.2) {
		street += "," + strconv.Itoa(1+r.below(9)) + " FLOOR, MADE-UP COMPLEX,"
	}
	name := states[at].value.name
	c.oldAddress = street + " " + p.city + " , " + p.district + " " + states[at].value.code + " " + p.pincode
	pincode := "," + p.pincode
	switch u := r.unit(); {
	case u < 0.127:
		pincode = ",000000"
	case u < 0.129:
		pincode = ",NA"
	case u < 0.1313:
		pincode = ""
	case u < 0.1320:
		street = strings.Replace(street, " ", "\uFFFD", 1)
	case u < 0.1323:
		c.state = at
		return
	}
	c.state = at
	c.address = street + "," + p.city + "," + p.district + "," + name + pincode + "-India"
}

// writeA writes a row of format A. As in the real files, a few CINs are malformed.
func (c *company) writeA(o *output, r random) {
	cin := c.cin
	switch u := r.unit(); {
	case u < 0.00008:
		cin = strings.ToLower(cin)
	case u < 0.0001:
		cin = cin[:15] + strings.ReplaceAll(cin[15:], "0", "O")
	}
	s := states[c.state].value
	o.fields(cin, c.name, "ROC "+s.registrar, c.kind.category, c.kind.sub, c.kind.class)
	o.rupees(c.authorized)
	o.rupees(c.paidUp)
	o.fields(c.date, c.address, c.listing, c.status, strings.ToLower(s.name), "Indian", c.nic, c.activity)
	o.finish()
}

// writeB writes a row of format B, an older release with older values.
func (c *company) writeB(o *output, r random) {
	status, email := c.status, "NA"
	if r.chance(0.5) {
		status = "Active"
	}
	if r.chance(0.9) {
		email = "made-up-" + c.cin[15:] + "@example.com"
	}
	name := c.name
	if r.chance(gluedOlder) {
		name = strings.Replace(name, "PRIVATE LIMITED", "PRIVATELIMITED", 1)
	}
	s := states[c.state].value
	day := c.date[8:] + "-" + c.date[5:7] + "-" + c.date[2:4]
	o.fields(c.cin, name, status, c.kind.class, c.kind.category, "Non-govt company", day, s.name,
		strconv.FormatInt(c.authorized, 10), strconv.FormatInt(c.paidUp, 10), strings.TrimLeft(c.nic, "0"), c.activity,
		c.oldAddress, "RoC-"+s.registrar, email, "NA", "NA")
	o.finish()
}

// rupees appends an amount with two decimals, as in format A.
func (o *output) rupees(amount int64) {
	o.row = append(strconv.AppendInt(o.row, amount, 10), ".00,"...)
}

// padded writes n with leading zeros.
func padded(n, digits int) string {
	s := strconv.Itoa(n)
	return "0000000000"[:max(0, digits-len(s))] + s
}
