package importer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAHeaderMayStandBelowATitle, or below the line that tells Excel its separator.
func TestAHeaderMayStandBelowATitle(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		above int64
	}{
		"Excel's separator":       {"sep=,\r\n" + headerA + rowA, 1},
		"another separator":       {"sep=|\n" + strings.ReplaceAll("CIN,CompanyName,CompanyStatus\nU55101GA2006PTC900001,A,Active\n", ",", "|"), 1},
		"a title and blank lines": {"Company Master Data\n\n\nas on,31-03-2025\n,,,,,,,,,,,,,,,\n" + headerA + rowA, 3},
		"twenty lines":            {strings.Repeat("Title\n", 20) + headerA + rowA, 20},
		"many blank lines":        {strings.Repeat(" \r\n", 9000) + headerA + rowA, 0},
		"none":                    {headerA + rowA, 0},
	} {
		w := newFixture(t)
		f := w.text("2025-05-05", c.text)
		require.EqualValues(t, 1, f.New, name)
		require.Equal(t, c.above, f.LeftOut["row above the header"], name)
	}
}

// TestTheColumnsOfAHeaderMayBeNumbered, all of them.
func TestTheColumnsOfAHeaderMayBeNumbered(t *testing.T) {
	for _, form := range []string{"%d. %s", "%d) %s", " (%d)%s"} {
		names := strings.Split(strings.TrimSpace(headerA), ",")
		for i, name := range names {
			names[i] = fmt.Sprintf(form, i+1, name)
		}
		header := strings.Join(names, ",") + "\n"
		for _, text := range []string{header + rowA, "Companies\n\nas on 31-03-2025\n" + header + rowA + header} {
			w := newFixture(t)
			f := w.text("2025-05-05", text)
			require.EqualValues(t, 1, f.New, form)
			require.Empty(t, f.Rejected, form)
			require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
		}
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file("CIN,"+header+"x,"+rowA)))
		require.ErrorContains(t, err, "not that of a known format", "one has no number")
	}
}

// TestNoDataAreLeftOutAboveAHeader: they would be lost.
func TestNoDataAreLeftOutAboveAHeader(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"rows":                     {rowA + rowA + headerA + rowA, "the first row is data"},
		"a row that is half empty": {strings.Repeat("some,", (strings.Count(headerA, ",")+1)/2) + "\n" + headerA + rowA, "its columns are some"},
		"a header far below":       {strings.Repeat("Title\n", 21) + headerA + rowA, "its columns are Title"},
		"a header that lacks something": {
			"Title\n" + strings.Replace(headerA, "CompanyStatus", "Condition", 1) + rowA, "which also need companystatus",
		},
	} {
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(c.text)))
		require.ErrorContains(t, err, c.want, name)
		require.Empty(t, w.registryFiles(), name)
	}
}

// TestTheHeaderBelowAFilledRowIsNamed: a merged title is repeated in each column by some programs.
func TestTheHeaderBelowAFilledRowIsNamed(t *testing.T) {
	columns := strings.Count(headerA, ",") + 1
	for _, above := range []string{
		strings.Repeat(",Companies of Goa", columns)[1:], strings.Repeat(",Company,Status", columns/2)[1:],
		"Company Master Data\n" + strings.Repeat(",Status", columns)[1:], rowA[:len(rowA)-1],
	} {
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(above+"\n"+headerA+rowA)))
		require.ErrorContains(t, err, fmt.Sprintf("; line %d is a header: if the rows above it are no data, remove them", 2+strings.Count(above, "\n")))
	}
}

// TestNumbersAreReadAsSpreadsheetsLeaveThem: as texts, with blanks, or with what can't be seen.
func TestNumbersAreReadAsSpreadsheetsLeaveThem(t *testing.T) {
	const number = "U55101GA2006PTC900001"
	for _, cell := range []string{
		`="` + number + `"`, `"=""` + number + `"""`, "'" + number, "U55101 GA 2006 PTC 900001", number + "\u00a0", "\u200b" + number, "\ufeff" + number,
	} {
		w := newFixture(t)
		f := w.text("2025-05-05", headerA+cell+strings.TrimPrefix(rowA, number))
		require.EqualValues(t, 1, f.New, "%q %v", cell, f.First)
		require.Equal(t, wantA, w.row(companyColumnsQuery, number), "%q", cell)
	}
	w := newFixture(t)
	w.text("2025-05-05", headerA+strings.NewReplacer("1000000.00", "'1000000.00", "2006-02-23", "'2006-02-23").Replace(rowA))
	require.Equal(t, wantA, w.row(companyColumnsQuery, number), "apostrophes before an amount and a date")
	w = newFixture(t)
	w.text("2025-05-05", headerA+strings.NewReplacer("1000000.00", "\u200e1000000.00", "2006-02-23", "\u200e2006-02-23", "Unlisted", "Unlisted\u200b").Replace(rowA))
	require.Equal(t, wantA, w.row(companyColumnsQuery, number), "marks that can't be seen")
	w = newFixture(t)
	w.text("2025-05-05", headerA+strings.NewReplacer(number, ` ="`+number+`" `, ",goa,", ",\u00a0=\"goa\",").Replace(rowA))
	require.Equal(t, wantA, w.row(companyColumnsQuery, number), "blanks around the formula of a text")
	w = newFixture(t)
	w.run("2025-05-05", w.file("llpin,llp_name,status,incorporation_date\nABD 0346,A LLP,Active,2020-01-01\n"),
		w.file("din,name,disqualified\n0000 1235,A,no\n1236.0,B,no\n'1237,C,no\n12 38,D,no\n1.2E+03,E,no\n"))
	require.Equal(t, "ABD-0346", w.row("SELECT llpin FROM llp"))
	require.EqualValues(t, 2, w.text("2025-05-05", "LLPIN,LLP Name,Status\nABD–0346,A LLP,Active\nABD‐0346,A LLP,Active\n").Unchanged)
	require.Equal(t, []string{"00001235", "00001236", "00001237"}, w.rows("SELECT din FROM director ORDER BY din"))
}

// TestRowsMayLackABlankEnd: spreadsheets leave out the last commas of rows where these are all that sixteen rows have there. A row that
// lacks anything else, or with which the file is cut off, is no such row.
func TestRowsMayLackABlankEnd(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05", w.file(listCompanies),
		w.file("din,name,disqualified,designation,appointment_date\n1,MADE-UP ASHA,no,Director\n2,MADE-UP RAVI,yes\n3,MADE-UP DEVI\n"),
		w.file("cin,din,designation,appointment_date,cessation_date,cessation_reason\nU11111GA2020PTC000001,1,Director,2020-01-02\n"+
			"U11111GA2020PTC000001,2,Manager,2020-01-02,2021-01-02\nU11111GA2020PTC000001,3,Director\nU11111GA2020PTC000001,4,2020-01-02,2021-01-02\n"+
			"U11111GA2020PTC000001,6,05/06/2020,2021-01-02\nU11111GA2020PTC000001,7,13/2/2020,2021-01-02\n"+
			"U11111GA2020PTC000001,5,Director,2020-01-02"),
		w.file("llpin,din,name,status,joined_on,left_on\nABD-0345,1,MADE-UP ASHA,Active,2020-01-02\nABD-0345,2,MADE-UP RAVI,Active\n"),
		w.file("cin,email,phone,website\nU11111GA2020PTC000001,a@example.com\nU11111GA2020PTC000002\n"))
	require.Equal(t, map[string]int64{"wrong number of fields": 4, "row cut off": 1, "date as a designation": 3}, report.Total().Rejected)
	require.Equal(t, []string{"00000001|Director|0", "00000002|-|1"}, w.rows("SELECT din, designation, disqualified FROM director ORDER BY 1"))
	require.Equal(t, []string{"00000001|2020-01-02|-", "00000002|2020-01-02|2021-01-02"}, w.rows("SELECT din, appointment_date, cessation_date FROM appointment ORDER BY 1"))
	require.Equal(t, "00000001|2020-01-02|-", w.row("SELECT din, joined_on, left_on FROM partner"))
	require.Equal(t, "a@example.com|-", w.row("SELECT email, phone FROM company WHERE cin = 'U11111GA2020PTC000001'"))
}

// TestAPincodeIsReadAsSpreadsheetsLeaveIt, also at the end of an address, and one that they shortened is counted.
func TestAPincodeIsReadAsSpreadsheetsLeaveIt(t *testing.T) {
	for pincode, want := range map[string]string{"403516.0": "403516", "4.03E+05": "", "40351": "", "000000": "", "NA": "", "": ""} {
		w := newFixture(t)
		f := w.text("2025-05-05", headerA+strings.Replace(rowA, "403516-India", pincode+"-India", 1))
		require.EqualValues(t, 1, f.New, pincode)
		require.Equal(t, want, w.row("SELECT coalesce(pincode, '') FROM company"), pincode)
		require.Equal(t, want == "" && strings.ContainsAny(pincode, "34"), f.Unread["pincode"] == 1, pincode)
	}
	w := newFixture(t)
	w.text("2025-05-05", `{"companyData":{"company":"MADE-UP LLP","cin":"ABD0345","llpStatus":"Active","MCAMDSCompanyAddress":[`+
		`{"addressType":"Registered Address","streetAddress":"1 ROAD","city":"DELHI","postalCode":110001.0}]}}`)
	require.Equal(t, "110001", w.row("SELECT pincode FROM llp"), "a document")
}

