package load

import (
	"cmp"
	"fmt"

	"regedge/handler/directors"
	"regedge/schema/importer/record"
)

// boardNow is an SQL expression for the board of the company ?1, as the appointments say it.
var boardNow = "coalesce(" + directors.Of("?1") + ", '')"

// putBoard brings the board of the company ?1, if it is held, to what the appointments say.
var putBoard = `UPDATE company SET directors = now.directors FROM (SELECT ` + boardNow + ` AS directors) now
WHERE cin = ?1 AND company.directors IS NOT now.directors`

// noteBoards remembers the boards that a changed record is part of, or makes them.
func (s *Store) noteBoards(r *record.Record) {
	switch {
	case s.fresh[record.CompanyTable]: // a new row gets its list
	case r.Table == record.AppointmentTable:
		s.boards[r.Key[0]] = true
	case r.Table == record.DirectorTable:
		s.seats[r.Key[0]] = true
	}
}

// settleBoards brings the remembered boards up to date.
func (s *Store) settleBoards() error {
	for din := range s.seats {
		if err := s.addSeats(din); err != nil {
			return fmt.Errorf("find the boards of director %s: %w", din, err)
		}
	}
	for cin := range s.boards {
		if err := cmp.Or(s.putBoard.BindText(1, cin), finish(s.putBoard)); err != nil {
			return fmt.Errorf("write the board of company %s: %w", cin, err)
		}
	}
	s.forgetBoards()
	return nil
}

// addSeats adds the companies of a director to the boards.
func (s *Store) addSeats(din string) error {
	if err := s.findSeats.BindText(1, din); err != nil {
		return err
	}
	for s.findSeats.Step() {
		s.boards[s.findSeats.ColumnText(0)] = true
	}
	return s.findSeats.Reset()
}

func (s *Store) forgetBoards() {
	clear(s.boards)
	clear(s.seats)
}
