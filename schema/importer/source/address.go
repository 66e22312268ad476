package source

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"regedge/schema/importer/record"
)

// address is a registered office in parts. The district is as the source spells it. It is used if the
// directory lacks the office's pincode, or there is none.
type address struct {
	line       record.Value
	city       record.Value
	state      record.Value
	pincode    record.Value
	district   string
	oddPincode bool // there is a number at the pincode's place that is not a pincode

	cityFromColumn bool // of its own: the last line may name another place
}

// named returns the district that the address names, as the post office directory spells it: in the
// district's position, after "Dist.", or from its city, which is the last line, or the end of it, if the address
// gives no city. state is the record's.
func (a *address) named(state record.Value) record.Value {
	name := districtOf(a.district, state.Text)
	if name == "" {
		name = saidDistrict(a.line.Text, state.Text)
	}
	if name == "" {
		name = saidDistrict(a.city.Text, state.Text)
	}
	if name == "" {
		name = cityDistrict(a.city.Text, state.Text)
	}
	if name == "" && (a.city.Kind == record.Null || a.cityFromColumn) {
		last := a.lastLine(state.Text)
		if name = cityDistrict(last, state.Text); name == "" {
			name = endDistrict(last, state.Text)
		}
	}
	return record.TextOf(name)
}

// lastLine returns the last line that is not the state.
func (a *address) lastLine(state string) string {
	for line := a.line.Text; line != ""; {
		comma := strings.LastIndexByte(line, ',')
		last := strings.Trim(line[comma+1:], " ().")
		if states[squash(last)] != state || districtOf(last, state) != "" {
			return last
		}
		line = line[:max(comma, 0)]
	}
	return ""
}

// parseAddress splits the address of a bulk file, which is one text (docs/import-formats.md,
// "Addresses"):
//
//	<lines>,<city>[,<district>],<state>,<pincode>-India      the current export
//	<line> , [<district>] Unclassified <ST> [<pincode>]      the older export
//	<lines>, <city>, <state>[, India][, <pincode>]           as on letters, with one of the two
//
// Any other text becomes the line, with a pincode if it ends in one, perhaps before the country.
func parseAddress(s string) address {
	if strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) {
		s = withHyphens(visible(decodedTwice(s)))
	}
	if strings.IndexByte(s, '<') >= 0 {
		s = lineBreaks.ReplaceAllString(s, " ")
	}
	if isNoText(s) {
		return address{}
	}
	if strings.ContainsRune(s, '\uFFFD') {
		s = mendSigns(s)
	}
	s = wholePincode(strings.TrimSpace(cellLines.Replace(s)))
	if body, ok := cutSuffixFold(s, "india"); ok {
		if body, ok = strings.CutSuffix(strings.TrimRight(body, " "), "-"); ok && isCurrent(body) {
			return parseCurrentAddress(body)
		}
	}
	body := withoutCountry(s)
	if comma := strings.LastIndexByte(body, ','); strings.TrimSpace(body[comma+1:]) == "000000" { // without "-India"
		return parseCurrentAddress(withoutCountry(body[:max(comma, 0)]) + body[max(comma, 0):])
	}
	if body, ok := strings.CutSuffix(s, " IN"); ok && isPincode(lastWord(body)) { // the portal's "… PUNE MH 411001 IN"
		s = body
	}
	if a, ok := parseOlderAddress(s); ok {
		return a
	}
	if a, ok := parseLetterAddress(s); ok {
		return a
	}
	if line, pincode := cutPincode(withoutCountry(s)); pincode.Kind != record.Null {
		return address{line: joinLines(splitLines(line)), pincode: pincode}
	}
	return address{line: joinLines(splitLines(s))}
}

// rangeOfNumbers matches a range such as 401–404, whose halves look like those of a pincode. Its dash stays.
var rangeOfNumbers = regexp.MustCompile(`(^|\D)\d{3} *[\x{2010}-\x{2014}\x{2212}] *\d{3}(\D|$)`)

// withHyphens returns an address with hyphens for dashes, but for those of such ranges.
func withHyphens(s string) string {
	var b strings.Builder
	from, hyphens := 0, func(part string) { b.WriteString(strings.ReplaceAll(hyphened(part), "—", "-")) }
	for _, at := range rangeOfNumbers.FindAllStringIndex(s, -1) {
		hyphens(s[from:at[0]])
		b.WriteString(s[at[0]:at[1]])
		from = at[1]
	}
	hyphens(s[from:])
	return b.String()
}

// lineBreaks matches the line breaks of a web page within an address.
var lineBreaks = regexp.MustCompile(`(?i)<br\s*/?>`)

