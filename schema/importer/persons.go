package importer

import (
	"strings"

	"regedge/handler/ident"
)

// takeDirector reads a row of our CSV of directors.
func takeDirector(s *sheet) (record, error) {
	din, ok := ident.DIN(s.get(fieldDIN))
	if !ok {
		return record{}, &rejection{badDIN, cut(s.get(fieldDIN), 20)}
	}
	v := make([]value, directorColumns)
	r := reading{dates: s.dates}
	v[directorName] = r.name(s.get(fieldName))
	v[directorDisqualified] = r.flag(s.get(fieldDisqualified))
	v[directorDesignation] = cleanValue(s.get(fieldDesignation))
	v[directorAppointed] = r.date(s.get(fieldDate))
	return record{directorTable, [2]string{din}, v}, r.err
}

// takeAppointment reads a row of our CSV of appointments.
func takeAppointment(s *sheet) (record, error) {
	cin, ok := ident.CIN(s.get(fieldCIN))
	if !ok {
		return record{}, &rejection{badCIN, cut(s.get(fieldCIN), 40)}
	}
	din, ok := ident.DIN(s.get(fieldDIN))
	if !ok {
		return record{}, &rejection{badDIN, cut(s.get(fieldDIN), 20)}
	}
	r := reading{dates: s.dates}
	began, ended := r.date(s.get(fieldDate)), r.date(s.get(fieldEnd))
	return appointment(cin, din, s.get(fieldDesignation), began, ended, s.get(fieldReason)), r.err
}

func appointment(cin, din, designation string, began, ended value, reason string) record {
	v := make([]value, appointmentColumns)
	v[appointmentDesignation] = cleanValue(designation)
	v[appointmentDate] = began
	v[appointmentEnd] = ended
	v[appointmentCessation] = cessation(reason, ended)
	return record{appointmentTable, [2]string{cin, din}, v}
}

// takePartner reads a row of our CSV of partners.
func takePartner(s *sheet) (record, error) {
	llpin, ok := ident.LLPIN(s.get(fieldLLPIN))
	if !ok {
		return record{}, &rejection{badLLPIN, cut(s.get(fieldLLPIN), 20)}
	}
	din := ""
	if id := s.get(fieldDIN); !isNone(id) {
		if din, ok = ident.DIN(id); !ok {
			return record{}, &rejection{badDIN, cut(id, 20)}
		}
	}
	r := reading{dates: s.dates}
	name := r.name(s.get(fieldName))
	joined, left := r.date(s.get(fieldDate)), r.date(s.get(fieldEnd))
	status, err := partnerStatus(s.get(fieldStatus))
	r.check(status, err, s.get(fieldStatus))
	return partner(llpin, din, name, status, joined, left), r.err
}

func partner(llpin, din string, name, status, joined, left value) record {
	v := make([]value, partnerColumns)
	v[partnerDIN] = textValue(din)
	v[partnerName] = name
	v[partnerStatusColumn] = status
	v[partnerJoined] = joined
	v[partnerLeft] = left
	who := din
	if who == "" {
		who = "~" + strings.ToUpper(name.s)
	}
	return record{partnerTable, [2]string{llpin, who}, v}
}