// TestTheNearestFormatOfPostOfficesHasTheirKey: companies have as many of these columns.
func TestTheNearestFormatOfPostOfficesHasTheirKey(t *testing.T) {
	w := newFixture(t)
	_, err := Run(context.Background(), w.config("2025-05-05", w.file("OfficeName,Pincode,District,City,State\nA,411001,Pune,Pune,Maharashtra\n")))
	require.ErrorContains(t, err, "nearest are post offices, which also need statename")
}

// TestColumnsOfCityAndPincodeCountWhereTheAddressLacksThem: they were lost without a word.
func TestColumnsOfCityAndPincodeCountWhereTheAddressLacksThem(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{"12 MG Road,Pune,411001", "12 MG Road|Pune|411001"},
		{`"12 MG Road, Pune",PUNE,411 001`, "12 MG Road|PUNE|411001"},
		{`"12 MG Road,Camp,Maharashtra,411002-India",Pune,411001`, "12 MG Road|Camp|411002"},
		{"12 MG Road,NA,0", "12 MG Road|-|-"},
		{"NA,Pune,NA", "-|Pune|-"},
		{"12 MG Road,411001,Pune", "12 MG Road|-|-"},
		{`"12 MG Road,NA,Maharashtra,411002-India",MAHARASHTRA,411001`, "12 MG Road|-|411002"},
	} {
		for header, table := range map[string]string{
			"CIN,Company Name,Company Status,Registered Office Address,City,Pin Code\nU55101GA2006PTC900001": "company",
			"LLPIN,LLP Name,Status,Address,City,Pincode\nABD-0345":                                           "llp",
		} {
			w := newFixture(t)
			f := w.text("2025-05-05", header+",A,Active,"+c.row+"\n")
			require.EqualValues(t, 1, f.New, f.First)
			require.Equal(t, c.want, w.row("SELECT address_line, city, pincode FROM "+table), header+c.row)
			require.Equal(t, strings.Contains(c.row, "d,411001"), f.Unread["city"] == 1, c.row)
		}
	}
	for city, want := range map[string]string{"411001": "-", "MAHARASHTRA": "-", "Pune": "Pune"} {
		w := newFixture(t)
		f := w.text("2025-05-05", "llpin,llp_name,status,incorporation_date,city,state\nABD-0345,A LLP,Active,2020-01-01,"+city+",Maharashtra\n")
		require.Equal(t, want, w.row("SELECT city FROM llp"))
		require.Equal(t, city == "411001", f.Unread["city"] == 1, city)
	}
}

// TestTheZerosOfFormulasAreNoOddValues: the report of a whole file that a spreadsheet made would warn of each row.
func TestTheZerosOfFormulasAreNoOddValues(t *testing.T) {
	for _, text := range []string{
		"CIN,CompanyName,CompanyStatus,Registered_Office_Address,City,Pincode,State,Email\nU55101GA2006PTC900001,A,Active,1 ROAD,0,0,0,0\n",
		"CIN,Email,Phone,Website\nU55101GA2006PTC900001,0,0.0,0\n",
		"Pincode,District,StateName\n403516,0,Goa\n403516,North Goa,0\n",
	} {
		w := newFixture(t)
		w.text("2025-05-05", "CIN,CompanyName,CompanyStatus\nU55101GA2006PTC900001,A,Active\n")
		f := w.text("2025-05-05", text)
		require.Empty(t, f.Unread, text)
		require.Empty(t, f.Rejected, text)
		if strings.HasPrefix(text, "Pin") {
			require.Equal(t, map[string]int64{"office without a district": 1}, f.LeftOut)
		}
	}
}

// TestCityAndPincodeOfAnotherAddressAreNotTaken: the pincode would decide the district. Parts of one address are no other.
func TestCityAndPincodeOfAnotherAddressAreNotTaken(t *testing.T) {
	for header, want := range map[string]string{
		"CIN,Company Name,Company Status,Registered Office Address,ROC,Correspondence Address,City,Pincode": "-|-",
		"CIN,Company Name,Company Status,Registered Office Address,ROC,Address of ROC,City,Pincode":         "-|-",
		"LLPIN,LLP Name,Status,Address,State,Address for correspondence,City,Pincode":                       "-|-",
		"CIN,Company Name,Company Status,Registered Office Address,ROC,Address 2,City,Pincode":              "Pune|411001",
		"CIN,Company Name,Company Status,Registered Office Address,Email Address,Web Address,City,Pincode":  "Pune|411001",
		"CIN,Company Name,Company Status,Registered Office Address,ROC,E-mail Address (2),City,Pincode":     "Pune|411001",
	} {
		table, number := "company", "U55101GA2006PTC900001"
		if strings.HasPrefix(header, "LLPIN") {
			table, number = "llp", "ABD-0345"
		}
		w := newFixture(t)
		f := w.text("2025-05-05", header+"\n"+number+",A,Active,12 MG Road,NA,5 Link Road,Pune,411001\n")
		require.EqualValues(t, 1, f.New, f.First)
		require.Equal(t, want, w.row("SELECT city, pincode FROM "+table), header)
	}
}

// TestAColumnOfTheCityCostsNoDistrict that the last line of the address names.
func TestAColumnOfTheCityCostsNoDistrict(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,Registered_Office_Address,City,State\nU55101MH2006PTC900001,A,Active,\"Plot 5, MIDC, Pune\",Pimpri,Maharashtra\n")
	require.Equal(t, "Pimpri|Pune", w.row("SELECT city, district FROM company"))
}

// TestAColumnOfTheDistrictCountsWhereTheAddressNamesNone, and there is no pincode with one.
func TestAColumnOfTheDistrictCountsWhereTheAddressNamesNone(t *testing.T) {
	const header = "CIN,CompanyName,CompanyStatus,Registered_Office_Address,District,State,Pincode"
	for row, want := range map[string]string{
		`"Plot 5, MIDC",PUNE,Maharashtra,`:                                   "Pune",
		`"Plot 5, MIDC, Dist. Nashik",Pune,Maharashtra,`:                     "Pune",
		`"Plot 5,Wagholi,Nashik,Maharashtra,000000-India",Pune,Maharashtra,`: "Nashik",
		`"Plot 5, MIDC",Pune,Maharashtra,403516`:                             "North Goa",
		`"Plot 5, MIDC, Dist. Nashik",Camp,Maharashtra,`:                     "Nashik",
		`"Plot 5, MIDC",NA,Maharashtra,`:                                     "-",
		`"Plot 5, MIDC",PUNE DISTRICT,Maharashtra,`:                          "Pune",
		`"Plot 5, MIDC",Dist. Pune,Maharashtra,`:                             "Pune",
		`"Plot 5, MIDC",Pune (Dt.),Maharashtra,`:                             "Pune",
		`"Plot 5, MIDC",North District,Sikkim,`:                              "North District",
		`"Plot 5, MIDC",District,Maharashtra,`:                               "-",
	} {
		w := newFixture(t)
		w.text("2025-05-05", "Pincode,District,StateName\n403516,North Goa,Goa\n")
		f := w.text("2025-05-05", header+"\nU55101MH2006PTC900001,A,Active,"+row+"\n")
		require.Equal(t, want, w.row("SELECT district FROM company"), row)
		require.Equal(t, strings.Contains(row, "Camp") || strings.Contains(row, ",District"), f.Unread["district"] == 1, row)
		w = newFixture(t)
		w.text("2025-05-05", header+",Correspondence Address\nU55101MH2006PTC900001,A,Active,"+row+",1 Link Road\n")
		require.NotEqual(t, "Pune", w.row("SELECT district FROM company"), "of which address?")
	}
}

// TestAStateInTheColumnOfTheCityIsNoCity, and counts as the state where there is no other.
func TestAStateInTheColumnOfTheCityIsNoCity(t *testing.T) {
	for row, want := range map[string]string{
		"Maharashtra,": "-|Maharashtra", "MAHARASHTRA,Maharashtra": "-|Maharashtra", "Goa,Maharashtra": "Goa|Maharashtra", "Delhi,": "Delhi|-", "Pune,": "Pune|-",
	} {
		for header, table := range map[string]string{
			"CIN,CompanyName,CompanyStatus,City,State\nU55101MH2006PTC900001,A,Active,":              "company",
			"LLPIN,LLP Name,Status,City,State\nABD-0345,A,Active,":                                   "llp",
			"llpin,llp_name,status,incorporation_date,city,state\nABD-0345,A LLP,Active,2020-01-01,": "llp",
		} {
			w := newFixture(t)
			w.text("2025-05-05", header+row+"\n")
			require.Equal(t, want, w.row("SELECT city, state FROM "+table), header+row)
		}
	}
}

