package source

import (
	"strings"

	"regedge/handler/ident"
	"regedge/schema/importer/record"
)

// noDIN fills the column in some files where a person has none. Read as a DIN it would make all of these one person.
const noDIN = "00000000"

// dinOf returns the canonical form of a DIN. It reports false if s is not one.
func dinOf(s string) (string, bool) {
	din, ok := ident.DIN(s)
	return din, ok && din != noDIN
}

// hasNoDIN reports whether a DIN's column says that there is none.
func hasNoDIN(s string) bool { return isNone(s) || strings.Trim(s, "0 ") == "" }

// takeDirector reads a row of our CSV of directors.
func takeDirector(s *sheet) (record.Record, error) {
	din, ok := dinOf(s.get(fieldDIN))
	if !ok {
		return record.Record{}, &rejection{badDIN, cut(s.get(fieldDIN), 20)}
	}
	v := make([]record.Value, record.DirectorColumns)
	r := reading{dates: s.dates}
	v[record.DirectorName] = r.name(s.get(fieldName))
	v[record.DirectorDisqualified] = r.flag(s.get(fieldDisqualified))
	v[record.DirectorDesignation] = cleanValue(s.get(fieldDesignation))
	v[record.DirectorAppointed] = r.date(s.get(fieldDate))
	return record.New(record.DirectorTable, v, din), r.err
}

// takeAppointment reads a row of our CSV of appointments.
func takeAppointment(s *sheet) (record.Record, error) {
	cin, ok := ident.CIN(s.get(fieldCIN))
	if !ok {
		return record.Record{}, &rejection{badCIN, cut(s.get(fieldCIN), 40)}
	}
	din, ok := dinOf(s.get(fieldDIN))
	if !ok {
		return record.Record{}, &rejection{badDIN, cut(s.get(fieldDIN), 20)}
	}
	r := reading{dates: s.dates}
	began, ended := r.date(s.get(fieldDate)), r.date(s.get(fieldEnd))
	return appointment(cin, din, s.get(fieldDesignation), began, ended, s.get(fieldReason)), r.err
}

func appointment(cin, din, designation string, began, ended record.Value, reason string) record.Record {
	v := make([]record.Value, record.AppointmentColumns)
	v[record.AppointmentDesignation] = cleanValue(designation)
	v[record.AppointmentDate] = began
	v[record.AppointmentEnd] = ended
	v[record.AppointmentCessation] = cessation(reason, ended)
	return record.New(record.AppointmentTable, v, cin, din)
}

// takePartner reads a row of our CSV of partners.
func takePartner(s *sheet) (record.Record, error) {
	llpin, ok := ident.LLPIN(s.get(fieldLLPIN))
	if !ok {
		return record.Record{}, &rejection{badLLPIN, cut(s.get(fieldLLPIN), 20)}
	}
	din := ""
	if id := s.get(fieldDIN); !hasNoDIN(id) {
		if din, ok = dinOf(id); !ok {
			return record.Record{}, &rejection{badDIN, cut(id, 20)}
		}
	}
	r := reading{dates: s.dates}
	name := r.name(s.get(fieldName))
	joined, left := r.date(s.get(fieldDate)), r.date(s.get(fieldEnd))
	status, err := partnerStatus(s.get(fieldStatus))
	r.check(status, err, s.get(fieldStatus))
	return partner(llpin, din, name, status, joined, left), r.err
}

func partner(llpin, din string, name, status, joined, left record.Value) record.Record {
	v := make([]record.Value, record.PartnerColumns)
	v[record.PartnerDIN] = record.TextOf(din)
	v[record.PartnerName] = name
	v[record.PartnerStatus] = status
	v[record.PartnerJoined] = joined
	v[record.PartnerLeft] = left
	who := din
	if who == "" {
		who = "~" + strings.ToUpper(name.Text)
	}
	return record.New(record.PartnerTable, v, llpin, who)
}
