package handler

import "regedge/handler/fastbytes"

// Made-up records that the sandbox key finds beside those of any registry, and no other key does
// (docs/contract.md, "Sandbox"). No register gives these numbers: no state has the code ZZ, and
// DINs and LLPINs are given in order and are far from their last ones. They are part of the
// handler rather than of the registry, so that they are there with every registry, and in no
// push, count or search index.
const (
	SandboxCompany    = "U72900ZZ2015PTC000001" // every field has a value
	SandboxNulls      = "U72900ZZ2016PTC000002" // every field null that may be
	SandboxStruckOff  = "U72900ZZ2017PTC000003"
	SandboxDirector   = "99999901"              // more than 10 linked companies
	SandboxColleague  = "99999902"              // one linked company
	SandboxResigned   = "99999903"              // no linked company
	SandboxLLP        = "ZZZ-0001"              // every field has a value
	SandboxNullsLLP   = "ZZZ-0002"              // every field null that may be
	SandboxNoCompany  = "U72900ZZ2015PTC999999" // well-formed, and never found; nor are the next two
	SandboxNoDirector = "99999999"
	SandboxNoLLP      = "ZZZ-9999"
)

// madeUp is a made-up company or LLP. Its registered name is "SANDBOX", name in capitals, and one
// of the endings.
type madeUp struct{ value, name, status, incorporated string }

// The endings of the names: as they are registered, and as a search compares them (package names).
const (
	companyEnding, companyEndingForm = " (MADE-UP) PRIVATE LIMITED", " made up private limited"
	llpEnding, llpEndingForm         = " (MADE-UP) LLP", " made up llp"
	sandboxWord, sandboxForm         = "SANDBOX ", "sandbox "
)

// madeUps are in the order in which a search lists equally good matches (docs/contract.md, "Search
// order"). Of the companies that SandboxDirector is at, the youngest comes first.
var madeUps = [...]madeUp{
	{SandboxLLP, "every field", "ACTIVE", "2018-01-09"},
	{"U72900ZZ2019PTC000013", "tea", "ACTIVE", "2019-03-02"},
	{"U72900ZZ2019PTC000012", "rice", "ACTIVE", "2019-02-02"},
	{"U72900ZZ2019PTC000011", "foods", "ACTIVE", "2019-01-02"},
	{SandboxNulls, "nulls", "ACTIVE", ""},
	{"U72900ZZ2018PTC000010", "paper", "ACTIVE", "2018-10-02"},
	{"U72900ZZ2018PTC000009", "steel", "ACTIVE", "2018-09-02"},
	{"U72900ZZ2018PTC000008", "travel", "ACTIVE", "2018-08-02"},
	{"U72900ZZ2018PTC000007", "trading", "ACTIVE", "2018-07-02"},
	{"U72900ZZ2018PTC000006", "pharmacy", "ACTIVE", "2018-06-02"},
	{"U72900ZZ2018PTC000005", "textiles", "ACTIVE", "2018-05-02"},
	{"U72900ZZ2018PTC000004", "transport", "ACTIVE", "2018-04-02"},
	{SandboxCompany, "every field", "ACTIVE", "2015-07-15"},
	{SandboxNullsLLP, "nulls", "INACTIVE", ""},
	{SandboxStruckOff, "struck off", "STRUCK_OFF", "2017-03-01"},
}

// sandboxUpdated is last_updated of the made-up records: 2026-01-01T00:00:00Z, in Unix seconds.
const sandboxUpdated = 1767225600

func (m *madeUp) isLLP() bool { return len(m.value) != len(SandboxCompany) }

// registered is the registered name.
func (m *madeUp) registered() string {
	if m.isLLP() {
		return sandboxWord + fastbytes.Upper(m.name) + llpEnding
	}
	return sandboxWord + fastbytes.Upper(m.name) + companyEnding
}

// form is the registered name as a search compares it.
func (m *madeUp) form() string {
	if m.isLLP() {
		return sandboxForm + m.name + llpEndingForm
	}
	return sandboxForm + m.name + companyEndingForm
}

func findMadeUp(value string) *madeUp {
	for i := range madeUps {
		if madeUps[i].value == value {
			return &madeUps[i]
		}
	}
	return nil
}

