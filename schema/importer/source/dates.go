package source

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"regedge/schema/importer/record"
)

// firstYear and lastYear bound the years of dates. The first Companies Act is of 1850; any
// other year is a typing error.
const (
	firstYear = 1800
	lastYear  = 2100
)

var monthNumbers = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
	"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}

// dateReader parses the dates of one file.
type dateReader struct {
	asOf  string // YYYY-MM-DD: two-digit years give dates up to this day
	order *dateOrder
}

// dateOrder counts a file's dates to detect swapped months and days: slashes has dates with slashes, which are read
// month first; others has those that are read day first; yearFirst has those that begin with a year of four digits,
// whose month comes next. Dates with a year of two digits are read year last; years counts those whose first part is
// the year. dateOrder also counts the times of day without a zone. A nil dateOrder counts nothing.
type dateOrder struct {
	dates                             int // of any form
	slashes, others, yearFirst, years orderCount
	isGiven                           bool // the format fixes the order, as in documents: a future date is then a mistake by itself
	form                              byte // of the dates by their column's name: d for DD-MM-YYYY, m for MM/DD/YYYY, 0 if it names none

	times, evenings int    // times of day without a zone, and those that are 18:30
	evening         string // one of the dates with such a time
}

// orderCount counts dates that are valid as read, dates that are valid only with month and day swapped,
// and dates that are valid in either order.
type orderCount struct {
	asRead, swapped, either int
	example                 string // one of the swapped dates
	ambiguous               string // one that is valid in either order
	months                  int    // of the dates that are valid as read: a bit for each month
}

// note counts a date whose year has four digits or comes last. yearText is its year as written; isFirst says that it
// comes first. It reports whether the date is read against the form in its column's name, though that form could be right: it can be read
// in either order, and no date before it proves one.
func (d dateReader) note(s, sign string, isFirst bool, yearText, monthText, dayText string) (isAgainst bool) {
	month, day := smallNumber(monthText), smallNumber(dayText)
	if d.order == nil || month < 1 || day < 1 || month > 31 || day > 31 {
		return false
	}
	count, form := &d.order.others, byte('m')
	switch {
	case isFirst:
		count, form = &d.order.yearFirst, 0
	case sign == "/":
		count, form = &d.order.slashes, 'd'
	}
	swapped := month > 12 && day <= 12
	switch {
	case month <= 12 && day > 12:
		count.asRead++
		count.months |= 1 << month
	case month <= 12 && month != day:
		count.either++
		count.ambiguous = s
		count.months |= 1 << month
		isAgainst = form > 0 && form == d.order.form && count.asRead == 0
		isOpen := !d.order.isGiven && count != &d.order.yearFirst
		swapped = isOpen && d.isToCome(yearText, month, day) && !d.isToCome(yearText, day, month)
	}
	if swapped {
		count.swapped++
		count.example = s
	}
	return isAgainst
}

// noteYear counts a date whose first and last parts have two digits. The year is the one that agrees with the
// identifier's year (0 if there is none), or that can't be a day.
func (d dateReader) noteYear(s, first, third string, year int) {
	one, other := smallNumber(first), smallNumber(third)
	if d.order == nil || len(first) != 2 || len(third) != 2 || one < 0 || other < 0 {
		return
	}
	isOne, isOther := one > 31, other > 31
	if year > 0 && !isOne && !isOther {
		isOne, isOther = one == year%100, other == year%100
	}
	count := &d.order.years
	switch {
	case isOther && !isOne:
		count.asRead++
	case isOne && !isOther:
		count.swapped++
		count.example = s
	}
	if one <= 31 {
		count.either++
	}
}

// isToCome reports whether a date is after the date of the file.
func (d dateReader) isToCome(yearText string, month, day int) bool {
	year, err := strconv.Atoi(yearText)
	return err == nil && len(yearText) == 4 && formatDate(year, month, day) > d.asOf
}

