package source

import (
	"strings"

	"regedge/schema/importer/record"
)

// takeDirector reads a row of our CSV of directors.
func takeDirector(s *sheet) (record.Record, error) {
	din, ok := dinOf(s.get(fieldDIN))
	if !ok {
		return record.Record{}, &rejection{badDIN, shown(s.get(fieldDIN), 20)}
	}
	v := make([]record.Value, record.DirectorColumns)
	r := reading{dates: s.dates}
	v[record.DirectorName] = r.name(s.get(fieldName))
	v[record.DirectorDisqualified] = r.flag(r.of(s, fieldDisqualified))
	v[record.DirectorDesignation] = cleanValue(s.get(fieldDesignation))
	v[record.DirectorAppointed] = r.date(r.of(s, fieldDate))
	return record.New(record.DirectorTable, v, din), r.err
}

// takeAppointment reads a row of our CSV of appointments.
func takeAppointment(s *sheet) (record.Record, error) {
	cin, ok := cinOf(s.get(fieldCIN))
	if !ok {
		return record.Record{}, &rejection{badCIN, shown(s.get(fieldCIN), 40)}
	}
	din, ok := dinOf(s.get(fieldDIN))
	if !ok {
		return record.Record{}, &rejection{badDIN, shown(s.get(fieldDIN), 20)}
	}
	if given := s.get(fieldDesignation); s.isLikeDate(given) { // the row lacks a field before it
		return record.Record{}, &rejection{"date as a designation", shown(given, 20)}
	}
	r := reading{dates: s.dates}
	began, ended := r.date(r.of(s, fieldDate)), r.end(r.of(s, fieldEnd))
	s.likely.noteEnd(began, ended)
	return appointment(cin, din, s.get(fieldDesignation), began, ended, s.get(fieldReason)), r.err
}

// isLikeDate reports whether a text is a date, or consists of numbers with separators, like a date whose day can't be
// told from its month.
func (s *sheet) isLikeDate(text string) bool {
	if date, err := (dateReader{asOf: s.dates.asOf}).parse(text, 0); err == nil && date.Kind == record.Text {
		return true
	}
	digits := strings.Trim(text, "0123456789-/. ") == "" && !isZero(text)
	return digits && strings.ContainsAny(text, "-/.") && strings.ContainsAny(text, "0123456789")
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
	llpin, ok := llpinOf(s.get(fieldLLPIN))
	if !ok {
		return record.Record{}, &rejection{badLLPIN, shown(s.get(fieldLLPIN), 20)}
	}
	din := ""
	if id := s.get(fieldDIN); !hasNoDIN(id) {
		if din, ok = dinOf(id); !ok {
			return record.Record{}, &rejection{badDIN, shown(id, 20)}
		}
	}
	r := reading{dates: s.dates}
	name := r.name(s.get(fieldName))
	joined, left := r.date(r.of(s, fieldDate)), r.end(r.of(s, fieldEnd))
	s.likely.noteEnd(joined, left)
	status, err := partnerStatus(s.get(fieldStatus))
	r.check(status, err, r.of(s, fieldStatus))
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