// company has the columns of companyStatement.
func (m *madeUp) company() []Value {
	row := make([]Value, companyDirectors+2)
	copy(row, []Value{text(m.value), text(m.registered()), text(m.status)})
	row[companyDirectors+1] = Value{Kind: Integer, Int: sandboxUpdated}
	if m.incorporated == "" {
		return row
	}
	copy(row[3:], []Value{
		text(m.incorporated), text("Company limited by Shares"), text("Non-govt company"), text("Private"), text("ROC Bangalore"),
		{Kind: Integer, Int: 1000000}, {Kind: Integer, Int: 100000}, flag(false), text("Scientific research and development"),
		text("Karnataka"), text("Bengaluru Urban"), text("560001"), text("1 MADE-UP ROAD, MADE-UP LAYOUT, BANGALORE"),
		text("registry@example.com"), text("+910987643210"), text("https://www.example.com"),
	})
	switch m.value {
	case SandboxStruckOff:
	case SandboxCompany:
		row[companyDirectors] = text(SandboxDirector + "\t" + sandboxAsha + "\tManaging Director\t2015-07-15\n" +
			SandboxColleague + "\t" + sandboxBhaskar + "\tDirector\t2016-01-31")
	default:
		row[companyDirectors] = text(SandboxDirector + "\t" + sandboxAsha + "\tDirector\t" + m.incorporated)
	}
	return row
}

// llp has the columns of llpStatement.
func (m *madeUp) llp() []Value {
	last := Value{Kind: Integer, Int: sandboxUpdated}
	if m.incorporated == "" {
		return []Value{text(m.value), text(m.registered()), text(m.status), {}, {}, {}, {}, {}, {}, {}, text("[]"), {Kind: Integer}, last}
	}
	return []Value{
		text(m.value), text(m.registered()), text(m.status), text(m.incorporated),
		text("Karnataka"), text("Bengaluru Urban"), text("560001"), text("2 MADE-UP ROAD, BANGALORE"),
		text("Computer programming, consultancy and related activities"), {Kind: Integer, Int: 500000},
		text(sandboxPartners), {Kind: Integer, Int: 3}, last,
	}
}

const sandboxPartners = `[{"din":"` + SandboxColleague + `","name":"` + sandboxBhaskar + `","status":"ACTIVE","joined_on":"2019-05-05","left_on":null},` +
	`{"din":"` + SandboxResigned + `","name":"` + sandboxChitra + `","status":"RETIRED","joined_on":"2018-01-09","left_on":"2020-02-29"},` +
	`{"din":null,"name":"SANDBOX PARTNERS (MADE-UP) LIMITED","status":"ACTIVE","joined_on":null,"left_on":null}]`

const (
	sandboxAsha    = "ASHA SANDBOX (MADE-UP)"
	sandboxBhaskar = "BHASKAR SANDBOX (MADE-UP)"
	sandboxChitra  = "CHITRA SANDBOX (MADE-UP)"
)

// sandboxPerson has the columns of directorStatement.
func sandboxPerson(din string) []Value {
	switch din {
	case SandboxResigned:
		return []Value{text(din), text(sandboxChitra), text("RESIGNED"), text("[]"), {Kind: Integer}}
	case SandboxColleague:
		w := writer{}
		w.raw("[")
		findMadeUp(SandboxCompany).link(&w, "Director", "2016-01-31")
		w.raw("]")
		return []Value{text(din), text(sandboxBhaskar), text("ACTIVE"), text(string(w.buf)), {Kind: Integer, Int: 1}}
	}
	list, total := sandboxLinks()
	return []Value{text(din), text(sandboxAsha), text("ACTIVE"), text(list), {Kind: Integer, Int: total}}
}

// sandboxLinks returns the linked companies of SandboxDirector, as JSON, and how many there are.
func sandboxLinks() (list string, total int64) {
	w := writer{}
	separator := "["
	for i := range madeUps {
		m := &madeUps[i]
		if m.isLLP() || m.incorporated == "" || m.value == SandboxStruckOff {
			continue
		}
		if total++; total > sandboxListed {
			continue
		}
		w.raw(separator)
		separator = ","
		m.link(&w, "Director", m.incorporated)
	}
	w.raw("]")
	return string(w.buf), total
}

// sandboxListed is maxLinkedCompanies as a number.
const sandboxListed = 10

// link writes a company as a director's linked company.
func (m *madeUp) link(w *writer, designation, appointed string) {
	w.fields(linkFields, []Value{text(m.value), text(m.registered()), text(m.status), text(designation), text(appointed)})
	w.raw("}")
}

var linkFields = []field{
	{`{"cin":`, (*writer).value},
	{`,"company_name":`, (*writer).value},
	{`,"status":`, (*writer).value},
	{`,"designation":`, (*writer).value},
	{`,"appointment_date":`, (*writer).value},
}
