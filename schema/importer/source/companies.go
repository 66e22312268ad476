package source

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"regedge/handler/ident"
	"regedge/schema/importer/record"
)

// The reasons to reject a record. They are few, since the report counts by them.
const (
	badCIN     = "invalid CIN"
	badDIN     = "invalid DIN"
	badLLPIN   = "invalid LLPIN"
	badPincode = "invalid pincode"
	madeUpCIN  = "CIN of a made-up company"
)

// madeUpState is the state code of the sandbox's companies (docs/contract.md, "Sandbox"). If a registry had
// such a CIN, a sandbox key and a live key would get different records for it.
const madeUpState = "ZZ"

// isMadeUp reports whether key, the number of a record, is a CIN with that code.
func isMadeUp(key string) bool { return len(key) == ident.CINLength && key[6:8] == madeUpState }

// takeCompany reads a row of either export of companies. Its CIN column may name an LLP or a
// foreign company too.
func takeCompany(s *sheet) (record.Record, error) {
	id := s.get(fieldCIN)
	if cin, ok := cinOf(id); ok {
		return s.company(cin)
	}
	if llpin, ok := llpinOf(id); ok {
		return s.llpOfCompanies(llpin)
	}
	if isForeign(id) {
		return record.Record{}, &omission{"foreign company"}
	}
	return record.Record{}, &rejection{badCIN, shown(id, 40)}
}

// isForeign reports whether id numbers a foreign company: F and 4 to 8 digits.
func isForeign(id string) bool {
	id = strings.TrimSpace(id)
	return len(id) >= 5 && len(id) <= 9 && (id[0] == 'F' || id[0] == 'f') && isDigits(id[1:])
}

func (s *sheet) company(cin string) (record.Record, error) {
	v := make([]record.Value, record.CompanyColumns)
	r := reading{dates: s.dates, year: cinYear(cin)}
	v[record.CompanyName] = r.name(s.get(fieldName))
	v[record.CompanyStatus] = r.status(companyStatus, s.get(fieldStatus))
	v[record.CompanyIncorporation] = r.past(r.date(r.of(s, fieldDate)))
	v[record.CompanyAuthorized] = r.capital(r.of(s, fieldAuthorized))
	v[record.CompanyPaidUp] = r.capital(r.of(s, fieldPaidUp))
	v[record.CompanyListed] = r.flag(r.of(s, fieldListed))
	if r.err != nil {
		return record.Record{}, r.err
	}
	s.likely.note(s, cin, v)
	v[record.CompanyCategory] = described(categories, s.get(fieldCategory))
	v[record.CompanySubCategory] = described(subCategories, s.get(fieldSubCategory))
	v[record.CompanyClass] = described(classes, s.get(fieldClass))
	v[record.CompanyROC] = rocName(s.get(fieldROC))
	v[record.CompanyActivity] = cleanValue(s.get(fieldActivity))
	v[record.CompanyPrincipal] = cleanValue(s.get(fieldPrincipal))
	v[record.CompanyEmail] = s.email(s.get(fieldEmail))
	a := s.address()
	v[record.CompanyLine], v[record.CompanyCity], v[record.CompanyPincode] = a.line, a.city, a.pincode
	v[record.CompanyState] = s.state(a)
	s.addDistrict(&a, v[record.CompanyState].Text)
	v[record.CompanyDistrict] = a.named(v[record.CompanyState])
	return record.New(record.CompanyTable, v, cin), nil
}

// llpOfCompanies reads an LLP in an export of companies. Such a row has columns of capital,
// but no contribution.
func (s *sheet) llpOfCompanies(llpin string) (record.Record, error) {
	v := make([]record.Value, record.LLPColumns)
	r := reading{dates: s.dates}
	v[record.LLPName] = r.name(s.get(fieldName))
	v[record.LLPStatus] = r.status(llpStatus, s.get(fieldStatus))
	v[record.LLPIncorporation] = r.past(r.date(r.of(s, fieldDate)))
	if r.err != nil {
		return record.Record{}, r.err
	}
	s.likely.noteName(llpin, v[record.LLPName].Text)
	v[record.LLPActivity] = orElse(cleanValue(s.get(fieldActivity)), cleanValue(s.get(fieldPrincipal)))
	a := s.address()
	v[record.LLPLine], v[record.LLPCity], v[record.LLPPincode] = a.line, a.city, a.pincode
	v[record.LLPState] = s.state(a)
	return record.New(record.LLPTable, v, llpin), nil
}

// takeContact reads a row of our CSV of companies' contacts.
func takeContact(s *sheet) (record.Record, error) {
	cin, ok := cinOf(s.get(fieldCIN))
	if !ok {
		return record.Record{}, &rejection{badCIN, shown(s.get(fieldCIN), 40)}
	}
	v := make([]record.Value, record.CompanyColumns)
	v[record.CompanyEmail] = s.email(s.get(fieldEmail))
	v[record.CompanyPhone] = s.phone(s.get(fieldPhone))
	v[record.CompanyWebsite] = cleanValue(s.get(fieldWebsite))
	return record.New(record.CompanyTable, v, cin), nil
}

