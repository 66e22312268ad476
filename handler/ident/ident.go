package ident

import (
	"strings"

	"regedge/handler/fastbytes"
)

// Lengths of the canonical forms, in bytes.
const (
	CINLength   = 21
	DINLength   = 8
	LLPINLength = 8
)

// cinPattern has the class of each character of a CIN: A a letter, 9 a digit. The listing
// letter is followed by industry, state, year, ownership and registration number.
const cinPattern = "A99999AA9999AAA999999"

// CIN returns the canonical form of a Corporate Identification Number: trimmed, in upper
// case. It reports false if s is not one.
func CIN(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) != CINLength {
		return "", false
	}
	s = fastbytes.Upper(s)
	for i := 0; i < CINLength; i++ {
		if cinPattern[i] == 'A' && !isUpper(s[i]) || cinPattern[i] == '9' && !isDigit(s[i]) {
			return "", false
		}
	}
	return s, true
}

// Legible corrects look-alikes in a text of about CINLength characters: a letter that looks like a digit
// becomes that digit where a CIN has digits, and the reverse.
func Legible(s string) string {
	const digitLike, letterLike = "O0I1L1S5Z2B8Q0", "0O1I5S2Z8B"
	b := []byte(s)
	for i := range b {
		pairs := letterLike
		if i >= CINLength || cinPattern[i] == '9' {
			pairs = digitLike
		}
		for p := 0; p < len(pairs); p += 2 {
			if b[i] == pairs[p] {
				b[i] = pairs[p+1]
				break
			}
		}
	}
	return string(b)
}

// RegistrationNumber returns the last six characters of a CIN in its canonical form.
func RegistrationNumber(cin string) string { return cin[len(cin)-6:] }

// DIN returns the canonical form of a Director Identification Number: 8 digits, padded with
// zeros on the left, since spreadsheets drop them. It reports false unless s has 1 to 8
// digits.
func DIN(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > DINLength {
		return "", false
	}
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return "", false
		}
	}
	return "00000000"[len(s):] + s, true
}

// MaxLLPIN bounds the LLPIN parameter as it arrives, in bytes (docs/contract.md,
// "Parameters").
const MaxLLPIN = 20

// LLPIN returns the canonical form of an LLP Identification Number: three letters, a hyphen,
// four digits, in upper case. s may lack the hyphen. It reports false if s is not one.
func LLPIN(s string) (string, bool) {
	if len(s) > MaxLLPIN {
		return "", false
	}
	s = strings.TrimSpace(s)
	switch len(s) {
	case LLPINLength:
		if s[3] != '-' {
			return "", false
		}
		s = s[:3] + s[4:]
	case LLPINLength - 1:
	default:
		return "", false
	}
	s = fastbytes.Upper(s)
	for i := 0; i < len(s); i++ {
		if i < 3 && !isUpper(s[i]) || i >= 3 && !isDigit(s[i]) {
			return "", false
		}
	}
	return s[:3] + "-" + s[3:], true
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
