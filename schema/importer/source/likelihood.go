package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"regedge/schema/importer/record"
)

// likelihood counts the rows of a file of companies, LLPs, persons or post offices whose values hardly belong in their columns,
// so that a file with swapped columns is refused: each of its values by itself is valid.
type likelihood struct {
	strange             [fieldCount]strangeness
	unknown             strangeness       // districts of post offices
	names               map[string]string // the first names, and the identifier of the first record with each
	capitals, paidAbove int               // rows with two different capitals, and those whose paid-up one is the greater
	dates, otherYears   int               // dates of incorporation, and those of another year than the CIN's
	company             string            // one of otherYears: its CIN and date
	daysOfYears         int               // those of otherYears whose day is the CIN's year
	swapped             string            // one of daysOfYears, in the form of company
	fixed               [16]fixedAmounts  // by how many decimals the format shows
	ends                [fieldCount]textEnds
}

// textEnds counts the texts of a column that have the greatest length, without the end that nearly all have: what stored them had room
// for no more. In the official files at most one name or address is so.
type textEnds struct {
	rows, longest, cut int
	example            string          // one of those that were cut off
	ends               map[string]bool // how they end, 20 at most: texts of one pattern, as of flats in one house, end alike
}

// fewestCharacters is a greatest length below which texts may be codes of one length.
const fewestCharacters = 20

// fewestEnds is from how many ends on texts are told as probably cut off. In 26,000 parts of the official files four ended differently at most.
const fewestEnds = 10

// comparedEnd is how many bytes of a text's end are compared.
const comparedEnd = 5

// note counts a text. Equal ones in a row count once: they may stand for no value.
func (c *textEnds) note(text string, isWhole func(string) bool) {
	c.rows++
	n := utf8.RuneCountInString(text)
	if n > c.longest {
		c.longest, c.cut, c.example, c.ends = n, 0, "", nil
	}
	if n == c.longest && n >= fewestCharacters && text != c.example && !isWhole(text) {
		c.cut++
		c.example = text
		if c.ends == nil {
			c.ends = map[string]bool{}
		}
		if len(c.ends) < fewestRows {
			c.ends[text[len(text)-comparedEnd:]] = true
		}
	}
}

// sheetRows are the most rows that a spreadsheet holds: of XLSX and of XLS. It opens a file of more without the rest, and saves it so.
var sheetRows = []int{1 << 20, 1 << 16}

// cutOff says that the file has as many rows as a spreadsheet, and names the columns with texts that are probably cut off, though too few to
// refuse the file; "" if there are none.
func (l *likelihood) cutOff(s *sheet) string {
	var parts []string
	if slices.Contains(sheetRows, s.rows.rows) {
		parts = append(parts, fmt.Sprintf("the rows after %d, the most that a spreadsheet holds", s.rows.rows))
	}
	for f := range fieldCount {
		if c := &l.ends[f]; len(c.ends) >= fewestEnds {
			parts = append(parts, fmt.Sprintf("%d texts in %s after %d characters, as %q", c.cut, s.column(f), c.longest, endOf(c.example, maxColumnShown)))
		}
	}
	return strings.Join(parts, ", ")
}

// endOf shortens a text to about its last n bytes for a message.
func endOf(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-n:], "")
}

// areCut reports whether texts were cut off: 20 at least that end differently, and a tenth of all. Fewer may fill a form's field.
func (c *textEnds) areCut() bool { return len(c.ends) >= fewestRows && fewOf*c.cut >= c.rows }

// noteAddress counts an address. Nearly all end in a pincode or the country.
func (l *likelihood) noteAddress(text string) {
	l.ends[fieldAddress].note(text, func(s string) bool {
		_, isIndian := cutSuffixFold(s, "india")
		return isIndian || isDigits(s[len(s)-1:])
	})
}

