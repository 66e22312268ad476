package source

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"regedge/schema/importer/record"
)

// documents reads company master data as JSON: each document is taken apart into a
// company or an LLP, its directors and their roles, and every part is counted as one.
type documents struct {
	in    *splitter
	dates dateReader
	out   *outlet
	line  int // of the current document
}

// run reads to the end of the file, as sheet.run does.
func (d *documents) run() error {
	for {
		text, line, err := d.in.next()
		d.line = line
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errStray), errors.Is(err, errUnended), errors.Is(err, errTooBig), errors.Is(err, errTooDeep):
			err = d.out.reject(record.Reject{Line: line, Reason: err.Error(), Raw: notKept})
		case err != nil:
			return fmt.Errorf("read after line %d: %w", line, err)
		case !gjson.ValidBytes(text) || !utf8.Valid(text):
			err = d.out.reject(record.Reject{Line: line, Reason: "not JSON", Raw: notKept})
		default:
			err = d.document(gjson.ParseBytes(text))
		}
		if err != nil {
			return err
		}
		if err := d.out.ended(len(text)); err != nil {
			return err
		}
	}
}

// document splits one document into records. A part that is rejected does not affect the
// others.
func (d *documents) document(doc gjson.Result) error {
	if inner := doc.Get("data"); inner.IsObject() {
		doc = inner
	}
	company := doc.Get("companyData")
	if !company.IsObject() {
		return d.out.reject(record.Reject{Line: d.line, Reason: "no companyData", Raw: notKept})
	}
	rec, err := d.company(company)
	if err := d.settle(rec, err, company.Raw); err != nil {
		return err
	}
	for _, director := range doc.Get("directorData").Array() {
		if err := d.director(director); err != nil {
			return err
		}
	}
	return nil
}

// settle passes a record on, or counts it as rejected or left out. raw is the text that the
// rejects file may contain.
func (d *documents) settle(rec record.Record, err error, raw string) error {
	if err == nil {
		return d.out.record(d.line, rec, raw)
	}
	var left *omission
	if errors.As(err, &left) {
		return d.out.leaveOut(left.reason)
	}
	if refused, ok := asRejection(err); ok {
		return d.out.reject(record.Reject{Line: d.line, Reason: refused.reason, Detail: refused.detail, Raw: raw})
	}
	return err
}

func (d *documents) company(c gjson.Result) (record.Record, error) {
	id := c.Get("cin").String()
	if cin, ok := cinOf(id); ok {
		return d.companyOf(cin, c)
	}
	if llpin, ok := llpinOf(id); ok {
		return d.llpOf(llpin, c)
	}
	if isForeign(id) {
		return record.Record{}, &omission{"foreign company"}
	}
	return record.Record{}, &rejection{badCIN, shown(clean(id), 40)}
}

func (d *documents) companyOf(cin string, c gjson.Result) (record.Record, error) {
	get := func(name string) string { return c.Get(name).String() }
	v := make([]record.Value, record.CompanyColumns)
	r := reading{dates: d.dates, year: cinYear(cin)}
	v[record.CompanyName] = r.name(get("company"))
	v[record.CompanyStatus] = r.status(companyStatus, statusOf(c))
	v[record.CompanyIncorporation] = r.past(r.date(r.in(c, "dateOfIncorporation")))
	v[record.CompanyAuthorized] = r.capital(r.in(c, "authorisedCapital"))
	v[record.CompanyPaidUp] = r.capital(r.in(c, "paidUpCapital"))
	v[record.CompanyListed] = r.flag(r.in(c, "whetherListedOrNot"))
	if r.err != nil {
		return record.Record{}, r.err
	}
	v[record.CompanyCategory] = described(categories, get("companyCategory"))
	v[record.CompanySubCategory] = described(subCategories, get("companySubcategory"))
	v[record.CompanyClass] = described(classes, get("classOfCompany"))
	v[record.CompanyROC] = rocName(get("rocName"))
	v[record.CompanyMainDivision] = cleanValue(get("mainDivisionDescription"))
	email, ok := parseEmail(get("emailAddress"))
	if !ok {
		d.out.note("e-mail")
	}
	v[record.CompanyEmail] = email
	a := d.address(c)
	v[record.CompanyLine], v[record.CompanyCity], v[record.CompanyState], v[record.CompanyPincode] = a.line, a.city, a.state, a.pincode
	v[record.CompanyDistrict] = a.named(a.state)
	return record.New(record.CompanyTable, v, cin), nil
}

func (d *documents) llpOf(llpin string, c gjson.Result) (record.Record, error) {
	get := func(name string) string { return c.Get(name).String() }
	v := make([]record.Value, record.LLPColumns)
	r := reading{dates: d.dates}
	v[record.LLPName] = r.name(get("company"))
	v[record.LLPStatus] = r.status(llpStatus, statusOf(c))
	v[record.LLPIncorporation] = r.past(r.date(r.in(c, "dateOfIncorporation")))
	v[record.LLPContribution] = r.capital(r.in(c, "totalObligationOfContribution"))
	v[record.LLPMainDivision] = cleanValue(get("mainDivisionDescription"))
	a := d.address(c)
	v[record.LLPLine], v[record.LLPCity], v[record.LLPState], v[record.LLPPincode] = a.line, a.city, a.state, a.pincode
	return record.New(record.LLPTable, v, llpin), r.err
}

