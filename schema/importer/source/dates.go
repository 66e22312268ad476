package source

import (
	"strconv"
	"strings"
	"time"

	"regedge/schema/importer/record"
)

// firstYear and lastYear bound the years of a register that began under the Companies
// Act of 1850 and whose typing errors reach any year.
const (
	firstYear = 1800
	lastYear  = 2100
)

var monthNumbers = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
	"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}

// dateReader reads the dates of one file.
type dateReader struct {
	asOf string // YYYY-MM-DD: a year of two digits is not after it
}

// parse reads a date and returns it as YYYY-MM-DD. The order of the parts follows from
// their sign: YYYY-MM-DD (a time behind it is dropped), DD-MM-YY, DD-MM-YYYY,
// DD-Mon-YYYY, and with slashes the spreadsheet's M/D/YYYY or YYYY/MM/DD. None is NULL.
//
// A year of two digits is the one that ends in them in the century of year (a year that
// the record's identifier tells, 0 if none) when they agree, else the latest that is
// not after the file's as-of date.
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
	return d.join(yearText, month, day, year)
}

// orderParts names the parts of a date by their places.
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