// isCurrent reports whether an address has its pincode, or what stands for none, in its last part, or the state before
// that. If not, its parts are separated in another way, and the last one has more in it.
func isCurrent(s string) bool {
	parts := strings.Split(s, ",")
	n := len(parts) - 1
	rest, _ := cutPincode(parts[n])
	return isNone(rest) || !strings.ContainsFunc(rest, unicode.IsLetter) || n > 0 && states[squash(parts[n-1])] != ""
}

// cellLines joins the lines in a spreadsheet's cell, and turns the no-break spaces of web pages into spaces.
var cellLines = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\u00a0", " ")

// parseCurrentAddress splits an address of the current export, without its "-India".
func parseCurrentAddress(s string) address {
	var a address
	parts := strings.Split(s, ",")
	last := wholePincode(strings.TrimSpace(parts[len(parts)-1]))
	if rest, pincode := cutPincode(last); rest == "" { // "PIN 403001", too
		a.pincode = pincode
	}
	a.oddPincode = a.pincode.Kind == record.Null && len(parts) > 1 && strings.ContainsAny(last, "123456789")
	parts = parts[:len(parts)-1]
	if n := len(parts); n > 0 {
		if name, ok := states[squash(parts[n-1])]; ok {
			a.state = record.TextOf(name)
			parts = parts[:n-1]
		}
	}
	if n := len(parts); n > 2 && isDistrict(strings.TrimSpace(parts[n-1])) {
		a.district = strings.TrimSpace(parts[n-1])
		parts = parts[:n-1]
	}
	for n := len(parts); n > 1; n = len(parts) {
		city, pincode := cutPincode(strings.TrimRight(parts[n-1], " ."))
		parts = parts[:n-1]
		if a.pincode.Kind == record.Null {
			a.pincode = pincode
		}
		if city != "" || pincode.Kind == record.Null {
			a.city = cityName(city, a.state.Text)
			break
		} // otherwise this is only a pincode, and the city comes before it
	}
	if a.city.Kind == record.Null { // the district is the only place that the address names
		a.city = cleanValue(a.district)
	}
	a.line = joinLines(splitLines(strings.Join(parts, ",")), a.city.Text, a.city.Text+a.pincode.Text)
	return a
}

// cityStates are the states with a city of the same name.
var cityStates = map[string]bool{"Delhi": true, "Puducherry": true, "Chandigarh": true}

// cityName reads the city. Many old rows repeat the state in its position instead: NULL.
func cityName(part, state string) record.Value {
	if state != "" && states[squash(part)] == state && !cityStates[state] {
		return record.Value{}
	}
	return cleanValue(strings.TrimRight(part, " ."))
}

// parseOlderAddress splits an address of the older export; ok is false for any other.
func parseOlderAddress(s string) (a address, ok bool) {
	body := s
	if last := lastWord(body); isDigits(last) && len(last) == 6 {
		a.pincode = parsePincode(last)
		body = strings.TrimSpace(body[:len(body)-6])
	}
	code := lastWord(body)
	name, known := states[strings.ToLower(code)]
	if len(code) != 2 || code != strings.ToUpper(code) || !known {
		return address{}, false
	}
	a.state = record.TextOf(name)
	body = strings.TrimSpace(body[:len(body)-2])
	comma := strings.LastIndexByte(body, ',')
	tail := strings.TrimSpace(strings.TrimSuffix(body[comma+1:], "Unclassified"))
	if comma >= 0 && (tail == "" || districts[districtKey(tail)] != nil) {
		a.district = tail
		body = body[:comma]
	}
	body = strings.TrimSuffix(body, "Unclassified")
	a.line = joinLines(splitLines(body))
	return a, true
}

// parseLetterAddress splits an address as people write it, with a pincode or the country at the end; ok is false if the
// part before these is not the name of a state. The part before the state is the city. If the state is a city itself,
// as in "…, Okhla, New Delhi - 110020", that part stays the last line.
func parseLetterAddress(s string) (a address, ok bool) {
	body, pincode := cutPincode(withoutCountry(s))
	parts := strings.Split(withoutCountry(body), ",")
	n := len(parts) - 1
	name, known := states[squash(parts[n])]
	if n == 0 || !known || len(squash(parts[n])) <= 2 {
		return address{}, false
	}
	a.state, a.pincode = record.TextOf(name), pincode
	if pincode.Kind == record.Null { // it may come before the state: "…, Pune - 411 001, Maharashtra"
		if parts[n-1], a.pincode = cutPincode(parts[n-1]); parts[n-1] == "" && n > 1 {
			parts = slices.Delete(parts, n-1, n)
			n--
		}
	}
	if a.pincode.Kind == record.Null && body == s {
		return address{}, false
	}
	if isCity := cityStates[name] && states[squash(parts[n-1])] != name; !isCity {
		if parts = parts[:n]; n > 1 {
			a.city = cityName(strings.TrimSpace(parts[n-1]), name)
			parts = parts[:n-1]
		}
	}
	a.line = joinLines(splitLines(strings.Join(parts, ",")), a.city.Text)
	return a, true
}