// statusOf returns the status of a company or LLP. The MCA's documents call both llpStatus,
// others companyStatus.
func statusOf(c gjson.Result) string {
	if s := c.Get("companyStatus"); s.String() != "" {
		return s.String()
	}
	return c.Get("llpStatus").String()
}

// address picks the registered office from a company's addresses: the first of that type which
// is not inactive, else the first which is not inactive.
func (d *documents) address(c gjson.Result) address {
	var chosen gjson.Result
	for _, a := range c.Get("MCAMDSCompanyAddress").Array() {
		if strings.HasPrefix(squash(a.Get("activeStatus").String()), "inactive") || squash(a.Get("activeStatus").String()) == "no" {
			continue
		}
		registered := strings.HasPrefix(squash(a.Get("addressType").String()), "registered")
		if registered || !chosen.Exists() {
			chosen = a
		}
		if registered {
			break
		}
	}
	if !chosen.Exists() {
		return address{}
	}
	pincode := pincodeOf(chosen.Get("postalCode").String())
	if pincode.Kind == record.Null && !isNone(strings.Trim(chosen.Get("postalCode").String(), "0")) {
		d.out.note("pincode")
	}
	city := cleanValue(chosen.Get("city").String())
	var lines []string
	for _, name := range []string{"streetAddress", "streetAddress2", "locality"} {
		lines = append(lines, splitLines(chosen.Get(name).String())...)
	}
	district := clean(chosen.Get("district").String())
	if city.Kind == record.Null {
		city = cleanValue(district)
	}
	return address{
		line: joinLines(lines, city.Text), city: city, state: stateName(chosen.Get("state").String()), pincode: pincode, district: district,
	}
}

// director reads one person of a document: the director, and the roles. Persons without a DIN
// (officers are listed by a tax number) are left out. Contacts and addresses of persons are
// never read.
func (d *documents) director(p gjson.Result) error {
	id := p.Get("DIN").String()
	din, ok := dinOf(id)
	if !ok {
		if hasNoDIN(id) || !isDigits(strings.TrimSpace(id)) {
			return d.out.leaveOut("person without a DIN")
		}
		return d.out.reject(record.Reject{Line: d.line, Reason: badDIN, Detail: shown(id, 20), Raw: notKept})
	}
	v := make([]record.Value, record.DirectorColumns)
	r := reading{dates: d.dates}
	v[record.DirectorName] = r.name(strings.Join([]string{
		p.Get("FirstName").String(), p.Get("MiddleName").String(), p.Get("LastName").String(),
	}, " "))
	v[record.DirectorDisqualified] = r.flag(r.in(p, "DirectorDisqualified"))
	v[record.DirectorDesignation] = cleanValue(p.Get("designation").String())
	v[record.DirectorAppointed] = r.date(r.in(p, "dateOfAppointment"))
	if err := d.settle(record.New(record.DirectorTable, v, din), r.err, personRaw(din, v[record.DirectorName].Text)); err != nil {
		return err
	}
	for _, role := range p.Get("MCAUserRole").Array() {
		rec, err := d.role(din, v[record.DirectorName], role)
		if err := d.settle(rec, err, roleRaw(din, role)); err != nil {
			return err
		}
	}
	return nil
}

// personRaw and roleRaw return the parts of a person that the rejects file may contain.
func personRaw(din, name string) string { return JoinFields([]string{din, name}) }

func roleRaw(din string, role gjson.Result) string {
	fields := []string{din}
	for _, name := range []string{"cin", "designation", "roleEffectiveDate", "cessationDate"} {
		fields = append(fields, role.Get(name).String())
	}
	return JoinFields(fields)
}

// role reads a role at a company, or at an LLP as its partner.
func (d *documents) role(din string, name record.Value, role gjson.Result) (record.Record, error) {
	r := reading{dates: d.dates}
	began := r.date(r.in(role, "roleEffectiveDate"))
	ended := r.end(r.in(role, "cessationDate"))
	id := role.Get("cin").String()
	if cin, ok := cinOf(id); ok {
		return appointment(cin, din, role.Get("designation").String(), began, ended, ""), r.err
	}
	if llpin, ok := llpinOf(id); ok {
		if name.Kind == record.Null {
			r.refuse(record.NoName, "")
		}
		return partner(llpin, din, name, record.Value{}, began, ended), r.err
	}
	if isForeign(id) {
		return record.Record{}, &omission{"role at a foreign company"}
	}
	return record.Record{}, &rejection{badCIN, shown(clean(id), 40)}
}