// check fails if most of the file's unambiguous dates have month and day, or day and year, swapped and it also
// has ambiguous ones: most of these would be misread.
func (o *dateOrder) check() error {
	const advice = "write them as YYYY-MM-DD or "
	switch {
	case o.years.isSwapped():
		return fmt.Errorf("its dates have the year first, as %q, but are read with the year last: write them as YYYY-MM-DD", o.years.example)
	case o.slashes.isSwapped():
		return fmt.Errorf("its dates with slashes have the day first, as %q, but are read as month/day/year: "+advice+"DD-MM-YYYY", o.slashes.example)
	case o.yearFirst.isSwapped():
		return fmt.Errorf("its dates have the day before the month, as %q, but are read as year, month, day: write them as YYYY-MM-DD", o.yearFirst.example)
	case o.others.isSwapped():
		return fmt.Errorf("its dates have the month first, as %q, but are read as day, month, year: "+advice+"MM/DD/YYYY", o.others.example)
	case o.form == 'd' && o.isUnproven(&o.slashes):
		return fmt.Errorf("the name of the column says that its dates have the day first, but %q is read as month/day/year: "+advice+"DD-MM-YYYY", o.slashes.ambiguous)
	case o.form == 'm' && o.isUnproven(&o.others):
		return fmt.Errorf("the name of the column says that its dates have the month first, but %q is read as day, month, year: "+advice+"MM/DD/YYYY", o.others.ambiguous)
	case 2*o.evenings > o.times && o.evenings >= fewestSwapped:
		return fmt.Errorf("most times of its dates are that of UTC at which a day begins in India, as %q, but no zone is given: "+
			"write the days of India as YYYY-MM-DD, or the zone after the time, as 2006-02-22T18:30:00Z", o.evening)
	}
	return o.checkForms()
}

func (c *orderCount) isSwapped() bool { return c.swapped > c.asRead && c.either > 0 }

// isUnproven reports whether dates are read in an order that none of them proves, and so many could have another that they are no slips.
func (o *dateOrder) isUnproven(c *orderCount) bool {
	return c.either > 0 && c.asRead == 0 && fewOf*c.either >= o.dates
}

// checkForms fails if nearly all dates of one form have days up to the twelfth, and nearly all of another form have
// later ones. Then a spreadsheet with another country's settings took DD-MM-YYYY for MM-DD-YYYY where it could, wrote
// these dates in its own form, and left the others. A list of one month whose first days have another form does not
// count.
func (o *dateOrder) checkForms() error {
	forms := []*orderCount{&o.slashes, &o.others, &o.yearFirst}
	for _, changed := range forms {
		for _, left := range forms {
			if changed.isEarly() && left.isLate() && bits.OnesCount(uint(changed.months|left.months)) > 1 {
				return fmt.Errorf("its dates have two forms, and those like %q have no day after the twelfth: a spreadsheet swapped their "+
					"days and months; import the file as it was before", changed.ambiguous)
			}
		}
	}
	return nil
}

const (
	// fewestSwapped is how many dates prove such a mistake. Ten days of one form and ten of the other are so by chance
	// in one of a million files.
	fewestSwapped = 10
	// fewOf says what counts as nearly none: less than one in so many dates.
	fewOf = 10
)

func (c *orderCount) isEarly() bool { return c.either >= fewestSwapped && c.either > fewOf*c.asRead }

func (c *orderCount) isLate() bool { return c.asRead >= fewestSwapped && c.asRead > fewOf*c.either }

// parse returns a date as YYYY-MM-DD. The separator tells the order of the parts: YYYY-MM-DD, DD-MM-YY, DD-MM-YYYY or
// DD-Mon-YYYY, also with dots; with slashes M/D/YYYY, as spreadsheets write it, YYYY/MM/DD or DD/Mon/YYYY; with blanks
// the month is a word. A time after it is dropped, but see isMidnightOfIndia. No value is NULL, and so is one of
// emptyDates unless the record's identifier has its year.
//
// A two-digit year means year, which the record's identifier gives (0 if none), if that ends in the two digits.
// Otherwise it is the latest year for which the date is not after the file's as-of date.
func (d dateReader) parse(s string, year int) (record.Value, error) {
	v, err := d.read(s, year)
	if err == nil && emptyDates[v.Text] && v.Text[:4] != strconv.Itoa(year) {
		return record.Value{}, nil
	}
	return v, err
}

