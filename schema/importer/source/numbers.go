package source

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"regedge/handler/ident"
	"regedge/schema/importer/record"
)

// cinOf returns the canonical form of a CIN, ignoring the characters that bare drops. It
// reports false if s is not a CIN.
func cinOf(s string) (string, bool) {
	if cin, ok := ident.CIN(s); ok {
		return cin, true
	}
	return ident.CIN(bare(s))
}

// llpinOf is the same for an LLPIN.
func llpinOf(s string) (string, bool) {
	if llpin, ok := ident.LLPIN(s); ok {
		return llpin, true
	}
	return ident.LLPIN(bare(s))
}

// noDIN stands in some files for a person without a DIN. Read as a DIN, it would merge all
// of them into one person.
const noDIN = "00000000"

// dinOf is the same for a DIN. Some spreadsheets append ".0". A DIN with blanks inside must
// have all its digits.
func dinOf(s string) (string, bool) {
	din, ok := ident.DIN(s)
	if !ok {
		plain := bare(s)
		whole, isFraction := strings.CutSuffix(plain, ".0")
		if isFraction || len(plain) == ident.DINLength || len(strings.Fields(s)) == 1 {
			din, ok = ident.DIN(whole)
		}
	}
	return din, ok && din != noDIN
}

// pincodeOf reads a column of pincodes, as spreadsheets leave them: with blanks, an apostrophe or ".0".
func pincodeOf(s string) record.Value { return parsePincode(strings.TrimSuffix(bare(s), ".0")) }

// hasNoDIN reports whether a DIN's column says that there is none.
func hasNoDIN(s string) bool { return isNone(s) || strings.Trim(s, "0 ") == "" }

// bare returns a number with hyphens for dashes, and without blanks, invisible characters (common on web pages), and a
// leading apostrophe (a spreadsheet's mark for text).
func bare(s string) string {
	s = strings.Map(func(c rune) rune {
		if isDash(c) {
			return '-'
		}
		if unicode.IsSpace(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, s)
	return strings.TrimPrefix(s, "'")
}

// isDash reports whether a character is a dash that stands for a hyphen, as word processors and PDF documents have it.
func isDash(c rune) bool { return c >= '\u2010' && c <= '\u2013' || c == '\u2212' }

// hyphened returns a text with hyphens for dashes.
func hyphened(s string) string {
	return strings.Map(func(c rune) rune {
		if isDash(c) {
			return '-'
		}
		return c
	}, s)
}

// shown is a number for a reject, of at most max bytes. Non-ASCII letters are escaped, since
// a Cyrillic letter may look like a Latin one.
func shown(number string, max int) string {
	switch {
	case strings.TrimSpace(number) == "":
		return "empty"
	case strings.IndexFunc(number, func(c rune) bool { return c >= utf8.RuneSelf }) >= 0:
		number = strconv.QuoteToASCII(number)
	}
	return cut(number, max)
}
