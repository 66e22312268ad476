package handler

import (
	"strings"

	"regedge/handler/directors"
	"regedge/handler/ident"
)

// companyStatement reads the company whose CIN is ?1. ?2 and ?3 say whether the plan includes
// e-mail and phone: what it does not include is never read. ?4 is the row that the company has
// unless that is another's: the second half runs only where it is not found there with its
// directors, and returns NULLs where there is none at all.
//
// companyOlder, which have no ?4, are for registers of an older schema version than 10, where a
// company's row has no place for its directors: of version 9, and below. They are put together
// when they are needed: what a component holds is put back after each request.
var (
	companyStatement = companyColumns("c.district", "c.directors") + `
FROM company c WHERE c.rowid = ?4 AND c.cin = ?1 AND c.directors IS NOT NULL
UNION ALL` + companyByCIN("c.directors", boardByCompany, boardByCIN) + `
LIMIT 1`

	companyOlder = [...]func() string{
		func() string { return companyByCIN(boardByCompany, boardByCIN) },
		func() string { return companyByCIN(boardByCIN) },
	}
)

const (
	boardByCompany = `(SELECT directors FROM company_board WHERE cin = c.cin)`
	boardByCIN     = `(SELECT directors FROM board WHERE cin = c.cin)`
)

// companyByCIN takes the directors from the first of several places that has them, or gathers
// them.
func companyByCIN(boards ...string) string {
	return companyColumns("p.district", "coalesce("+strings.Join(boards, ", ")+", "+directors.Of("c.cin")+", '')") + `
FROM (SELECT 1)
LEFT JOIN company c ON c.cin = ?1
LEFT JOIN pincode p ON p.pincode = c.pincode`
}

// companyColumns reads a company with the SQL expressions of its district and its directors.
func companyColumns(district, directors string) string {
	return `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  c.cin, c.company_name, c.status, c.incorporation_date, c.category, c.sub_category,
  c.class, c.roc, c.authorized_capital, c.paid_up_capital, c.listed,
  coalesce(c.main_division, c.business_activity, c.principal_business),
  c.state, ` + district + `, c.pincode,
  CASE WHEN c.address_line IS NULL OR c.city IS NULL THEN coalesce(c.address_line, c.city)
    ELSE c.address_line || ', ' || c.city END,
  CASE WHEN ?2 THEN c.email END,
  CASE WHEN ?3 THEN c.phone END,
  c.website, ` + directors + `, c.last_updated`
}

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
		var d directors.Director
		var ok bool
		if d, rest, ok = directors.Next(rest); !ok {
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