// withoutCountry cuts off the last part of an address if it is the country, with the punctuation before it.
func withoutCountry(s string) string {
	const signs = " ,.-"
	s = strings.TrimRight(s, signs)
	if body, ok := cutSuffixFold(s, "india"); ok && strings.TrimRight(body, signs) != strings.TrimRight(body, " ") {
		return strings.TrimRight(body, signs)
	}
	return s
}

func lastWord(s string) string { return s[strings.LastIndexAny(s, " ,")+1:] }

// splitLines splits an address at commas and at runs of three spaces, which separate the two
// lines of an MCA form, and drops empty lines.
func splitLines(s string) []string {
	var lines []string
	for _, part := range strings.Split(s, ",") {
		for _, line := range strings.Split(part, "   ") {
			if line = clean(line); !isNone(line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// joinLines joins the lines, dropping a last line that only repeats the place in one of its forms.
func joinLines(lines []string, place ...string) record.Value {
	if n := len(lines); n > 0 && slices.ContainsFunc(place, func(p string) bool { return isSamePlace(p, lines[n-1]) }) {
		lines = lines[:n-1]
	}
	return record.TextOf(strings.Join(lines, ", "))
}

// isSamePlace compares two names by their Latin letters and digits or, if they have none, by all characters.
func isSamePlace(a, b string) bool {
	if key := squash(a); key != "" {
		return key == squash(b)
	}
	return a != "" && a == b
}

// joinHalves writes a pincode at the end of a place without the space in it: "Panaji 403 001".
func joinHalves(place string) string {
	n := len(place) - 7
	if n < 0 || n > 0 && isDigits(place[n-1:n]) || place[n+3] != ' ' && place[n+3] != '-' || !isDigits(place[n:n+3]) || !isDigits(place[n+4:]) {
		return place
	}
	return place[:n+3] + place[n+4:]
}

// cutPincode splits a pincode off the end of a text, such as "..., Delhi - 110001", "Panaji 403 001" or "Delhi PIN
// No:110001". A number of something else, such as "Survey No. 123456" or "Office No. 401-404", is not a pincode.
func cutPincode(s string) (string, record.Value) {
	const before = " -,.:"
	s = strings.TrimSpace(s)
	joined := joinHalves(s)
	n := len(joined) - 6
	if n < 0 || n > 0 && !strings.ContainsRune(before, rune(joined[n-1])) {
		return s, record.Value{}
	}
	pincode := parsePincode(joined[n:])
	if pincode.Kind == record.Null {
		return s, pincode
	}
	rest := strings.TrimRight(joined[:n], before)
	if area := strings.TrimRight(rest, before+"0123456789"); area != cutWord(area, before, phoneWords) && !strings.Contains(joined[len(area):n], ",") {
		return s, record.Value{} // "Phone 022 234567"
	}
	unnumbered := cutWord(rest, before, numberWords)
	place := unnumbered
	for _, word := range pinWords {
		place = cutWord(place, before, []string{word})
	}
	switch {
	case place != unnumbered:
		return place, pincode
	case unnumbered != rest && !strings.Contains(joined[len(rest):n], ","):
		return s, record.Value{}
	}
	return rest, pincode
}

var (
	pinWords    = []string{"code", "pincode", "pin"}
	phoneWords  = []string{"phone", "tel", "fax"}
	numberWords = append([]string{"no", "nos", "number", "hno", "box"}, phoneWords...)
)

// cutWord cuts off the last word of a text if it is one of words, with the signs before it.
func cutWord(s, signs string, words []string) string {
	for _, word := range words {
		if cut, ok := cutSuffixFold(s, word); ok && (cut == "" || strings.ContainsRune(signs, rune(cut[len(cut)-1]))) {
			return strings.TrimRight(cut, signs)
		}
	}
	return s
}

// wholePincode cuts off the ".0" that a spreadsheet leaves after a pincode at the end of a text.
func wholePincode(s string) string {
	whole, ok := strings.CutSuffix(s, ".0")
	if n := len(whole) - 6; ok && n >= 0 && isDigits(whole[n:]) {
		return whole
	}
	return s
}

// parsePincode accepts six digits, the first not 0. Anything else, such as 000000 or NA, is
// NULL.
func parsePincode(s string) record.Value {
	s = strings.TrimSpace(s)
	if !isPincode(s) {
		return record.Value{}
	}
	return record.TextOf(s)
}

func isPincode(s string) bool { return len(s) == 6 && isDigits(s) && s[0] != '0' }

func cutSuffixFold(s, suffix string) (string, bool) {
	n := len(s) - len(suffix)
	if n < 0 || !strings.EqualFold(s[n:], suffix) {
		return s, false
	}
	return s[:n], true
}
