package load

import (
	"cmp"
	"fmt"

	"regedge/handler/directors"
	"regedge/schema/importer/record"
)

// listNow is an SQL expression for the directors list of the company ?1.
var listNow = "coalesce(" + directors.Of("?1") + ", '')"

// putList updates the directors list of the company ?1, if there is such a company.
var putList = `UPDATE company SET directors = now.directors FROM (SELECT ` + listNow + ` AS directors) now
WHERE cin = ?1 AND company.directors IS NOT now.directors`

// noteLists remembers which directors lists a changed record is part of. An empty registry
// gets its companies last, each inserted with its list.
func (s *Store) noteLists(r *record.Record) {
	switch {
	case s.fresh[record.CompanyTable]:
	case r.Table == record.AppointmentTable:
		s.staleLists[r.Key[0]] = true
	case r.Table == record.DirectorTable:
		s.changedDirectors[r.Key[0]] = true
	}
}

// updateLists updates the remembered lists.
func (s *Store) updateLists() error {
	for din := range s.changedDirectors {
		if err := s.addCompaniesOf(din); err != nil {
			return fmt.Errorf("find the companies of director %s: %w", din, err)
		}
	}
	for cin := range s.staleLists {
		if err := cmp.Or(s.putList.BindText(1, cin), finish(s.putList)); err != nil {
			return fmt.Errorf("write the directors list of company %s: %w", cin, err)
		}
	}
	s.forgetLists()
	return nil
}

// addCompaniesOf adds the companies that a director is appointed to.
func (s *Store) addCompaniesOf(din string) error {
	if err := s.findCompanies.BindText(1, din); err != nil {
		return err
	}
	for s.findCompanies.Step() {
		s.staleLists[s.findCompanies.ColumnText(0)] = true
	}
	return s.findCompanies.Reset()
}

func (s *Store) forgetLists() {
	clear(s.staleLists)
	clear(s.changedDirectors)
}
