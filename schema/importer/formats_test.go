package importer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/importer/record"
	"regedge/schema/importer/source"
)

const headerA = `CIN,CompanyName,CompanyROCcode,CompanyCategory,CompanySubCategory,CompanyClass,AuthorizedCapital,PaidupCapital,CompanyRegistrationdate_date,Registered_Office_Address,Listingstatus,CompanyStatus,CompanyStateCode,CompanyIndian/Foreign Company,nic_code,CompanyIndustrialClassification` + "\n"

const rowA = `U55101GA2006PTC900001,MADE-UP RESORTS   PRIVATE LIMITED,ROC Goa,Company limited by shares,Non-government company,Private,1000000.00,989630.99,2006-02-23,"1 BEACH ROAD,,CALANGUTE,North Goa,Goa,403516-India",Unlisted,Active,goa,Indian,55101,Trading` + "\n"

const companyColumnsQuery = `SELECT company_name, status, incorporation_date, category, sub_category, class, roc, authorized_capital,
	paid_up_capital, listed, main_division, business_activity, principal_business, state, pincode, address_line, city, email,
	as_of, older FROM company WHERE cin = ?`

const wantA = "MADE-UP RESORTS PRIVATE LIMITED|ACTIVE|2006-02-23|Company limited by Shares|Non-govt company|Private|ROC Goa|1000000|" +
	"989630|0|-|Trading|-|Goa|403516|1 BEACH ROAD|CALANGUTE|-|2025-05-05|-"

func TestCurrentExport(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", headerA+rowA)
	require.Equal(t, "companies", f.Format)
	require.EqualValues(t, 1, f.New)
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
	require.Equal(t, "1|1", w.row("SELECT seq, companies FROM release"))
	require.Equal(t, "20261122T071500Z-010216", w.row("SELECT id FROM release"))
	require.Equal(t, "U55101GA2006PTC900001", w.row("SELECT value FROM search_name WHERE name LIKE '%resorts%'"), "it can be searched")
}

func TestExportSpoiltBySpreadsheet(t *testing.T) {
	spoilt := strings.NewReplacer("1000000.00", "1.0E+6", "989630.99", "989630", "2006-02-23", "2/23/2006", "\n", "\r\n").Replace(headerA + rowA)
	w := newFixture(t)
	w.text("2025-05-05", "\uFEFF"+spoilt)
	require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
}

func TestOlderExportInItsSpellings(t *testing.T) {
	const row = `U55101GA2006PTC900001,MADE-UP CAFÉ PVT LTD,Active,Private(One Person Company),Company limited by Shares,Non-govt company,23-02-06,Goa,1000000,989630,55101,Hotels,"1 BEACH ROAD CALANGUTE , North Goa Unclassified GA 403516",RoC-Goa,a@example.com,NA,NA`
	const want = "MADE-UP CAFÉ PVT LTD|ACTIVE|2006-02-23|Company limited by Shares|Non-govt company|One Person Company|ROC Goa|1000000|" +
		"989630|-|-|-|Hotels|Goa|403516|1 BEACH ROAD CALANGUTE|-|a@example.com|2021-03-31|-"
	const header = `CORPORATE_IDENTIFICATION_NUMBER,Company_Name,Company_status,Company_class,Company_Category,Company_sub_category,DATE_OF_REGISTRATION,REGISTERED_STATE,AUTHORIZED_CAP,PAIDUP_CAPITAL,Industrial_Class,PRINCIPAL_BUSINESS_ACTIVITY_AS_PER_CIN,Registered_Office_Address,REGISTRAR_OF_COMPANIES,EMAIL_ADDR,Latest_Year_AR,Latest_Year_BS`
	for name, text := range map[string]string{
		"as published":    header + "\r\n" + row + "\r\n",
		"empty columns":   header + ",,,\r\n" + row + ", , , \r\n",
		"in capitals":     strings.ToUpper(header) + "\n" + row + "\n",
		"in lower case":   strings.ToLower(header) + "\n" + row,
		"other names":     strings.NewReplacer("AUTHORIZED_CAP", "AUTHORIZED_CAPITAL", "Company_sub_category", "SUB_CATEGORY").Replace(header) + "\n" + row + "\n",
		"Latin-1":         header + "\n" + strings.ReplaceAll(row, "É", "\xc9") + "\n",
		"lower case CIN":  header + "\n" + strings.ToLower(row[:21]) + row[21:] + "\n",
		"four-digit year": header + "\n" + strings.ReplaceAll(row, "23-02-06", "23-02-2006") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			require.EqualValues(t, 1, w.text("2021-03-31", text).New)
			require.Equal(t, want, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
		})
	}
}

// TestSeparatorsAndLineEnds imports one list in the ways in which spreadsheets write it.
func TestSeparatorsAndLineEnds(t *testing.T) {
	text := "CIN,CompanyName,CompanyStatus\nU00001GA2020PTC000001,MADE-UP ONE PRIVATE LIMITED,Active\nU00001GA2020PTC000002,\"MADE-UP TWO PRIVATE LIMITED\",Active\n"
	for name, file := range map[string]string{
		"commas":            text,
		"semicolons":        strings.ReplaceAll(text, ",", ";"),
		"tabs":              strings.ReplaceAll(text, ",", "\t"),
		"CRLF":              strings.ReplaceAll(text, "\n", "\r\n"),
		"CR":                strings.ReplaceAll(text, "\n", "\r"),
		"CR, with gzip":     gzipped(strings.ReplaceAll(text, "\n", "\r")),
		"CR, semicolons":    strings.NewReplacer("\n", "\r", ",", ";").Replace(text),
		"CR, LF in a value": strings.Replace(strings.ReplaceAll(text, "\n", "\r"), "TWO ", "TWO\n", 1),
		"CR, stray quotes": strings.NewReplacer("Status\r", "Status,Note\r", "LIMITED,Active\r", "LIMITED,Active,5\" pipes\r", "\",Active\r", "\",Active,\"x \"\"y\"\" \nz\n\"\r").
			Replace(strings.ReplaceAll(text, "\n", "\r")),
		"LF, CR in a value": strings.Replace(text, "TWO ", "TWO\r", 1),
		"CR CR LF":          strings.ReplaceAll(text, "\n", "\r\r\n"),
		"LF, CR in a name":  strings.Replace(text, "CompanyName", "Company\rName", 1),
		"the end of DOS":    text + "\x1a",
		"a block of them":   text + strings.Repeat("\x1a", 60),
		"in the last row":   strings.TrimSuffix(text, "\n") + "\x1a\x1a",
	} {
		w := newFixture(t)
		report := w.run("2025-05-05", w.file(file))
		require.EqualValues(t, 2, report.Files[0].New, name)
		require.Empty(t, report.Files[0].Rejected, name)
		require.Equal(t, []string{"MADE-UP ONE PRIVATE LIMITED", "MADE-UP TWO PRIVATE LIMITED"}, w.rows("SELECT company_name FROM company ORDER BY cin"), name)
	}
}

