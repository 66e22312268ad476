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
}

const (
	// fewestRows is how many rows must be counted before a file is refused.
	fewestRows = 20
	// firstRows is how many names are looked at, which tell enough.
	firstRows = 100
)

// note counts a row. In the official files 49 paid-up capitals of 37,079 are above the authorised ones.
func (l *likelihood) note(v []record.Value) {
	if l.rows < firstRows {
		l.rows++
		if name := v[record.CompanyName].Text; isOfAnotherColumn(name) {
			l.otherNames++
			l.name = name
		}
	}
	authorised, paid := v[record.CompanyAuthorized], v[record.CompanyPaidUp]
	if authorised.Kind != record.Number || paid.Kind != record.Number || authorised.Int == paid.Int {
		return
	}
	l.capitals++
	if paid.Int > authorised.Int {
		l.paidAbove++
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
	}
	return nil
}
