package main

import (
	"fmt"

	"regedge/internal/testkit/sampletest"
)

// monthlyLLPs is a monthly list of incorporations.
func monthlyLLPs() table {
	t := newTable("LLPIN,LLP Name,Founded,Roc Location,Status,Industrial Activity,Activity Description,Description," +
		"Obligation Of Contribution,Number Of Partners,Number Of Designated Partners,State,District,Address")
	for i := range 12 {
		t.add(fmt.Sprintf("AAZ-92%02d", i), fmt.Sprintf("MONTHLY LIST %c (MADE-UP) LLP", 'A'+i), fmt.Sprintf("%02d-04-2025", i+1),
			"ROC Mumbai", "Active", "69", "Legal and accounting activities", "Accounting, bookkeeping and auditing activities",
			"100000", "2", "2", "Maharashtra", "Mumbai", "15 MADE-UP ROAD, MUMBAI, Mumbai, Maharashtra, 400001")
	}
	t.add("AAZ9212", "WITHOUT A HYPHEN (MADE-UP) LLP", "30-04-2025", "", "", "", "", "", "", "", "", "", "", "")
	t.rows[12][4] = "Active"
	return t
}

// plainLLPs has every status, and what the other files need.
func plainLLPs() table {
	t := newTable("llpin,llp_name,status,incorporation_date,main_division,business_activity,contribution,address_line,city,state,pincode")
	t.add(sampletest.LLPEveryField, "EVERY FIELD (MADE-UP) LLP", "Active", "2018-01-09", "Computer programming, consultancy and related activities",
		"Business Services", "500000", "16 MADE-UP ROAD", "Bangalore", "Karnataka", "560001")
	t.add(sampletest.LLPManyPartners, "MANY PARTNERS (MADE-UP) LLP", "Active", "2012-12-12", "", "Legal services", "99999999999", "17 MADE-UP ROAD", "Mumbai", "Maharashtra", "400001")
	t.add(sampletest.LLPFiftyPartners, "FIFTY PARTNERS (MADE-UP) LLP", "Active", "2013-03-13", "", "", "100000", "", "Chennai", "Tamil Nadu", "600999")
	t.add(sampletest.LLPBare, "BARE (MADE-UP) LLP", "Inactive", "", "", "", "", "", "", "", "")
	for i, status := range append([]string{"Suspended"}, statuses...) {
		t.add(fmt.Sprintf("AAZ-91%02d", i), fmt.Sprintf("STATUS %d (MADE-UP) LLP", i), status, "2017-07-17", "", "Trading", "10000",
			"18 MADE-UP ROAD", "New Delhi", "Delhi", "110001")
	}
	t.add("AAZ-9030", "ZEPHYRINE ADVISORS (MADE-UP) LLP", "Active", "2021-01-21", "", "", "10000", "19 MADE-UP ROAD", "Panaji", "Goa", "403001")
	t.add("AAZ-9031", "कमल \"QUOTED\" BACK\\SLASH (MADE-UP) LLP", "Active", "2021-02-22", "", "", "10000", "", "", "", "")
	return t
}

// partners covers every status, past partners, and partners without a DIN.
func partners() table {
	t := newTable("llpin,din,name,status,joined_on,left_on")
	t.add(sampletest.LLPEveryField, sampletest.DirectorAndPartner, "O'EXAMPLE \"BOB\" BACK\\SLASH (MADE-UP)", "Active", "2018-01-09", "")
	t.add(sampletest.LLPEveryField, "90000013", "PAST PARTNER (MADE-UP)", "Active", "2018-01-09", "2020-02-29")
	t.add(sampletest.LLPEveryField, "90000014", "RETIRED PARTNER (MADE-UP)", "Retired", "2019-05-05", "")
	t.add(sampletest.LLPEveryField, "90000015", "INACTIVE PARTNER (MADE-UP)", "Inactive", "2019-05-05", "")
	t.add(sampletest.LLPEveryField, "", "PARTNER COMPANY (MADE-UP) LIMITED", "", "", "")
	t.add(sampletest.LLPEveryField, "44", "LEADING ZERO PARTNER (MADE-UP)", "", "2022-02-02", "")
	for i := range 57 {
		din, joined, left := fmt.Sprintf("900030%02d", i), fmt.Sprintf("%d-%02d-15", 2012+i%11, i%12+1), ""
		switch i % 9 {
		case 4:
			joined = ""
		case 5:
			left = "2024-03-31"
		case 6:
			din = ""
		}
		t.add(sampletest.LLPManyPartners, din, fmt.Sprintf("%s PARTNER %02d (MADE-UP)", givenNames[i%len(givenNames)], i), "", joined, left)
		if i < 50 {
			t.add(sampletest.LLPFiftyPartners, fmt.Sprintf("900031%02d", i), fmt.Sprintf("FIFTY PARTNER %02d (MADE-UP)", i), "Active", "2013-03-13", "")
		}
	}
	t.add("AAZ9030", "90000016", "WITHOUT A HYPHEN (MADE-UP)", "", "2021-01-21", "")
	t.add(sampletest.LLPNotHeld, "90000017", "ELSEWHERE PARTNER (MADE-UP)", "Active", "2021-01-21", "")
	return t
}