// TestUTF16WithAMarkIsRead, which spreadsheets call Unicode text, with tabs between the fields.
func TestUTF16WithAMarkIsRead(t *testing.T) {
	text := "\uFEFFCIN\tCompanyName\tCompanyStatus\r\nU00001GA2020PTC000001\tCAFÉ 😀 \u0a0d \u0d0a\tActive\r\nU00001GA2020PTC000002\tTWO\tActive\r\n"
	little, big := []byte{}, []byte{}
	for _, c := range utf16.Encode([]rune(text)) {
		little, big = binary.LittleEndian.AppendUint16(little, c), binary.BigEndian.AppendUint16(big, c)
	}
	for name, file := range map[string]string{
		"little": string(little), "big": string(big), "packed": gzipped(string(little)), "two files": string(little) + string(little),
		"lines that end in CR": strings.ReplaceAll(string(little), "\r\x00\n\x00", "\r\x00"),
	} {
		w := newFixture(t)
		require.EqualValues(t, 2, w.run("2025-05-05", w.file(file)).Files[0].New, name)
		require.Equal(t, []string{"CAFÉ 😀 \u0a0d \u0d0a", "TWO"}, w.rows("SELECT company_name FROM company ORDER BY cin"), name)
	}
	f := newFixture(t).text("2025-05-05", string(little[:len(little)-19]))
	require.Equal(t, map[string]int64{"row cut off": 1}, f.Rejected, "cut off within a letter")
	require.EqualValues(t, 1, f.New)
	f = newFixture(t).text("2025-05-05", encoded("\xff\xfe", 1)+encoded("{\"companyData\":{\"company\":\"A\",\"cin\":\"U00001GA2020PTC000001\",\"llpStatus\":\"Active\"}}", 2))
	require.EqualValues(t, 1, f.New, "a document")
}

// TestAFirstColumnCalledPKIsNoArchive, as databases export their primary key.
func TestAFirstColumnCalledPKIsNoArchive(t *testing.T) {
	f := newFixture(t).text("2025-05-05", "PK,CIN,CompanyName,CompanyStatus\n1,U00001GA2020PTC000001,MADE-UP ONE PRIVATE LIMITED,Active\n")
	require.EqualValues(t, 1, f.New)
}

// TestARejectNamesItsLineWhateverEndsTheLines.
func TestARejectNamesItsLineWhateverEndsTheLines(t *testing.T) {
	text := "CIN,CompanyName,CompanyStatus\nU00001GA2020PTC000001,MADE-UP ONE PRIVATE LIMITED,Active\nU1,MADE-UP TWO PRIVATE LIMITED,Active\n"
	for _, end := range []string{"\n", "\r\n", "\r"} {
		f := newFixture(t).text("2025-05-05", strings.ReplaceAll(text, "\n", end))
		require.Equal(t, map[string]string{"invalid CIN": "line 3: U1"}, f.First, "%q", end)
	}
}

func TestWindows1252IsDecoded(t *testing.T) {
	w := newFixture(t)
	w.text("2021-03-31", "CIN,CompanyName,CompanyStatus\nU55101GA2006PTC900001,MADE-UP \x93A\x94 \x96 \x80,Active\n")
	require.Equal(t, "MADE-UP “A” – €", w.row("SELECT company_name FROM company"))
}

func TestOthersInTheCINColumn(t *testing.T) {
	w := newFixture(t)
	row := strings.TrimPrefix(rowA, "U55101GA2006PTC900001")
	f := w.text("2025-05-05", headerA+"ABD-0345"+strings.ReplaceAll(row, ",Active,", ",Strike Off,")+"F01234"+row+"F123"+row+
		"U55101GA2006PTCO00001"+row+"F1234"+row+"F12345678"+row+"F123456789"+row+headerA)
	require.EqualValues(t, 8, f.Read)
	require.EqualValues(t, 1, f.New)
	require.Equal(t, map[string]int64{"foreign company": 3, "repeated header": 1}, f.LeftOut)
	require.Equal(t, map[string]int64{"invalid CIN": 3}, f.Rejected)
	require.Equal(t, "ABD-0345|MADE-UP RESORTS PRIVATE LIMITED|DISSOLVED|2006-02-23|-|Trading|-|Goa|403516|1 BEACH ROAD|CALANGUTE",
		w.row(`SELECT llpin, llp_name, status, incorporation_date, main_division, business_activity, contribution, state, pincode, address_line, city FROM llp`))
	require.Equal(t, "file,line,reason,row", strings.SplitN(w.rejected(), "\n", 2)[0])
	require.Contains(t, w.rejected(), ",4,invalid CIN: F123,")
	require.Contains(t, w.rejected(), `,5,invalid CIN: U55101GA2006PTCO00001,"U55101GA2006PTCO00001,MADE-UP RESORTS   PRIVATE`, "the raw row, as it was")
}

// TestMadeUpCINsAreRejected: they belong to the sandbox, in every format that has CINs.
func TestMadeUpCINsAreRejected(t *testing.T) {
	const made = "U72900ZZ2015PTC000001"
	for format, text := range map[string]string{
		"companies":    headerA + strings.Replace(rowA, "U55101GA2006PTC900001", made, 1),
		"appointments": "cin,din,designation,appointment_date\n" + strings.ToLower(made) + ",1,Director,2015-01-01\n",
		"contacts":     "cin,email\n" + made + ",a@example.com\n",
		"documents":    `{"companyData":{"cin":"` + made + `","company":"MADE-UP","llpMasterData":"","companyStatus":"Active"}}`,
	} {
		t.Run(format, func(t *testing.T) {
			w := newFixture(t)
			f := w.text("2025-05-05", text)
			require.EqualValues(t, 1, f.Read)
			require.Equal(t, map[string]int64{"CIN of a made-up company": 1}, f.Rejected)
			require.Contains(t, w.rejected(), "CIN of a made-up company: "+made)
		})
	}
}