// TestTheLineEndsOfXLSXAreBlanks: programs that read its texts without their escapes leave them as _x000D_.
func TestTheLineEndsOfXLSXAreBlanks(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+strings.NewReplacer("RESORTS   ", "RESORTS_x000D_\n", "403516-India", "403516-India_x000d_").Replace(strings.Replace(rowA, "MADE-UP RESORTS   PRIVATE LIMITED", "\"MADE-UP RESORTS   PRIVATE LIMITED\"", 1)))
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
	w = newFixture(t)
	w.text("2025-05-05", strings.Replace(headerA, "CompanyName", "\"Company_x000D_\nName\"", 1)+strings.NewReplacer("MADE-UP RESORTS   PRIVATE LIMITED", "=\"MADE-UP RESORTS PRIVATE LIMITED\"_x000D_").Replace(rowA))
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
}

// TestPercentEncodedRowsAreReadAsTheyWere, each value of them.
func TestPercentEncodedRowsAreReadAsTheyWere(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", headerA+strings.ReplaceAll(rowA, " ", "%20"))
	require.EqualValues(t, 1, f.New, f.First)
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
	w = newFixture(t)
	w.text("2025-05-05", headerA+strings.Replace(strings.ReplaceAll(rowA, " ", "%20"), "MADE-UP%20", " MADE-UP%20", 1))
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"), "a blank before a value")
}

// TestMarksOfTextsAndEntitiesAreNoPartOfValues: some programs write an apostrophe before each text, or before what would be a formula.
func TestMarksOfTextsAndEntitiesAreNoPartOfValues(t *testing.T) {
	const number = "U55101GA2006PTC900001"
	for _, c := range []struct{ row, want string }{
		{number + `,A &AMP; B,Active,"1 ROAD,JAMMU,Jammu &amp; Kashmir,NA-India"`, "A & B"},
		{"'" + number + `,'A & B,'Active,"'1 ROAD,JAMMU,Jammu & Kashmir,NA-India"`, "A & B"},
		{" '" + number + `, 'A & B, 'Active, "'1 ROAD,JAMMU,Jammu & Kashmir,NA-India"`, "A & B"},
		{number + `,'@ A & B,Active,"1 ROAD,JAMMU,Jammu & Kashmir,NA-India"`, "@ A & B"},
		{number + `,'A' & B,Active,"1 ROAD,JAMMU,Jammu & Kashmir,NA-India"`, "'A' & B"},
		{"'" + number + `,'A' & B,Active,"1 ROAD,JAMMU,Jammu & Kashmir,NA-India"`, "'A' & B"},
	} {
		w := newFixture(t)
		f := w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,Registered_Office_Address\n"+c.row+"\n")
		require.EqualValues(t, 1, f.New, f.First)
		require.Equal(t, c.want+"|1 ROAD|JAMMU|Jammu and Kashmir", w.row("SELECT company_name, address_line, city, state FROM company"), c.row)
	}
	w := newFixture(t)
	w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,Registered_Office_Address\n'"+number+`,A,Active,"'PELICAN', 2 ROAD,PUNE,Maharashtra,411001-India"`+"\n")
	require.Equal(t, "'PELICAN', 2 ROAD", w.row("SELECT address_line FROM company"), "only the number is marked")
	w.run("2025-05-05", w.file("din,name,disqualified\n'12,'ASHA,0\n"),
		w.file("cin,din,designation,appointment_date\n'"+number+",'12,'Director,2020-01-02\n"))
	require.Equal(t, "ASHA|Director", w.row("SELECT d.name, a.designation FROM director d, appointment a"), "a flag and a date are no texts")
}

// TestARejectSaysWhichNumberIsWrong, since most rows have two.
func TestARejectSaysWhichNumberIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"cin,email\nx,a@example.com\n":                                                        "invalid CIN",
		"cin,din,designation,appointment_date\nx,12,Director,2020-01-01\n":                    "invalid CIN",
		"cin,din,designation,appointment_date\nU55101GA2006PTC900001,x,Director,2020-01-01\n": "invalid DIN",
		"din,name,disqualified\nx,A,no\n":                                                     "invalid DIN",
		"llpin,din,name,joined_on\nx,12,A,2020-01-01\n":                                       "invalid LLPIN",
		"llpin,din,name,joined_on\nABD-0345,x,A,2020-01-01\n":                                 "invalid DIN",
		"llpin,llp_name,status,incorporation_date\nx,A,Active,2020-01-01\n":                   "invalid LLPIN",
	} {
		require.Equal(t, map[string]string{want: "line 2: x"}, newFixture(t).text("2025-05-05", text).First, text)
	}
}

// TestARejectShowsWhatCantBeSeen in a number, and that there is none.
func TestARejectShowsWhatCantBeSeen(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", headerA+"U55101GA2006РTC900001"+rowA[21:]+rowA)
	require.Equal(t, `line 2: "U55101GA2006\u0420TC900001"`, f.First["invalid CIN"], "a Cyrillic letter")
	require.Equal(t, "line 2: empty", w.text("2025-05-05", headerA+rowA[21:]+rowA).First["invalid CIN"])
}

// TestARejectNamesTheColumn, since there are two capitals, and says what to do.
func TestARejectNamesTheColumn(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05", w.file(headerA+strings.Replace(rowA, "989630.99", "10 lakh", 1)+
		strings.Replace(rowA, "2006-02-23", "soon", 1)+strings.Replace(rowA, "Unlisted", "perhaps", 1)+rowA))
	require.Equal(t, map[string]string{
		"invalid capital": "line 2: 10 lakh in PaidupCapital", "invalid date": "line 3: soon in CompanyRegistrationdate_date",
		"invalid yes or no": "line 4: perhaps in Listingstatus",
	}, report.Files[0].First)
	require.Contains(t, w.rejected(), ",2,invalid capital: 10 lakh in PaidupCapital,")
	var table strings.Builder
	require.NoError(t, report.WriteTable(&table))
	require.Contains(t, table.String(), "10 lakh in PaidupCapital; write whole rupees")
	require.Contains(t, table.String(), "; write it as YYYY-MM-DD")
}

// TestARowThatIsTooLongSaysWhatToDo, and so does a file that ends within quotes.
func TestARowThatIsTooLongSaysWhatToDo(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05", w.file(headerA+rowA+strings.Replace(rowA, "CALANGUTE", strings.Repeat("A", 70_000), 1)+rowA[:strings.Index(rowA, "BEACH")]))
	var table strings.Builder
	require.NoError(t, report.WriteTable(&table))
	require.Contains(t, table.String(), ", line 3; a row has at most 64 KiB: is there a quote too many, or a line end missing?")
	require.Contains(t, table.String(), ", line 4; is there a quote too many at the beginning of a value, a column missing, or the file cut off?")
}

// TestRowsInJSONAreToldFromDocuments: the API of data.gov.in gives them, and its files hold lists.
func TestRowsInJSONAreToldFromDocuments(t *testing.T) {
	const row = `{"CIN":"U55101GA2006PTC900001","CompanyName":"A","CompanyStatus":"Active"}`
	for _, text := range []string{
		`{"index_name":"4dbe5667","title":"Company Master Data","total":1,"records":[` + row + `]}`,
		`{"fields":[{"id":"a","label":"CIN"}],"data":[["U55101GA2006PTC900001","A"]]}`,
		`[` + row + `]`,
		`[["CIN","CompanyName"],["U55101GA2006PTC900001","A"]]`,
		`{"records":[` + strings.Repeat(row+",", 8<<20/len(row)) + row + `]}`,
		`{"records":[` + "\n" + row + ",\n", // a whole file is read so, too, if it is longer than a document may be
	} {
		w := newFixture(t)
		report := w.run("2025-05-05", w.file(text))
		var table strings.Builder
		require.NoError(t, report.WriteTable(&table))
		told := strings.Count(table.String(), "; rows in JSON, as the API of data.gov.in gives them, are not read: get them as CSV")
		require.Equal(t, len(report.Files[0].Rejected), told, text[:40])
	}
	w := newFixture(t)
	report := w.run("2025-05-05", w.file(`{"companyData":{"cin":"U55101GA2006PTC900001","company":"A","llpStatus":"Active"}}`+"\nx\n{}\n"+`{"companyData":{`))
	require.EqualValues(t, 1, report.Files[0].New, "%v", report.Files[0])
	var table strings.Builder
	require.NoError(t, report.WriteTable(&table))
	require.Contains(t, table.String(), "text between documents: first in")
	require.NotContains(t, table.String(), "rows in JSON", "a document was read")
}

