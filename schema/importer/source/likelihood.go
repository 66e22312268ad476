package source

import (
	"fmt"
	"strings"

	"regedge/schema/importer/record"
)

// likelihood counts rows of a file of companies whose values can hardly be of their columns, so that swapped columns are not
// taken: each value alone is a valid one.
type likelihood struct {
	rows, otherNames    int    // the first rows, and those whose name is that of something else
	name                string // one of these
	capitals, paidAbove int    // rows with two different capitals, and those whose paid-up one is the greater
	amounts, small      int    // authorised capitals above 0, and those that are less than smallCapital
	dates, otherYears   int    // dates of incorporation, and those of another year than the CIN's
	company             string // one of these: its CIN and date
	daysOfYears         int    // those of another year whose day is the CIN's year
	swapped             string // one of these, as company
}

const (
	// fewestRows is how many rows must be counted before a file is refused.
	fewestRows = 20
	// firstRows is how many names are looked at, which tell enough.
	firstRows = 100
	// smallCapital is more than a capital in lakhs or crores of rupees mostly is. In the official files 9 authorised capitals of
	// 67,156 are less.
	smallCapital = 1000
)

// note counts the row of a company. In the official files 49 paid-up capitals of 37,079 are above the authorised ones.
func (l *likelihood) note(cin string, v []record.Value) {
	l.noteYear(cin, v[record.CompanyIncorporation])
	if l.rows < firstRows {
		l.rows++
		if name := v[record.CompanyName].Text; isOfAnotherColumn(name) {
			l.otherNames++
			l.name = name
		}
	}
	authorised, paid := v[record.CompanyAuthorized], v[record.CompanyPaidUp]
	if authorised.Kind == record.Number && authorised.Int > 0 {
		l.amounts++
		if authorised.Int < smallCapital {
			l.small++
		}
	}
	if authorised.Kind != record.Number || paid.Kind != record.Number || authorised.Int == paid.Int {
		return
	}
	l.capitals++
	if paid.Int > authorised.Int {
		l.paidAbove++
	}
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

// isOfAnotherColumn reports whether a name is a Registrar, a status, a category or a class of companies.
func isOfAnotherColumn(name string) bool {
	key := squash(name)
	_, unknown := companyStatus(name)
	return unknown == nil || categories[key] != "" || subCategories[key] != "" || classes[key] != "" ||
		strings.HasPrefix(key, "roc") && rocName(name).Text == name || strings.HasPrefix(key, "registrarofcompanies")
}

// check fails if most rows are unlikely.
func (l *likelihood) check(s *sheet) error {
	switch {
	case l.rows >= fewestRows && 2*l.otherNames > l.rows:
		return fmt.Errorf("most names of its companies are like %q: is %s the column of something else?",
			cut(l.name, maxColumnShown), s.column(fieldName))
	case l.capitals >= fewestRows && 2*l.paidAbove > l.capitals:
		return fmt.Errorf("the paid-up capital of most of its companies is above the authorised one: are the columns %s and %s swapped?",
			s.column(fieldAuthorized), s.column(fieldPaidUp))
	case l.amounts >= fewestRows && 2*l.small > l.amounts:
		return fmt.Errorf("most capitals of its companies are less than %d: is %s in lakhs or crores? Write whole rupees",
			smallCapital, s.column(fieldAuthorized))
	case l.dates >= fewestRows && 2*l.otherYears > l.dates:
		return fmt.Errorf("most of its companies have dates of another year than their CIN, as %s: does %s hold other dates, "+
			"was one column sorted alone, or does a spreadsheet count days from 1904?", l.company, s.column(fieldDate))
	case l.daysOfYears >= fewestSwapped && fewOf*l.daysOfYears > l.dates:
		return fmt.Errorf("many of its companies have dates whose day is the year of their CIN, as %s: a spreadsheet took DD-MM-YY in %s for "+
			"YY-MM-DD; import the file as it was before", l.swapped, s.column(fieldDate))
	}
	return nil
}
