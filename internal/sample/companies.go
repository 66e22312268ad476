package main

import (
	"fmt"
	"strings"

	"regedge/internal/testkit/sampletest"
)

const formatA = "CIN,CompanyName,CompanyROCcode,CompanyCategory,CompanySubCategory,CompanyClass,AuthorizedCapital,PaidupCapital," +
	"CompanyRegistrationdate_date,Registered_Office_Address,Listingstatus,CompanyStatus,CompanyStateCode," +
	"CompanyIndian/Foreign Company,nic_code,CompanyIndustrialClassification"

// statuses are all company statuses, as the official files spell them.
var statuses = []string{"Active", "Active In Progress", "Dormant", "Dormant under section 455", "Inactive",
	"Inactive for e-filing", "Not available for eFiling", "Under process of striking off", "Strike Off",
	"Strike Off-AwaitingPublication", "Defunct", "Vanished", "Under CIRP", "Under Liquidation", "Liquidated",
	"Dissolved", "Dissolved (Liquidated)", "Dissolved under section 54", "Dissolved under section 59(8)",
	"Amalgamated", "Converted to LLP", "Converted to LLP and Dissolved", "Captured", "Unclassified"}

// statusCIN is the CIN of the made-up company with statuses[i].
func statusCIN(i int) string { return fmt.Sprintf("U74120MH2010PTC9901%02d", i) }

// company has the columns of format A that vary among the made-up companies.
type company struct {
	cin, name               string
	category, sub, class    string
	authorized, paidUp      string
	date, address, listing  string
	status, state, roc, nic string
	activity                string
}

// offices are the state, the registrar and the end of an address by the state code of a CIN.
var offices = map[string][3]string{
	"DL": {"delhi", "ROC Delhi", "NEW DELHI,New Delhi,Delhi,110001-India"},
	"KA": {"karnataka", "ROC Bangalore", "BANGALORE,Bengaluru Urban,Karnataka,560001-India"},
	"MH": {"maharashtra", "ROC Mumbai", "MUMBAI,Mumbai City,Maharashtra,400001-India"},
	"TN": {"tamil nadu", "ROC Chennai", "CHENNAI,Chennai,Tamil Nadu,600001-India"},
}

// usual returns an ordinary private company in the state of its CIN, for others to start from.
func usual(cin, name string) company {
	office := offices[cin[6:8]]
	return company{cin: cin, name: name,
		category: "Company limited by shares", sub: "Non-government company", class: "Private",
		authorized: "1000000.00", paidUp: "100000.00", date: cin[8:12] + "-07-15",
		address: "1 MADE-UP ROAD,MADE-UP LAYOUT," + office[2],
		listing: "Unlisted", status: "Active", state: office[0], roc: office[1], nic: cin[1:6],
		activity: "Business Services"}
}

func (c company) row() []string {
	return []string{c.cin, c.name, c.roc, c.category, c.sub, c.class, c.authorized, c.paidUp, c.date, c.address,
		c.listing, c.status, c.state, "Indian", c.nic, c.activity}
}

func madeUpCompanies() table {
	t := newTable(formatA)
	for _, list := range [][]company{namedCompanies(), statusCompanies(), ownershipCompanies(), spelledCompanies(), searchCompanies()} {
		for _, c := range list {
			t.add(c.row()...)
		}
	}
	// The official files have LLPs and foreign companies in the CIN column, too.
	t.add("AAZ-9020", "IN THE CIN COLUMN (MADE-UP) LLP", "ROC Mumbai", "", "", "", "250000.00", "", "2016-02-29",
		"2 MADE-UP ROAD,MUMBAI,Mumbai,Maharashtra,400001-India", "Unlisted", "Active", "maharashtra", "Indian", "69201", "Business Services")
	t.add("F09999", "OVERSEAS (MADE-UP) INC", "ROC Delhi", "", "", "", "0.00", "0.00", "2003-03-03",
		"3 MADE-UP ROAD,NEW DELHI,New Delhi,Delhi,110001-India", "Unlisted", "Active", "delhi", "Foreign", "51909", "Trading")
	return t
}