// TestThePortalsNamesOfColumnsAreKnown, and the unit after a capital's name, unless it is not the rupee.
func TestThePortalsNamesOfColumnsAreKnown(t *testing.T) {
	const header = "CIN,Company Name,ROC Code,Company Category,Company SubCategory,Class of Company,Authorised Capital(Rs),Paid up Capital (in Rs.)," +
		"Date of Incorporation,Registered Address,Whether Listed or not,Company Status(for efiling),State,I,N,CompanyIndustrialClassification\n"
	w := newFixture(t)
	require.Empty(t, w.text("2025-05-05", header+rowA).Lacking)
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
	w = newFixture(t)
	w.text("2025-05-05", strings.NewReplacer("(Rs)", "(INR)", "(in Rs.)", "(INR)").Replace(header)+rowA)
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))

	w = newFixture(t)
	w.text("2025-05-05", "LLPIN,LLP Name,Founded,Status,Obligation of Contribution (Rs.)\nABD-0345,MADE-UP LLP,2/17/2024,Active,5000\n")
	require.Equal(t, "5000", w.row("SELECT contribution FROM llp"))

	w = newFixture(t)
	f := w.text("2025-05-05", strings.Replace(header, "(in Rs.)", "(Rs. in lakhs)", 1)+rowA)
	require.Contains(t, f.Lacking, "Paid up Capital (Rs. in lakhs)")
	require.Equal(t, "1000000|-", w.row("SELECT authorized_capital, paid_up_capital FROM company"))
}

// TestAFileOfZeroBytesIsNoText: a download that was begun and never written, perhaps.
func TestAFileOfZeroBytesIsNoText(t *testing.T) {
	w := newFixture(t)
	_, err := Run(context.Background(), w.config("2025-05-05", w.file(strings.Repeat("\x00", 10000))))
	require.ErrorContains(t, err, "zero bytes")
}

// TestMoreRejectsThanAreAllowedChangeNothing, into no registry and into one that is there; the rejects are listed.
func TestMoreRejectsThanAreAllowedChangeNothing(t *testing.T) {
	w := newFixture(t)
	bad := w.file(headerA + rowA + "x" + rowA + strings.Replace(rowA, "Active", "Actve", 1))
	run := func(most int64) error {
		config := w.config("2025-06-05", bad)
		config.MaxRejected = &most
		_, err := Run(t.Context(), config)
		return err
	}
	require.ErrorIs(t, run(1), ErrTooManyRejected)
	require.ErrorContains(t, run(0), "2, of at most 0 (invalid CIN 1, unknown status 1)")
	require.Contains(t, w.rejected(), ",3,invalid CIN: x")
	require.Empty(t, w.registryFiles())
	w.text("2025-05-05", headerA+strings.Replace(rowA, "Active", "Strike Off", 1))
	require.ErrorIs(t, run(1), ErrTooManyRejected)
	require.Equal(t, "STRUCK_OFF|1", w.row("SELECT status, (SELECT count(*) FROM release) FROM company"))
	require.NoError(t, run(2))
	require.Equal(t, "ACTIVE|2", w.row("SELECT status, (SELECT count(*) FROM release) FROM company"))
}

// changedCompanies is a file of companies of 1990 to 2019, with a row changed by change.
func changedCompanies(change func(i int, row []string)) string {
	text := headerA
	for i := range 30 {
		row := []string{
			fmt.Sprintf("U55101GA%dPTC%06d", 1990+i, i+1), fmt.Sprintf("MADE-UP %c LIMITED", 'A'+i%26), "ROC Goa", "Company limited by shares",
			"Non-government company", "Private", "200000.00", "100000.00", fmt.Sprintf("%d-02-%02d", 1990+i, 1+i%20),
			"\"X, PANJIM,North Goa,Goa,403001-India\"", "Unlisted", "Active", "goa", "Indian", "55101", "Trading",
		}
		change(i, row)
		text += strings.Join(row, ",") + "\n"
	}
	return text
}

// TestSwappedColumnsAndDatesEndTheRun: each value alone is valid, and the rows would be wrong.
func TestSwappedColumnsAndDatesEndTheRun(t *testing.T) {
	swap := func(a, b int) func(int, []string) {
		return func(_ int, row []string) { row[a], row[b] = row[b], row[a] }
	}
	for name, c := range map[string]struct {
		change func(i int, row []string)
		want   string
	}{
		"years first":           {func(_ int, row []string) { row[8] = row[8][2:] }, `its dates have the year first, as "19-02-10"`},
		"years first, slashes":  {func(_ int, row []string) { row[8] = strings.ReplaceAll(row[8][2:], "-", "/") }, `its dates have the year first, as "19/02/10"`},
		"days before months":    {func(_ int, row []string) { row[8] = row[8][:5] + row[8][8:] + row[8][4:7] }, `its dates have the day before the month, as "2009-20-02"`},
		"capitals":              {swap(6, 7), "are the columns AuthorizedCapital and PaidupCapital swapped?"},
		"name and Registrar":    {swap(1, 2), `most names of its companies are like "ROC Goa": is CompanyName the column of something else?`},
		"name and class":        {swap(1, 5), `most names of its companies are like "Private"`},
		"name and category":     {swap(1, 3), `most names of its companies are like "Company limited by shares"`},
		"name and sub-category": {swap(1, 4), `most names of its companies are like "Non-government company"`},
		"name and address":      {swap(1, 9), `most names of its companies are like "X, PANJIM,North Goa,Goa,403001-India": is CompanyName`},
		"name and activity":     {swap(1, 15), `most names of its companies are like "Trading"`},
		"names with plus signs": {func(_ int, row []string) { row[1] = strings.ReplaceAll(row[1], " ", "+") }, `most names of its companies are like "MADE-UP+D+LIMITED"`},
		"names without blanks":  {func(_ int, row []string) { row[1] = strings.ReplaceAll(row[1], " ", "") }, `most names of its companies are like "MADE-UPDLIMITED"`},
		"names with tags":       {func(_ int, row []string) { row[1] = "<b>" + row[1] + "</b>" }, `most names of its companies are like "<b>MADE-UP D LIMITED</b>"`},
		"state and Registrar":   {swap(12, 2), `most states of its companies are like "ROC Goa": is CompanyStateCode the column of something else?`},
		"state and address":     {swap(12, 9), `most states of its companies are like "X, PANJIM,North Goa,Goa,403001-India"`},
		"state and activity":    {swap(12, 15), `most states of its companies are like "Trading"`},
		"class and category":    {swap(5, 3), `most categories of its companies are like "Private": is CompanyCategory the column of something else?`},
		"category and kind":     {swap(3, 4), `most categories of its companies are like "Non-government company"`},
		"paid-up capital in lakhs": {func(_ int, row []string) { row[7] = "1.00" },
			"most capitals of its companies are less than 1000: is PaidupCapital in lakhs or crores? Write whole rupees"},
		"capitals in lakhs": {func(_ int, row []string) { row[6], row[7] = "2.00", "1.00" },
			"most capitals of its companies are less than 1000: is AuthorizedCapital in lakhs or crores? Write whole rupees"},
		"rounded capitals": {func(_ int, row []string) { row[6], row[7] = "1.21E+06", "5.00E+05" },
			"its amounts are rounded, as 5.00E+05 in PaidupCapital: give the column the format of a number"},
		"rounded capitals of a program": {func(_ int, row []string) {
			row[6], row[7] = "1.2e+006", "5.0e+005"
			if row[0] > "U55101GA2000" {
				row[6] = "1.0e+006"
			}
		},
			"its amounts are rounded, as 5.0e+005 in PaidupCapital"},
		"days from 1904": {func(i int, row []string) { row[8] = fmt.Sprintf("%d-01-%02d", 1986+i, 10+i%20) },
			"have dates of another year than their CIN, as U55101GA2019PTC000030 of 2015-01-19: does CompanyRegistrationdate_date hold other dates"},
		"days and months by a spreadsheet": {func(i int, row []string) {
			if row[8] = fmt.Sprintf("%02d-03-%d", i+1, 1990+i); i < 12 {
				row[8] = fmt.Sprintf("%d/3/%d", i+1, 1990+i)
			}
		}, `those like "12/3/2001" have no day after the twelfth: a spreadsheet swapped their days and months`},
		"months and days by a spreadsheet": {func(i int, row []string) {
			if row[8] = fmt.Sprintf("3/%d/%d", i+1, 1990+i); i < 12 {
				row[8] = fmt.Sprintf("03-%02d-%d", i+1, 1990+i)
			}
		}, `those like "03-12-2001" have no day after the twelfth`},
		"days and months by a spreadsheet, of first and last days": {func(i int, row []string) {
			if row[8] = fmt.Sprintf("%d-%02d-%d", 28+i%3, 3+i%10, 1990+i); i < 12 {
				row[8] = fmt.Sprintf("1/%d/%d", 2+i%11, 1990+i)
			}
		}, `have no day after the twelfth: a spreadsheet swapped their days and months`},
		"years for days by a spreadsheet": {func(i int, row []string) {
			if i > 18 {
				row[8] = fmt.Sprintf("2/%d/%d", i-10, 2013+i%12)
			}
		}, "many of its companies have dates whose day is the year of their CIN, as U55101GA2019PTC000030 of 2018-02-19"},
		"days of UTC": {func(_ int, row []string) { row[8] += " 18:30:00" },
			`that of UTC at which a day begins in India, as "2019-02-10 18:30:00", but no zone is given`},
		"days of UTC by a spreadsheet": {func(_ int, row []string) { row[8] += " 18:30" },
			`that of UTC at which a day begins in India, as "2019-02-10 18:30", but no zone is given`},
		"days of UTC by an American spreadsheet": {func(_ int, row []string) { row[8] = "2/22/" + row[8][:4] + " 6:30:00 PM" },
			`that of UTC at which a day begins in India, as "2/22/2019 6:30:00 PM", but no zone is given`},
		"days of UTC by SQL Server": {func(_ int, row []string) { row[8] = "Feb 22 " + row[8][:4] + "  6:30:00:000PM" },
			`that of UTC at which a day begins in India, as "Feb 22 2019  6:30:00:000PM", but no zone is given`},
		"days of UTC by SQL Server, 24 hours": {func(_ int, row []string) { row[8] = "22 Feb " + row[8][:4] + " 18:30:00:000" },
			`that of UTC at which a day begins in India, as "22 Feb 2019 18:30:00:000", but no zone is given`},
		"names that were cut off": {func(i int, row []string) {
			if i > 6 {
				row[1] = fmt.Sprintf("MADE-UP RESORTS AND HOTEL%c", 'A'+i%26)
			}
		}, `its texts in CompanyName are cut off after 26 characters, as "MADE-UP RESORTS AND HOTELD"`},
		"addresses that were cut off": {func(i int, row []string) {
			row[9] = fmt.Sprintf(`"%c, BEACH ROAD, NEAR THE CHURCH, CAL%c"`, 'A'+i%26, 'A'+i%26)
		}, `its texts in Registered_Office_Address are cut off after 36 characters, as "D, BEACH ROAD, NEAR THE CHURCH, CALD"`},
		"sorted dates": {func(i int, row []string) { row[8] = fmt.Sprintf("%d-02-%02d", 2019-i, 1+i%20) }, "was one column sorted alone"},
	} {
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(changedCompanies(c.change))))
		require.ErrorContains(t, err, c.want, name)
		require.Empty(t, w.registryFiles(), name)
	}
}