// read is parse without the rule for emptyDates.
func (d dateReader) read(s string, year int) (record.Value, error) {
	s = strings.TrimSpace(s)
	if isNone(s) || isZero(s) || strings.EqualFold(s, "NaT") { // pandas writes NaT
		return record.Value{}, nil
	}
	if at := timeAfter(s); at > 0 {
		if isMidnightOfIndia(s[at+1:]) {
			return d.dayAfter(s[:at])
		}
		d.noteTime(s, s[at+1:])
		if s = s[:at]; isNone(s) {
			return record.Value{}, nil
		}
	}
	sign := "-"
	if strings.Contains(s, "/") {
		sign = "/"
	} else if !strings.Contains(s, "-") && strings.Contains(s, ".") {
		sign = "."
	}
	if d.order != nil {
		d.order.dates++
	}
	first, rest, _ := strings.Cut(s, sign)
	second, third, ok := strings.Cut(rest, sign)
	if !ok {
		return d.parseWords(s, year)
	}
	yearText, month, day := orderParts(sign, first, second, third)
	d.noteYear(s, first, third, year)
	if d.note(s, sign, len(first) == 4, yearText, month, day) {
		return record.Value{}, errDate
	}
	return d.join(yearText, month, day, year)
}

// parseWords reads a date whose month is a word, between blanks: "24 September 2019", "24th Sep.
// 2019", "September 24, 2019" or "Tuesday, 24 September 2019".
func (d dateReader) parseWords(s string, year int) (record.Value, error) {
	parts := strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == ',' || c == '.' })
	if len(parts) > 3 && isWeekday(parts[0]) {
		parts = parts[1:]
	}
	if len(parts) == 4 && isTime(parts[3]) {
		parts = parts[:3]
	}
	if len(parts) != 3 {
		return record.Value{}, errDate
	}
	day, month := parts[0], parts[1]
	if strings.Trim(day, "0123456789") == day {
		day, month = month, day
	}
	if isDigits(month) {
		return record.Value{}, errDate
	}
	for _, ordinal := range []string{"st", "nd", "rd", "th"} {
		day = strings.TrimSuffix(day, ordinal)
	}
	return d.join(parts[2], month, day, year)
}

// isWeekday reports whether s is the name of a day of the week, or its first three letters.
func isWeekday(s string) bool {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(s, day.String()) || strings.EqualFold(s, day.String()[:3]) {
			return true
		}
	}
	return false
}

// emptyDates are dates that programs write for no date, such as the first days of calendars, spreadsheets and clocks.
var emptyDates = map[string]bool{"0001-01-01": true, "1899-12-30": true, "1899-12-31": true, "1900-01-01": true, "1970-01-01": true}

// timeAfter returns where the time of day after a date begins, with its separator, a blank or T; 0 if there is none.
// The separator comes after a digit, so the T of OCT is not one.
func timeAfter(s string) int {
	for i := 1; i < len(s); i++ {
		if (s[i] == ' ' || s[i] == 'T') && isDigits(s[i-1:i]) && isTime(s[i+1:]) {
			return i
		}
	}
	return 0
}

// isTime reports whether s is a time of day, such as 00:00, 12:00:00 AM, 00:00:00+05:30 or 00:00:00 IST.
func isTime(s string) bool {
	for _, zone := range []string{"IST", "UTC", "GMT"} {
		s = strings.TrimSuffix(s, zone)
	}
	first, _, _ := strings.Cut(strings.TrimLeft(s, " "), " ")
	isYear := len(first) == 4 && isDigits(first) // of "Sep 24 2019 12:00AM"
	return !isYear && strings.Contains(s, ":") && strings.Trim(s, "0123456789:.+ AMPZampz") == ""
}