// fixedAmounts counts amounts in a format that shows all with so many digits. The last one is a zero, or any other: shorter ways to write a
// number lack the zero, and an amount with another last digit hardly ends there.
type fixedAmounts struct {
	zeros, others int
	example       string // one of zeros, and its column
}

// strangeness counts rows, those of them with a value in a column, and those whose value hardly belongs there.
type strangeness struct {
	rows, values, strange int
	example               string // one of the strange values
}

const (
	// fewestRows is how many rows must be counted before a file is refused.
	fewestRows = 20
	// firstRows is how many names are looked at, which tell enough.
	firstRows = 100
	// smallAmount is more than most capitals are if they are in lakhs or crores of rupees. In the official files 9
	// authorised capitals of 67,156 are less, and 1,270 paid-up ones of 63,598.
	smallAmount = 1000
	// smallContribution is the same of contributions, which may be as low as partners like.
	smallContribution = 100
)

// legalForm matches a name of a company or an LLP with its legal form.
var legalForm = regexp.MustCompile(`(?i)\b(limited|ltd|llp)\b`)

// encodedName matches a name with tags of a web page, and one without blanks that ends in its legal form, such as "A+B+LIMITED" and "ABLTD".
var encodedName = regexp.MustCompile(`(?i)</?[a-z]|^\S+(limited|ltd|llp)\.?$`)

func (c *strangeness) note(value string, isStrange bool) {
	c.rows++
	if value == "" {
		return
	}
	c.values++
	if isStrange {
		c.strange++
		c.example = value
	}
}

// isMost reports whether most values of the column are strange, and not only because a few rows are shifted.
func (c *strangeness) isMost() bool {
	return c.values >= fewestRows && 2*c.strange > c.values && 10*c.strange > c.rows
}

// note counts the row of a company. In the official files 49 paid-up capitals of 37,079 are above the authorised ones.
func (l *likelihood) note(s *sheet, cin string, v []record.Value) {
	l.noteName(cin, v[record.CompanyName].Text)
	l.noteYear(cin, v[record.CompanyIncorporation])
	l.noteForm(s, fieldCategory, categories)
	l.noteForm(s, fieldSubCategory, subCategories)
	l.noteForm(s, fieldClass, classes)
	authorised, paid := v[record.CompanyAuthorized], v[record.CompanyPaidUp]
	l.noteAmount(s, fieldAuthorized, authorised, smallAmount)
	l.noteAmount(s, fieldPaidUp, paid, smallAmount)
	if authorised.Kind != record.Number || paid.Kind != record.Number || authorised.Int == paid.Int {
		return
	}
	l.capitals++
	if paid.Int > authorised.Int {
		l.paidAbove++
	}
}

// noteName counts a name. If several records have the same name without a legal form, it may be an activity.
func (l *likelihood) noteName(id, name string) {
	l.ends[fieldName].note(name, func(s string) bool { return legalForm.MatchString(s) || isDigits(s[len(s)-1:]) })
	if l.strange[fieldName].rows == firstRows {
		return
	}
	if l.names == nil {
		l.names = make(map[string]string, firstRows)
	}
	first, isKnown := l.names[name]
	if !isKnown {
		l.names[name] = id
	}
	isRepeated := isKnown && first != id && !legalForm.MatchString(name)
	l.strange[fieldName].note(name, isRepeated || isOfAnotherColumn(name) || encodedName.MatchString(name) || parseAddress(name).state.Kind != record.Null)
}

// noteForm counts the text of a column whose usual texts are known.
func (l *likelihood) noteForm(s *sheet, f field, usual map[string]string) {
	if column := &l.strange[f]; column.rows < firstRows {
		text := valueOf(s.get(f))
		column.note(text, usual[squash(text)] == "" && isOfAnotherColumn(text))
	}
}

// valueOf returns a text, or "" if it means no value.
func valueOf(text string) string {
	if isNone(text) {
		return ""
	}
	return text
}

