package importer

import (
	"strings"

	"regedge/schema/importer/source"
)

// maxCellBytes bounds a cell of the rejects file. The longest real row is under 1 KB.
const maxCellBytes = 2000

// cutMark ends a cell that was cut.
const cutMark = "… (cut)"

// inertRow is a CSV row that every spreadsheet treats as plain text.
func inertRow(cells ...string) string {
	for i, cell := range cells {
		if len(cell) > maxCellBytes {
			cell = strings.ToValidUTF8(cell[:maxCellBytes-len(cutMark)], "") + cutMark
		}
		cells[i] = inert(cell)
	}
	return source.JoinFields(cells) + "\n"
}

// inert puts an apostrophe before each character that begins a formula, at the start of the cell and
// after a separator of another locale, as in a rejected row "x;=HYPERLINK(...)"
// (https://owasp.org/www-community/attacks/CSV_Injection). Spaces and quotes before the formula are
// skipped, since some programs drop them.
func inert(cell string) string {
	if !strings.ContainsAny(cell, formulas) {
		return cell
	}
	var safe strings.Builder
	start := true
	for _, c := range cell {
		if start && strings.ContainsRune(formulas, c) {
			safe.WriteByte('\'')
			start = false
		}
		safe.WriteRune(c)
		start = strings.ContainsRune(separators, c) || start && strings.ContainsRune(" \"'", c)
	}
	return safe.String()
}

// formulas are the characters that begin a formula, the last four being full-width forms; a formula
// may also follow a tab or a carriage return.
const (
	formulas   = "=+-@\t\r＝＋－＠"
	separators = ";\t\r\n|"
)