// TestSwappedColumnsOfLLPsEndTheRun, as those of companies do.
func TestSwappedColumnsOfLLPsEndTheRun(t *testing.T) {
	for want, row := range map[string]string{
		`most names of its LLPs are like "Trading": is LLP Name the column of something else?`:                `Active,100000,Goa,"X, PANJIM,North Goa,Goa,403001-India",Trading`,
		`most states of its LLPs are like "Indian"`:                                                           `Active,100000,Indian,"X, PANJIM,North Goa,Goa,403001-India",MADE-UP %d LLP`,
		"most contributions of its LLPs are less than 100: is Obligation Of Contribution in lakhs or crores?": `Active,1.0,Goa,"X, PANJIM,North Goa,Goa,403001-India",MADE-UP %d LLP`,
		"": `Active,100.00,Goa (UT),"X, PANJIM,North Goa,Goa,403001-India",MADE-UP %d LLP`,
	} {
		text := "LLPIN,LLP Status,Obligation Of Contribution,State,Address,LLP Name\n"
		for i := range 30 {
			text += fmt.Sprintf("AAB-%04d,", i) + strings.Replace(row, "%d", strconv.Itoa(i), 1) + "\n"
		}
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
			require.Empty(t, w.registryFiles(), want)
		}
	}
}

// TestSwappedColumnsOfCityAndStateEndTheRun, where no address has a state to compare with.
func TestSwappedColumnsOfCityAndStateEndTheRun(t *testing.T) {
	for header, row := range map[string]string{
		"CIN,CompanyName,CompanyStatus,Registered_Office_Address,": "U55101MH2006PTC%06d,A LIMITED,Active,12 MG Road,",
		"llpin,llp_name,status,incorporation_date,":                "ABD-%04d,A LLP,Active,2020-01-01,",
	} {
		for columns, want := range map[string]string{
			"Maharashtra,Pune": `are like "Pune": is state the column of something else?`, "Maharashtra (MH),Pune": `like "Pune"`, "Goa State,Pune": `like "Pune"`, "30-Goa,Pune": `like "Pune"`,
			"Pune,Maharashtra": "", "Pune,Vidarbha": "", "Delhi,Vidarbha": "",
		} {
			text := header + "city,state\n"
			for i := range 25 {
				text += fmt.Sprintf(row, i) + columns + "\n"
			}
			w := newFixture(t)
			_, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
			if want == "" {
				require.NoError(t, err, columns)
				continue
			}
			require.ErrorContains(t, err, want)
			require.Empty(t, w.registryFiles())
		}
	}
}

// TestSwappedDaysOfPersonsEndTheRun: those who are there would have left.
func TestSwappedDaysOfPersonsEndTheRun(t *testing.T) {
	for header, row := range map[string]string{
		"cin,din,appointment_date,cessation_date\n": "U55101GA2006PTC900001,%d,",
		"llpin,name,joined_on,left_on\n":            "ABD-0345,PARTNER A%d,",
	} {
		text, right := header, header
		for i := range 60 {
			first, last := "2010-01-02", ""
			if i%3 == 0 {
				last = "2012-03-04"
			}
			row := fmt.Sprintf(row, i+1)
			text += row + last + "," + first + "\n"
			right += row + first + "," + last + "\n"
		}
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
		columns := strings.Split(strings.TrimSpace(header), ",")
		require.ErrorContains(t, err, "2012-03-04 to 2010-01-02: are the columns "+columns[2]+" and "+columns[3]+" swapped?")
		require.Empty(t, w.registryFiles())
		require.EqualValues(t, 60, w.text("2025-05-05", right).New)
	}
}