// noteAmount counts a capital or a contribution. It is strange if it is above 0 and less than small.
func (l *likelihood) noteAmount(s *sheet, f field, amount record.Value, small int64) {
	value := ""
	if text := s.cell(f); strings.Contains(text, "+") {
		l.noteFixed(s, f, strings.TrimSpace(text))
	}
	if amount.Kind == record.Number && amount.Int > 0 {
		value = "small"
	}
	l.strange[f].note(value, amount.Int < small)
}

// noteFixed counts an amount in a format such as 5.00E+05 if it may have more digits than the format shows.
func (l *likelihood) noteFixed(s *sheet, f field, text string) {
	form := fixedForm.FindStringSubmatch(text)
	if form == nil || len(form[1]) >= min(len(l.fixed), smallNumber(form[2])) {
		return
	}
	count := &l.fixed[len(form[1])]
	if !strings.HasSuffix(form[1], "0") {
		count.others++
		return
	}
	count.zeros++
	count.example = text + " in " + s.column(f)
}

// fixedForm matches an amount as spreadsheets and programs write it with an exponent: its decimals, and the exponent.
var fixedForm = regexp.MustCompile(`^\d\.(\d+)[Ee]\+0?(\d\d)$`)

// checkFixed fails if a tenth of the amounts, 20 at least, end in a zero in a format that shows fewer digits than one of them has: the
// format rounded the others too.
func (l *likelihood) checkFixed() error {
	amounts := l.strange[fieldAuthorized].values + l.strange[fieldPaidUp].values + l.strange[fieldContribution].values
	for _, c := range l.fixed {
		if c.zeros >= fewestRows && c.others > 0 && fewOf*(c.zeros+c.others) >= amounts {
			return fmt.Errorf("its amounts are rounded, as %s: give the column the format of a number in the spreadsheet, and export it again", c.example)
		}
	}
	return nil
}

// noteState counts the text of the state's column, from which state was read. It is strange if it has letters and can't
// be a state, or if it is unknown while the address has a known state, or the column of the city has one.
func (l *likelihood) noteState(text string, state record.Value, a address, city string) {
	isOther := states[squash(state.Text)] == "" && (a.state.Kind != record.Null || isOtherState(city))
	if state.Kind == record.Null {
		isOther = strings.ContainsFunc(text, unicode.IsLetter)
	}
	l.strange[fieldState].note(valueOf(text), isOther)
}

// isOtherState reports whether the text of a city's column is the name of a state, and of no city.
func isOtherState(city string) bool {
	name := stateName(city).Text
	return states[squash(name)] != "" && !cityStates[name]
}

// postalWords end the names of what offices belong to, and in some directories those of the offices. Of the official 157,191 offices
// all but 274 name a division that ends in one, and none a district.
var postalWords = map[string]bool{"bo": true, "so": true, "ho": true, "po": true, "gpo": true, "division": true, "region": true, "circle": true}

// noteDistrict counts a district of a post office: the name of an office, a division or a state is strange, and one that is unknown while
// the office has a district's name. In the official directory no district is unknown.
func (l *likelihood) noteDistrict(text, office string) {
	name := states[squash(text)]
	isKnown := districts[districtKey(text)] != nil
	isState := name != "" && !cityStates[name] && name != "Daman and Diu" && !isKnown
	isSwapped := !isKnown && districts[districtKey(office)] != nil
	l.unknown.note(text, !isKnown && name == "" && districts[districtKey(withoutDistrictWord(text))] == nil)
	l.strange[fieldDistrict].note(text, isState || isSwapped || postalWords[squash(lastWord(clean(text)))])
}

// doubtful says that most districts of a directory are unknown, as those of another column are, or of another script; "" if they aren't.
func (l *likelihood) doubtful(s *sheet) string {
	if !l.unknown.isMost() {
		return ""
	}
	return fmt.Sprintf("most of its districts are unknown, as %q: is %s the column of something else?", cut(clean(l.unknown.example), maxColumnShown), s.column(fieldDistrict))
}

