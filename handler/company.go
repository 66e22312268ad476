package handler

import (
	"strings"
	"unicode/utf8"

	"regedge/handler/directors"
	"regedge/handler/ident"
)

// companyStatement reads the company whose CIN is ?1. ?2 and ?3 say whether the plan includes
// e-mail and phone: columns outside the plan are never read. ?4 is ident.CINNumber of the CIN,
// the company's rowid unless another company has taken it. The second half runs only if the
// company is not in that row, and returns NULLs if there is no such company.
const companyStatement = companyColumns + `
FROM company c WHERE c.rowid = ?4 AND c.cin = ?1
UNION ALL` + companyColumns + `
FROM (SELECT 1)
LEFT JOIN company c ON c.cin = ?1
LIMIT 1`

const companyColumns = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  c.cin, c.company_name, c.status, c.incorporation_date, c.category, c.sub_category,
  c.class, c.roc, c.authorized_capital, c.paid_up_capital, c.listed,
  coalesce(c.main_division, c.business_activity, c.principal_business),
  c.state, c.district, c.pincode,
  CASE WHEN c.address_line IS NULL OR c.city IS NULL THEN coalesce(c.address_line, c.city)
    ELSE c.address_line || ', ' || c.city END,
  CASE WHEN ?2 THEN c.email END,
  CASE WHEN ?3 THEN c.phone END,
  c.website, c.directors, c.last_updated`

// Indexes of the columns of companyStatement, without the release.
const (
	companyCIN       = 0
	companyName      = 1
	companyEmail     = 16
	companyPhone     = 17
	companyDirectors = 19
)

// companyHead are the members up to companyName, after which registration_no is written,
// which is part of the CIN (docs/contract.md, "Company").
var companyHead = []field{
	{`{"cin":`, (*writer).value},
	{`,"company_name":`, (*writer).value},
}

var companyRest = []field{
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
	{`},"directors":`, (*writer).directors},
	{`,"last_updated":`, (*writer).timestamp},
}

// directorNames is at least the size of a director's member names and two nulls, in bytes.
const directorNames = 72

func (c *call) company() answer {
	cin, ok := ident.CIN(c.param())
	if !ok {
		return mistaken(InvalidCIN, c.param())
	}
	row, failure := c.readRecord(CompanyNotFound, companyStatement,
		text(cin), flag(c.caller.email), flag(c.caller.phone), Value{Kind: Integer, Int: ident.CINNumber(cin)})
	if row == nil {
		return failure
	}
	if c.caller.sandbox {
		maskContact(row)
	}
	w := newWriter(row, directors.Len(row[companyDirectors].Text)*directorNames)
	writeCompany(w, row)
	return render(w)
}

func writeCompany(w *writer, row []Value) {
	w.fields(companyHead, row)
	w.raw(`,"registration_no":`)
	w.text(ident.RegistrationNumber(row[companyCIN].Text))
	w.fields(companyRest, row[companyName+1:])
	w.raw("}")
}

// directors writes a directors list, which is NULL for a company without directors, as JSON
// (docs/contract.md, "Company").
func (w *writer) directors(v Value) {
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

// maskContact hides e-mail and phone from the sandbox key (docs/contract.md, "Sandbox"). The
// number of stars is fixed, so that it does not tell the length.
func maskContact(company []Value) {
	if v := &company[companyEmail]; v.Kind == Text {
		v.Text = maskEmail(v.Text)
	}
	if v := &company[companyPhone]; v.Kind == Text {
		v.Text = maskPhone(v.Text)
	}
}

// maskEmail keeps the first letter of the mailbox, the first of the domain, and the last
// label: registry@example.com becomes r****@e******.com.
func maskEmail(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return firstRune(email) + "****"
	}
	domain := email[at+1:]
	masked := firstRune(email[:at]) + "****@" + firstRune(domain) + "******"
	if dot := strings.LastIndexByte(domain, '.'); dot > 0 {
		masked += domain[dot:]
	}
	return masked
}

// minPhoneDigits is how many digits a number must have for its last four to be shown: in a
// shorter number they would be most of it.
const minPhoneDigits = 8

// countryCode is the only country code that is not masked. The length of another one is unknown
// without a list of all, and one digit too many would reveal part of the number.
const countryCode = "+91"

// maskPhone keeps the last four digits, and India's country code if there is one:
// +919876543210 becomes +91******3210.
func maskPhone(phone string) string {
	digits := make([]byte, 0, len(phone))
	for i := 0; i < len(phone); i++ {
		if phone[i] >= '0' && phone[i] <= '9' {
			digits = append(digits, phone[i])
		}
	}
	if len(digits) < minPhoneDigits {
		return "******"
	}
	masked := "******" + string(digits[len(digits)-4:])
	if strings.HasPrefix(strings.TrimLeft(phone, " "), countryCode) {
		return countryCode + masked
	}
	return masked
}

func firstRune(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}
