package importer

import (
	"fmt"

	"regedge/handler/directors"
)

// boardNow is an SQL expression for the board of the company ?1, as the appointments say it.
var boardNow = "coalesce(" + directors.Of("?1") + ", '')"

// putBoard brings the board of the company ?1, if it is held, to what the appointments say.
var putBoard = `UPDATE company SET directors = now.directors FROM (SELECT ` + boardNow + ` AS directors) now
WHERE cin = ?1 AND company.directors IS NOT now.directors`

// noteBoards remembers the boards that a changed record is part of, or makes them.
func (s *store) noteBoards(r *record) {
	switch {
	case s.fresh[companyTable]: // a new row gets its list
	case r.table == appointmentTable:
		s.boards[r.key[0]] = true
	case r.table == directorTable:
		s.seats[r.key[0]] = true
	}
}

// settleBoards brings the remembered boards up to date.
func (s *store) settleBoards() error {
	for din := range s.seats {
		if err := s.addSeats(din); err != nil {
			return fmt.Errorf("find the boards of director %s: %w", din, err)
		}
	}
	for cin := range s.boards {
		if err := firstError(s.putBoard.BindText(1, cin), finish(s.putBoard)); err != nil {
			return fmt.Errorf("write the board of company %s: %w", cin, err)
		}
	}
	s.forgetBoards()
	return nil
}

// addSeats adds the companies of a director to the boards.
func (s *store) addSeats(din string) error {
	if err := s.findSeats.BindText(1, din); err != nil {
		return err
	}
	for s.findSeats.Step() {
		s.boards[s.findSeats.ColumnText(0)] = true
	}
	return s.findSeats.Reset()
}

func (s *store) forgetBoards() {
	clear(s.boards)
	clear(s.seats)
}