// noteYear counts a date of incorporation. In the official files 8 of 53,698 are of another year than the CIN's.
func (l *likelihood) noteYear(cin string, date record.Value) {
	if date.Kind == record.Null {
		return
	}
	l.dates++
	if date.Text[:4] != cin[8:12] {
		l.otherYears++
		l.company = cin + " of " + date.Text
		if date.Text[8:] == cin[10:12] {
			l.daysOfYears++
			l.swapped = l.company
		}
	}
}

// noteEnd counts an appointment or a partner with both days. One before the other is strange.
func (l *likelihood) noteEnd(began, ended record.Value) {
	days := ""
	if began.Kind == record.Text && ended.Kind == record.Text {
		days = began.Text + " to " + ended.Text
	}
	l.strange[fieldEnd].note(days, ended.Text < began.Text)
}

// isOfAnotherColumn reports whether a text is a Registrar, a status, a category or a class of companies.
func isOfAnotherColumn(name string) bool {
	key := squash(name)
	_, unknown := companyStatus(name)
	return unknown == nil || categories[key] != "" || subCategories[key] != "" || classes[key] != "" || isRegistrar(name)
}

// ownTexts says, for columns of which some texts are known, what a file has in them.
var ownTexts = map[field]string{
	fieldName: "names", fieldState: "states", fieldCategory: "categories", fieldSubCategory: "sub-categories", fieldClass: "classes",
	fieldDistrict: "districts",
}

// check fails if most rows are unlikely.
func (l *likelihood) check(s *sheet) error {
	of := "LLPs"
	switch s.format {
	case companyFormat:
		of = "companies"
	case PincodeFormat:
		of = PincodeFormat.Name
	}
	for f := range fieldCount {
		column := &l.strange[f]
		switch texts := ownTexts[f]; {
		case !column.isMost():
		case f == fieldState:
			return fmt.Errorf("most states of its %s are like %q: is %s the column of something else? Write the names of states", of, cut(clean(column.example), maxColumnShown), s.column(f))
		case f == fieldEnd:
			return fmt.Errorf("most of those that ended did so before they began, as %s: are the columns %s and %s swapped?", column.example, s.column(fieldDate), s.column(fieldEnd))
		case texts != "":
			return fmt.Errorf("most %s of its %s are like %q: is %s the column of something else?", texts, of, cut(clean(column.example), maxColumnShown), s.column(f))
		case f == fieldContribution:
			return fmt.Errorf("most contributions of its LLPs are less than %d: is %s in lakhs or crores? Write whole rupees", smallContribution, s.column(f))
		default:
			return fmt.Errorf("most capitals of its companies are less than %d: is %s in lakhs or crores? Write whole rupees", smallAmount, s.column(f))
		}
	}
	for f := range fieldCount {
		if c := &l.ends[f]; c.areCut() {
			return fmt.Errorf("its texts in %s are cut off after %d characters, as %q: export it again with room for all of them",
				s.column(f), c.longest, endOf(c.example, maxColumnShown))
		}
	}
	switch {
	case l.capitals >= fewestRows && 2*l.paidAbove > l.capitals:
		return fmt.Errorf("the paid-up capital of most of its companies is above the authorised one: are the columns %s and %s swapped?",
			s.column(fieldAuthorized), s.column(fieldPaidUp))
	case l.dates >= fewestRows && 2*l.otherYears > l.dates:
		return fmt.Errorf("most of its companies have dates of another year than their CIN, as %s: does %s hold other dates, "+
			"was one column sorted alone, or does a spreadsheet count days from 1904?", l.company, s.column(fieldDate))
	case l.daysOfYears >= fewestSwapped && fewOf*l.daysOfYears > l.dates:
		return fmt.Errorf("many of its companies have dates whose day is the year of their CIN, as %s: a spreadsheet took DD-MM-YY in %s for "+
			"YY-MM-DD; import the file as it was before", l.swapped, s.column(fieldDate))
	}
	return l.checkFixed()
}
