package handler

import (
	"strings"

	"regedge/handler/fastbytes"
	"regedge/handler/ident"
)

// searchNumberStatement finds the company or LLP with exactly the number ?1.
const searchNumberStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT json_group_array(json_object('value', value, 'label', label, 'type', type)) FROM (
    SELECT cin AS value, company_name AS label, 'company' AS type FROM company WHERE cin = ?1 UNION ALL
    SELECT llpin, llp_name, 'llp' FROM llp WHERE llpin = ?1))`

// likeNumberStatement finds the names of the first companies and LLPs that have one of the numbers ?1, a JSON array,
// with the record separator between them.
const likeNumberStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT group_concat(label, char(30)) FROM (
    SELECT replace(coalesce(company_name, llp_name), char(30), ' ') AS label
    FROM json_each(?1) typed
    LEFT JOIN company ON cin = typed.value
    LEFT JOIN llp ON llpin = typed.value
    WHERE label IS NOT NULL
    ORDER BY typed.key LIMIT ` + maxNumberSuggestions + `))`

// beginNumberStatement finds the names of the first companies whose CINs begin with ?1.
const beginNumberStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT group_concat(label, char(30)) FROM (
    SELECT replace(company_name, char(30), ' ') AS label FROM company
    WHERE cin >= ?1 AND cin < ?1 || '~'
    ORDER BY cin LIMIT ` + maxNumberSuggestions + `))`

// endNumberStatement finds the names of the first companies whose CINs end with ?1, which is a CIN without its listing
// letter and industry. It steps through the existing pairs of listing letter and industry, some thousands, and looks up
// each with ?1.
const endNumberStatement = `
WITH RECURSIVE industry (begin) AS (
  SELECT (SELECT substr(min(cin), 1, 6) FROM company)
  UNION ALL
  SELECT (SELECT substr(cin, 1, 6) FROM company WHERE cin > begin || '~' ORDER BY cin LIMIT 1) FROM industry
  WHERE begin IS NOT NULL
  LIMIT ` + maxBegins + `)
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT group_concat(label, char(30)) FROM (
    SELECT replace(company_name, char(30), ' ') AS label
    FROM industry CROSS JOIN company ON cin = begin || ?1
    LIMIT ` + maxNumberSuggestions + `))`

// maxBegins bounds the pairs of listing letter and industry that a search steps through. The 54,000 companies of the
// official files have 2,391; 12,000 take 26 ms.
const maxBegins = "10000"

// maxNumberSuggestions is names.MaxSuggestions, in SQL.
const maxNumberSuggestions = "3"

// numberIn returns the canonical form of a name that is a CIN or LLPIN, or contains a CIN; else "". In a
// CIN only letters and digits count: people paste "CIN: U12345 MH 2010 PTC 123456". An LLPIN needs a
// hyphen or nothing in its middle, or "LLPIN" before it: "abc 1234" may be a name.
func numberIn(name string) string {
	only := lettersAndDigits(name)
	if number, said := strings.CutPrefix(only, "LLPIN"); said || isInOnePiece(name) {
		if llpin, ok := ident.LLPIN(number); ok {
			return llpin
		}
	}
	for at := 0; at+ident.CINLength <= len(only); at++ {
		if cin, ok := ident.CIN(only[at : at+ident.CINLength]); ok {
			return cin
		}
	}
	return ""
}

// lettersAndDigits returns the ASCII letters and digits of a text, also full-width ones, in upper case.
func lettersAndDigits(s string) string {
	const wide = '！' - '!'
	kept := make([]byte, 0, len(s))
	for _, r := range s {
		if r > wide {
			r -= wide
		}
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			kept = append(kept, byte(r))
		}
	}
	return fastbytes.Upper(string(kept))
}

// isInOnePiece reports whether a text has no separators, or at least a dash among them.
func isInOnePiece(s string) bool {
	s = strings.Trim(s, " .,;:()\"'")
	return !strings.ContainsAny(s, " \t\u00a0.,;:/_") || strings.ContainsAny(s, "-‐‑–—")
}

// likeNumber suggests the names of records whose number resembles, begins or ends with the one given instead of a name.
// It reports whether it has an answer: suggestions, or a failure.
func (c *call) likeNumber(name string) (answer, bool) {
	only := lettersAndDigits(name)
	statement, number := partOfNumber(only)
	if statement == "" {
		numbers := numbersLike(only)
		if numbers == nil {
			return answer{}, false
		}
		statement, number = likeNumberStatement, `["`+strings.Join(numbers, `","`)+`"]`
	}
	row, failure := c.read(statement, text(number))
	if row == nil {
		return failure, true
	}
	if row[0].Text == "" {
		return answer{}, false
	}
	c.suggestions = headerList(strings.Split(row[0].Text, "\x1e"))
	return nothing(), true
}

// Least lengths of a part of a CIN that finds companies: a beginning reaches at least to the year, an end from the
// state on.
const (
	beginLength = 12
	endLength   = 15
)

// partOfNumber returns the statement that finds companies by the part of a CIN given, and its argument; "" for any
// other text. A text that lacks just one character is left to numbersLike, as a number with a mistake.
func partOfNumber(only string) (statement, part string) {
	only = strings.TrimPrefix(only, "CIN")
	if len(only) < beginLength || len(only) >= ident.CINLength-1 {
		return "", ""
	}
	const example = "U00000AA0000AAA000000"
	if _, ok := ident.CIN(only + example[len(only):]); ok {
		return beginNumberStatement, only
	}
	cin, ok := ident.CIN(example[:len(example)-len(only)] + only)
	if ok && len(only) >= endLength {
		return endNumberStatement, cin[len(cin)-endLength:]
	}
	return "", ""
}

// numbersLike returns the numbers that may have been meant by an unknown one, likely ones first: an LLPIN as it is, or
// the CINs that differ in look-alikes, in one part, in one digit, or by one character too many or too few. It returns
// nil for text that is no number.
func numbersLike(only string) []string {
	if llpin, ok := ident.LLPIN(only); ok {
		return []string{llpin}
	}
	only = strings.TrimPrefix(only, "CIN")
	const fewestDigits, fewestLetters = 12, 3 // of 15 and 6
	if len(only) < ident.CINLength-1 || len(only) > ident.CINLength+1 ||
		countDigits(ident.Legible(only)) < fewestDigits || len(only)-countDigits(only) < fewestLetters {
		return nil
	}
	var l numberList
	switch len(only) {
	case ident.CINLength:
		l.other(only)
		l.other(ident.Legible(only))
	case ident.CINLength - 1:
		for at := range ident.CINLength {
			for _, c := range []byte("UL0123456789") {
				l.add(only[:at] + string(rune(c)) + only[at:])
			}
		}
	default:
		for at := range len(only) {
			l.add(only[:at] + only[at+1:])
		}
	}
	return l.numbers
}

func countDigits(s string) (n int) {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

// numberList collects CINs, each once.
type numberList struct{ numbers []string }

// add adds a text if it is a CIN. A linear search is enough: the lists are short, and few queries make one.
func (l *numberList) add(s string) {
	if cin, ok := ident.CIN(s); ok {
		for _, known := range l.numbers {
			if known == cin {
				return
			}
		}
		l.numbers = append(l.numbers, cin)
	}
}

// stateCodes and ownerships are the codes in CINs, without separators.
const (
	stateCodes = "MHDLKATNUPGJTGWBHRRJKLMPPBBRORCTAPJHASUKHPJKGACHPYMLMNTRNLARMZSKANDNDDLDLHLAURTZ"
	ownerships = "PTCPLCOPCNPLFTCFLCSGCGOIULTULLGATGAPPLN"
)

// other adds a CIN, and all that differ from it in one part.
func (l *numberList) other(cin string) {
	l.add(cin)
	for _, listing := range []string{"U", "L"} {
		l.add(listing + cin[1:])
	}
	for at := 0; at < len(ownerships); at += 3 {
		l.add(cin[:12] + ownerships[at:at+3] + cin[15:])
	}
	for at := 1; at < len(cin); at++ { // neighbours swapped
		l.add(cin[:at-1] + cin[at:at+1] + cin[at-1:at] + cin[at+1:])
	}
	for at := 0; at < len(stateCodes); at += 2 {
		l.add(cin[:6] + stateCodes[at:at+2] + cin[8:])
	}
	for at := range len(cin) {
		for _, digit := range "0123456789" {
			l.add(cin[:at] + string(digit) + cin[at+1:])
		}
	}
}