// isMidnightOfIndia reports whether s is the UTC time at which a day begins in India. Some programs write a date
// without a time in this way: 2006-02-22T18:30:00.000Z, perhaps with +00:00, for 23 February.
func isMidnightOfIndia(s string) bool {
	s = strings.ToUpper(s)
	for _, zone := range []string{"Z", "UTC", "GMT", "+00:00", "+0000"} {
		if time, ok := strings.CutSuffix(s, zone); ok {
			time, fraction, _ := strings.Cut(strings.TrimRight(time, " "), ".")
			return time == "18:30:00" && strings.Trim(fraction, "0") == ""
		}
	}
	return false
}

// noteTime counts the time of a date if it has no zone. If it is the UTC time at which a day begins in India, its zone
// was lost. Spreadsheets also write that as 18:30 and 6:30:00 PM.
func (d dateReader) noteTime(s, time string) {
	time = strings.ToUpper(time)
	if d.order == nil || strings.Trim(time, "0123456789:. AMP") != "" {
		return
	}
	d.order.times++
	clock, isAfternoon := strings.CutSuffix(time, "PM")
	clock, fraction, _ := strings.Cut(strings.TrimSpace(clock), ".")
	clock = strings.TrimSuffix(clock, ":000") // SQL Server
	if isAfternoon {
		clock = strings.Replace("0"+strings.TrimPrefix(clock, "0"), "06:", "18:", 1)
	}
	if (clock == "18:30" || clock == "18:30:00") && strings.Trim(fraction, "0") == "" {
		d.order.evenings++
		d.order.evening = s
	}
}

// dayAfter reads a date and returns the next one.
func (d dateReader) dayAfter(s string) (record.Value, error) {
	v, err := d.read(s, 0)
	if err != nil || v.Kind == record.Null {
		return v, err
	}
	day, err := time.Parse(time.DateOnly, v.Text)
	if err != nil {
		return record.Value{}, errDate
	}
	return d.read(day.AddDate(0, 0, 1).Format(time.DateOnly), 0)
}

// orderParts returns the parts of a date by their order.
func orderParts(sign, first, second, third string) (year, month, day string) {
	switch {
	case len(first) == 4:
		return first, second, third
	case sign == "/" && isDigits(second): // otherwise it is the month, as a word
		return third, first, second
	}
	return third, second, first
}

func (d dateReader) join(yearText, monthText, dayText string, hint int) (record.Value, error) {
	month, ok := monthNumbers[strings.ToLower(monthText[:min(3, len(monthText))])]
	if !ok {
		month = smallNumber(monthText)
	}
	day := smallNumber(dayText)
	y := 0
	switch len(yearText) {
	case 2:
		if y = smallNumber(yearText); y >= 0 {
			y = d.century(y, month, day, hint)
		}
	case 4:
		if isDigits(yearText) {
			y, _ = strconv.Atoi(yearText)
		}
	}
	date := formatDate(y, month, day)
	if (y < firstYear && !emptyDates[date]) || y > lastYear || !isDay(y, month, day) {
		return record.Value{}, errDate
	}
	return record.TextOf(date), nil
}

// century completes a year of two digits.
func (d dateReader) century(yy, month, day, hint int) int {
	if hint > 0 && hint%100 == yy {
		return hint
	}
	limit, _ := strconv.Atoi(d.asOf[:4])
	y := limit - limit%100 + yy
	if formatDate(y, month, day) > d.asOf {
		y -= 100
	}
	return y
}

// smallNumber reads one or two digits, -1 for anything else.
func smallNumber(s string) int {
	if len(s) > 2 || !isDigits(s) {
		return -1
	}
	n, _ := strconv.Atoi(s)
	return n
}

func isDay(y, m, d int) bool {
	if m < 1 || m > 12 || d < 1 || d > 31 {
		return false
	}
	return d <= 28 || time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Day() == d
}

func formatDate(y, m, d int) string {
	if m < 0 || d < 0 {
		return ""
	}
	b := [10]byte{
		byte('0' + y/1000%10), byte('0' + y/100%10), byte('0' + y/10%10), byte('0' + y%10), '-',
		byte('0' + m/10%10), byte('0' + m%10), '-', byte('0' + d/10%10), byte('0' + d%10),
	}
	return string(b[:])
}
