package handler

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"regedge/handler/ident"
)

// mistaken is the refusal of what is no CIN, DIN or LLPIN, as code says. It says more where it can: that it is another of
// these, and the path for that, or a PAN or GSTIN; of a CIN also which of its characters is wrong, or how many it has.
func mistaken(code, given string) answer {
	only := lettersAndDigits(given)
	_, isCIN := ident.CIN(only)
	_, isDIN := ident.DIN(given)
	_, isLLPIN := ident.LLPIN(given)
	switch {
	case strings.Contains(given, "%"): // not every host gives what is badly escaped as the same text
		return failed(code, "")
	case isCIN && code != InvalidCIN:
		return failed(code, "This is a CIN, the number of a company. Perhaps /v1/companies/{cin} is meant.")
	case isDIN:
		return failed(code, "This is a DIN, the number of a director. Perhaps /v1/directors/{din} is meant.")
	case isLLPIN:
		return failed(code, "This is an LLPIN, the number of an LLP. Perhaps /v1/llps/{llpin} is meant.")
	case isTaxNumber(only):
		return failed(code, "This is a PAN or a GSTIN, which the registry does not have. /v1/search/companies?name= finds a company or an LLP by its name.")
	case code != InvalidCIN:
		return failed(code, "")
	}
	form, _ := FindProblem(InvalidCIN)
	given = strings.TrimSpace(given)
	if length := utf8.RuneCountInString(given); length != ident.CINLength {
		detail := form.Detail + " This one has " + strconv.Itoa(length) + "."
		if isCIN {
			detail += " Its letters and digits alone are a CIN."
		}
		return failed(code, detail)
	}
	place := 1 // of the first wrong character, counted from 1: what is before it may begin a CIN
	for ; place < ident.CINLength; place++ {
		if _, ok := ident.CIN(given[:place] + SandboxCompany[place:]); !ok {
			break
		}
	}
	kind := "letter"
	if SandboxCompany[place-1] <= '9' {
		kind = "digit"
	}
	return failed(code, form.Detail+" Character "+strconv.Itoa(place)+" of this one is not a "+kind+".")
}

// isTaxNumber reports whether letters and digits are a PAN, as AAACA1234B, or a GSTIN, which has one after the code of the state.
func isTaxNumber(s string) bool {
	const pan, gstin = "AAAAA0000A", 15
	if len(s) == gstin && s[0] <= '9' && s[1] <= '9' {
		s = s[2:][:len(pan)]
	}
	if len(s) != len(pan) {
		return false
	}
	for i := range len(pan) {
		if s[i] <= '9' != (pan[i] <= '9') {
			return false
		}
	}
	return true
}
