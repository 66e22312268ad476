// Package ident reads and writes the identifiers of the service: CIN, DIN and LLPIN of
// the register (design section 9) and the API keys (specification section 5). It has no
// dependencies, so that the component, the importers and the writer share it.
package ident

import "strings"

// CINLength, DINLength and LLPINLength are the lengths of the written forms, in bytes.
const (
	CINLength   = 21
	DINLength   = 8
	LLPINLength = 8
)

// cinPattern holds one class for each place of a CIN: A a letter, 9 a digit. Industry,
// state, year, ownership and registration number follow the listing letter.
const cinPattern = "A99999AA9999AAA999999"

// CIN returns the written form of a Corporate Identification Number: trimmed, in upper
// case. It reports false when s is not one.
func CIN(s string) (string, bool) {
	s = trim(s)
	if len(s) != CINLength {
		return "", false
	}
	s = upper(s)
	for i := 0; i < CINLength; i++ {
		if cinPattern[i] == 'A' && !isUpper(s[i]) || cinPattern[i] == '9' && !isDigit(s[i]) {
			return "", false
		}
	}
	return s, true
}

// RegistrationNumber is the last six characters of a CIN in its written form.
func RegistrationNumber(cin string) string { return cin[len(cin)-6:] }

// DIN returns the written form of a Director Identification Number: 8 digits, padded on
// the left, since spreadsheets drop leading zeros. It reports false unless s holds 1 to
// 8 digits.
func DIN(s string) (string, bool) {
	s = trim(s)
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

// MaxLLPIN bounds the LLPIN parameter before it is looked at, in bytes (specification
// section 4, rule 5).
const MaxLLPIN = 20

// LLPIN returns the written form of an LLP Identification Number: three letters, a
// hyphen, four digits, in upper case. The hyphen may be left out. It reports false when
// s is not one.
func LLPIN(s string) (string, bool) {
	if len(s) > MaxLLPIN {
		return "", false
	}
	s = trim(s)
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
	s = upper(s)
	for i := 0; i < len(s); i++ {
		if i < 3 && !isUpper(s[i]) || i >= 3 && !isDigit(s[i]) {
			return "", false
		}
	}
	return s[:3] + "-" + s[3:], true
}

func trim(s string) string { return strings.Trim(s, " \t\r\n\v\f") }

// upper is ASCII only: letters of other scripts never become ASCII letters.
func upper(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'a' && s[i] <= 'z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'a' && b[i] <= 'z' {
					b[i] -= 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