func TestMonthlyLLPList(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "LLPIN,LLP Name,Founded,Roc Location,Status,Industrial Activity,Activity Description,Description,Obligation Of Contribution,Number Of Partners,Number Of Designated Partners,State,District,Address\n"+
		`abd0345,MADE-UP ADVISERS LLP,2/17/2024,RoC-Delhi,Active,74,,Business services,"1,00,000",2,2,Delhi,New Delhi,"5 Ring Road, New Delhi - 110001"`+"\n")
	require.Equal(t, "monthly LLP list", f.Format)
	require.Equal(t, "ABD-0345|MADE-UP ADVISERS LLP|ACTIVE|2024-02-17|-|Business services|100000|Delhi|110001|5 Ring Road, New Delhi|-",
		w.row(`SELECT llpin, llp_name, status, incorporation_date, main_division, business_activity, contribution, state, pincode, address_line, city FROM llp`))
	for columns, want := range map[string]string{"Wholesale,Tea,Trade": "Tea", "Wholesale,,Trade": "Trade", "Wholesale,12,": "Wholesale", "51909,,": "-"} {
		w := newFixture(t)
		w.text("2025-05-05", "LLPIN,LLP Name,Founded,Status,Industrial Activity,Activity Description,Description\nAAA-0001,MADE-UP LLP,2/17/2024,Active,"+columns+"\n")
		require.Equal(t, want, w.row("SELECT business_activity FROM llp"), columns)
	}
}

func TestOurOwnFormats(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05",
		w.file("cin,email,phone,website\nU55101GA2006PTC900001,made-up@example.com,+91 11 2345678,https://example.com\nU55101GA2006PTC900009,a@example.com,,\n"+
			"U55101GA2006PTC900001,nobody,12345,\n"),
		w.file("llpin,din,name,status,joined_on,left_on\nABD-0345,,made-up partner,Active,2020-01-01,\nABD0345,12,Made-Up Two,,NA,2021-01-01\nABD-0345,x,A,,,\nABD-0345,,,,,\n"),
		w.file("cin,din,designation,appointment_date,cessation_date,cessation_reason\nU55101GA2006PTC900001,12,Director,2020-01-01,,\nU55101GA2006PTC900001,13,Director,2020-01-01,2021-01-01,resigned\n"),
		w.file("din,name,disqualified,designation,appointment_date\n12,MADE-UP  DIRECTOR,no,Director,2019-01-01\n13,MADE-UP OTHER,perhaps,,\n"),
		w.file("llpin,llp_name,status,incorporation_date,main_division,business_activity,contribution,address_line,city,state,pincode\nABD-0345,MADE-UP LLP,Active,2020-01-01,Advice,Advice on things,5000.50,1 Road,Delhi,DL,999\n"),
		w.file(headerA+rowA),
	)
	var names []string
	for _, f := range report.Files {
		names = append(names, f.Format)
	}
	require.Equal(t, []string{"company contacts", "partners", "appointments", "directors", "LLPs", "companies"}, names)
	require.Equal(t, map[string]int64{record.NotHeld: 1}, report.Files[0].Rejected)
	require.Equal(t, "line 3: U55101GA2006PTC900009", report.Files[0].First[record.NotHeld])
	require.Equal(t, map[string]int64{"invalid DIN": 1, "no name": 1}, report.Files[1].Rejected)
	require.Equal(t, map[string]int64{"invalid yes or no": 1}, report.Files[3].Rejected)
	require.Equal(t, map[string]int64{"e-mail": 1, "phone": 1}, report.Files[0].Unread)
	require.Equal(t, map[string]int64{"pincode": 1}, report.Files[4].Unread)
	require.Equal(t, "made-up@example.com|+91 11 2345678|https://example.com", w.row("SELECT email, phone, website FROM company"))
	require.Equal(t, []string{"00000012|00000012|Made-Up Two|-|-|2021-01-01", "~MADE-UP PARTNER|-|made-up partner|ACTIVE|2020-01-01|-"},
		w.rows("SELECT who, din, name, status, joined_on, left_on FROM partner ORDER BY 1"))
	require.Equal(t, []string{"00000012|Director|2020-01-01|-|-", "00000013|Director|2020-01-01|2021-01-01|RESIGNED"},
		w.rows("SELECT din, designation, appointment_date, cessation_date, cessation FROM appointment ORDER BY 1"))
	require.Equal(t, "din", w.row("SELECT group_concat(name) FROM pragma_index_info('appointment_by_director')"))
	require.Equal(t, []string{"00000012|MADE-UP DIRECTOR|0|Director|2019-01-01"},
		w.rows("SELECT din, name, disqualified, designation, appointment_date FROM director"))
	require.Equal(t, "Advice|Advice on things|5000|1 Road|Delhi|Delhi|-",
		w.row("SELECT main_division, business_activity, contribution, address_line, city, state, pincode FROM llp"))
}

func TestPincodesTakeTheDistrictOfMostOffices(t *testing.T) {
	w := newFixture(t)
	config := w.config("2025-05-05")
	config.Pincodes = []string{w.file("CircleName,RegionName,DivisionName,OfficeName,Pincode,OfficeType,Delivery,District,StateName,Latitude,Longitude\n" +
		"c,r,d,o1,403516,BO,D,North Goa,Goa,1,2\nc,r,d,o2,403516,BO,D,NORTH GOA,GOA,1,2\nc,r,d,o3,403516,BO,D,South Goa,Goa,1,2\n" +
		"c,r,d,o9,403516,BO,D,north goa,Goa,1,2\nc,r,d,o10,403516,BO,D,South Goa,Goa,1,2\n" +
		"c,r,d,o4,110001,BO,D,West,Delhi,1,2\nc,r,d,o5,110001,BO,D,Central,Delhi,1,2\n" +
		"c,r,d,o6,110002,BO,D,nan,Delhi,1,2\nc,r,d,o7,11000,BO,D,Central,Delhi,1,2\nc,r,d,o8,110003,BO,D,,Delhi,1,2\n")}
	report, err := Run(context.Background(), config)
	require.NoError(t, err)
	f := report.Files[0]
	require.EqualValues(t, []int64{10, 7, 0, 0}, []int64{f.Read, f.New, f.Changed, f.Unchanged})
	require.Equal(t, map[string]int64{"invalid pincode": 1}, f.Rejected)
	require.Equal(t, map[string]int64{"office without a district": 2}, f.LeftOut)
	require.Equal(t, []string{"110001|Central|Delhi", "403516|NORTH GOA|Goa"}, w.rows("SELECT pincode, district, state FROM pincode ORDER BY 1"))

	again := w.text("2025-05-05", "Pincode,District,StateName\n110001,Central,Delhi\n403516,South Goa,Goa\n")
	require.EqualValues(t, []int64{1, 1}, []int64{again.Unchanged, again.Changed})
	third := w.run("2025-05-05", w.file("Pincode,District,StateName\n110001,Central,Delhi\n"))
	require.NotEmpty(t, third.Release, "a pincode that is gone is a change")
	var told strings.Builder
	require.NoError(t, third.WriteTable(&told))
	require.Contains(t, told.String(), "the directory has them no more: 1; is it cut off", "an operator who imports a part of a directory is told")
	require.Empty(t, w.run("2025-05-05", w.file("Pincode,District,StateName\n110001,Central,Delhi\n")).Release, "the same ones are none")
	require.Equal(t, []string{"110001|Central|Delhi"}, w.rows("SELECT pincode, district, state FROM pincode"))
}

