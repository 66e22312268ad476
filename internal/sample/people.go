package main

import (
	"fmt"

	"regedge/internal/testkit/sampletest"
)

// realBoards is how many of the real companies get a made-up board.
const realBoards = 60

var (
	givenNames   = []string{"ASHA", "BHASKAR", "CHITRA", "DINESH", "ESHA", "FAROUK", "GITA", "HARISH", "INDIRA", "JOSEPH"}
	familyNames  = []string{"EXAMPLE", "SAMPLE", "SPECIMEN", "PATTERN", "MODEL", "INSTANCE", "EXHIBIT"}
	designations = []string{"Director", "Managing Director", "Whole-time director", "Independent Director",
		"Additional Director", "Nominee Director", "Alternate Director"}
)

type people struct{ directors, appointments table }

func newPeople(realCINs []string) *people {
	p := &people{
		directors:    newTable("din,name,disqualified,designation,appointment_date"),
		appointments: newTable("cin,din,designation,appointment_date,cessation_date,cessation_reason"),
	}
	p.named()
	p.boards()
	p.real(realCINs)
	return p
}

func (p *people) appoint(cin, din, designation, from string) {
	p.appointments.add(cin, din, designation, from, "", "")
}

func (p *people) named() {
	d := &p.directors
	d.add(sampletest.DirectorManyLinks, "ASHA MANY-LINKS (MADE-UP)", "false", "Director", "2000-01-01")
	d.add(sampletest.DirectorTenLinks, "BHASKAR TEN-LINKS (MADE-UP)", "false", "", "")
	d.add(sampletest.DirectorDisqualified, "CHITRA DISQUALIFIED (MADE-UP)", "true", "Director", "")
	d.add(sampletest.DirectorRemoved, "DINESH REMOVED (MADE-UP)", "false", "", "")
	d.add(sampletest.DirectorResigned, "ESHA RESIGNED (MADE-UP)", "", "", "")
	d.add(sampletest.DirectorCeased, "FAROUK CEASED (MADE-UP)", "", "", "")
	d.add(sampletest.DirectorUnlinked, "GITA UNLINKED (MADE-UP)", "", "", "")
	d.add(sampletest.DirectorGeneral, "HARISH GENERAL (MADE-UP)", "false", "Nominee Director", "2022-02-22")
	d.add(sampletest.DirectorNameOnly, "INDIRA NAME-ONLY (MADE-UP)", "", "", "")
	d.add(sampletest.DirectorElsewhere, "JOSEPH ELSEWHERE (MADE-UP)", "false", "", "")
	d.add(sampletest.DirectorReturned, "आशा उदाहरण (MADE-UP)", "false", "", "")
	d.add(sampletest.DirectorAndPartner, "O'EXAMPLE \"BOB\" BACK\\SLASH (MADE-UP)", "false", "", "")
	d.add("42", "LEADING ZERO (MADE-UP)", "false", "", "")
	d.add("00000043", "LEADING ZERO KEPT (MADE-UP)", "false", "", "")

	for i := range statuses {
		p.appoint(statusCIN(i), sampletest.DirectorManyLinks, "Director", fmt.Sprintf("2010-08-%02d", i/2+1))
	}
	for i := range 10 {
		p.appoint(statusCIN(i), sampletest.DirectorTenLinks, "", "")
	}
	for i, end := range []struct{ din, reason string }{
		{sampletest.DirectorRemoved, "removed"}, {sampletest.DirectorResigned, "resigned"}, {sampletest.DirectorCeased, ""}, {sampletest.DirectorTenLinks, "resigned"}, {sampletest.DirectorReturned, "removed"}} {
		p.appointments.add(sampletest.CompanyFormerBoard, end.din, "Director", "2009-07-15", fmt.Sprintf("2019-0%d-30", i+4), end.reason)
	}
	p.appoint(sampletest.CompanyEveryField, sampletest.DirectorReturned, "Managing Director", "2015-07-15")
	p.appoint(sampletest.CompanyEveryField, sampletest.DirectorDisqualified, "Director", "2016-01-31")
	p.appoint(sampletest.CompanyEveryField, sampletest.DirectorLeadingZeros, "Additional Director", "")
	p.appoint(sampletest.CompanyEveryField, sampletest.DirectorNotHeld, "Director", "2015-07-15")
	p.appoint(sampletest.CompanyFallback, sampletest.DirectorGeneral, "", "")
	p.appoint(sampletest.CompanyFallback, sampletest.DirectorNameOnly, "", "")
	p.appoint(sampletest.CompanyFallback, sampletest.DirectorReturned, "", "2023-03-03")
	p.appoint(sampletest.CompanyNotHeld, sampletest.DirectorElsewhere, "Director", "1999-09-09")
	p.appoint(sampletest.CompanyBare, sampletest.DirectorNameOnly, "", "")
}

// boards gives one company 57 current directors and 5 former ones, another exactly 50.
func (p *people) boards() {
	for i := range 62 {
		din := fmt.Sprintf("900010%02d", i)
		p.director(din, i)
		from := fmt.Sprintf("%d-%02d-01", 1994+(i*7)%30, i%12+1)
		if i%19 == 7 {
			from = ""
		}
		if i >= 57 {
			p.appointments.add(sampletest.CompanyGrandBoard, din, "Director", from, "2024-12-31", "resigned")
			continue
		}
		p.appoint(sampletest.CompanyGrandBoard, din, designations[i%len(designations)], from)
		if i < 50 {
			p.appoint(sampletest.CompanyFullBoard, din, "Director", "1995-07-15")
		}
	}
}

// real gives some real companies two or three made-up directors: current, not disqualified, complete.
func (p *people) real(cins []string) {
	for i := range min(realBoards, len(cins)) {
		for seat := range 2 + i%2 {
			din := fmt.Sprintf("9000%04d", 2000+i*2+seat)
			if seat < 2 {
				p.director(din, i*3+seat)
			} else {
				din = "90002000"
			}
			p.appoint(cins[i], din, designations[(i+seat)%len(designations)], fmt.Sprintf("2024-%02d-%02d", i%12+1, i%28+1))
		}
	}
	if len(cins) > 0 {
		p.appoint(cins[0], sampletest.DirectorAndPartner, "Director", "2024-04-01")
	}
}

func (p *people) director(din string, i int) {
	name := givenNames[i%len(givenNames)] + " " + familyNames[i%len(familyNames)] + " (MADE-UP)"
	p.directors.add(din, name, "false", "", "")
}
