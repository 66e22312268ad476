package source

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const companyHeader = "CIN,CompanyName,CompanyStatus,AuthorizedCapital,CompanyRegistrationdate_date,Registered_Office_Address,Listingstatus\n"

const companyRow = `U55101GA2006PTC900001,MADE-UP RESORTS   PRIVATE LIMITED,Active,1000000.00,2006-02-23,"1 BEACH ROAD,,CALANGUTE,North Goa,Goa,403516-India",Unlisted` + "\n"

// FuzzSheet feeds every CSV format with a text after its header: each row must be counted
// once, and every record must have its key and be valid UTF-8.
func FuzzSheet(f *testing.F) {
	f.Add(companyRow)
	f.Add("12,MADE-UP,no,Director,01-02-19\n")
	f.Add("ABD-0345,,\"A\n,,\xc9,\n")
	f.Add("U55101GA2006PTC900001,12,Director,2020-01-01,,resigned\n")
	headers := []string{
		companyHeader, "din,name,disqualified,designation,appointment_date\n", "llpin,din,name,status,joined_on,left_on\n",
		"cin,din,designation,appointment_date,cessation_date,cessation_reason\n", "cin,email,phone,website\n",
		"LLPIN,LLP Name,Founded,Status,Address\n", "Pincode,District,StateName\n",
		"llpin,llp_name,status,incorporation_date,contribution,state,pincode\n",
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, header := range headers {
			read, ended := 0, 0
			out := newOutlet(0, func() int64 { return 0 }, func(b *Batch) error {
				read += b.Read
				ended += len(b.Records) + len(b.Rejects) + b.Offices
				for _, n := range b.LeftOut {
					ended += int(n)
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
			})
			s, err := newSheet(strings.NewReader(header+text), "2025-01-01", out, NewOffices())
			require.NoError(t, err)
			require.NoError(t, s.run())
			require.NoError(t, out.flush())
			require.Equal(t, read, ended)
		}
	})
}
