package source

import (
	"fmt"
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
	asOf  string // YYYY-MM-DD: dates with a two-digit year are not after it
	order *dateOrder
}

// dateOrder counts the dates with slashes that can only be read in one order. A nil one counts nothing.
type dateOrder struct {
	monthFirst, dayFirst, either int
	example                      string // of the day first
}

func (o *dateOrder) note(s string, month, day string) {
	first, second := smallNumber(month), smallNumber(day)
	switch {
	case o == nil || first < 1 || second < 1 || first > 31 || second > 31:
	case first <= 12 && second > 12:
		o.monthFirst++
	case first > 12 && second <= 12:
		o.dayFirst++
		o.example = s
	case first <= 12 && first != second:
		o.either++
	}
}

// check fails for a file whose dates with slashes have the day first wherever that can be told, and that has others: most of
// these would be wrong.
func (o *dateOrder) check() error {
	if o.dayFirst == 0 || o.monthFirst > 0 || o.either == 0 {
		return nil
	}
	return fmt.Errorf("its dates with slashes have the day first, as %q, but are read as month/day/year: write them as YYYY-MM-DD or DD-MM-YYYY", o.example)
}

// parse returns a date as YYYY-MM-DD. The separator tells the order of the parts: YYYY-MM-DD
// (a time after it is dropped), DD-MM-YY, DD-MM-YYYY, DD-Mon-YYYY, also with dots, and with
// slashes M/D/YYYY, as spreadsheets write it, or YYYY/MM/DD. No value is NULL.
//
// A two-digit year means year, which the record's identifier gives (0 if none), if that ends in
// the two digits. Otherwise it is the latest year for which the date is not after the file's
// as-of date.
func (d dateReader) parse(s string, year int) (record.Value, error) {
	s = strings.TrimSpace(s)
	if isNone(s) {
		return record.Value{}, nil
	}
	if len(s) > 10 && (s[10] == 'T' || s[10] == ' ') && s[4] == '-' {
		s = s[:10]
	}
	sign := "-"
	if strings.Contains(s, "/") {
		sign = "/"
	} else if !strings.Contains(s, "-") && strings.Contains(s, ".") {
		sign = "."
	}
	first, rest, _ := strings.Cut(s, sign)
	second, third, ok := strings.Cut(rest, sign)
	if !ok {
		return record.Value{}, errDate
	}
	yearText, month, day := orderParts(sign, first, second, third)
	if sign == "/" {
		d.order.note(s, month, day)
	}
	return d.join(yearText, month, day, year)
}

// orderParts returns the parts of a date by their order.
func orderParts(sign, first, second, third string) (year, month, day string) {
	switch {
	case len(first) == 4:
		return first, second, third
	case sign == "/":
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
	if y < firstYear || y > lastYear || !isDay(y, month, day) {
		return record.Value{}, errDate
	}
	return record.TextOf(formatDate(y, month, day)), nil
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
