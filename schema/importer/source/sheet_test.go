package source

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const companyHeader = "CIN,CompanyName,CompanyStatus,AuthorizedCapital,CompanyRegistrationdate_date,Registered_Office_Address,Listingstatus\n"

const companyRow = `U55101GA2006PTC900001,MADE-UP RESORTS   PRIVATE LIMITED,Active,1000000.00,2006-02-23,"1 BEACH ROAD,,CALANGUTE,North Goa,Goa,403516-India",Unlisted` + "\n"

// maxFuzzedSheet bounds the texts of FuzzSheet. Larger ones hold only more rows of the same kind,
// and took seconds each.
const maxFuzzedSheet = 4 << 10

// sheetHeaders are the headers of the CSV formats.
var sheetHeaders = []string{
	companyHeader, "din,name,disqualified,designation,appointment_date\n", "llpin,din,name,status,joined_on,left_on\n",
	"cin,din,designation,appointment_date,cessation_date,cessation_reason\n", "cin,email,phone,website\n",
	"LLPIN,LLP Name,Founded,Status,Address\n", "Pincode,District,StateName\n",
	"llpin,llp_name,status,incorporation_date,contribution,state,pincode\n",
}

// FuzzSheet feeds one of the CSV formats with a text after its header: each row must be counted
// once, and every record must have its key and be valid UTF-8.
func FuzzSheet(f *testing.F) {
	for at := range sheetHeaders {
		for _, text := range []string{
			companyRow, "12,MADE-UP,no,Director,01-02-19\n", "ABD-0345,,\"A\n,,\xc9,\n", "U55101GA2006PTC900001,12,Director,2020-01-01,,resigned\n",
			"A00000AA0006AAA000000,,,,06--00,,",
		} {
			f.Add(byte(at), text)
		}
		f.Add(byte(at), "")
	}
	f.Fuzz(func(t *testing.T, at byte, text string) {
		if len(text) > maxFuzzedSheet {
			return
		}
		c := new(sheetCount)
		out := newOutlet(0, func() int64 { return 0 }, func(b *Batch) error { return c.take(t, b) })
		header := sheetHeaders[int(at)%len(sheetHeaders)]
		s, err := newSheet(strings.NewReader(header+text), "2025-01-01", out, NewOffices())
		if errors.Is(err, errOnlyHeader) {
			return
		}
		require.NoError(t, err)
		if err := s.run(); err != nil { // most of its dates are in another order
			require.ErrorContains(t, err, "write them as YYYY-MM-DD")
			return
		}
		require.NoError(t, out.flush())
		require.Equal(t, c.read, c.ended)
	})
}

// sheetCount counts the rows that were read, and what became of each.
type sheetCount struct{ read, ended int }

func (c *sheetCount) take(t *testing.T, b *Batch) error {
	c.read += b.Read
	c.ended += len(b.Records) + len(b.Rejects) + b.Offices
	for _, n := range b.LeftOut {
		c.ended += int(n)
	}
	for _, r := range b.Records {
		require.Equal(t, len(r.Table.Columns), len(r.Values))
		for i := range r.Table.Key {
			require.NotEmpty(t, r.Key[i])
		}
		for _, v := range r.Values {
			require.True(t, utf8.ValidString(v.Text))
		}
	}
	return nil
}

// TestTheDocumentListsEveryColumn that makes a format known, under its format, and no other.
func TestTheDocumentListsEveryColumn(t *testing.T) {
	document, err := os.ReadFile("../../../docs/import-formats.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(document), "\n## Formats\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]map[string]bool{} // by format
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?)(?:,.*?| \(ours\))? \| (.*) \|$`).FindAllStringSubmatch(section, -1) {
		if listed[row[1]] == nil {
			listed[row[1]] = map[string]bool{}
		}
		for _, column := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			listed[row[1]][squash(strings.TrimSuffix(column[1], "(Rs)"))] = true
		}
	}
	for _, f := range formats {
		known := map[string]bool{}
		for _, columns := range []map[string]field{f.columns, f.portal, f.instead} {
			for column := range columns {
				known[column] = true
			}
		}
		require.Equal(t, known, listed[f.Name], f.Name)
	}
}

// TestAWideRowIsSoonKnownToBeNoHeader: fifty rows of sixty thousand columns took a minute.
func TestAWideRowIsSoonKnownToBeNoHeader(t *testing.T) {
	s, err := newSheet(strings.NewReader(companyHeader+companyRow), "2025-01-01", newOutlet(0, func() int64 { return 0 }, nil), NewOffices())
	require.NoError(t, err)
	const columns = 5000
	for _, first := range []string{"x", "din,llpin", "din;llpin;x"} {
		wide := row{raw: first + strings.Repeat(",ab", columns)}
		allocations := testing.AllocsPerRun(1, func() { require.NoError(t, s.asHeader(wide)) })
		require.Less(t, allocations, float64(columns), first)
	}
}

// TestSwappedCapitalsEndTheRun of 20 companies, as the document says, and not that of fewer.
func TestSwappedCapitalsEndTheRun(t *testing.T) {
	for rows, want := range map[int]string{fewestRows - 1: "", fewestRows: "are the columns AuthorizedCap and PaidupCapital swapped?"} {
		text := "CIN,CompanyName,CompanyStatus,AuthorizedCap,PaidupCapital,CompanyRegistrationDate,RegisteredOfficeAddress\n"
		for i := range rows {
			text += fmt.Sprintf("U55101GA2006PTC%06d,A%d LIMITED,Active,500000,600000,2006-02-23,\n", i, i)
		}
		out := newOutlet(0, func() int64 { return 0 }, func(*Batch) error { return nil })
		s, err := newSheet(strings.NewReader(text), "2025-01-01", out, NewOffices())
		require.NoError(t, err)
		if err = s.run(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// TestAFewRoundedAmountsEndNoRun: the others of the file are whole.
func TestAFewRoundedAmountsEndNoRun(t *testing.T) {
	for whole, want := range map[int]string{100: "its amounts are rounded, as 5.00E+05 in AuthorizedCapital", 250: ""} {
		text := strings.Builder{}
		for i := range whole + 21 {
			amount := "500000"
			switch {
			case i < 20:
				amount = "5.00E+05"
			case i == 20:
				amount = "1.21E+06"
			}
			fmt.Fprintf(&text, "U55101GA2006PTC%06d,A%d LIMITED,Active,%s,2006-02-23,,Unlisted\n", i, i, amount)
		}
		out := newOutlet(0, func() int64 { return 0 }, func(*Batch) error { return nil })
		s, err := newSheet(strings.NewReader(companyHeader+text.String()), "2025-01-01", out, NewOffices())
		require.NoError(t, err)
		if err = s.run(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