// TestDistrictsOfCompaniesFollowThePincodes whichever comes first, and when either changes.
func TestDistrictsOfCompaniesFollowThePincodes(t *testing.T) {
	const pincodes = "Pincode,District,StateName\n110001,Central,Delhi\n403516,North Goa,Goa\n"
	district := func(w *fixture) string {
		w.content()
		return w.row("SELECT pincode, district, last_updated FROM company")
	}
	for name, parts := range map[string][]string{
		"together": {headerA + rowA, pincodes}, "pincodes first": {pincodes, "", headerA + rowA}, "pincodes last": {headerA + rowA, "", pincodes},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			var files []string
			for _, part := range parts {
				if part == "" {
					w.run("2025-05-05", files...)
					files = nil
					continue
				}
				files = append(files, w.file(part))
			}
			w.run("2025-05-05", files...)
			was := district(w)
			require.Contains(t, was, "403516|North Goa|")
			w.text("2025-05-05", strings.Replace(pincodes, "North Goa", "Goa North", 1))
			require.Equal(t, strings.Replace(was, "North Goa", "Goa North", 1), district(w), "a district is no news of the company")
			w.text("2025-06-05", headerA+strings.Replace(rowA, "North Goa,Goa,403516", "Delhi,Delhi,110001", 1))
			require.Contains(t, district(w), "110001|Central|")
			w.text("2025-06-05", "Pincode,District,StateName\n403516,North Goa,Goa\n")
			require.Contains(t, district(w), "110001|-|")
		})
	}
}

func TestCompressionIsToldByContent(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer, string){
		"plain": func(b *bytes.Buffer, s string) { b.WriteString(s) },
		"gzip": func(b *bytes.Buffer, s string) {
			z := gzip.NewWriter(b)
			_, err := z.Write([]byte(s))
			require.NoError(t, err)
			require.NoError(t, z.Close())
		},
		"gzip of several members": func(b *bytes.Buffer, s string) { // as cat a.gz b.gz makes
			for part := range strings.Lines(s) {
				b.WriteString(gzipped(part))
			}
		},
		"gzip with zeros and empty members within": func(b *bytes.Buffer, s string) {
			b.WriteString(strings.Repeat(gzipped(""), 200) + gzipped(s[:100]) + "\x00\x00" + strings.Repeat(gzipped("")+"\x00", 200) + gzipped(s[100:]))
		},
		"gzip with zeros after it": func(b *bytes.Buffer, s string) { // as a tape has it
			b.WriteString(gzipped(s) + strings.Repeat("\x00", 5000))
		},
		"zstd": func(b *bytes.Buffer, s string) {
			z, err := zstd.NewWriter(b)
			require.NoError(t, err)
			_, err = z.Write([]byte(s))
			require.NoError(t, err)
			require.NoError(t, z.Close())
		},
		"zstd with the longest window": func(b *bytes.Buffer, s string) { // zstd --long
			z, err := zstd.NewWriter(b, zstd.WithWindowSize(128<<20), zstd.WithEncoderConcurrency(1))
			require.NoError(t, err)
			for _, part := range strings.SplitAfter(s, "\n") {
				_, err = z.Write([]byte(part))
				require.NoError(t, errors.Join(err, z.Flush()))
			}
			require.NoError(t, z.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			write(&b, headerA+rowA)
			w := newFixture(t)
			path := filepath.Join(w.folder, "no-ending")
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
			w.run("2025-05-05", path)
			require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"))

			w = newFixture(t)
			config := w.config("2025-05-05", source.Stdin)
			config.Stdin = &b
			_, err := Run(context.Background(), config)
			require.NoError(t, err)
			require.Equal(t, wantA, w.row(companyColumnsQuery, "U55101GA2006PTC900001"), "from standard input")
		})
	}
}

func TestWithoutADateTheRunsDayCounts(t *testing.T) {
	w := newFixture(t)
	w.text("", headerA+rowA)
	require.Equal(t, "2026-11-22", w.row("SELECT as_of FROM company"))
}

func TestLastUpdatedMovesOnlyWithChange(t *testing.T) {
	w := newFixture(t)
	stamp := func() string { return w.row("SELECT last_updated FROM company") }
	w.text("2025-05-05", headerA+rowA)
	first := stamp()

	w.text("2025-06-05", headerA+rowA)
	require.Equal(t, first, stamp(), "a newer file that says the same")
	require.Equal(t, "2025-06-05", w.row("SELECT as_of FROM company"))

	w.text("2025-05-05", headerA+strings.ReplaceAll(rowA, "Active", "Strike Off"))
	require.Equal(t, first, stamp(), "an older file that says another thing")

	w.text("2025-07-05", headerA+strings.ReplaceAll(rowA, "Active", "Strike Off"))
	second := stamp()
	require.Greater(t, second, first, "a newer file that says another thing")
	require.Equal(t, "STRUCK_OFF", w.row("SELECT status FROM company"))

	const appointments = "cin,din,designation,appointment_date,cessation_date,cessation_reason\nU55101GA2006PTC900001,12,Director,2020-01-01,,\n"
	w.text("2025-07-05", appointments)
	third := stamp()
	require.Greater(t, third, second, "a new appointment")
	w.text("2025-07-05", appointments)
	require.Equal(t, third, stamp(), "an appointment that is held")

	w.text("2025-07-05", "din,name,disqualified\n12,MADE-UP ASHA,\n")
	ofDirector := w.row("SELECT last_updated FROM director")
	w.text("2025-08-05", strings.Replace(appointments, "2020-01-01,,", "2020-01-01,2025-08-01,resigned", 1))
	require.Greater(t, w.row("SELECT last_updated FROM director"), ofDirector, "an appointment that ceased is the director's as well")

	w.text("2025-07-05", "llpin,llp_name,status,incorporation_date\nABD-0345,MADE-UP LLP,Active,2020-01-01\n")
	ofLLP := w.row("SELECT last_updated FROM llp")
	w.text("2025-07-05", "llpin,din,name,status,joined_on,left_on\nABD-0345,12,MADE-UP ASHA,Active,2020-01-01,\n")
	require.Greater(t, w.row("SELECT last_updated FROM llp"), ofLLP, "a new partner")
}