// TestADirectoryWithAnotherColumnForItsDistrictsEndsTheRun: every company would have a wrong district.
func TestADirectoryWithAnotherColumnForItsDistrictsEndsTheRun(t *testing.T) {
	for district, want := range map[string]string{
		"Mapusa S.O":  `most districts of its post offices are like "Mapusa S.O": is District the column of something else?`,
		"Mapusa S.O ": `like "Mapusa S.O"`, "Goa Division   ": `like "Goa Division"`,
		"Goa": `like "Goa"`, "Goa Division": `like "Goa Division"`, "North Goa": "", "Delhi": "", "Pondichery": "", "Daman & Diu": "", "NORTH GOA DISTRICT": "", "Made-up": "", "Chandigarh": "", "उत्तर गोवा": "",
	} {
		text := "Pincode,District,StateName\n"
		for i := range 25 {
			text += fmt.Sprintf("4035%02d,%s,Goa\n", i+1, district)
		}
		w := newFixture(t)
		report, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
		if want == "" {
			require.NoError(t, err, district)
			told := ""
			if district == "Made-up" || district == "उत्तर गोवा" { // the table has none such: they are taken, but told
				told = fmt.Sprintf("most of its districts are unknown, as %q: is District the column of something else?", district)
			}
			require.Equal(t, told, report.Files[0].Doubtful)
			var table strings.Builder
			require.NoError(t, report.WriteTable(&table))
			require.Contains(t, table.String(), told)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Empty(t, w.registryFiles())
	}
}

// TestADirectoryWithItsOfficesAndDistrictsSwappedEndsTheRun, also where no office has S.O or the like after its name.
func TestADirectoryWithItsOfficesAndDistrictsSwappedEndsTheRun(t *testing.T) {
	for row, want := range map[string]string{
		"North Goa,%d,Calangute,Goa\n": `most districts of its post offices are like "Calangute": is District the column of something else?`,
		"Calangute,%d,North Goa,Goa\n": "", "North Goa,%d,South Goa,Goa\n": "", "Calangute,%d,Made-up,Goa\n": "",
	} {
		text := "OfficeName,Pincode,District,StateName\n"
		for i := range 25 {
			text += fmt.Sprintf(row, 403501+i)
		}
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
		if want == "" {
			require.NoError(t, err, row)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Empty(t, w.registryFiles())
	}
}

// TestTheNamesOfOfficesCostNoRow: they are only looked at.
func TestTheNamesOfOfficesCostNoRow(t *testing.T) {
	for _, text := range []string{
		"Pincode,District,StateName,OfficeName\n403516,North Goa,Goa", "Pincode,District,StateName,Office Name,OfficeName\n403516,North Goa,Goa,Calangute,Calangute S.O\n",
	} {
		w := newFixture(t)
		w.run("2025-05-05", w.file(text), w.file(headerA+rowA))
		require.Equal(t, "North Goa", w.row("SELECT district FROM pincode"))
	}
}

// TestAFewStrangeRowsEndNoRun, though they are most of those with a value in the column.
func TestAFewStrangeRowsEndNoRun(t *testing.T) {
	text := "LLPIN,LLP Status,Status,Obligation Of Contribution,State,Address,LLP Name\n"
	for i := range 300 {
		state := "NA"
		if i < 20 {
			state = "ROC Goa"
		}
		text += fmt.Sprintf("AAB-%04d,Strike Off,Active,100000,%s,\"X, PANJIM,North Goa,Goa,403001-India\",MADE-UP %d LLP\n", i, state, i)
	}
	w := newFixture(t)
	require.EqualValues(t, 300, w.text("2025-05-05", text).New)
	require.Equal(t, "ACTIVE|Goa", w.row("SELECT status, state FROM llp WHERE llpin = ?", "AAB-0001"))
}

// TestContactsMayHaveSomeColumnsOfCompanies: one beside the name, or more beside a telephone number or a website.
func TestContactsMayHaveSomeColumnsOfCompanies(t *testing.T) {
	const cin = "U55101GA2006PTC900001,"
	for header, row := range map[string]string{
		"CIN,Company Name,Registered Address,Email":                               "A,X,a@example.com",
		"CIN,Company Name,Registered Address,Date of Incorporation,Email,Phone":   "A,X,2006-02-22,a@example.com,",
		"CIN,Company Name,Registered Address,Date of Incorporation,Email,Website": "A,X,2006-02-22,a@example.com,",
	} {
		require.Equal(t, "company contacts", newFixture(t).text("2025-05-05", header+"\n"+cin+row+"\n").Format, header)
	}
}

// TestPartnersMayHaveTheirLLPsStatus beside their own.
func TestPartnersMayHaveTheirLLPsStatus(t *testing.T) {
	w := newFixture(t)
	report := w.text("2025-05-05", "llpin,name,din,status,joined_on,left_on,LLP Status\nAAB-0001,A PARTNER,,Active,2019-02-10,,Strike Off\n")
	require.Equal(t, "partners", report.Format)
}

// TestDocumentsWithSwappedDatesEndTheRun, as CSV files with them do.
func TestDocumentsWithSwappedDatesEndTheRun(t *testing.T) {
	for layout, want := range map[string]string{
		"01/02/2006": "", "2006-01-02": "",
		"02/01/2006": `its dates with slashes have the day first, as "19/01/2010"`,
		"01-02-2006": `its dates have the month first, as "01-19-2010"`,
		"2006-02-01": `its dates have the day before the month, as "2010-19-01"`,
	} {
		text := ""
		for day := 5; day < 20; day++ {
			date := time.Date(2010, 1, day, 0, 0, 0, 0, time.UTC).Format(layout)
			text += fmt.Sprintf(`{"companyData":{"company":"MADE-UP LIMITED","cin":"U55101GA2010PTC9000%02d","companyStatus":"Active","dateOfIncorporation":%q}}`+"\n", day, date)
		}
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
		if want == "" {
			require.NoError(t, err, layout)
			continue
		}
		require.ErrorContains(t, err, want, layout)
		require.Empty(t, w.registryFiles(), layout)
	}
}

// TestOlderNamesOfPostOfficesColumnsAreKnown: the directory of 2017 names the district so.
func TestOlderNamesOfPostOfficesColumnsAreKnown(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "officename,pincode,officeType,Deliverystatus,divisionname,regionname,circlename,Taluk,Districtname,statename\n"+
		"Calangute S.O,403516,S.O,Delivery,Goa,Goa-Panaji,Maharashtra,Bardez,North Goa,GOA\n")
	require.EqualValues(t, 1, f.New, f.First)
	require.Equal(t, "North Goa", w.row("SELECT district FROM pincode WHERE pincode = '403516'"))
}

// TestSomeUnlikelyValuesAreTaken: a few companies have such names, and official files some paid-up capitals above the
// authorised ones. Years of two digits that agree with the CIN's come last.
func TestSomeUnlikelyValuesAreTaken(t *testing.T) {
	for name, change := range map[string]func(i int, row []string){
		"names": func(i int, row []string) {
			if i%2 == 0 {
				row[1] = []string{"ROC Goa", "ROCKY FOODS LIMITED", "Active"}[i%3]
			}
		},
		"half of the names": func(i int, row []string) {
			if i%2 == 0 {
				row[1] = "ROC Goa"
			}
		},
		"capitals": func(i int, row []string) {
			if i%2 == 0 {
				row[6], row[7] = row[7], row[6]
			}
		},
		"names without a form": func(i int, row []string) { row[1] = "FRIENDS OF THE BEACH AT CALANGUTE" + strings.Repeat("E", i) },
		"codes for names":      func(i int, row []string) { row[1] = fmt.Sprintf("MADE-UP COMPANY %05d", i) },
		"cities in turn":       func(i int, row []string) { row[9] = []string{`"BENGALURU, KARNATAKA"`, `"HYDERABAD, TELANGANA"`}[i%2] },
		"addresses that grow": func(i int, row []string) {
			n := min(i, 24)
			row[9] = fmt.Sprintf(`"%c, BEACH ROAD, PANJIM %s%c"`, 'A'+i%26, strings.Repeat("E", n), 'A'+n)
		},
		"flats in one house":  func(i int, row []string) { row[9] = fmt.Sprintf(`"FLAT %03d, SHIVAM APARTMENTS, PANJIM, GOA."`, i) },
		"names of one length": func(i int, row []string) { row[1] = fmt.Sprintf("MADE-UP COMPANY %03d LIMITED", i) },
		"one address":         func(_ int, row []string) { row[9] = `"TOWER OF A THOUSAND COMPANIES, CALANGUTE"` },
		"whole addresses": func(i int, row []string) {
			row[9] = fmt.Sprintf(`"%c, BEACH ROAD, CALANGUTE,North Goa,Goa,-India"`, 'A'+i%26)
		},
		"dates": func(_ int, row []string) { row[8] = row[8][8:] + row[8][4:8] + row[8][2:4] },
		"years": func(i int, row []string) {
			if i%2 == 0 {
				row[8] = "1989" + row[8][4:]
			}
		},
		"forms of dates": func(i int, row []string) {
			if row[8] = fmt.Sprintf("%02d-03-%d", i+1, 1990+i); i < 9 || i == 20 {
				row[8] = fmt.Sprintf("3/%d/%d", i+1, 1990+i)
			}
		},
		"first part of a month in another form": func(i int, row []string) {
			if row[8] = fmt.Sprintf("%02d-03-%d", i+1, 1990+i); i < 12 {
				row[8] = fmt.Sprintf("3/%d/%d", i+1, 1990+i)
			}
		},
		"a new state":   func(_ int, row []string) { row[9], row[12] = `"X, PANJIM,Vidarbha,403001-India"`, "vidarbha" },
		"times":         func(i int, row []string) { row[8] += []string{" 18:30:00", " 11:04:00"}[i%2] },
		"days of India": func(_ int, row []string) { row[8] += " 18:30:00 IST" },
		"days like years": func(i int, row []string) {
			if row[8] = fmt.Sprintf("%d-02-10", 1990+i); i > 10 {
				row[8] = fmt.Sprintf("%d-02-%02d", 1990+i, i-10)
			}
		},
		"small capitals": func(i int, row []string) {
			row[6], row[7] = "0", "0"
			if i%2 == 0 {
				row[6] = "500"
			} else if i > 0 {
				row[6] = "1000"
			}
		},
		"short capitals": func(i int, row []string) {
			if row[6], row[7] = "1.2E+06", "1.0E+05"; i > 10 {
				row[6], row[7] = "1.25E+07", "1.50000E+05"
			}
		},
		"a format that shows all digits": func(_ int, row []string) { row[6], row[7] = "1.00E+06", "1.00E+05" },
		"no capitals":                    func(_ int, row []string) { row[6], row[7] = "0.00", "0.00" },
		"states by their numbers":        func(_ int, row []string) { row[12] = "30" },
	} {
		w := newFixture(t)
		f := w.text("2025-05-05", changedCompanies(change))
		require.EqualValues(t, 30, f.New, name)
	}
}

// TestRowsThatMayBeCutOffAreTold: a spreadsheet opens a file of more rows than it holds without the rest.
func TestRowsThatMayBeCutOffAreTold(t *testing.T) {
	for rows, cutOff := range map[int]string{65_535: "", 65_536: "the rows after 65536, the most that a spreadsheet holds", 65_537: ""} {
		w := newFixture(t)
		require.Equal(t, cutOff, w.text("2025-05-05", headerA+strings.Repeat("\n", rows-2)+rowA).CutOff)
	}
}

// TestAPincodeInAnotherFormOfAddressIsCounted, since it is lost.
func TestAPincodeInAnotherFormOfAddressIsCounted(t *testing.T) {
	for end, lost := range map[string]int64{"403516-IN": 1, "403516 (GOA)']": 1, "403516-India": 0, "000000-India": 0, "India": 0, "Flat 401-404": 0} {
		w := newFixture(t)
		require.Equal(t, lost, w.text("2025-05-05", headerA+strings.Replace(rowA, "403516-India", end, 1)).Unread["pincode"], end)
	}
}

// TestValuesInQuotesOfTheirOwnAreReadWithout: the list was exported twice.
func TestValuesInQuotesOfTheirOwnAreReadWithout(t *testing.T) {
	w := newFixture(t)
	fields := strings.Split(strings.TrimSuffix(strings.ReplaceAll(rowA, `"`, ""), "\n"), ",")
	at := len(fields) - strings.Count(headerA, ",") + 8 // the last comma of the address
	fields = append(append(fields[:9:9], strings.Join(fields[9:at+1], ",")), fields[at+1:]...)
	f := w.text("2025-05-05", headerA+`"""`+strings.Join(fields, `""","""`)+`"""`+"\n")
	require.EqualValues(t, 1, f.New, f.First)
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
	w.text("2025-05-06", headerA+strings.Replace(rowA, "MADE-UP RESORTS   PRIVATE LIMITED", `"""A"" AND ""B"""`, 1))
	require.Equal(t, `"A" AND "B"`, w.row("SELECT company_name FROM company"))
	w.text("2025-05-07", headerA+strings.Replace(rowA, "MADE-UP RESORTS   PRIVATE LIMITED", `"""A """"B"""" LIMITED"""`, 1))
	require.Equal(t, `A "B" LIMITED`, w.row("SELECT company_name FROM company"))
}

// TestTextsThatMayBeCutOffAreTold, where they are too few to refuse the file.
func TestTextsThatMayBeCutOffAreTold(t *testing.T) {
	for shown, cutOff := range map[int]string{9: "", 15: `15 texts in CompanyName after 50 characters, as "…S COMPANY OF THE BEACH AT CALANGUTE LIMO"`} {
		w := newFixture(t)
		var text strings.Builder
		text.WriteString("CIN,CompanyName,CompanyStatus\n")
		for i := range 200 {
			name := fmt.Sprintf("MADE-UP %d LIMITED", i)
			if i%13 == 0 && i/13 < shown {
				name = fmt.Sprintf("%c FRIEND OS COMPANY OF THE BEACH AT CALANGUTE LIM%c", 'A'+i/13, 'A'+i/13)
			}
			fmt.Fprintf(&text, "U55101GA2006PTC%06d,%s,Active\n", i, name)
		}
		report := w.run("2025-05-05", w.file(text.String()))
		require.EqualValues(t, 200, report.Files[0].New)
		require.Equal(t, cutOff, report.Files[0].CutOff)
		var table strings.Builder
		require.NoError(t, report.WriteTable(&table))
		require.Equal(t, cutOff != "", strings.Contains(table.String(), " may be cut off: "+cutOff+"; if so, export it again, with room for all of it"))
	}
}

// TestADayToComeIsRejected, of incorporation alone: what is planned may be in a list of appointments.
func TestADayToComeIsRejected(t *testing.T) {
	w := newFixture(t)
	f := w.text("2020-06-30", headerA+strings.Replace(rowA, "2006-02-23", "2020-07-01", 1)+
		strings.NewReplacer("2006-02-23", "2020-06-30", "900001", "900002").Replace(rowA))
	require.Equal(t, map[string]string{"date after that of the files": "line 2: 2020-07-01 in CompanyRegistrationdate_date"}, f.First)
	require.EqualValues(t, 1, f.New)
	f = newFixture(t).text("2020-06-30", `{"companyData":{"cin":"U55101GA2006PTC900001","company":"A","dateOfIncorporation":"07/01/2020","companyStatus":"Active"}}`)
	require.Equal(t, map[string]string{"date after that of the files": "line 1: 2020-07-01 in dateOfIncorporation"}, f.First)
}

// TestASpreadsheetsNumberOfADayIsNamed: it is rejected, as it could be the number of a row.
func TestASpreadsheetsNumberOfADayIsNamed(t *testing.T) {
	for _, serial := range []string{"38771", "38771.0"} {
		f := newFixture(t).text("2025-05-05", headerA+strings.Replace(rowA, "2006-02-23", serial, 1)+rowA+
			strings.NewReplacer("2006-02-23", "387710", "900001", "900002").Replace(rowA))
		require.EqualValues(t, 2, f.Rejected["invalid date"])
		require.Equal(t, "line 2: "+serial+" in CompanyRegistrationdate_date (a spreadsheet's number of a day: give the column the format of a date)",
			f.First["invalid date"])
	}
}

// TestNamesWithoutLettersAndNullsAreNone: a row number is no name, and databases export NULL as \N.
func TestNamesWithoutLettersAndNullsAreNone(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", changedCompanies(func(i int, row []string) {
		row[1] = []string{row[1], "12345", `\N`, "31-12-2020", "भारत"}[i%5]
		row[9] = `\N`
	}))
	require.Equal(t, map[string]int64{"no name": 18}, f.Rejected)
	require.Equal(t, "none", w.row("SELECT coalesce(address_line, 'none') FROM company WHERE cin = 'U55101GA1990PTC000001'"))
}

