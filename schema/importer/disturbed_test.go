package importer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// disturbance is what stands in a row in the place of a value, and what becomes of it: the value that is read, "-" for
// none, or the reason and detail of a reject.
type disturbance struct{ place, cell, want string }

// TestADisturbedCellIsReadRightOrRejected: each in a row of its own, of one file. A reject names the line and, of amounts
// and dates, the column.
func TestADisturbedCellIsReadRightOrRejected(t *testing.T) {
	const capital, date, name, state, status = "1000000.00", "2006-02-23", "MADE-UP RESORTS   PRIVATE LIMITED", ",goa,", ",Active,"
	const roc, class = ",ROC Goa,", ",Private,"
	column := map[string]string{roc: "roc", class: "class", capital: "authorized_capital", date: "incorporation_date", name: "company_name", state: "state", status: "status"}
	list := []disturbance{
		{capital, "1e5", "100000"}, {capital, "1.0E+05", "100000"}, {capital, "+100000", "100000"}, {capital, `"100,000.00"`, "100000"},
		{capital, "#N/A", "-"}, {capital, "--", "-"}, {capital, "Nil", "-"}, {capital, "00100000", "100000"},
		{date, "5-Jan-21", "2021-01-05"}, {date, "NA", "-"}, {date, "2006-02-23T00:00:00+05:30", "2006-02-23"},
		{date, "2006-02-23T10:00:00Z", "2006-02-23"}, {date, "2006-02-22T18:30:00.000Z", "2006-02-23"}, {date, "2006-02-28T18:30:00Z", "2006-03-01"},
		{date, "2006-02-22T18:30:00+00:00", "2006-02-23"}, {date, "2006-02-22 18:30:00 UTC", "2006-02-23"}, {date, "2006-02-22T18:30:00.000000Z", "2006-02-23"},
		{date, "2006-02-23T18:30:00+05:30", "2006-02-23"}, {date, "23-FEB-2006 18:30:00", "2006-02-23"},
		{date, "2006-02-23 00:00:00 IST", "2006-02-23"}, {date, "23-02-2006 00:00:00 IST", "2006-02-23"}, {date, "2006-02-23 00:00:00+00", "2006-02-23"},
		{date, "2/23/2006 12:00:00 AM +05:30", "2006-02-23"}, {date, "0000-00-00 00:00:00", "-"}, {date, "2006-Feb-23", "2006-02-23"},
		{name, "A &amp; B LIMITED", "A & B LIMITED"}, {name, "A &amp;amp; B&#39;S&nbsp;LIMITED", "A & B'S LIMITED"}, {name, "A &B; LIMITED", "A &B; LIMITED"},
		{name, `"A \"B\" LIMITED"`, `A "B" LIMITED`}, {name, `"A, \"B\" AND ""C"" LIMITED"`, `A, "B" AND "C" LIMITED`}, {name, `"A\"`, `A\`},
		{name, "\"A\nB LIMITED\"", "A B LIMITED"}, {name, "\x93A\x94 CAF\xc9", "“A” CAFÉ"}, {name, "REF LIMITED #1", "REF LIMITED #1"},
		{state, `,"1 Beach Road, Goa",`, "Goa"}, {state, ",403516,", "Goa"}, {state, ",#NAME?,", "Goa"}, {state, ",Kamarupa,", "Kamarupa"},
		{status, ",active ,", "ACTIVE"}, {status, ",Active.,", "ACTIVE"},
		{name, "= A LIMITED", "= A LIMITED"}, {name, "A=B LIMITED", "A=B LIMITED"},
		{state, ",=B2,", "Goa"}, {roc, ",#REF!,", "-"}, {roc, ",=C2,", "-"}, {class, ",#REF!,", "-"}, {class, `,"=IF(A2,""Private"","""")",`, "-"},

		{name, "#NAME?", "no name: #NAME?"}, {name, "#REF!", "no name: #REF!"}, {name, "=A2", "no name: =A2"},
		{name, `"=VLOOKUP(A2,Names!A:B,2)"`, "no name: =VLOOKUP(A2,Names!A:B,2)"}, {name, "='Sheet 2'!B2", "no name: ='Sheet 2'!B2"}, {name, "=$B$2", "no name: =$B$2"},
		{name, `"=""A""&""B"""`, `no name: =A&B`}, {name, `"=""A """"B"""" LIMITED"""`, `A "B" LIMITED`}, {name, "A\x00B LIMITED", "zero bytes: the row is damaged"},
		{state, ",#ERROR!,", "Goa"}, {roc, ",#CALC!,", "-"}, {class, ",########,", "-"}, {class, ",#GETTING_DATA,", "-"}, {roc, ",Err:502,", "-"}, {class, ",undefined,", "-"},
		{name, "#SPILL!", "no name: #SPILL!"}, {name, "Err:502", "no name: Err:502"}, {name, "#TAG!A LIMITED", "#TAG!A LIMITED"}, {date, "NaT", "-"}, {date, "nat", "-"}, {date, "2006–02\u201123", "2006-02-23"}, {name, "Loading...", "no name: Loading..."},
		{name, "LOADING... LIMITED", "LOADING... LIMITED"},
		{status, ",ACTIV,", "unknown status: ACTIV"}, {status, ",ACTV,", "ACTIVE"}, {status, ",सक्रिय,", "unknown status: सक्रिय"}, {status, ",,", "unknown status"},
	}
	for _, amount := range []string{
		"1.5 lakh", "₹ 10 Cr", "(5,000)", "-5000", "Rs. -5,000", "1 00 000", "१०००००", "100000.00 Dr", "10%", "#REF!", "=1+1", "1e16", "10.000.000",
	} {
		list = append(list, disturbance{capital, `"` + amount + `"`, "invalid capital: " + amount + " in AuthorizedCapital"})
	}
	list = append(list, disturbance{capital, "1.23457E+11", "rounded amount: 1.23457E+11 in AuthorizedCapital"},
		disturbance{capital, "1.2345E+11", "123450000000"}, disturbance{capital, "1.25005E+10", "12500500000"}, disturbance{capital, "1.23457E+5", "123457"},
		disturbance{capital, "1.23457e+005", "123457"}, disturbance{capital, "1.2345e+006", "1234500"}, disturbance{capital, "1.25678E+06", "1256780"})
	for _, amount := range []string{"1.23457e+006", "1.23457e+06", "1.23457e+10", "1.23457E+011"} {
		list = append(list, disturbance{capital, amount, "rounded amount: " + amount + " in AuthorizedCapital"})
	}
	for _, amount := range []string{"Rs. 1,00,000", "₹1,00,000.00", "1,00,000/-", "INR 100000"} {
		list = append(list, disturbance{capital, `"` + amount + `"`, "100000"})
	}
	for _, day := range []string{"23/Feb/2006", "Thu Feb 23 2006", `"Thursday, 23 February 2006"`} {
		list = append(list, disturbance{date, day, "2006-02-23"})
	}
	for _, serial := range []string{"45291", "38771.0"} {
		list = append(list, disturbance{date, serial,
			"invalid date: " + serial + " in CompanyRegistrationdate_date (a spreadsheet's number of a day: give the column the format of a date)"})
	}
	for _, day := range []string{
		"2021-13-05", "31/02/2020", "Feb-06", "2006", "1140652800", "20060223", "1900-01-00", "9999-12-31",
		"2006-02-23 (approx)", "2006-02-23 soon", "23—02—2006", "#VALUE!", "2006-W08-4", "2100-12-31T18:30:00Z", "2006-02-30T18:30:00Z",
	} {
		list = append(list, disturbance{date, day, "invalid date: " + day + " in CompanyRegistrationdate_date"})
	}
	file, lines, line := headerA, make([]int, len(list)), 2
	for i, d := range list {
		row := strings.NewReplacer("900001", fmt.Sprint(900001+i), d.place, d.cell).Replace(rowA)
		lines[i] = line
		line += strings.Count(row, "\n")
		file += row
	}
	w := newFixture(t)
	f := w.text("2025-05-05", file)
	require.EqualValues(t, len(list), f.Read)
	require.Equal(t, map[string]int64{"state": 5}, f.Unread)
	rejects := w.rejected()
	for i, d := range list {
		got := w.row("SELECT "+column[d.place]+" FROM company WHERE cin = ?", fmt.Sprintf("U55101GA2006PTC%d", 900001+i))
		if got != "no row" {
			require.Equal(t, d.want, got, "%q", d.cell)
			continue
		}
		require.Contains(t, strings.ReplaceAll(rejects, `"`, ""), fmt.Sprintf(",%d,%s,", lines[i], d.want), "%q", d.cell)
	}
}

// TestADisturbedCINIsReadRightOrRejected: the importer guesses no digit.
func TestADisturbedCINIsReadRightOrRejected(t *testing.T) {
	bad := []string{
		"U551O1GA2006PTC900001", "U55101GA2006PTC9OOOO1", "U55101GA2006PTC90000l", "U55101GA2006PTC900001.", "CIN:U55101GA2006PTC900001", "U-55101-GA-2006-PTC-900001",
		"U55101GA2006PTC900001U55101GA2006PTC900002", "Ｕ55101GA2006PTC900001", "NA", "", "MADE-UP LIMITED", "Total",
	}
	file := headerA
	for i, cell := range []string{"u55101ga2006ptc90000%d", " U55101GA2006PTC90000%d ", "U55101 GA2006PTC 90000%d", "\"U55101GA2006PTC90000%d\""} {
		file += fmt.Sprintf(cell, i) + strings.TrimPrefix(rowA, "U55101GA2006PTC900001")
	}
	for _, cell := range bad {
		file += strings.Replace(rowA, "U55101GA2006PTC900001", cell, 1)
	}
	w := newFixture(t)
	f := w.text("2025-05-05", file)
	require.EqualValues(t, len(bad), f.Rejected["invalid CIN"])
	require.EqualValues(t, 4, f.New)
	require.Contains(t, w.rejected(), ",6,invalid CIN: U551O1GA2006PTC900001,")
}

// TestADisturbedFileIsReadRightOrTold: whatever is not read is counted by a reason, with its first line.
func TestADisturbedFileIsReadRightOrTold(t *testing.T) {
	const rows = 4
	text := headerA
	for i := range rows {
		text += strings.Replace(rowA, "900001", fmt.Sprint(900001+i), 1)
	}
	body := strings.TrimPrefix(text, headerA)
	each := func(change func(row string) string) (changed string) {
		for row := range strings.Lines(body) {
			changed += change(row)
		}
		return changed
	}
	quoted := func(row string) string {
		return `"` + strings.ReplaceAll(strings.TrimSuffix(row, "\n"), `"`, `""`) + "\"\n"
	}
	for name, c := range map[string]struct {
		text        string
		read        int64
		first, left string // the first reject, and what is left out
	}{
		"commas after each row":    {headerA + strings.ReplaceAll(body, "\n", ",,\n"), rows, "", ""},
		"the header twice":         {headerA + text, rows, "", "repeated header"},
		"the header at the end":    {text + headerA, rows, "", "repeated header"},
		"the header quoted":        {quotedHeader() + body, rows, "", ""},
		"a line end in the header": {strings.Replace(text, "CompanyStatus", "\"Company\nStatus\"", 1), rows, "", ""},
		"one, with semicolons":     {semicolons("CIN,CompanyName,\"Company\nStatus\"\n"), 1, "", ""},
		"one, with tabs":           {strings.ReplaceAll(semicolons("CIN,\"Company\nName\",\"Company\nStatus\"\n"), ";", "\t"), 1, "", ""},
		"one, below a title":       {"Companies of Goa;\"open\n" + semicolons("CIN,CompanyName,\"Company\nStatus\",w,x,y,z\n"), 1, "", "row above the header"},
		"a blank in the header":    {strings.Replace(text, "CompanyName", "Company\u00a0Name", 1), rows, "", ""},
		"numbers before each row":  {"," + headerA + each(func(row string) string { return "1," + row }), rows, "", ""},
		"two marks":                {"\uFEFF\uFEFF" + text, rows, "", ""},
		"a mark in a gzip":         {gzipped("\uFEFF" + text), rows, "", ""},
		"no line end":              {strings.TrimSuffix(text, "\n"), rows, "", ""},
		"a line of totals":         {text + "Total,4,,,,,4000000.00,,,,,,,,,\n", rows, "invalid CIN, line 6: Total", ""},
		"a line of the source":     {text + "Source: data.gov.in\n", rows, "wrong number of fields, line 6: 1, the header has 16", ""},
		"cut off in a row":         {text[:len(text)-20], rows - 1, "row cut off, line 5: the file ends within it", ""},
		"cut off in quotes":        {text[:strings.LastIndex(text, "CALANGUTE")], rows - 1, "quote never closed, line 5", ""},
		"a column more":            {headerA + strings.ReplaceAll(body, "\n", ",x\n"), 0, "wrong number of fields, line 2: 17, the header has 16", ""},
		"a column less":            {headerA + strings.ReplaceAll(body, ",55101,Trading", ",55101"), 0, "wrong number of fields, line 2: 15, the header has 16", ""},
		"numbers in rows alone":    {headerA + each(func(row string) string { return "1," + row }), 0, "wrong number of fields, line 2: 17, the header has 16", ""},
		"rows in quotes":           {headerA + each(quoted), rows, "", ""},
		"other quotes":             {strings.ReplaceAll(text, `"`, "'"), 0, "wrong number of fields, line 2: 21, the header has 16", ""},
		"a refusal in JSON":        {`{"error":"quota exceeded"}`, 0, "no companyData, line 1", ""},
		"rows in JSON":             {`[{"CIN":"U55101GA2006PTC900001","CompanyName":"A","CompanyStatus":"Active"}]`, 0, "no companyData, line 1", ""},
	} {
		w := newFixture(t)
		f := w.text("2025-05-05", c.text)
		require.Equal(t, c.read, f.New, name)
		if c.left != "" {
			require.Equal(t, map[string]int64{c.left: 1}, f.LeftOut, name)
		}
		first := ""
		for reason, detail := range f.First {
			first += reason + ", " + detail
		}
		require.Equal(t, c.first, first, name)
	}
}

// semicolons is a header and a row with semicolons between the columns.
func semicolons(header string) string {
	return strings.ReplaceAll(header+"U55101GA2006PTC900001,MADE-UP LIMITED,Active\n", ",", ";")
}

func quotedHeader() string {
	return `"` + strings.ReplaceAll(strings.TrimSuffix(headerA, "\n"), ",", `","`) + "\"\n"
}

// TestAHeaderOfAnotherKindIsRefused, with its columns, and nothing is written.
func TestAHeaderOfAnotherKindIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Hindi":             {"सीआईएन,कंपनी का नाम,स्थिति\n" + rowA, "its columns are सीआईएन, कंपनी का नाम, स्थिति"},
		"German":            {"CIN;Firmenname;Status\nU55101GA2006PTC900001;A;Aktiv\n", "its columns are CIN;Firmenname;Status"},
		"colons":            {strings.ReplaceAll("CIN,CompanyName,CompanyStatus\nU55101GA2006PTC900001,A,Active\n", ",", ":"), "its columns are CIN:CompanyName:CompanyStatus"},
		"a column twice":    {strings.Replace(headerA, "CompanyROCcode", "CompanyName", 1) + rowA, "mean the same: leave one out"},
		"a document":        {"%PDF-1.4\n1 0 obj\n", "is a PDF document"},
		"a text with marks": {`{\rtf1\ansi CIN}`, "is a document of a word processor"},
		"a saved page":      {"From: <Saved by Blink>\nSubject: x\n\n<html>", "is a web page that a browser saved"},
		"a mail":            {"MIME-Version: 1.0\nContent-Type: multipart/related\n\n<html>", "is a web page that a browser saved"},
		"a page with marks": {"\uFEFF<!DOCTYPE html><table><tr><td>CIN", "is a web page or XML"},
	} {
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(c.text)))
		require.ErrorContains(t, err, c.want, name)
		require.Empty(t, w.registryFiles(), name)
	}
}