func TestRowsThatDoNotFitAreRejected(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,\n"+
		"U55101GA2006PTC900001,A,Active\n"+ // the last column means nothing
		"U55101GA2006PTC900002,A,Active,,,\n"+ // nothing behind the header
		"U55101GA2006PTC900003,A\n"+
		"U55101GA2006PTC900004,A,Active,,x\n"+
		"U55101GA2006PTC900005, ,Active,\n"+
		"U55101GA2006PTC900006,A,,\n"+
		"U55101GA2006PTC900008,\"A\nB\",Active\n"+ // of two lines, without the last column
		"U55101GA2006PTC900007,\"A,Active,\n")
	require.EqualValues(t, 3, f.New)
	require.Equal(t, map[string]int64{
		"wrong number of fields": 2, record.NoName: 1, "unknown status": 1, "quote never closed": 1,
	}, f.Rejected)
	require.Contains(t, w.rejected(), ",10,quote never closed,")
}

// TestAStatusThatChangesMovesInTheSearch: companies and LLPs that are not active come behind the others.
func TestAStatusThatChangesMovesInTheSearch(t *testing.T) {
	for _, text := range []string{headerA + rowA, "llpin,llp_name,status,incorporation_date\nABD-0345,MADE-UP LLP,Active,2020-01-01\n"} {
		w := newFixture(t)
		for _, c := range []struct{ asOf, status, inactive string }{
			{"2025-05-05", "Dissolved", "1"}, {"2025-06-05", "Active", "0"}, {"2025-07-05", "Strike Off", "1"}, {"2025-08-05", "Active", "0"},
		} {
			w.text(c.asOf, strings.ReplaceAll(text, ",Active,", ","+c.status+","))
			require.Equal(t, c.inactive, w.row("SELECT place >= 1 << 32 FROM search_name"), c.asOf)
		}
		w.text("2025-09-05", strings.Replace(text, "MADE-UP", "RENAMED", 1))
		require.Contains(t, w.row("SELECT name FROM search_name"), "renamed", "nor does the name before stay")
	}
}

// TestTheLogIsEmptyBehindAnImport although somebody has the registry open, so that its file can be copied alone.
func TestTheLogIsEmptyBehindAnImport(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+rowA)
	reader, err := schema.OpenReadOnly(w.registry)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, reader.QueryRow("SELECT count(*) FROM company").Scan(new(int)))
	w.text("2025-06-05", headerA+strings.ReplaceAll(rowA, "Active", "Dormant"))
	log, err := os.Stat(w.registry + "-wal")
	require.NoError(t, err)
	require.Zero(t, log.Size())
}

// TestTheYearOfACINCompletesADate of an old company, in files and in documents.
func TestTheYearOfACINCompletesADate(t *testing.T) {
	for _, text := range []string{
		"CIN,CompanyName,CompanyStatus,Date_of_Registration\nU55101GA1913PTC900001,A,Active,13-01-13\n",
		`{"companyData":{"company":"A","cin":"U55101GA1913PTC900001","companyStatus":"Active","dateOfIncorporation":"13-01-13"}}`,
	} {
		w := newFixture(t)
		w.text("2021-03-31", text)
		require.Equal(t, "1913-01-13", w.row("SELECT incorporation_date FROM company"), text)
	}
}

// TestANameIsAsLongAsItsCharacters are many.
func TestANameIsAsLongAsItsCharacters(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "CIN,CompanyName,CompanyStatus\nU55101GA2006PTC900001,"+strings.Repeat("भ", 1000)+",Active\n"+
		"U55101GA2006PTC900002,"+strings.Repeat("a", 1001)+",Active\n")
	require.EqualValues(t, 1, f.New)
	require.Equal(t, map[string]int64{"name too long": 1}, f.Rejected)
}

func TestProgressEndsWithAllBytes(t *testing.T) {
	w := newFixture(t)
	config := w.config("2025-05-05", w.file(gzipped(manyCompanies(10))), w.file(headerA+rowA))
	var last Progress
	config.Progress = func(p Progress) {
		last = p
		if p.Written == 0 {
			require.LessOrEqual(t, 2*p.Bytes, p.Total, "reading is half of the work")
		}
	}
	_, err := Run(t.Context(), config)
	require.NoError(t, err)
	require.InDelta(t, last.Total, last.Bytes, 1, "two halves, rounded")
	sizes := int64(0)
	for _, name := range config.Files {
		info, err := os.Stat(name)
		require.NoError(t, err)
		sizes += info.Size()
	}
	require.Equal(t, sizes, last.Total)
}

// TestADINOfZerosIsNone: it fills the column where there is none, and would make several persons one.
func TestADINOfZerosIsNone(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "din,name,disqualified\n0,A ONE,no\n00000000,B TWO,no\n00000012,C THREE,no\n")
	require.Equal(t, map[string]int64{"invalid DIN": 2}, f.Rejected)
	require.Equal(t, []string{"00000012"}, w.rows("SELECT din FROM director"))
	w.text("2025-05-05", "llpin,din,name,joined_on\nABD-0345,0,A ONE,2020-01-01\nABD-0345,00000000,B TWO,2020-01-01\n")
	require.Equal(t, []string{"-|A ONE", "-|B TWO"}, w.rows("SELECT din, name FROM partner ORDER BY name"))
}

