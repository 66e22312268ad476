package source

import (
	"errors"
	"html"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"regedge/schema/importer/record"
)

var (
	errDate    = errors.New("invalid date")
	errToCome  = errors.New("date after that of the files")
	errCapital = errors.New("invalid capital")
	errRounded = errors.New("rounded amount")
	errFlag    = errors.New("invalid yes or no")
)

// noneWords are the words for "no value" in the sources, squashed. A text without letters and
// digits of any script has no value either.
var noneWords = map[string]bool{
	"": true, "na": true, "nan": true, "null": true, "none": true, "nil": true,
	"unclassified": true, "notavailable": true, "00000000": true, "notapplicable": true, "notknown": true, "unknown": true,
	"notdisclosed": true, "notspecified": true, "blank": true, "undefined": true,
}

// maxNone is longer than every one of noneWords with the spaces of the sources.
const maxNone = 16

// isNone reports whether s means "no value".
func isNone(s string) bool {
	s = strings.TrimSpace(s)
	if s == `\N` { // NULL in the exports of some databases
		return true
	}
	if strings.HasPrefix(s, "##") { // ### is a number too wide for a spreadsheet's column
		return false
	}
	if len(s) > maxNone {
		return !strings.ContainsFunc(s, isWritten)
	}
	var b [maxNone]byte
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			b[n] = c + 'a' - 'A'
			n++
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b[n] = c
			n++
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if isWritten(r) {
				return false
			}
			i += size - 1
		}
	}
	return noneWords[string(b[:n])]
}

// isWritten reports whether a character is a letter, a digit, or a mark on one.
func isWritten(c rune) bool { return unicode.In(c, unicode.L, unicode.M, unicode.N) }

// clean trims s, replaces runs of white space and control characters by one space and the entities of web pages by
// their characters, repairs typographic characters that a wrong conversion broke (see mendSigns), and drops invisible
// characters.
func clean(s string) string {
	if isCleanASCII(s) {
		return s
	}
	before := ""
	for range maxPasses { // each step may produce what another one looks for
		if s == before {
			break
		}
		before, s = s, visible(decodedTwice(s))
		if strings.ContainsRune(s, utf8.RuneError) {
			s = mendSigns(s)
		}
		if strings.IndexByte(s, '&') >= 0 {
			s = withoutEntities(s)
		}
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, c := range s {
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(c)
	}
	return b.String()
}

// maxPasses is more passes than any text of the sources needs. A text made for it could need one for every few bytes.
const maxPasses = 16

// visible returns s without invisible characters, such as soft hyphens and marks of byte order and writing direction,
// which come with text copied from web pages. The joiners of Indic scripts stay. Control characters that Windows-1252 has signs for, such
// as U+0092, become those signs: the text was read as Latin-1.
func visible(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 0x80 && c <= 0x9f && c != nextLine {
			if sign := charmap.Windows1252.DecodeByte(byte(c)); sign != utf8.RuneError {
				return sign
			}
		}
		if c >= utf8.RuneSelf && unicode.Is(unicode.Cf, c) && c != '\u200c' && c != '\u200d' {
			return -1
		}
		return c
	}, s)
}

// nextLine is a line end in some texts (Unicode, UAX 14), and would be a sign of Windows-1252.
const nextLine = 0x85

// percentDecoded decodes a text that was encoded for a web address, such as "A%20%26%20B". A text with blanks stays as
// it is: an encoded one has none.
func percentDecoded(s string) string {
	if !strings.Contains(s, "%20") || strings.Contains(s, " ") {
		return s
	}
	plain, err := url.PathUnescape(s)
	if err != nil || !utf8.ValidString(plain) {
		return s
	}
	return plain
}

// decodedTwice repairs a text whose UTF-8 was read as Windows-1252 or Latin-1 and written as UTF-8 again: "JosÃ©"
// becomes "José". Any other text stays: encoded like that, it is not UTF-8, or it has one or two letters of a script that is
// rare here, as of "É’".
func decodedTwice(s string) string {
	b := make([]byte, 0, len(s))
	for _, c := range s {
		switch {
		case c <= 0xff:
			b = append(b, byte(c))
		default:
			encoded, ok := charmap.Windows1252.EncodeRune(c)
			if !ok {
				return s
			}
			b = append(b, encoded)
		}
	}
	if len(b) == len(s) || !utf8.Valid(b) {
		return s
	}
	decoded, rare := string(b), 0
	for _, c := range decoded {
		if c > 0x17f && c < 0x800 { // two bytes, but neither of Latin-1 nor of Latin Extended-A
			rare++
		}
	}
	if rare == 1 || rare == 2 {
		return s
	}
	return decoded
}

// isCleanASCII reports whether clean returns s unchanged, without allocating: most texts are
// clean.
func isCleanASCII(s string) bool {
	before := byte(' ')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c >= 0x7f || c == ';' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return s == "" || before != ' '
}

