package source

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ in, line, city, state, pincode string }{
		{"#REF!", "", "", "", ""}, {"=VLOOKUP(A2,B:C,2)", "", "", "", ""},
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
		{"\u200bBARDEZ HOUSE,PANAJI,Goa,403001\u200b-India\u200b", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"12 MG ROAD, Pune, Maharashtra - 411001\ufeff", "12 MG ROAD", "Pune", "Maharashtra", "411001"},
		{"12 MG ROAD, PLOT 5–7, Pune – 411001, Maharashtra", "12 MG ROAD, PLOT 5-7", "Pune", "Maharashtra", "411001"},
		{"Shop 401–404, 12 MG ROAD", "Shop 401–404, 12 MG ROAD", "", "", ""}, {"12 MG ROAD, Plots 110 — 112", "12 MG ROAD, Plots 110 — 112", "", "", ""},
		{"Shop 401–404, 12 MG ROAD, Pune – 411001, Maharashtra", "Shop 401–404, 12 MG ROAD", "Pune", "Maharashtra", "411001"},
		{"12 MG ROAD, Okhla, New Delhi‑110020", "12 MG ROAD, Okhla, New Delhi", "", "Delhi", "110020"},
		{"BARDEZ HOUSE,PANAJI,Goa,403001–India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"BARDEZ HOUSE,PANAJI â€“ 403001,Goa,000000-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"12 MG ROAD,<br>Shivajinagar<BR />Pune,<br/>Maharashtra - 411001<br>", "12 MG ROAD", "Shivajinagar Pune", "Maharashtra", "411001"},
		{"12 MG ROAD,PUNE,Maharashtra,411001-India<br/>", "12 MG ROAD", "PUNE", "Maharashtra", "411001"},
		{"PLOT <BRIJ>, 12 MG ROAD", "PLOT <BRIJ>, 12 MG ROAD", "", "", ""},
		{"0", "", "", "", ""}, {"Not Applicable", "", "", "", ""},
		{"BARDEZ HOUSE,PANAJI 403 001,Goa,000000-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"BARDEZ HOUSE,PANAJI - 403-001.,Goa,000000-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"BARDEZ HOUSE,PANAJI,Goa,403 001 - INDIA", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"VILL. AMB,AMB,Himanchal Pradesh,177203 -India", "VILL. AMB", "AMB", "Himachal Pradesh", "177203"},
		{"BARDEZ HOUSE,PANAJI,Goa,403001.0 - INDIA", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"12 MG ROAD, PUNE , Pune MH 411001.0", "12 MG ROAD, PUNE", "", "Maharashtra", "411001"},
		{"5 Mall Road, Shimla - 171001.0", "5 Mall Road, Shimla", "", "", "171001"},
		{"12 MG ROAD, Plot 5.0", "12 MG ROAD, Plot 5.0", "", "", ""},
		{"BARDEZ HOUSE,PANAJI-403001.,Goa,000000-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"BARDEZ HOUSE,SECTOR 1403 001,Goa,000000-India", "BARDEZ HOUSE", "SECTOR 1403 001", "Goa", ""},
		{"VILL. AMB,H P,Himachal Pradesh,000000-India", "VILL. AMB", "", "Himachal Pradesh", ""},
		{"1 Ring Road,Delhi,Delhi,110002-India", "1 Ring Road", "Delhi", "Delhi", "110002"},
		{"NA,NA,East Khasi Hills,Meghalaya,NA-India", "", "East Khasi Hills", "Meghalaya", ""},
		{"5 Link Road,Mumbai,Mumbai City,Maharashtra,400001-India", "5 Link Road", "Mumbai", "Maharashtra", "400001"},
		{"5 Road,Alibag,Raigarh(MH),Maharashtra,402201-India", "5 Road", "Alibag", "Maharashtra", "402201"},
		{"5 Road,Near Temple,,Tiruvallur,Tamil Nadu,602001-India", "5 Road, Near Temple", "Tiruvallur", "Tamil Nadu", "602001"},
		{"5 Road,,Tiruvallur,Tamil Nadu,602001-India", "5 Road", "Tiruvallur", "Tamil Nadu", "602001"},
		{"5 ROAD, KASHIPUR , Udham Singh Nagar Udham Singh Nagar Unclassified UR 244713", "5 ROAD, KASHIPUR", "", "Uttarakhand", "244713"},
		{"9 ROAD,CHENNAI,PIN-600001,600001,Tamil Nadu,000000-India", "9 ROAD", "CHENNAI", "Tamil Nadu", "600001"},
		{"THE MALL,SHIMLA-171003,Himachal Pradesh,000000-India", "THE MALL", "SHIMLA", "Himachal Pradesh", "171003"},
		{"PLOT 5,DADRA PIN CODE: 396230,Dadra & Nagar Haveli,NA-India", "PLOT 5", "DADRA", "Dadra and Nagar Haveli", "396230"},
		{"PLOT 5,PUNE 411004,Maharashtra,411001-India", "PLOT 5", "PUNE", "Maharashtra", "411001"},
		{"SURVEY 123456,ALIBAG,Maharashtra,000000-India", "SURVEY 123456", "ALIBAG", "Maharashtra", ""},
		{"5 ROAD,SECTOR123456,Goa,000000-India", "5 ROAD", "SECTOR123456", "Goa", ""},
		{"5 ROAD,Sarapin 403001,Goa,000000-India", "5 ROAD", "Sarapin", "Goa", "403001"},
		{"NA,SEJUSA,Arunachal Pradesh,NA-India", "", "SEJUSA", "Arunachal Pradesh", ""},
		{"Hall 9,Somewhere,Atlantis,123456-India", "Hall 9, Somewhere", "Atlantis", "", "123456"},
		{"A \uFFFDx80x93 401 Heights,,Ahmedabad,Ahmedabad,Gujarat,380015-INDIA", "A - 401 Heights", "Ahmedabad", "Gujarat", "380015"},
		{"DHARAMSALA ROAD, IMPHAL, , Unclassified MN 000000", "DHARAMSALA ROAD, IMPHAL", "", "Manipur", ""},
		{"URIPOK WEST IMPHAL , West Imphal Unclassified MN 795001", "URIPOK WEST IMPHAL", "", "Manipur", "795001"},
		{", Unclassified ML", "", "", "Meghalaya", ""},
		{"12 MG ROAD, PUNE , Pune MH 411001", "12 MG ROAD, PUNE", "", "Maharashtra", "411001"},
		{"12 MG ROAD, Camp MH 411001", "12 MG ROAD, Camp", "", "Maharashtra", "411001"},
		{"12 MG ROAD, Camp Unclassified MH 411001", "12 MG ROAD, Camp", "", "Maharashtra", "411001"},
		{"12 MG ROAD, known as 781001", "12 MG ROAD, known as", "", "", "781001"},
		{"BARDEZ HOUSE,PANAJI 403001,PANAJI,Goa,403001-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"5 Mall Road, Shimla - 171001", "5 Mall Road, Shimla", "", "", "171001"},
		{"5 Mall Road, Shimla - 171 001.", "5 Mall Road, Shimla", "", "", "171001"},
		{"5 Mall Road, Shimla - 171001, India", "5 Mall Road, Shimla", "", "", "171001"},
		{"BARDEZ HOUSE,PANAJI,Goa,PIN: 403 001-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"BARDEZ HOUSE,PANAJI,Goa,X 403001-India", "BARDEZ HOUSE", "PANAJI", "Goa", ""},
		{"5 Mall Road", "5 Mall Road", "", "", ""},
		{"Survey No 123 456", "Survey No 123 456", "", "", ""},
		{"Raghunath Esquire, Office No. 401-404", "Raghunath Esquire, Office No. 401-404", "", "", ""},
		{"Raghunath Esquire, Office No. 401-404, India", "Raghunath Esquire, Office No. 401-404, India", "", "", ""},
		{"Raghunath Esquire,Office No. 401-404,Goa,000000-India", "Raghunath Esquire", "Office No. 401-404", "Goa", ""},
		{"Bardowali, House Number 293881, Tripura, India", "Bardowali", "House Number 293881", "Tripura", ""},
		{"5 Mall Road, P.O. Box 123456", "5 Mall Road, P.O. Box 123456", "", "", ""},
		{"BARDEZ HOUSE; PANAJI; Goa - 403001-India", "BARDEZ HOUSE; PANAJI; Goa", "", "", "403001"},
		{"BARDEZ HOUSE, PANAJI GOA 403001-India", "BARDEZ HOUSE, PANAJI GOA", "", "", "403001"},
		{"BARDEZ HOUSE, PANAJI, GOA. , North Goa Unclassified GA 000000", "BARDEZ HOUSE, PANAJI, GOA.", "", "Goa", ""},
		{"BARDEZ HOUSE,PANAJI,Goa,000000", "BARDEZ HOUSE", "PANAJI", "Goa", ""},
		{"BARDEZ\u00a0HOUSE,PANAJI 403\u00a0001,Goa,000000-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"5 Mall Road, Shimla, Tel 0177 2801234, 171001", "5 Mall Road, Shimla, Tel 0177 2801234", "", "", "171001"},
		{"Plot 4, MG Road, Panaji, Goa, India, 000000", "Plot 4, MG Road", "Panaji", "Goa", ""},
		{"5 Mall Road, Phone 022 234567", "5 Mall Road, Phone 022 234567", "", "", ""},
		{"5 Mall Road, Plot 22 403001", "5 Mall Road, Plot 22", "", "", "403001"},
		{"5 Mall Road, Tel: 223344", "5 Mall Road, Tel: 223344", "", "", ""},
		{"5 Mall Road, H.NO - 171001", "5 Mall Road, H.NO - 171001", "", "", ""},
		{"5 Mall Road, Shimla, Pin Code No. 171 001", "5 Mall Road, Shimla", "", "", "171001"},
		{"BARDEZ HOUSE,PANAJI,Goa,PIN NO 403001-India", "BARDEZ HOUSE", "PANAJI", "Goa", "403001"},
		{"5 Mall Road, Cabin No, 171001", "5 Mall Road, Cabin No", "", "", "171001"},
		{"5 Mall Road, Volvno 171001", "5 Mall Road, Volvno", "", "", "171001"},
		{"Plot 4, MG Road, Pune, Maharashtra, 411001", "Plot 4, MG Road", "Pune", "Maharashtra", "411001"},
		{"Plot 4, MG Road, PUNE, MAHARASHTRA - 411 001.", "Plot 4, MG Road", "PUNE", "Maharashtra", "411001"},
		{"Plot 4, MG Road, Pune, Maharashtra, India, 411001", "Plot 4, MG Road", "Pune", "Maharashtra", "411001"},
		{"Plot 4, MG Road, Pune, Maharashtra 411001, India", "Plot 4, MG Road", "Pune", "Maharashtra", "411001"},
		{"Plot 4, MG Road, Bhubaneswar, Orissa, India", "Plot 4, MG Road", "Bhubaneswar", "Odisha", ""},
		{"Plot 4, Okhla, New Delhi - 110020", "Plot 4, Okhla, New Delhi", "", "Delhi", "110020"},
		{"Plot 4, Okhla, New Delhi, Delhi, India - 110020", "Plot 4, Okhla", "New Delhi", "Delhi", "110020"},
		{"Plot 4, Goa, 403001", "Plot 4", "", "Goa", "403001"},
		{"Plot 4,\r\nMG Road,\nPune,\nMaharashtra,\t411001", "Plot 4, MG Road", "Pune", "Maharashtra", "411001"},
		{"Plot 4, MG Road, Pune - 411 001, Maharashtra", "Plot 4, MG Road", "Pune", "Maharashtra", "411001"},
		{"Plot 4, MG Road, Pune, 411001, Maharashtra, India", "Plot 4, MG Road", "Pune", "Maharashtra", "411001"},
		{"Plot 4, Okhla, New Delhi - 110 020, Delhi", "Plot 4, Okhla", "New Delhi", "Delhi", "110020"},
		{"5 Road\nShimla 171001", "5 Road Shimla", "", "", "171001"},
		{"PLOT 4, MG ROAD CAMP PUNE MH 411001 IN", "PLOT 4, MG ROAD CAMP PUNE", "", "Maharashtra", "411001"},
		{"Plot 4, MG Road, Pune, Maharashtra", "Plot 4, MG Road, Pune, Maharashtra", "", "", ""},
		{"5 Road, Bank of India, Atlantis, India", "5 Road, Bank of India, Atlantis, India", "", "", ""},
		{"5 Road, opposite Bank of India", "5 Road, opposite Bank of India", "", "", ""},
		{"Hotel Goa 403001", "Hotel Goa", "", "", "403001"},
		{"STAY IN", "STAY IN", "", "", ""},
		{"५ मार्ग,अंधेरी,मुंबई,Maharashtra,400001-India", "५ मार्ग, अंधेरी", "मुंबई", "Maharashtra", "400001"},
		{"५ मार्ग,मुंबई,मुंबई,Maharashtra,400001-India", "५ मार्ग", "मुंबई", "Maharashtra", "400001"},
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

// TestDistrictsAreNamed in the spellings of the register, at their place, in words, or by the city.
func TestDistrictsAreNamed(t *testing.T) {
	for in, want := range map[string]string{
		"5 Link Road,Mumbai,Mumbai City,Maharashtra,000000-India":                            "Mumbai",
		"5 Road,Alibag,Raigarh(MH),Maharashtra,000000-India":                                 "Raigad",
		"5 Road,Raigarh,Raigarh,Chhattisgarh,000000-India":                                   "Raigarh",
		"5 Road,Ooty,Nilgiris,Tamil Nadu,000000-India":                                       "The Nilgiris",
		"5 Road,Hosur,Kancheepuram,Tamil Nadu,000000-India":                                  "Kanchipuram",
		"5 Road,Avadi,Tiruvallur,Tamil Nadu,000000-India":                                    "Thiruvallur",
		"5 Road,Kashipur,Udham Singh Nagar,Uttarakhand,000000-India":                         "Udam Singh Nagar",
		"5 Road,Doddaballapur,Bangalore Rural,Karnataka,000000-India":                        "Bengaluru Rural",
		"5 Road,Amb,Una Una,Himachal Pradesh,000000-India":                                   "Una",
		"5 Road,Mysore,Mysore,Karnataka,000000-India":                                        "Mysuru",
		"5 Road,Belgaum,Belgaum,Karnataka,000000-India":                                      "Belagavi",
		"5 Road,Kovilpatti,Thoothukudi,Tamil Nadu,000000-India":                              "Tuticorin",
		"5 Road,Marthandam,Kanyakumari,Tamil Nadu,000000-India":                              "Kanniyakumari",
		"5 ROAD, KASHIPUR , Udham Singh Nagar Udham Singh Nagar Unclassified UR":             "Udam Singh Nagar",
		"Dalziel Hotel The Mall   SHIMLA,himachal pradesh,Himachal Pradesh,000000-India":     "Shimla",
		"P.O.sallewal,   DISTT. SOLAN,Himachal Pradesh,Himachal Pradesh,000000-India":        "Solan",
		"VILL. BILLANWALIBADDI   DISTT SOLAN,HIMACHAL PRADESH,Himachal Pradesh,000000-India": "Solan",
		"VILLAGESHURU   P O JAGAT SUKH,DISTT KULLU HP,Himachal Pradesh,000000-India":         "Kullu",
		"5 ROAD,MYSORE,Karnataka,000000-India":                                               "Mysuru",
		"5 BADDIDISTT SOLAN,NA,Himachal Pradesh,000000-India":                                "Solan",
		"9, BELOW GUMAT,   JAMMU.J&K,JAMMU AND KASHMIR,Jammu & Kashmir,000000-India":         "Jammu",
		"K.C.PLAZA,   RESIDENCY ROAD JAMMU (J & K),NA,Jammu & Kashmir,000000-India":          "Jammu",
		"SALAPOSE ROAD RELIEF   ROAD AHMEDABAD.,NA,Gujarat,000000-India":                     "Ahmadabad",
		"P/O BHOJPUR,   SUNDER NAGAR BHOJPUR,NA,Himachal Pradesh,000000-India":               "",
		"OPP. AHMEDABAD BANK,NA,Gujarat,000000-India":                                        "",
		"ROAD TO NEW DELHI,NA,Delhi,000000-India":                                            "",
		"ZEWAN,SRINAGAR,J&K,JAMMU AND KASHMIR,Jammu & Kashmir,000000-India":                  "Srinagar",
		"8 STREET,PONDICHERRY-605 009,NA,Pondicherry,000000-India":                           "Pondicherry",
		"HOUSE 3,Leh,Leh,Jammu & Kashmir,000000-India":                                       "Leh Ladakh",
		"HOUSE 3,HYDERABAD,Hyderabad,Andhra Pradesh,000000-India":                            "Hyderabad",
		"1 Ring Road,New Delhi,Delhi,000000-India":                                           "",
		"1 Ring Road,New Delhi,New Delhi,Delhi,000000-India":                                 "New Delhi",
		"1 Road,Somewhere,Goa,000000-India":                                                  "",
		"HISTORIC DISTRICT,PANAJI,Goa,000000-India":                                          "",
		"1 Road,Aurangabad,Goa,000000-India":                                                 "",
	} {
		a := parseAddress(in)
		require.Equal(t, want, a.named(a.state).Text, in)
	}
}

// TestSpellingsAreOfOneDistrictOfAState so that a name means one place.
func TestSpellingsAreOfOneDistrictOfAState(t *testing.T) {
	require.Greater(t, len(districts), 1200)
	known := map[string]bool{}
	for _, name := range states {
		known[name] = true
	}
	for spelling, places := range districts {
		in := map[string]bool{}
		for _, p := range places {
			require.True(t, known[p.state], p.state)
			require.False(t, in[p.state], "%s is two districts of %s", spelling, p.state)
			in[p.state] = true
		}
	}
}

// TestSpellingsAreOfOneState, and as states are looked up: of a map's equal keys an arbitrary one would win.
func TestSpellingsAreOfOneState(t *testing.T) {
	seen := map[string]string{}
	for name, others := range stateSpellings {
		require.LessOrEqual(t, len(name), maxState)
		for _, spelling := range append(strings.Fields(others), squash(name)) {
			require.Equal(t, squash(spelling), spelling, name)
			require.Empty(t, seen[spelling], "%q is also a spelling of %s", spelling, name)
			seen[spelling] = name
		}
	}
	for state, now := range formerStates {
		require.Contains(t, stateSpellings, state)
		require.Contains(t, stateSpellings, now)
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