func (s *sheet) email(text string) record.Value {
	v, ok := parseEmail(text)
	if !ok {
		s.out.note("e-mail")
	}
	return v
}

// address reads the column of the address and, for what it lacks, the columns of city and pincode. A number at the
// pincode's place, or a text in its column, that is not a pincode is counted, so is one near the end of an address in another form, and so is
// a city without a letter.
func (s *sheet) address() address {
	text := s.get(fieldAddress)
	s.likely.noteAddress(text)
	a := parseAddress(text)
	pincode := pincodeOf(s.get(fieldPincode))
	isLost := a.pincode.Kind == record.Null && pincode.Kind == record.Null && endsInPincode.MatchString(text)
	if a.oddPincode || isLost || pincode.Kind == record.Null && !isNone(s.get(fieldPincode)) && !isZero(s.get(fieldPincode)) {
		s.out.note("pincode")
	}
	a.pincode = orElse(a.pincode, pincode)
	if text := s.get(fieldCity); !isNoText(text) && !strings.ContainsFunc(text, unicode.IsLetter) {
		s.out.note("city")
	}
	if city := s.city(a); a.city.Kind == record.Null && city.Kind == record.Text {
		a.city, a.line, a.cityFromColumn = city, joinLines(splitLines(a.line.Text), city.Text), true
	}
	return a
}

// endsInPincode matches a text with what may be a pincode near its end. In the official files it was read from all of these.
var endsInPincode = regexp.MustCompile(`(^|\D)[1-9]\d{5}\D{0,10}$`)

// addDistrict reads the column of the district where the address names none in its place. One that the table lacks is counted if there is no
// pincode either.
func (s *sheet) addDistrict(a *address, state string) {
	if text := s.get(fieldDistrict); a.district == "" && !isNoText(text) {
		if a.district = text; districtOf(text, state) == "" {
			a.district = withoutDistrictWord(text)
		}
		if a.pincode.Kind == record.Null && districtOf(a.district, state) == "" {
			s.out.note("district")
		}
	}
}

// city reads the column of the city. It is none if it repeats the state, as in an address, or has no letter.
func (s *sheet) city(a address) record.Value {
	text := s.get(fieldCity)
	if isNoText(text) || !strings.ContainsFunc(text, unicode.IsLetter) {
		return record.Value{}
	}
	state := orElse(stateName(s.get(fieldState)), a.state)
	if state.Kind == record.Null && isOtherState(text) {
		return record.Value{}
	}
	return cityName(text, state.Text)
}

// state reads the column of the state or, without one, takes the address's, or a state in the column of the city. What can't be a state is counted.
func (s *sheet) state(a address) record.Value {
	text := s.get(fieldState)
	v := stateName(text)
	if v.Kind == record.Null && !isNone(text) && !isZero(text) {
		s.out.note("state")
	}
	city := s.get(fieldCity)
	s.likely.noteState(text, v, a, city)
	if v = orElse(v, a.state); v.Kind == record.Null && isOtherState(city) {
		return stateName(city)
	}
	return v
}

func (s *sheet) phone(text string) record.Value {
	v, ok := parsePhone(text)
	if !ok {
		s.out.note("phone")
		return record.Value{}
	}
	return v
}

// cinYear is the year of incorporation in a CIN, its characters 9 to 12.
func cinYear(cin string) int {
	year, _ := strconv.Atoi(cin[8:12])
	return year
}

func orElse(v, other record.Value) record.Value {
	if v.Kind == record.Null {
		return other
	}
	return v
}

// reading parses the values of one record and keeps the first error.
type reading struct {
	dates  dateReader
	year   int    // hint for dates
	sheet  *sheet // nil in documents
	column field  // of the value that of returned last
	key    string // of the value that in returned last
	err    error
}

// of returns a field of the current row, and remembers its column for a reject. It drops a leading apostrophe (a
// spreadsheet's mark for text) and invisible characters, which are never part of a date or an amount, and turns dashes into hyphens.
func (r *reading) of(s *sheet, f field) string {
	r.sheet, r.column = s, f
	return strings.TrimPrefix(hyphened(visible(s.get(f))), "'")
}

// in returns a value of a document, and remembers its key for a reject.
func (r *reading) in(object gjson.Result, key string) string {
	r.key = key
	return object.Get(key).String()
}

func (r *reading) refuse(reason, detail string) {
	if r.err == nil {
		r.err = &rejection{reason, cut(clean(detail), 60)}
	}
}

func (r *reading) name(s string) record.Value {
	v := record.TextOf(clean(s))
	isNameless := isNone(s) && squash(s) != "unknown" // the official name of two companies
	switch {
	case v.Kind == record.Null || isNameless || isFormulaOrError(s) || !strings.ContainsFunc(v.Text, unicode.IsLetter):
		r.refuse(record.NoName, v.Text)
	case utf8.RuneCountInString(v.Text) > maxName:
		r.refuse("name too long", "")
	}
	return v
}