func TestAFillerIsNoName(t *testing.T) {
	w := newFixture(t)
	text := "CIN,CompanyName,CompanyStatus\n"
	for i, name := range []string{"NA", "N/A", "-", ".", "NULL", "None", "NIL PRIVATE LIMITED", "UNKNOWN"} {
		text += fmt.Sprintf("U00001GA2020PTC00000%d,%s,Active\n", i, name)
	}
	require.Equal(t, map[string]int64{"no name": 6}, w.text("2025-05-05", text).Rejected)
	require.Equal(t, []string{"NIL PRIVATE LIMITED", "UNKNOWN"}, w.rows("SELECT company_name FROM company ORDER BY cin"))
}

// TestAFillerIsNoContact: a client would take it for an address.
func TestAFillerIsNoContact(t *testing.T) {
	w := newFixture(t)
	f := w.run("2025-05-05", w.file(headerA+rowA), w.file("cin,email,phone,website\nU55101GA2006PTC900001,NA,-,N/A\n")).Files[1]
	require.Empty(t, f.Unread)
	require.Equal(t, "-|-|-", w.row("SELECT email, phone, website FROM company"))
}

// TestALackingColumnIsTold: a publisher named it otherwise, and nothing is read of it.
func TestALackingColumnIsTold(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", strings.NewReplacer("Registered_Office_Address", "Office", "PaidupCapital", "Capital (Rs)").Replace(headerA+rowA))
	require.EqualValues(t, 1, f.New)
	require.Equal(t, "paidupcap or paidupcapital, registeredofficeaddress; not read are "+
		"Capital (Rs), Office, CompanyIndian/Foreign Company, nic_code", f.Lacking)
	var table strings.Builder
	require.NoError(t, (&Report{Files: []FileReport{f}}).WriteTable(&table))
	require.Contains(t, table.String(), " lacks paidupcap or")
	require.Empty(t, w.text("2025-05-05", headerA+rowA).Lacking)
	require.Equal(t, "companyregistrationdate or companyregistrationdatedate or dateofregistration, authorisedcapital or authorizedcap or authorizedcapital, "+
		"paidupcap or paidupcapital, registeredofficeaddress",
		w.text("2025-05-05", "CIN,CompanyName,CompanyStatus, \nU55101GA2006PTC900001,A,Active,\n").Lacking, "all its columns are read")
	require.Equal(t, "cessationdate; not read are end_date", w.text("2025-05-05", "cin,din,appointment_date,end_date\nU55101GA2006PTC900001,1,2020-01-01,2021-01-01\n").Lacking)
	require.Equal(t, "din, lefton; not read are DPIN", w.text("2025-05-05", "llpin,DPIN,name,joined_on\nABD-0345,1,A,2020-01-01\n").Lacking)
}

// TestOtherPublishersNamesOfColumnsAreRead where no column has the usual name, and never in place of one that has.
func TestOtherPublishersNamesOfColumnsAreRead(t *testing.T) {
	const query = "SELECT incorporation_date, authorized_capital, paid_up_capital, roc, state, city, pincode FROM company"
	w := newFixture(t)
	f := w.text("2025-05-05", "CIN,Company Name,Company Status,Incorporation Date,Authorised Share Capital (Rs.),Paid-up Share Capital,ROC,State,Address\n"+
		`U55101GA2006PTC900001,A,Active,2006-02-23,"10,00,000",500000,ROC Goa,GOA,"1 Beach Road, Panaji, Goa, India, 403001"`+"\n")
	require.Empty(t, f.Lacking)
	require.Equal(t, "2006-02-23|1000000|500000|ROC Goa|Goa|Panaji|403001", w.row(query))

	w = newFixture(t)
	w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,CompanyStateCode,State,Company State\nU55101GA2006PTC900001,A,Active,goa,Kerala,Assam\n")
	require.Equal(t, "-|-|-|-|Goa|-|-", w.row(query), "the usual name wins")
	w = newFixture(t)
	w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,State,Company State\nU55101GA2006PTC900001,A,Active,Kerala,Assam\n")
	require.Equal(t, "-|-|-|-|-|-|-", w.row(query), "of two columns none is chosen")

	for _, header := range []string{
		"CIN No.,Name of the Company,Company Status,Date of Regn.,Auth. Capital,Paid up Capital (in Rupees),ROC,State,Regd. Office Address",
		"CIN Number,Company's Name,Company Status,Regn Date,Authorised Capital (Rupees),Paid up Capital,ROC Office,State,Address of Registered Office",
		"Corporate Identity Number,Name of Company,Company Status,DATE_OF_INCORP,Auth. Capital,Paid up Capital,ROC,State,Registered Office",
		"CIN,Company Name,Company Status,Date of Registration (DD-MM-YYYY),Authorised Capital,Paid up Capital,ROC,State,Regd Address",
	} {
		w = newFixture(t)
		f = w.text("2025-05-05", header+"\n"+`U55101GA2006PTC900001,A,Active,23-02-2006,"10,00,000",500000,ROC Goa,GOA,"1 Beach Road, Panaji, Goa, India, 403001"`+"\n")
		require.Empty(t, f.Lacking)
		require.Equal(t, "2006-02-23|1000000|500000|ROC Goa|Goa|Panaji|403001", w.row(query), header)
	}
	w = newFixture(t)
	w.text("2025-05-05", "CIN,CIN No.,CompanyName,CompanyStatus,Address 2,State\nU55101GA2006PTC900001,U55101GA2006PTC900002,A,Active,1 Beach Road,Goa\n")
	require.Equal(t, "U55101GA2006PTC900001|-", w.row("SELECT cin, address_line FROM company"), "a usual name wins, and a part of an address is none")
	_, err := Run(context.Background(), w.config("2025-05-05", w.file("CIN No,CIN Number,CompanyName,CompanyStatus\n,,,\n")))
	require.ErrorContains(t, err, "mean the same")

	const llp = "SELECT incorporation_date, contribution, address_line, city, state, pincode FROM llp"
	for _, date := range []string{"Date of Incorporation", "Date of Registration", "Incorporation Date", "Founded"} {
		w = newFixture(t)
		f = w.text("2025-05-05", "LLPIN,LLP Name,Status,"+date+",Obligation of Contribution,Address\n"+
			`ABD-0345,A LLP,Active,2020-01-02,50000,"1 Beach Road, Panaji, Goa - 403001"`+"\n")
		require.Empty(t, f.Lacking, date)
		require.Equal(t, "2020-01-02|50000|1 Beach Road|Panaji|Goa|403001", w.row(llp), date)
	}
}

