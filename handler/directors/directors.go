// Package directors is the form in which the register keeps the directors of a company beside
// their appointments, so that a lookup reads them with one look: the directors that the
// service returns, in their order, at most Max.
//
// Each director is a line of four fields with tabs between them: DIN, name, designation
// and date of appointment, the last two empty when there is none. Lines are separated by
// newlines; a company without directors has the empty text. The importer leaves neither
// tabs nor newlines in a value.
package directors

import (
	"strings"

	"regedge/handler/fastbytes"
)

// Max is how many directors a board holds (specification section 8).
const Max = 50

// Of returns an SQL expression for the board of the company whose CIN the SQL expression
// cin gives, made from the appointments: NULL for a company without directors. A current
// appointment has no cessation; one to a director that is not held is left out.
func Of(cin string) string { return strings.ReplaceAll(expression, "{cin}", cin) }

const expression = `(
    SELECT group_concat(din || char(9) || name || char(9) || designation || char(9) || appointed, char(10))
    FROM (
      SELECT d.din AS din, d.name AS name,
        coalesce(a.designation, d.designation, '') AS designation,
        coalesce(a.appointment_date, d.appointment_date, '') AS appointed
      FROM appointment a CROSS JOIN director d ON d.din = a.din
      WHERE a.cin = {cin} AND a.cessation IS NULL
      ORDER BY appointed = '', appointed, d.din
      LIMIT 50))`

// Director is one line of a board. Designation and Appointed are empty when there is none.
type Director struct{ DIN, Name, Designation, Appointed string }

// Next takes the first director off a board that is not empty. It reports false for a
// text that is no board.
func Next(board string) (first Director, rest string, ok bool) {
	var tabs [3]int
	end, seen := 0, 0
	for ; end < len(board); end++ {
		for end+fastbytes.Size <= len(board) && !fastbytes.Control(fastbytes.Load(board, end)) {
			end += fastbytes.Size
		}
		if end == len(board) || board[end] == '\n' {
			break
		}
		if board[end] == '\t' {
			if seen == len(tabs) {
				return Director{}, "", false
			}
			tabs[seen] = end
			seen++
		}
	}
	if seen < len(tabs) || end == len(board)-1 { // no newline ends a board
		return Director{}, "", false
	}
	first = Director{board[:tabs[0]], board[tabs[0]+1 : tabs[1]], board[tabs[1]+1 : tabs[2]], board[tabs[2]+1 : end]}
	if end < len(board) {
		rest = board[end+1:]
	}
	return first, rest, first.DIN != "" && first.Name != ""
}

// Len is how many directors a board has.
func Len(board string) int {
	if board == "" {
		return 0
	}
	return strings.Count(board, "\n") + 1
}
