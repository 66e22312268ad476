package importer

import (
	"errors"
	"strconv"
	"strings"

	"regedge/handler/ident"
)

// The reasons of rejections: few, since the report counts by them.
const (
	badCIN     = "invalid CIN"
	badDIN     = "invalid DIN"
	badLLPIN   = "invalid LLPIN"
	noName     = "no name"
	notHeld    = "company not held"
	badPincode = "invalid pincode"
)

// takeCompany reads a row of either export of companies, in whose CIN column LLPs and
// foreign companies may stand too.
func takeCompany(s *sheet) (record, error) {
	id := s.get(fieldCIN)
	if cin, ok := ident.CIN(id); ok {
		return s.company(cin)
	}
	if llpin, ok := ident.LLPIN(id); ok {
		return s.llpOfCompanies(llpin)
	}
	if isForeign(id) {
		return record{}, &omission{"foreign company"}
	}
	return record{}, &rejection{badCIN, cut(id, 40)}
}

// isForeign reports whether id numbers a foreign company: F and 4 to 8 digits.
func isForeign(id string) bool {
	id = strings.TrimSpace(id)
	return len(id) >= 5 && len(id) <= 9 && (id[0] == 'F' || id[0] == 'f') && isDigits(id[1:])
}

func (s *sheet) company(cin string) (record, error) {
	v := make([]value, companyColumns)
	r := reading{dates: s.dates, year: cinYear(cin)}
	v[companyName] = r.name(s.get(fieldName))
	v[companyStatusColumn] = r.status(companyStatus, s.get(fieldStatus))
	v[companyIncorporation] = r.date(s.get(fieldDate))
	v[companyAuthorized] = r.capital(s.get(fieldAuthorized))
	v[companyPaidUp] = r.capital(s.get(fieldPaidUp))
	v[companyListed] = r.flag(s.get(fieldListed))
	if r.err != nil {
		return record{}, r.err
	}
	v[companyCategory] = described(categories, s.get(fieldCategory))
	v[companySubCategory] = described(subCategories, s.get(fieldSubCategory))
	v[companyClass] = described(classes, s.get(fieldClass))
	v[companyROC] = rocName(s.get(fieldROC))
	v[companyActivity] = cleanValue(s.get(fieldActivity))
	v[companyPrincipal] = cleanValue(s.get(fieldPrincipal))
	v[companyEmail] = s.email(s.get(fieldEmail))
	a := parseAddress(s.get(fieldAddress))
	v[companyLine], v[companyCity], v[companyPincode] = a.line, a.city, a.pincode
	v[companyState] = orElse(stateName(s.get(fieldState)), a.state)
	return record{companyTable, [2]string{cin}, v}, nil
}

// llpOfCompanies reads an LLP that stands in an export of companies. Such a row has
// capital columns but tells no contribution.
func (s *sheet) llpOfCompanies(llpin string) (record, error) {
	v := make([]value, llpColumns)
	r := reading{dates: s.dates}
	v[llpName] = r.name(s.get(fieldName))
	v[llpStatusColumn] = r.status(llpStatus, s.get(fieldStatus))
	v[llpIncorporation] = r.date(s.get(fieldDate))
	if r.err != nil {
		return record{}, r.err
	}
	v[llpActivity] = orElse(cleanValue(s.get(fieldActivity)), cleanValue(s.get(fieldPrincipal)))
	a := parseAddress(s.get(fieldAddress))
	v[llpLine], v[llpCity], v[llpPincode] = a.line, a.city, a.pincode
	v[llpState] = orElse(stateName(s.get(fieldState)), a.state)
	return record{llpTable, [2]string{llpin}, v}, nil
}

// takeContact reads a row of our CSV of companies' contacts.
func takeContact(s *sheet) (record, error) {
	cin, ok := ident.CIN(s.get(fieldCIN))
	if !ok {
		return record{}, &rejection{badCIN, cut(s.get(fieldCIN), 40)}
	}
	v := make([]value, companyColumns)
	v[companyEmail] = s.email(s.get(fieldEmail))
	v[companyPhone] = s.phone(s.get(fieldPhone))
	v[companyWebsite] = cleanValue(s.get(fieldWebsite))
	return record{companyTable, [2]string{cin}, v}, nil
}

func (s *sheet) email(text string) value {
	v, ok := parseEmail(text)
	if !ok {
		s.out.note("e-mail")
	}
	return v
}

func (s *sheet) phone(text string) value {
	v, ok := parsePhone(text)
	if !ok {
		s.out.note("phone")
		return value{}
	}
	return v
}

// cinYear is the year that a CIN tells, in its characters 9 to 12.
func cinYear(cin string) int {
	year, _ := strconv.Atoi(cin[8:12])
	return year
}

func orElse(v, other value) value {
	if v.kind == null {
		return other
	}
	return v
}

// reading parses the values of one record and keeps the first refusal.
type reading struct {
	dates dateReader
	year  int // hint for dates
	err   error
}

func (r *reading) refuse(reason, detail string) {
	if r.err == nil {
		r.err = &rejection{reason, cut(clean(detail), 60)}
	}
}

func (r *reading) name(s string) value {
	v := textValue(clean(s))
	if v.kind == null {
		r.refuse(noName, "")
	}
	return v
}

func (r *reading) status(parse func(string) (string, error), s string) value {
	status, err := parse(s)
	if err != nil {
		r.refuse(err.Error(), s)
	}
	return textValue(status)
}

func (r *reading) date(s string) value {
	v, err := r.dates.parse(s, r.year)
	return r.check(v, err, s)
}

func (r *reading) capital(s string) value {
	v, err := parseCapital(s)
	return r.check(v, err, s)
}

func (r *reading) flag(s string) value {
	v, err := parseFlag(s)
	return r.check(v, err, s)
}

func (r *reading) check(v value, err error, s string) value {
	if err != nil {
		r.refuse(err.Error(), s)
	}
	return v
}

// asRejection tells a refused row from an error of the machine.
func asRejection(err error) (*rejection, bool) {
	var r *rejection
	ok := errors.As(err, &r)
	return r, ok
}