// TestADateInAFormThatWouldBeMisreadIsNotRead, but told: dates with slashes are read month first.
func TestADateInAFormThatWouldBeMisreadIsNotRead(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "CIN,Company Name,Company Status,Date of Registration (DD/MM/YYYY)\nU55101GA2024PTC900001,A,Active,01/05/2024\n")
	require.Equal(t, "-", w.row("SELECT incorporation_date FROM company"))
	require.Contains(t, f.Lacking, "not read are Date of Registration (DD/MM/YYYY)")
}

// TestDatesAgainstTheFormInTheirColumnsNameEndTheRun, unless one of them proves the order in which they are read.
func TestDatesAgainstTheFormInTheirColumnsNameEndTheRun(t *testing.T) {
	for _, c := range []struct{ form, dates, want string }{
		{"DD-MM-YYYY", "5/6/2010 6/7/2010", `the day first, but "6/7/2010" is read as month/day/year: write them as YYYY-MM-DD or DD-MM-YYYY`},
		{"MM/DD/YYYY", "05-06-2010 06-07-2010", `the month first, but "06-07-2010" is read as day, month, year: write them as YYYY-MM-DD or MM/DD/YYYY`},
		{"DD-MM-YYYY", "2010/06/05 2010/07/06", ""}, {"DD-MM-YYYY", strings.Repeat("05-06-2010 05-Jun-2010 ", 10) + "5/6/2010", ""}, {"MM/DD/YYYY", strings.Repeat("6/5/2010 ", 20) + "05-06-2010", ""},
		{"DD-MM-YYYY", "5/6/2010 6/17/2010", ""}, {"MM/DD/YYYY", "05-06-2010 17-06-2010", ""}, {"DD-MM-YYYY", "05-06-2010 2010-06-05", ""},
		{"DD-MM-YYYY", "6/6/2010 NA", ""}, {"YYYY-MM-DD", "5/6/2010 05-06-2010", ""}, {"DD-MM-YYYY", "5/Jun/2010 05-Jun-2010", ""},
	} {
		text := "CIN,Company Name,Company Status,Date of Registration (" + c.form + ")\n"
		for i, date := range strings.Fields(c.dates) {
			text += fmt.Sprintf("U55101GA2010PTC9000%02d,A%d LIMITED,Active,%s\n", i, i, date)
		}
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(text)))
		if c.want == "" {
			require.NoError(t, err, c)
			if strings.Count(c.dates, " ") == 20 {
				require.Contains(t, w.rejected(), ",22,invalid date: ")
				require.Equal(t, "20|2010-06-05", w.row("SELECT count(*), max(incorporation_date) FROM company"))
			}
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.Empty(t, w.registryFiles())
	}
}

// TestANameInOtherWordsTakesNoColumnsPlace: both together would be one too many, and neither be read.
func TestANameInOtherWordsTakesNoColumnsPlace(t *testing.T) {
	const query = "SELECT incorporation_date, roc, state, city FROM company"
	const address = `"1 Beach Road, Panaji, Goa, India, 403001"`
	for header, row := range map[string]string{
		"State,Regd. State,Incorporation Date,Address,ROC":                                                        "Goa,Kerala,2006-02-23," + address + ",ROC Goa",
		"Incorporation Date,Date of Regn.,State,ROC,Address,Registered Office,Regd. Address,ROC Office,Registrar": "2006-02-23,2020-01-01,Goa,ROC Goa," + address + `,"2 Road, Kochi, Kerala, India, 682001","3 Road",ROC Kerala,X`,
	} {
		w := newFixture(t)
		w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,"+header+"\nU55101GA2006PTC900001,A,Active,"+row+"\n")
		require.Equal(t, "2006-02-23|ROC Goa|Goa|Panaji", w.row(query), header)
	}
	w := newFixture(t)
	w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,Registrar,State,Company State,Regd. State\nU55101GA2006PTC900001,A,Active,KFin Technologies Limited,Goa,Goa,Goa\n")
	require.Equal(t, "-|-|-|-", w.row(query), "a listed company's share registrar is no Registrar of Companies; three states are two too many")
	w.text("2025-06-05", "CIN,CompanyName,CompanyStatus,Auth. Capital (Rs.),Auth. Share Capital (USD),Paid-up Capital (Lakhs)\nU55101GA2006PTC900001,A,Active,100000,5,1\n")
	require.Equal(t, "100000|-", w.row("SELECT authorized_capital, paid_up_capital FROM company"))
}

// TestAFileOfPersonsOrContactsWithTheNamesOfCompaniesIsNoListOfThem, unless it has the columns as companies name them.
func TestAFileOfPersonsOrContactsWithTheNamesOfCompaniesIsNoListOfThem(t *testing.T) {
	for header, want := range map[string]string{
		"cin,din,appointment_date,Name of Company,Company Status":                "appointments",
		"cin,din,appointment_date,Name of Company,Company's Name,Company Status": "appointments",
		"cin,email,phone,Company's Name,Company Status":                          "company contacts",
		"cin,email,Company's Name,Company Status,Date of Registration,Address":   "companies",
		"CIN No.,din,appointment_date,Name of Company,Company Status":            "companies",
		"CIN,Company Name,Company Status,din,appointment_date,email":             "companies",
	} {
		cells := map[string]string{"cin": "U55101GA2006PTC900001", "CIN": "U55101GA2006PTC900001", "CIN No.": "U55101GA2006PTC900001", "din": "12", "Company Status": "Active", "email": "a@example.com",
			"appointment_date": "2020-01-01", "Date of Registration": "2006-02-23"}
		row := ""
		for name := range strings.SplitSeq(header, ",") {
			row += cmp.Or(cells[name], "A") + ","
		}
		f := newFixture(t).text("2025-05-05", header+"\n"+strings.TrimSuffix(row, ",")+"\n")
		require.Equal(t, want, f.Format, header)
	}
}

// TestTheActivityOfAnLLPAmongCompanies is its classification, else what its number says.
func TestTheActivityOfAnLLPAmongCompanies(t *testing.T) {
	for columns, want := range map[string]string{"Tea,Trade": "Tea", ",Trade": "Trade", ",": "-"} {
		w := newFixture(t)
		w.text("2025-05-05", "CIN,CompanyName,CompanyStatus,CompanyIndustrialClassification,PrincipalBusinessActivity\nABD-0345,MADE-UP LLP,Active,"+columns+"\n")
		require.Equal(t, want, w.row("SELECT business_activity FROM llp"), columns)
	}
}

