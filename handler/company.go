package handler

import (
	"regedge/handler/board"
	"regedge/handler/ident"
)

// companyStatement reads a company (?1 its CIN) with its directors. ?2 and ?3 say
// whether the plan includes e-mail and phone: what it does not include is never read.
// ?4 is the row that the company is in, unless another's or none is there.
//
// companyOlder, which has no ?4, is for a register of an older schema version than 9, where
// company_board is not.
var (
	companyStatement = companyColumns + `
  coalesce(b.directors, (SELECT directors FROM company_board WHERE cin = c.cin),
    (SELECT directors FROM board WHERE cin = c.cin), ` + board.Of("c.cin") + `, ''),
  c.last_updated
FROM (SELECT 1)
LEFT JOIN company c ON c.rowid = coalesce(
  (SELECT rowid FROM company WHERE rowid = ?4 AND cin = ?1), (SELECT rowid FROM company WHERE cin = ?1))
LEFT JOIN pincode p ON p.pincode = c.pincode
LEFT JOIN company_board b ON b.rowid = c.rowid AND b.cin = c.cin`

	companyOlder = companyColumns + `
  coalesce(b.directors, ` + board.Of("c.cin") + `, ''),
  c.last_updated
FROM (SELECT 1)
LEFT JOIN company c ON c.cin = ?1
LEFT JOIN pincode p ON p.pincode = c.pincode
LEFT JOIN board b ON b.cin = c.cin`
)

// companyColumns are what is read, before the directors, which are gathered only for a company
// whose board is not kept.
const companyColumns = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  c.cin, c.company_name, c.status, c.incorporation_date, c.category, c.sub_category,
  c.class, c.roc, c.authorized_capital, c.paid_up_capital, c.listed,
  coalesce(c.main_division, c.business_activity, c.principal_business),
  c.state, p.district, c.pincode,
  CASE WHEN c.address_line IS NULL OR c.city IS NULL THEN coalesce(c.address_line, c.city)
    ELSE c.address_line || ', ' || c.city END,
  CASE WHEN ?2 THEN c.email END,
  CASE WHEN ?3 THEN c.phone END,
  c.website,`

// Places of the columns of companyStatement, after the release.
const (
	companyCIN   = 0
	companyEmail = 16
	companyPhone = 17
	companyBoard = 19
)

// companyHead are the members up to the contact, without registration_no, which is taken
// from the CIN (specification section 2.3).
var companyHead = []field{
	{`{"cin":`, (*writer).value},
	{`,"company_name":`, (*writer).value},
	{`,"status":`, (*writer).value},
	{`,"incorporation_date":`, (*writer).value},
	{`,"category":`, (*writer).value},
	{`,"sub_category":`, (*writer).value},
	{`,"class":`, (*writer).value},
	{`,"roc":`, (*writer).value},
	{`,"authorized_capital":`, (*writer).value},
	{`,"paid_up_capital":`, (*writer).value},
	{`,"listed":`, (*writer).boolean},
	{`,"activity":`, (*writer).value},
	{`,"state":`, (*writer).value},
	{`,"district":`, (*writer).value},
	{`,"pincode":`, (*writer).value},
	{`,"contact":{"address":`, (*writer).value},
	{`,"email":`, (*writer).value},
	{`,"phone":`, (*writer).value},
	{`,"website":`, (*writer).value},
	{`},"directors":`, (*writer).board},
	{`,"last_updated":`, (*writer).timestamp},
}

// finished splices a column that SQLite has already made JSON of.
func (w *writer) finished(v Value) { w.raw(v.Text) }

// directorNames is more than the member names of a director and two nulls take, in bytes.
const directorNames = 72

// board writes the directors of a company (specification section 2.3).
func (w *writer) board(v Value) {
	w.raw("[")
	separator := `{"din":`
	for rest := v.Text; rest != ""; {
		var d board.Director
		var ok bool
		if d, rest, ok = board.Next(rest); !ok {
			w.damaged = true
			return
		}
		w.raw(separator)
		w.text(d.DIN)
		w.raw(`,"name":`)
		w.text(d.Name)
		w.raw(`,"designation":`)
		w.textOrNull(d.Designation)
		w.raw(`,"appointment_date":`)
		w.textOrNull(d.Appointed)
		w.raw("}")
		separator = `,{"din":`
	}
	w.raw("]")
}

// companyName is the column after which registration_no is written.
const companyName = 1

func writeCompany(w *writer, row []Value) {
	w.fields(companyHead[:companyName+1], row)
	w.raw(`,"registration_no":`)
	w.text(ident.RegistrationNumber(row[companyCIN].Text))
	w.fields(companyHead[companyName+1:], row[companyName+1:])
	w.raw("}")
}