// entity matches what may be an entity of web pages (HTML, section 13.5), also with its & written as one, again and again
// ("&amp;amp;lt;"). A list that was copied from a page may keep them.
var entity = regexp.MustCompile(`&(?:(?i:amp|#0*38|#x0*26);)*(#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8}[0-9]{0,2});`)

// withoutEntities writes the entities of a text as their characters, also where all of it was put in capitals.
func withoutEntities(s string) string {
	if strings.IndexByte(s, '&') < 0 || strings.IndexByte(s, ';') < 0 {
		return s
	}
	return entity.ReplaceAllStringFunc(s, func(name string) string {
		name = "&" + name[strings.LastIndexAny(name[:len(name)-1], "&;")+1:]
		lower := strings.ToLower(name)
		for _, form := range []string{name, lower} {
			plain := html.UnescapeString(form)
			isWhole := plain == ";" || !strings.HasSuffix(plain, ";") // of "&notes;" it would read "&not"
			isLikely := name[1] == '#' || !strings.ContainsFunc(plain, isUnlikely) || name == lower && !strings.ContainsFunc(plain, isNoSign)
			if isWhole && isLikely {
				return plain
			}
		}
		return name
	})
}

// isUnlikely reports whether a character is none of ASCII, western letters, blanks, dashes and quotes. A word that is the name of
// another one, such as "&part;" (∂) and "&phone;" (☎), is rather a word.
func isUnlikely(c rune) bool {
	return c > unicode.MaxASCII && c != '\u00a0' && (c < 'À' || c > 'ÿ') && (c < '\u2002' || c > '…')
}

// isNoSign reports whether a character is none of the signs of Latin-1, such as ® and °, and not ™. Their names are entities in small letters
// alone: "&REG;" may be a word in capitals.
func isNoSign(c rune) bool { return (c <= '\u00a0' || c >= 'À') && c != '™' }

// sheetError matches what a spreadsheet shows for a formula that failed, such as #NAME?, #SPILL! and Err:502, and for a value that its
// column is too narrow for, or has not computed yet (Loading...). #N/A is not among them: it means no value.
var sheetError = regexp.MustCompile(`^(#(NAME\?|(REF|VALUE|DIV/0|NUM|NULL|SPILL|CALC|ERROR|FIELD|BLOCKED|CONNECT|UNKNOWN|BUSY|PYTHON|EXTERNAL)!)|#GETTING_DATA|##+|Err:5\d\d|Loading\.\.\.)$`)

// isFormulaOrError reports whether s is such an error, or a formula instead of its result, =A2&"x" or
// =VLOOKUP(A2,B:C,2).
func isFormulaOrError(s string) bool {
	s = strings.TrimSpace(s)
	isError := (strings.HasPrefix(s, "#") || strings.HasPrefix(s, "Err:") || strings.HasPrefix(s, "Loading")) && sheetError.MatchString(s)
	return isError || len(s) > 1 && s[0] == '=' && strings.IndexByte(formulaStarts, s[1]) >= 0
}

const formulaStarts = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz$(+-'\""

// signMends repairs signs whose UTF-8 bytes, such as E2 80 93, appear in the sources as U+FFFD,
// "x80", "x93". Any other U+FFFD, whose original is unknown, becomes a space.
var signMends = strings.NewReplacer(
	"\uFFFDx80x93", "-", "\uFFFDx80x94", "-", "\uFFFDx80x98", "'", "\uFFFDx80x99", "'",
	"\uFFFDx80x9C", `"`, "\uFFFDx80x9D", `"`, "\uFFFDx80x9c", `"`, "\uFFFDx80x9d", `"`,
	"â€\uFFFD", `"`, // read as Windows-1252, which has no sign for its last byte
	"\uFFFD", " ")

func mendSigns(s string) string { return signMends.Replace(s) }

// cleanValue is clean as a column: NULL for no value.
func cleanValue(s string) record.Value {
	if isNoText(s) {
		return record.Value{}
	}
	return record.TextOf(clean(s))
}

// isNoText reports whether a text is none: no value, a spreadsheet's error, or 0, which its formulas give for an empty cell.
func isNoText(s string) bool {
	return isNone(s) || isFormulaOrError(s) || isZero(s)
}

// isZero reports whether a text is 0, also as 0.0 or 00.
func isZero(s string) bool { return strings.Trim(s, "0. ") == "" && strings.Count(s, ".") < 2 }

// squash returns the ASCII letters and digits of s in lower case. Headers and enumerated texts
// are looked up in this form.
func squash(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b = append(b, c)
		}
	}
	return string(b)
}

// maxCapital is the largest amount that is accepted, in rupees. JSON numbers are exact up to
// it.
const maxCapital = 1 << 53