func TestARowCutOffAtTheEndIsTold(t *testing.T) {
	w := newFixture(t)
	require.Equal(t, map[string]int64{"row cut off": 1}, w.text("2025-05-05", headerA+rowA+rowA[:60]).Rejected)
	require.Equal(t, map[string]int64{"wrong number of fields": 1}, w.text("2025-05-05", headerA+rowA+rowA[:60]+"\n").Rejected)
	f := w.text("2025-05-05", "LLPIN,LLP Name,Status\nABD-0345,\"A LLP,Active\nABD-0346,B LLP\nABD-0347,C LLP,Active")
	require.Equal(t, map[string]int64{"quote never closed": 1, "wrong number of fields": 1}, f.Rejected, "a row that was read ahead has its end")
	require.EqualValues(t, 1, f.New)
}

// TestFilesAppendedToEachOther have a mark and a header in the middle, perhaps in other capitals.
func TestFilesAppendedToEachOther(t *testing.T) {
	w := newFixture(t)
	other := strings.Replace(rowA, "900001", "900002", 1)
	f := w.text("2025-05-05", "\uFEFF"+headerA+rowA+"\uFEFF"+strings.ToUpper(headerA)+"\uFEFF"+other+
		"\uFEFF\"U55101GA2006PTC900003\""+rowA[21:])
	require.EqualValues(t, 3, f.New)
	require.Equal(t, map[string]int64{"repeated header": 1}, f.LeftOut)
}

// TestAFileOfAnotherKindAppendedToAFileEndsTheRun: its columns are in other places, and each of its values may be a valid one there.
func TestAFileOfAnotherKindAppendedToAFileEndsTheRun(t *testing.T) {
	for name, second := range map[string]string{
		"two columns swapped":  strings.Replace(headerA, "CompanyROCcode,CompanyCategory", "CompanyCategory,CompanyROCcode", 1),
		"the number elsewhere": strings.Replace(headerA, "CIN,CompanyName", "CompanyName,CIN", 1),
		"fewer columns":        "CIN,CompanyName,CompanyStatus\n",
		"columns with digits":  "CIN,CompanyName,CompanyStatus,Address1,Address2,Paid-up 2024\n",
		"another format":       "llpin,llp_name,status,incorporation_date\n",
		"another separator":    strings.ReplaceAll(headerA, ",", ";"),
	} {
		w := newFixture(t)
		_, err := Run(context.Background(), w.config("2025-05-05", w.file(headerA+rowA+second+rowA)))
		require.ErrorContains(t, err, "line 3 is the header of another list", name)
		require.Empty(t, w.registryFiles(), name)
	}
	f := newFixture(t).text("2025-05-05", headerA+rowA+strings.Replace(headerA, "nic_code", "NIC", 1)+"x"+rowA)
	require.Equal(t, map[string]int64{"repeated header": 1}, f.LeftOut, "another name of a column that is not read")
	require.Equal(t, map[string]int64{"invalid CIN": 1}, f.Rejected)
}

func TestAWebPageIsRefused(t *testing.T) {
	w := newFixture(t)
	_, err := Run(context.Background(), w.config("2025-05-05", w.file("\n<html><body>Request rejected, CIN\n</body></html>")))
	require.ErrorContains(t, err, "is a web page or XML")
}

// TestAChangedAppointmentLeavesTheOthersOfItsCompany, as a changed partner leaves those of the LLP.
func TestAChangedAppointmentLeavesTheOthersOfItsCompany(t *testing.T) {
	w := newFixture(t)
	const header = "cin,din,designation,appointment_date,cessation_date\n"
	w.text("2025-05-05", header+"U55101GA2006PTC900001,12,Director,2020-01-01,\nU55101GA2006PTC900001,13,Director,2021-01-01,\n")
	w.text("2025-06-05", header+"U55101GA2006PTC900001,13,Director,2021-01-01,2025-06-01\n")
	require.Equal(t, []string{"00000012|2020-01-01|-", "00000013|2021-01-01|2025-06-01"},
		w.rows("SELECT din, appointment_date, cessation_date FROM appointment ORDER BY din"))
	const partners = "llpin,din,name,joined_on\n"
	w.text("2025-05-05", partners+"ABD-0345,12,A ONE,2020-01-01\nABD-0345,13,B TWO,2020-01-01\n")
	w.text("2025-06-05", partners+"ABD-0345,13,B THREE,2020-01-01\n")
	require.Equal(t, []string{"00000012|A ONE", "00000013|B THREE"}, w.rows("SELECT din, name FROM partner ORDER BY din"))
}

// TestTheColumnOfTheStateCounts, not the one in the address, and tells the districts of one name apart.
func TestTheColumnOfTheStateCounts(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+strings.Replace(rowA, ",goa,", ",Kerala,", 1)+"ABD-0345"+strings.Replace(rowA[21:], ",goa,", ",Kerala,", 1))
	require.Equal(t, "Kerala|Kerala", w.row("SELECT c.state, l.state FROM company c, llp l"))
	w = newFixture(t)
	w.text("2025-05-05", headerA+strings.NewReplacer("CALANGUTE,North Goa,Goa,403516-India", "TOWN,Aurangabad,000000-India", ",goa,", ",Bihar,").Replace(rowA))
	require.Equal(t, "Bihar|Aurangabad", w.row("SELECT state, district FROM company"))
	w = newFixture(t)
	w.text("2025-05-05", "LLPIN,LLP Name,Status,State,Address\nABD-0345,MADE-UP LLP,Active,Kerala,\"5 Road, Panaji, Goa, 403001\"\n")
	require.Equal(t, "Kerala|Panaji", w.row("SELECT state, city FROM llp"), "of a monthly list, too")
	w = newFixture(t)
	w.text("2025-05-05", "llpin,llp_name,status,incorporation_date,address_line,address\nABD-0345,MADE-UP LLP,Active,2020-01-01,7 Lane,\"5 Road, Panaji, Goa, 403001\"\n")
	require.Equal(t, "7 Lane|Panaji|Goa", w.row("SELECT address_line, city, state FROM llp"), "the column of the line counts before the address as a whole")
}
