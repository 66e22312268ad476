package source

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ in, line, city, state, pincode string }{
		{"12 HILL ROAD,PORT BLAIR,Andaman and Nicobar Islands,744206-India",
			"12 HILL ROAD", "PORT BLAIR", "Andaman and Nicobar Islands", "744206"},
		{"C/O X, 01, OPP. PEBBLE   NAGAR,, South,Gangtok,East Sikkim,Sikkim,737102-India",
			"C/O X, 01, OPP. PEBBLE, NAGAR, South", "Gangtok", "Sikkim", "737102"},
		{"14 MILE,  G  S ROAD   RI BHOI,BYRNIHAT,Meghalaya,793101-India",
			"14 MILE, G S ROAD, RI BHOI", "BYRNIHAT", "Meghalaya", "793101"},
		{"HOUSE 3, BUCHPORA   SRINAGAR,SRINAGAR,Srinagar,Jammu & Kashmir,190020-India",
			"HOUSE 3, BUCHPORA", "SRINAGAR", "Jammu and Kashmir", "190020"},
		{"37 NAGAR, JAMMU,JAMMU,Jammu & Kashmir,180004-India", "37 NAGAR", "JAMMU", "Jammu and Kashmir", "180004"},
		{"BARDEZ HOUSE,GOA.,Goa,000000-India", "BARDEZ HOUSE", "", "Goa", ""},
		{"VILL. AMB,H P,Himachal Pradesh,000000-India", "VILL. AMB", "", "Himachal Pradesh", ""},
		{"1 Ring Road,Delhi,Delhi,110002-India", "1 Ring Road", "Delhi", "Delhi", "110002"},
		{"NA,NA,East Khasi Hills,Meghalaya,NA-India", "", "", "Meghalaya", ""},
		{"NA,SEJUSA,Arunachal Pradesh,NA-India", "", "SEJUSA", "Arunachal Pradesh", ""},
		{"Hall 9,Somewhere,Atlantis,123456-India", "Hall 9, Somewhere", "Atlantis", "", "123456"},
		{"A \uFFFDx80x93 401 Heights,,Ahmedabad,Ahmedabad,Gujarat,380015-INDIA", "A - 401 Heights", "Ahmedabad", "Gujarat", "380015"},
		{"DHARAMSALA ROAD, IMPHAL, , Unclassified MN 000000", "DHARAMSALA ROAD, IMPHAL", "", "Manipur", ""},
		{"URIPOK WEST IMPHAL , West Imphal Unclassified MN 795001", "URIPOK WEST IMPHAL", "", "Manipur", "795001"},
		{", Unclassified ML", "", "", "Meghalaya", ""},
		{"12 MG ROAD, PUNE , Pune MH 411001", "12 MG ROAD, PUNE", "", "Maharashtra", "411001"},
		{"12 MG ROAD, Camp MH 411001", "12 MG ROAD, Camp", "", "Maharashtra", "411001"},
		{"5 Mall Road, Shimla - 171001", "5 Mall Road, Shimla", "", "", "171001"},
		{"5 Mall Road", "5 Mall Road", "", "", ""},
		{"-India", "", "", "", ""},
		{"NA", "", "", "", ""},
		{"", "", "", "", ""},
	} {
		t.Run(c.in, func(t *testing.T) {
			a := parseAddress(c.in)
			require.Equal(t, []string{c.line, c.city, c.state, c.pincode}, []string{a.line.Text, a.city.Text, a.state.Text, a.pincode.Text})
		})
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("12 HILL ROAD,PORT BLAIR,Andaman and Nicobar Islands,744206-India")
	f.Add("URIPOK WEST IMPHAL , West Imphal Unclassified MN 795001")
	f.Add(" , ML")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return // the reader decodes before
		}
		a := parseAddress(s)
		if a.pincode.Kind != record.Null {
			require.Len(t, a.pincode.Text, 6)
		}
		for _, v := range []record.Value{a.line, a.city} {
			require.Equal(t, clean(v.Text), v.Text)
		}
	})
}