// parseCapital reads an amount in rupees and truncates it to whole ones: "100000.00",
// "1,00,000", "9.9E+9", "Rs. 1,00,000/-", and with a decimal comma "100000,50". "1.500" could be either. No value is NULL.
func parseCapital(s string) (record.Value, error) {
	s = strings.TrimSpace(s)
	if isNone(s) {
		return record.Value{}, nil
	}
	s = withoutRupees(s)
	if strings.IndexByte(s, ',') >= 0 {
		var ok bool
		if s, ok = withoutCommas(s); !ok {
			return record.Value{}, errCapital
		}
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if isDigits(whole) && (fraction == "" || isDigits(fraction)) {
		if len(fraction) == 3 && len(whole) <= 3 && whole != "0" && fraction != "000" {
			return record.Value{}, errCapital // 1.500 is fifteen hundred where the decimal mark is a comma
		}
		n, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || n > maxCapital {
			return record.Value{}, errCapital
		}
		return record.NumberOf(n), nil
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return record.Value{}, errCapital
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > maxCapital {
		return record.Value{}, errCapital
	}
	if shortened.MatchString(s) {
		return record.Value{}, errRounded
	}
	return record.NumberOf(int64(math.Trunc(f))), nil
}

// shortened matches an amount of 12 digits and more as spreadsheets show one in a cell without a format: of 123456789012 they leave 1.23457E+11.
// In small letters, programs (%g of C) leave as many digits of one of 7 and more. An amount that has fewer digits before its zeros has
// less than five decimals there.
var shortened = regexp.MustCompile(`^\d\.\d{5}(E\+0?1[1-9]|e\+0?(0[6-9]|1\d))$`)

// withoutRupees cuts off what marks an amount as one in rupees, before or after it, and the words of a cheque.
func withoutRupees(s string) string {
	s, _ = cutSuffixFold(s, "only")
	s = strings.TrimSpace(s)
	for _, mark := range []string{"₹", "Rs.", "Rs", "INR"} {
		if len(s) > len(mark) && strings.EqualFold(s[:len(mark)], mark) {
			s = s[len(mark):]
			break
		}
		if amount, ok := cutSuffixFold(s, mark); ok && amount != "" {
			s = amount
			break
		}
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "/-"))
}

// withoutCommas reads the commas of a number: they separate groups of two or three digits, the last of three, or a
// single one is the decimal mark. It reports false for any other number, which could mean either.
func withoutCommas(s string) (string, bool) {
	whole, fraction, dotted := strings.Cut(s, ".")
	groups := strings.Split(whole, ",")
	grouped := len(groups[0]) <= 3 && len(groups[len(groups)-1]) == 3
	for i, group := range groups {
		grouped = grouped && isDigits(group) && (i == 0 || len(group) == 2 || len(group) == 3)
	}
	switch {
	case grouped && dotted:
		return strings.Join(groups, "") + "." + fraction, true
	case grouped:
		return strings.Join(groups, ""), true
	case dotted || len(groups) != 2 || isDigits(groups[1]) && len(groups[1]) >= 3:
		return "", false
	}
	return groups[0] + "." + groups[1], true
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

var flagWords = map[string]int64{
	"listed": 1, "yes": 1, "y": 1, "true": 1, "t": 1, "1": 1,
	"unlisted": 0, "notlisted": 0, "no": 0, "n": 0, "false": 0, "f": 0, "0": 0,
}

// parseFlag reads a yes or no, such as "Listed" and "Unlisted", or 1.0 as programs write a 1 in a column with gaps. No value is NULL.
func parseFlag(s string) (record.Value, error) {
	if isNone(s) {
		return record.Value{}, nil
	}
	n, ok := flagWords[squash(strings.TrimSuffix(strings.TrimSpace(s), ".0"))]
	if !ok {
		return record.Value{}, errFlag
	}
	return record.NumberOf(n), nil
}

// parseEmail accepts what looks like one e-mail address. No value is NULL; ok is false for
// any other text.
func parseEmail(s string) (v record.Value, ok bool) {
	s = strings.TrimSpace(visible(s))
	if isNone(s) || isZero(s) {
		return record.Value{}, true
	}
	name, domain, found := strings.Cut(s, "@")
	if !found || name == "" || domain == "" || strings.ContainsAny(domain, "@") ||
		strings.ContainsFunc(s, func(c rune) bool {
			return c <= ' ' || c == utf8.RuneError || unicode.IsSpace(c) || unicode.IsControl(c)
		}) {
		return record.Value{}, false
	}
	return record.TextOf(s), true
}

// parsePhone accepts 6 to 20 digits with the usual separators. No value is NULL; ok is false
// for any other text.
func parsePhone(s string) (v record.Value, ok bool) {
	s = clean(s)
	if isNone(s) || isZero(s) {
		return record.Value{}, true
	}
	digits := 0
	for i := 0; i < len(s); i++ {
		if s[i] >= '0' && s[i] <= '9' {
			digits++
		} else if !strings.ContainsRune("+-()/. ", rune(s[i])) {
			return record.Value{}, false
		}
	}
	return record.TextOf(s), digits >= 6 && digits <= 20
}