// maxName is the most characters of a name. The longest real one has under 200; one answer to a search has up to ten
// names.
const maxName = 1000

func (r *reading) status(parse func(string) (string, error), s string) record.Value {
	status, err := parse(s)
	if err != nil {
		r.refuse(err.Error(), s)
	}
	return record.TextOf(status)
}

func (r *reading) date(s string) record.Value {
	v, err := r.dates.parse(s, r.year)
	return r.check(v, err, s)
}

// end reads the day of an end. 31 December 9999 is none: databases that want a day there have it for what goes on.
func (r *reading) end(s string) record.Value {
	if strings.Contains(s, "9999") {
		if last, err := r.dates.parse(strings.Replace(s, "9999", "1999", 1), 0); err == nil && last.Text == "1999-12-31" {
			return record.Value{}
		}
	}
	return r.date(s)
}

// past refuses a date of incorporation after the date of the files.
func (r *reading) past(v record.Value) record.Value {
	if v.Kind == record.Text && v.Text > r.dates.asOf {
		_ = r.check(v, errToCome, v.Text)
	}
	return v
}

func (r *reading) capital(s string) record.Value {
	v, err := parseCapital(s)
	return r.check(v, err, s)
}

func (r *reading) flag(s string) record.Value {
	v, err := parseFlag(s)
	return r.check(v, err, s)
}

// check keeps the first error, with its column or key, since some records have two dates or two capitals.
func (r *reading) check(v record.Value, err error, s string) record.Value {
	if err == nil || r.err != nil {
		return v
	}
	r.refuse(err.Error(), s)
	refused, _ := asRejection(r.err)
	if r.sheet != nil {
		refused.detail += " in " + r.sheet.column(r.column)
	} else {
		refused.detail += " in " + r.key
	}
	if whole := strings.TrimSuffix(s, ".0"); errors.Is(err, errDate) && len(whole) == daySerial && isDigits(whole) {
		refused.detail += " (a spreadsheet's number of a day: give the column the format of a date)"
	}
	return v
}

// daySerial is how many digits a spreadsheet's day number has, for days from 1927 to 2173.
const daySerial = 5

// asRejection distinguishes a rejected row from an I/O or system error.
func asRejection(err error) (*rejection, bool) {
	var r *rejection
	ok := errors.As(err, &r)
	return r, ok
}

// takeLLP reads a row of our CSV of LLPs.
func takeLLP(s *sheet) (record.Record, error) {
	rec, err := s.llp()
	if err != nil {
		return rec, err
	}
	v := rec.Values
	v[record.LLPMainDivision] = cleanValue(s.get(fieldDivision))
	v[record.LLPActivity] = cleanValue(s.get(fieldActivity))
	a := s.address()
	v[record.LLPLine] = orElse(cleanValue(s.get(fieldLine)), a.line)
	v[record.LLPCity] = orElse(s.city(a), a.city)
	v[record.LLPState] = s.state(a)
	v[record.LLPPincode] = orElse(pincodeOf(s.get(fieldPincode)), a.pincode)
	return rec, nil
}

// takeListedLLP reads a row of a monthly incorporation list. Its activity is the first that
// has words among the activity description, the description and the industrial activity,
// which is a bare number in some lists.
func takeListedLLP(s *sheet) (record.Record, error) {
	rec, err := s.llp()
	if err != nil {
		return rec, err
	}
	v := rec.Values
	for _, f := range []field{fieldActivity, fieldActivityText, fieldActivityCode} {
		if activity := s.get(f); strings.Trim(activity, "0123456789. ") != "" {
			v[record.LLPActivity] = orElse(v[record.LLPActivity], cleanValue(activity))
		}
	}
	a := s.address()
	v[record.LLPLine], v[record.LLPCity], v[record.LLPPincode] = a.line, a.city, a.pincode
	v[record.LLPState] = s.state(a)
	return rec, nil
}

// llp reads the fields that both formats of LLPs have.
func (s *sheet) llp() (record.Record, error) {
	llpin, ok := llpinOf(s.get(fieldLLPIN))
	if !ok {
		return record.Record{}, &rejection{badLLPIN, shown(s.get(fieldLLPIN), 20)}
	}
	v := make([]record.Value, record.LLPColumns)
	r := reading{dates: s.dates}
	v[record.LLPName] = r.name(s.get(fieldName))
	v[record.LLPStatus] = r.status(llpStatus, s.get(fieldStatus))
	v[record.LLPIncorporation] = r.past(r.date(r.of(s, fieldDate)))
	v[record.LLPContribution] = r.capital(r.of(s, fieldContribution))
	if r.err == nil {
		s.likely.noteName(llpin, v[record.LLPName].Text)
		s.likely.noteAmount(s, fieldContribution, v[record.LLPContribution], smallContribution)
	}
	return record.New(record.LLPTable, v, llpin), r.err
}
