package handler

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"regedge/handler/ident"
)

// mistaken is the refusal of what is no CIN, DIN or LLPIN, as code says. It says more where it can: that it is another of
// these, and the path for that; of a CIN also which of its characters is wrong, or how many it has.
func mistaken(code, given string) answer {
	_, isCIN := ident.CIN(given)
	_, isDIN := ident.DIN(given)
	_, isLLPIN := ident.LLPIN(given)
	switch {
	case isCIN:
		return failed(code, "This is a CIN, the number of a company. Perhaps /v1/companies/{cin} is meant.")
	case isDIN:
		return failed(code, "This is a DIN, the number of a director. Perhaps /v1/directors/{din} is meant.")
	case isLLPIN:
		return failed(code, "This is an LLPIN, the number of an LLP. Perhaps /v1/llps/{llpin} is meant.")
	case code != InvalidCIN || strings.Contains(given, "%"): // not every host gives what is badly escaped as the same text
		return failed(code, "")
	}
	form, _ := FindProblem(InvalidCIN)
	given = strings.TrimSpace(given)
	if length := utf8.RuneCountInString(given); length != ident.CINLength {
		return failed(code, form.Detail+" This one has "+strconv.Itoa(length)+".")
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