// TestADisturbedPincodeIsReadRightOrRejected: pincodes as spreadsheets leave them, and what is no district.
func TestADisturbedPincodeIsReadRightOrRejected(t *testing.T) {
	text := "Pincode,District,StateName\n"
	for _, row := range []string{
		"403516.0,North Goa,GOA", "'403517,North Goa,GOA", "403 518,North Goa,GOA", "403519\u00a0,North Goa,GOA",
		"4.03516E+05,North Goa,GOA", "40351,North Goa,GOA", "0403516,North Goa,GOA", "North Goa,403516,GOA", "403520,#REF!,GOA", "403521,123,GOA",
		"743610,24 Paraganas South,WEST BENGAL",
	} {
		text += row + "\n"
	}
	w := newFixture(t)
	f := w.text("2025-05-05", text)
	require.Equal(t, []string{"403516|North Goa|Goa", "403517|North Goa|Goa", "403518|North Goa|Goa", "403519|North Goa|Goa", "743610|24 Paraganas South|West Bengal"},
		w.rows("SELECT pincode, district, state FROM pincode ORDER BY 1"))
	require.Equal(t, map[string]int64{"invalid pincode": 4, "invalid district": 2}, f.Rejected)
	require.Equal(t, map[string]string{"invalid pincode": "line 6: 4.03516E+05", "invalid district": "line 10: #REF!"}, f.First)
}

// TestARejectedDocumentNamesTheKey, since there are two capitals, and several dates.
func TestARejectedDocumentNamesTheKey(t *testing.T) {
	const document = `{"companyData":{"cin":"U55101GA2006PTC900001","company":"A","dateOfIncorporation":"02/23/2006","companyStatus":"Active",` +
		`"authorisedCapital":"100000","paidUpCapital":"100001"}}` + "\n"
	w := newFixture(t)
	f := w.text("2025-05-05", strings.Replace(document, "100001", "1 lakh", 1)+strings.Replace(document, "02/23/2006", "23/02/2006", 1)+document)
	require.Equal(t, map[string]string{
		"invalid capital": "line 1: 1 lakh in paidUpCapital", "invalid date": "line 2: 23/02/2006 in dateOfIncorporation",
	}, f.First)
	require.EqualValues(t, 1, f.New)
}