func namedCompanies() []company {
	every := usual(sampletest.CompanyEveryField, "EVERY FIELD (MADE-UP) PRIVATE LIMITED")
	grand := usual(sampletest.CompanyGrandBoard, "GRAND BOARD (MADE-UP) LIMITED")
	grand.class, grand.listing = "Public", "Listed"
	grand.address = "4 MADE-UP ROAD,FORT,MUMBAI,Mumbai City,Maharashtra,400001-India"
	// Paise to cut off; read as floating point, the first would become a rupee more.
	grand.authorized, grand.paidUp = "9007199254740991.99", "500000000000.50"
	full := usual(sampletest.CompanyFullBoard, "FULL BOARD (MADE-UP) LIMITED")
	full.class = "Public"
	nothing := company{cin: sampletest.CompanyBare, name: "BARE (MADE-UP) PRIVATE LIMITED", status: "Active"}
	alone := usual(sampletest.CompanyNoDirector, "NO DIRECTOR (MADE-UP) PRIVATE LIMITED")
	alone.address = "5 MADE-UP ROAD,NEW DELHI,New Delhi,Delhi,110001-India"
	lost := usual(sampletest.CompanyUnknownPincode, "UNKNOWN PINCODE (MADE-UP) FOUNDATION")
	lost.category, lost.sub = "Company limited by guarantee", "Guarantee and association Company"
	lost.address = "6 MADE-UP ROAD,BANGALORE,Bengaluru Urban,Karnataka,560999-India"
	lost.authorized, lost.paidUp = "0.00", "0.00"
	return []company{every, grand, full, nothing, alone, lost,
		usual(sampletest.CompanyFallback, "FALLBACK (MADE-UP) PRIVATE LIMITED"),
		usual(sampletest.CompanyFormerBoard, "FORMER BOARD (MADE-UP) PRIVATE LIMITED")}
}

// statusCompanies returns one company for each status.
func statusCompanies() []company {
	var list []company
	for i, status := range statuses {
		name := strings.ToUpper(strings.NewReplacer("(", "", ")", "").Replace(status))
		c := usual(statusCIN(i), "STATUS "+name+" (MADE-UP) PRIVATE LIMITED")
		c.status = status
		list = append(list, c)
	}
	return list
}

// ownershipCompanies returns one company for each ownership code of a CIN.
func ownershipCompanies() []company {
	var list []company
	for i, code := range []string{"PTC", "PLC", "OPC", "NPL", "FTC", "FLC", "SGC", "GOI", "ULT", "ULL", "GAT", "GAP", "PLN"} {
		c := usual(fmt.Sprintf("U45200TN2014%s9902%02d", code, i), "OWNERSHIP "+code+" (MADE-UP) COMPANY")
		switch code {
		case "OPC":
			c.class = "One Person Company"
		case "PLC", "FLC", "ULL", "GAP", "PLN":
			c.class = "Public"
		}
		switch code {
		case "FTC", "FLC":
			c.sub = "subsidiary of company incorporated outside India"
		case "SGC":
			c.sub = "State government company"
		case "GOI":
			c.sub = "Union government company"
		case "ULT", "ULL":
			c.category = "Unlimited company"
		case "GAT", "GAP", "NPL", "PLN":
			c.category, c.sub = "Company limited by guarantee", "Guarantee and association Company"
		}
		c.address = "7 MADE-UP ROAD,,CHENNAI,Chennai,Tamil Nadu,600001-India"
		list = append(list, c)
	}
	return list
}

// spelledCompanies returns companies whose names and addresses are hard for CSV, JSON and the search.
func spelledCompanies() []company {
	var list []company
	for i, name := range []string{
		"कमल उदाहरण (MADE-UP) PRIVATE LIMITED",
		"தாமரை \"QUOTED\" (MADE-UP) PRIVATE LIMITED",
		"BACK\\SLASH & O'EXAMPLE </SCRIPT> (MADE-UP) PRIVATE LIMITED",
		"TAB\tAND\u0001CONTROL\u007F (MADE-UP) PRIVATE LIMITED",
		"RUNS   OF    SPACES (MADE-UP) PR IVATE LIMITED",
		"ÉTOILE ﬁRST \u2028 😀 (MADE-UP) PVT. LTD.",
		"M/S. 3-D PRINT-ON-DEMAND.COM (MADE-UP) (INDIA) PVT LTD",
		"X (MADE-UP)",
		"LONG NAME " + strings.Repeat("OF MANY WORDS ", 14) + "(MADE-UP) PRIVATE LIMITED",
	} {
		list = append(list, usual(fmt.Sprintf("U32109KA2017PTC9903%02d", i), name))
	}
	addresses := []string{
		"8 MADE-UP ROAD   WITH   RUNS ,  OF SPACES,BANGALORE,Bengaluru Urban,Karnataka,560001-India",
		"9 MADE-UP ROAD\nON TWO LINES,BANGALORE,Bengaluru Urban,Karnataka,560001-India",
		"10 MADE-UP \uFFFDROAD\uFFFD,BANGALORE,Bengaluru Urban,Karnataka,560001-India",
		"11 MADE-UP ROAD,BANGALORE,Bengaluru Urban,Karnataka,000000-India",
		"12 MADE-UP ROAD,BANGALORE,Bengaluru Urban,Karnataka,NA-India",
		"13 MADE-UP ROAD,BANGALORE,Bengaluru Urban,Karnataka",
		"",
		"१४ उदाहरण मार्ग, \"MADE-UP\",BANGALORE,Bengaluru Urban,Karnataka,560001-India",
	}
	for i, address := range addresses {
		list[i].address = address
	}
	return list
}

