package main

import "regedge/internal/testkit/sampletest"

// contacts are of made-up companies only: the addresses are of domains that RFC 2606
// sets aside, the numbers begin with a 0, as no subscriber's does.
func contacts() table {
	t := newTable("cin,email,phone,website")
	t.add(sampletest.CompanyEveryField, "registry@example.com", "+910987643210", "https://www.example.com")
	t.add(sampletest.CompanyGrandBoard, "board@sub.example.com", "+910224443322", "")
	t.add(sampletest.CompanyFullBoard, "", "0800111222", "http://example.org/board")
	t.add(sampletest.CompanyFallback, "x@example.in.example", "", "")
	t.add(sampletest.CompanyDocument, "", "", "https://example.net")
	t.add(statusCIN(0), "made-up+tag@example.com", "00 91 (0) 12", "www.example.com")
	return t
}
