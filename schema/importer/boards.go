package importer

import (
	"fmt"

	"regedge/handler/board"
	"regedge/schema"
)

// newBoard is an SQL expression for the row of a new board of the company that the SQL
// expression cin gives: the row of the company, where it is held, or any where that is taken.
func newBoard(cin string) string {
	return schema.FreeRow("company_board", schema.CompanyRow(cin, "cin_number("+cin+")"))
}

// addBoard adds the board ?2 of the company ?1.
var addBoard = `INSERT INTO company_board (rowid, cin, directors) VALUES (` + newBoard("?1") + `, ?1, ?2)`

// putBoard brings the board of the company ?1 to what the appointments say.
var putBoard = `INSERT INTO company_board (rowid, cin, directors) VALUES (` + newBoard("?1") + `, ?1, coalesce(` + board.Of("?1") + `, ''))
ON CONFLICT (cin) DO UPDATE SET directors = excluded.directors WHERE directors <> excluded.directors`

// dropEarlierBoard drops the board of the company ?1 that an earlier program made.
const dropEarlierBoard = `DELETE FROM board WHERE cin = ?1`

// fillBoards makes all boards, in their order.
var fillBoards = emptyBoards + `; INSERT INTO company_board (rowid, cin, directors)
SELECT ` + newBoard("c.cin") + `, c.cin, coalesce(` + board.Of("c.cin") + `, '') FROM (SELECT DISTINCT cin FROM appointment) c`

// emptyBoards forgets all boards.
const emptyBoards = `DELETE FROM board; DELETE FROM company_board`

// dropBoards leaves the boards to the release. They must never be older than what they
// are made from, and one by one they cost more than all at once.
const dropBoards = emptyBoards + `; INSERT OR IGNORE INTO unboarded (id) VALUES (1)`

// noteBoards remembers the boards that a changed record is part of, or makes them.
func (s *store) noteBoards(r *record) error {
	values := s.known[r.table].values
	switch {
	case s.roster != nil && r.table == directorTable:
		s.roster.addDirector(r.key[0], values)
	case s.roster != nil && r.table == appointmentTable:
		if r.key[0] != s.roster.cin {
			if err := s.writeBoard(); err != nil {
				return err
			}
			s.roster.cin = r.key[0]
		}
		s.roster.seat(r.key[1], values)
	case s.unboarded:
	case r.table == appointmentTable:
		s.boards[r.key[0]] = true
	case r.table == directorTable:
		s.seats[r.key[0]] = true
	}
	return nil
}

// lastBoard ends the boards that the roster makes: there are no more appointments.
func (s *store) lastBoard() error {
	if s.roster == nil {
		return nil
	}
	return s.writeBoard()
}

// writeBoard writes the board of the company that the roster has at hand, if any.
func (s *store) writeBoard() error {
	cin := s.roster.cin
	s.roster.cin = ""
	if cin == "" || s.roster.full {
		return nil
	}
	err := firstError(s.addBoard.BindText(1, cin), s.addBoard.BindText(2, s.roster.board()), finish(s.addBoard))
	if err != nil {
		return fmt.Errorf("write the board of company %s: %w", cin, err)
	}
	return nil
}

// settleBoards brings the remembered boards up to date.
func (s *store) settleBoards() error {
	for din := range s.seats {
		if err := s.addSeats(din); err != nil {
			return fmt.Errorf("find the boards of director %s: %w", din, err)
		}
	}
	for cin := range s.boards {
		err := firstError(s.putBoard.BindText(1, cin), finish(s.putBoard),
			s.dropBoard.BindText(1, cin), finish(s.dropBoard))
		if err != nil {
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

// releaseBoards fills the boards if they were left to the release, unless the roster has.
func (s *store) releaseBoards() (err error) {
	if !s.unboarded {
		return nil
	}
	if s.roster == nil || s.roster.full {
		err = s.exec(fillBoards)
	}
	if err = firstError(err, s.exec(`DELETE FROM unboarded`)); err != nil {
		return fmt.Errorf("fill the boards: %w", err)
	}
	s.unboarded, s.roster = false, nil
	return nil
}