// searchCompanies returns companies whose names share one invented word: as the first word, inside
// the name, and as a part of a longer word.
func searchCompanies() []company {
	var list []company
	for i, name := range []string{
		"ZEPHYRINE (MADE-UP) LIMITED",
		"ZEPHYRINE FOODS (MADE-UP) PRIVATE LIMITED",
		"ZEPHYRINE FOODS (MADE-UP) PRIVATE LIMITED",
		"ZEPHYRINE FOODS AND BEVERAGES (MADE-UP) PRIVATE LIMITED",
		"ZEPHYRINES (MADE-UP) PRIVATE LIMITED",
		"ZEPHYRINE TRADERS (MADE-UP) PVT LTD",
		"NEW ZEPHYRINE TRADERS (MADE-UP) PRIVATE LIMITED",
		"TRADERS OF ZEPHYRINE & SONS (MADE-UP) PRIVATE LIMITED",
		"FOODS BY ZEPHYRINE (MADE-UP) PRIVATE LIMITED",
		"MEGAZEPHYRINE INDIA (MADE-UP) PRIVATE LIMITED",
		"ZEPHYR INE SPLIT (MADE-UP) PRIVATE LIMITED",
		"ZEPHYRINE EXPORTS (MADE-UP) PRIVATELIMITED",
		"OLD ZEPHYRINE MILLS (MADE-UP) LIMITED",
	} {
		c := usual(fmt.Sprintf("U15400KA2018PTC9904%02d", i), name)
		if i%5 == 2 {
			c.status = "Strike Off"
		}
		list = append(list, c)
	}
	return list
}

// irregularCompanies are rows that an importer must reject with a reason, skip, or repair.
func irregularCompanies() table {
	t := newTable(formatA)
	change := func(f func(*company)) {
		c := usual("U45209KA2013PTC9905"+fmt.Sprintf("%02d", len(t.rows)), "IRREGULAR (MADE-UP) PRIVATE LIMITED")
		f(&c)
		t.add(c.row()...)
	}
	change(func(c *company) { c.cin = strings.ToLower(c.cin) })              // mended
	change(func(c *company) { c.cin = "U63040GA2006PTCOO9931" })             // refused: letters for digits
	change(func(c *company) { c.cin = "" })                                  // refused
	change(func(c *company) { c.name = "" })                                 // refused
	change(func(c *company) { c.status = "Enchanted" })                      // refused: unknown status
	change(func(c *company) { c.status = "" })                               // refused
	change(func(c *company) { c.date = "2013-02-30" })                       // refused: no such day
	change(func(c *company) { c.authorized = "ten lakh" })                   // refused
	change(func(c *company) { c.cin = "FCRN1234" })                          // refused
	change(func(c *company) { c.cin = "F1234" })                             // left out: foreign
	change(func(c *company) { c.paidUp = "9.9E+9" })                         // taken
	change(func(c *company) { c.cin = "  U45209KA2013PTC990511  " })         // mended
	change(func(c *company) { c.cin, c.name = "U45209KA2013PTC990511", "" }) // refused
	change(func(c *company) { c.authorized = "9007199254740993" })           // refused: no number of JSON holds it exactly
	return t
}

// contacts returns contacts, of made-up companies only. E-mail addresses use the domains that RFC 2606
// reserves; phone numbers begin with 0, which no subscriber's number does.
func contacts() table {
	t := newTable("cin,email,phone,website")
	t.add(sampletest.CompanyEveryField, "registry@example.com", "+910987643210", "https://www.example.com")
	t.add(sampletest.CompanyGrandBoard, "board@sub.example.com", "+910224443322", "")
	t.add(sampletest.CompanyFullBoard, "", "0800111222", "http://example.org/board")
	t.add(sampletest.CompanyFallback, "x@example.in.example", "", "")
	t.add(sampletest.CompanyDocument, "", "", "https://example.net")
	t.add(statusCIN(0), "made-up+tag@example.com", "00 91 (0) 12", "www.example.com")
	return t
}
