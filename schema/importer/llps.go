package importer

import (
	"strings"

	"regedge/handler/ident"
)

// takeLLP reads a row of our CSV of LLPs.
func takeLLP(s *sheet) (record, error) {
	rec, err := s.llp()
	if err != nil {
		return rec, err
	}
	v := rec.values
	v[llpMainDivision] = cleanValue(s.get(fieldDivision))
	v[llpActivity] = cleanValue(s.get(fieldActivity))
	v[llpLine] = cleanValue(s.get(fieldLine))
	v[llpCity] = cleanValue(s.get(fieldCity))
	v[llpState] = stateName(s.get(fieldState))
	v[llpPincode] = parsePincode(s.get(fieldPincode))
	if v[llpPincode].kind == null && !isNone(s.get(fieldPincode)) {
		s.out.note("pincode")
	}
	return rec, nil
}

// takeListedLLP reads a row of a monthly incorporation list. Its activity is the first
// that is words of the description of the activity, the description, and the industrial
// activity, which is a bare number in some lists.
func takeListedLLP(s *sheet) (record, error) {
	rec, err := s.llp()
	if err != nil {
		return rec, err
	}
	v := rec.values
	for _, f := range []field{fieldActivity, fieldActivityText, fieldActivityCode} {
		if activity := s.get(f); strings.Trim(activity, "0123456789. ") != "" {
			v[llpActivity] = orElse(v[llpActivity], cleanValue(activity))
		}
	}
	a := parseAddress(s.get(fieldAddress))
	v[llpLine], v[llpCity], v[llpPincode] = a.line, a.city, a.pincode
	v[llpState] = orElse(stateName(s.get(fieldState)), a.state)
	return rec, nil
}

// llp reads what both formats of LLPs have.
func (s *sheet) llp() (record, error) {
	llpin, ok := ident.LLPIN(s.get(fieldLLPIN))
	if !ok {
		return record{}, &rejection{badLLPIN, cut(s.get(fieldLLPIN), 20)}
	}
	v := make([]value, llpColumns)
	r := reading{dates: s.dates}
	v[llpName] = r.name(s.get(fieldName))
	v[llpStatusColumn] = r.status(llpStatus, s.get(fieldStatus))
	v[llpIncorporation] = r.date(s.get(fieldDate))
	v[llpContribution] = r.capital(s.get(fieldContribution))
	return record{llpTable, [2]string{llpin}, v}, r.err
}