// TestADayToComeOfAnLLPIsRejected in each of the formats that have LLPs.
func TestADayToComeOfAnLLPIsRejected(t *testing.T) {
	for format, text := range map[string]string{
		"companies":        headerA + "ABD-0345" + strings.Replace(rowA[21:], "2006-02-23", "2020-07-13", 1),
		"LLPs":             "llpin,llp_name,status,incorporation_date\nABD-0345,MADE-UP LLP,Active,2020-07-13\n",
		"monthly LLP list": "LLPIN,LLP Name,Founded,Status\nABD-0345,MADE-UP LLP,13-07-2020,Active\n",
		"documents":        `{"companyData":{"cin":"ABD-0345","company":"MADE-UP LLP","dateOfIncorporation":"07/13/2020","llpStatus":"Active"}}`,
	} {
		require.Equal(t, map[string]int64{"date after that of the files": 1}, newFixture(t).text("2020-07-12", text).Rejected, format)
		require.EqualValues(t, 1, newFixture(t).text("2020-07-13", text).New, format)
	}
}

// TestARejectNamesOneColumn, that of its first wrong value, though others are wrong, too.
func TestARejectNamesOneColumn(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", headerA+strings.NewReplacer("989630.99", "10 lakh", "2006-02-23", "soon", "Unlisted", "perhaps").Replace(rowA))
	require.Equal(t, map[string]string{"invalid date": "line 2: soon in CompanyRegistrationdate_date"}, f.First)
}

// TestAPartnersUnknownStatusIsRejected: without one the partner would be taken for an active one.
func TestAPartnersUnknownStatusIsRejected(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "llpin,name,status,joined_on\nABD-0345,A ONE,gone,2020-01-01\nABD-0345,B TWO,,2020-01-01\n")
	require.Equal(t, map[string]string{"unknown status": "line 2: gone in status"}, f.First)
	require.Equal(t, []string{"B TWO"}, w.rows("SELECT name FROM partner"))
}

// TestEqualCapitalsSayNothingOfTheOrderOfTheirColumns: most companies have them.
func TestEqualCapitalsSayNothingOfTheOrderOfTheirColumns(t *testing.T) {
	swapped := changedCompanies(func(_ int, row []string) { row[6], row[7] = row[7], row[6] })
	equal := changedCompanies(func(_ int, row []string) { row[7] = row[6] })
	w := newFixture(t)
	_, err := Run(t.Context(), w.config("2025-05-05", w.file(swapped+strings.TrimPrefix(equal, headerA))))
	require.ErrorContains(t, err, "are the columns AuthorizedCapital and PaidupCapital swapped?")
}

// TestARowIsARepeatedHeaderAsAWhole: one whose number alone is like the header's is data, and wrong.
func TestARowIsARepeatedHeaderAsAWhole(t *testing.T) {
	f := newFixture(t).text("2025-05-05", headerA+rowA+"CIN"+rowA[21:]+headerA)
	require.Equal(t, map[string]int64{"invalid CIN": 1}, f.Rejected)
	require.Equal(t, map[string]int64{"repeated header": 1}, f.LeftOut)
}

// TestAFileThatIsNotThereIsNamedOnce.
func TestAFileThatIsNotThereIsNamedOnce(t *testing.T) {
	w := newFixture(t)
	missing := filepath.Join(w.folder, "missing.csv")
	_, err := Run(t.Context(), w.config("2025-05-05", missing))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, 1, strings.Count(err.Error(), missing), err.Error())
}

// TestAnEmptyFileStaysEmptyWhenAnImportFails, as no file at all would.
func TestAnEmptyFileStaysEmptyWhenAnImportFails(t *testing.T) {
	w := newFixture(t)
	require.NoError(t, os.WriteFile(w.registry, nil, 0o600))
	config := w.config("2025-05-05", w.file(headerA+rowA+"x"+rowA))
	config.MaxRejected = new(int64)
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, ErrTooManyRejected)
	require.Equal(t, []string{w.registry}, w.registryFiles())
	content, err := os.ReadFile(w.registry)
	require.NoError(t, err)
	require.Empty(t, content)
	w.text("2025-05-05", headerA+rowA)
	require.Equal(t, "1", w.row("SELECT count(*) FROM company"))
}

// TestRowsThatContradictOneAnotherAreTold: one of them is wrong, and only the operator can say which.
func TestRowsThatContradictOneAnotherAreTold(t *testing.T) {
	struck := strings.Replace(rowA, "Active", "Strike Off", 1)
	other := strings.Replace(rowA, "900001", "900002", 1)
	w := newFixture(t)
	f := w.text("2025-05-05", headerA+rowA+other+struck+struck+strings.Replace(other, "1000000.00", "2000000.00", 1)+rowA)
	require.EqualValues(t, 3, f.Contradictions.Records)
	require.Equal(t, 4, f.Contradictions.Line)
	require.Equal(t, "status of U55101GA2006PTC900001", f.Contradictions.What)
	var table strings.Builder
	require.NoError(t, (&Report{Files: []FileReport{f}}).WriteTable(&table))
	require.Contains(t, table.String(), "that contradict an earlier one: 3, the first in line 4: status of U55101GA2006PTC900001;")

	llp := strings.Replace(rowA, "U55101GA2006PTC900001", "ABD-0345", 1)
	f = newFixture(t).text("2025-05-05", headerA+llp+rowA+strings.Replace(llp, "Active", "Strike Off", 1)+struck)
	require.EqualValues(t, 2, f.Contradictions.Records, "one in each table")
	require.Equal(t, 4, f.Contradictions.Line, "the first of both")
	require.Equal(t, "status of ABD-0345", f.Contradictions.What)
	f = newFixture(t).text("2025-05-05", headerA+llp+rowA+struck)
	require.Equal(t, Contradiction{Records: 1, Line: 4, What: "status of U55101GA2006PTC900001"}, f.Contradictions, "one in one of them")
	both := Report{Files: []FileReport{f, f}}
	require.EqualValues(t, 2, both.Total().Contradictions.Records)

	for name, text := range map[string]string{
		"the same row":                        headerA + rowA + rowA,
		"a row that lacks what the other has": headerA + rowA + strings.Replace(rowA, "403516-India", "-India", 1),
		"two offices of a person": "cin,din,appointment_date,designation\nU55101GA2006PTC900001,12,2020-01-01,Director\n" +
			"U55101GA2006PTC900001,12,2021-01-01,Managing Director\n",
	} {
		f = newFixture(t).text("2025-05-05", text)
		require.Zero(t, f.Contradictions.Records, name)
	}
	w = newFixture(t)
	report := w.run("2025-05-05", w.file(headerA+rowA), w.file(headerA+struck))
	require.Zero(t, report.Total().Contradictions.Records, "files of different days may be imported at once")
}

// TestSourcesOfOneDateThatContradictOneAnotherAreTold: the greater value counts, which may be the older one.
func TestSourcesOfOneDateThatContradictOneAnotherAreTold(t *testing.T) {
	struck := strings.Replace(rowA, "Active", "Strike Off", 1)
	told := func(report Report) string {
		var table strings.Builder
		require.NoError(t, report.WriteTable(&table))
		return table.String()
	}
	const first = " that contradict another source of the same date: 1, the first in line 2: status of U55101GA2006PTC900001; " +
		"is one of them older? Import each with its own --as-of;"
	w := newFixture(t)
	newer, older := w.file(headerA+rowA), w.file(headerA+struck)
	require.Contains(t, told(w.run("2025-05-05", newer, older)), "rows of "+older+first)
	require.Contains(t, told(w.run("2025-05-05", newer)), "rows of "+newer+first, "with what the registry has")
	require.NotContains(t, told(w.run("2025-05-05", older)), "contradict")
	require.NotContains(t, told(w.run("2025-05-06", newer)), "contradict", "a newer source")
	require.NotContains(t, told(w.run("2025-05-04", older)), "contradict", "an older one")
	require.NotContains(t, told(w.run("2025-05-06", w.file(headerA+strings.Replace(rowA, "403516-India", "-India", 1)))), "contradict", "it says less")
	w.run("2025-05-05", w.file("din,name,disqualified\n90000001,A,no\n"), w.file("din,name,disqualified\n90000001,B,no\n"))
	report := w.run("2025-05-06", newer, older, older)
	require.EqualValues(t, 2, report.Total().WithOthers.Records)
	require.Zero(t, report.Files[0].WithOthers)
	w = newFixture(t)
	both := w.file(headerA + rowA + struck)
	for range 2 {
		report = w.run("2025-05-05", both)
		require.Equal(t, []int64{1, 0}, []int64{report.Total().Contradictions.Records, report.Total().WithOthers.Records}, "the file is its own source")
	}
	require.EqualValues(t, 1, w.text("2025-05-05", headerA+rowA+rowA).WithOthers.Records)
}

// TestRowsInQuotesAreReadAsTheyWere: a spreadsheet that expects semicolons leaves all columns in one, and puts the rows that have quotes, or all,
// in quotes.
func TestRowsInQuotesAreReadAsTheyWere(t *testing.T) {
	inQuotes := func(row string) string {
		return `"` + strings.ReplaceAll(strings.TrimSuffix(row, "\n"), `"`, `""`) + "\"\n"
	}
	lines := strings.Replace(rowA, "900001", "900002", 1)
	lines = strings.Replace(lines, "1 BEACH ROAD,", "1 BEACH ROAD,\n", 1)
	want := newFixture(t)
	want.text("2025-05-05", headerA+rowA+lines)
	for _, header := range []string{headerA, inQuotes(headerA)} {
		w := newFixture(t)
		f := w.text("2025-05-05", header+inQuotes(rowA)+inQuotes(lines)+inQuotes(headerA)+inQuotes("Total, 2")+rowA)
		require.EqualValues(t, 2, f.New)
		require.EqualValues(t, 1, f.Unchanged)
		require.EqualValues(t, 1, f.LeftOut["repeated header"])
		require.EqualValues(t, map[string]int64{"wrong number of fields": 1}, f.Rejected)
		require.Equal(t, want.rows("SELECT * FROM company ORDER BY cin"), w.rows("SELECT * FROM company ORDER BY cin"))
	}
	for _, end := range []string{" \n", ";;\n", "; \n"} {
		w := newFixture(t)
		text := strings.ReplaceAll(inQuotes(headerA)+inQuotes(rowA)+inQuotes(lines), "\"\n", "\""+end)
		require.EqualValues(t, 2, w.text("2025-05-05", text).New, end)
		require.Equal(t, want.rows("SELECT * FROM company ORDER BY cin"), w.rows("SELECT * FROM company ORDER BY cin"), end)
	}
	w := newFixture(t)
	f := w.text("2025-05-05", inQuotes(strings.Repeat("Goa, ", 20))+headerA+rowA)
	require.EqualValues(t, 1, f.LeftOut["row above the header"], "a title with commas")
}

// TestRowsThatWereSplitAtSemicolonsAreReadAsTheyWere: a spreadsheet that expects semicolons takes those in a value for separators, and gives
// all rows as many.
func TestRowsThatWereSplitAtSemicolonsAreReadAsTheyWere(t *testing.T) {
	second := strings.Replace(rowA, "900001", "900002", 1)
	split := strings.Replace(second, "BEACH ROAD", "BEACH; ROAD", 1)
	at := strings.Index(split, ";")
	cell := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	want, w := newFixture(t), newFixture(t)
	want.text("2025-05-05", headerA+rowA+split)
	padded := func(row string) string { return strings.TrimSuffix(row, "\n") + ";\n" }
	f := w.text("2025-05-05", padded(headerA)+padded(cell(rowA[:len(rowA)-1]))+cell(split[:at])+";"+cell(split[at+1:len(split)-1])+"\n"+padded(strings.ReplaceAll(rowA, `"`, "")))
	require.EqualValues(t, 2, f.New, f.First)
	require.Equal(t, want.rows("SELECT * FROM company ORDER BY cin"), w.rows("SELECT * FROM company ORDER BY cin"))
	w = newFixture(t)
	f = w.text("2025-05-05", "CompanyName,CIN,CompanyStatus,Company Class;\n\"A, B LIMITED\",U55101GA2006PTC900001,Active,Other;\n")
	require.Empty(t, f.Rejected)
	require.Equal(t, "A, B LIMITED|ACTIVE|Other", w.row("SELECT company_name, status, class FROM company"), "a semicolon too many")
	for _, text := range []string{
		"Registered_Office_Address,CIN,CompanyName,CompanyStatus;\n\"BEACH ROAD\nPANAJI, Goa 403001\",U55101GA2006PTC900001,A LIMITED,Active;\n",
		"CIN,CompanyName,CompanyStatus,Registered_Office_Address;\nU55101GA2006PTC900001,A LIMITED,Active,\"BEACH ROAD\nPANAJI, Goa 403001\";\n",
	} {
		w = newFixture(t)
		f = w.text("2025-05-05", text)
		require.Empty(t, f.Rejected)
		require.Equal(t, "A LIMITED|403001", w.row("SELECT company_name, pincode FROM company"), "a line end in a row that was not split")
	}
}
