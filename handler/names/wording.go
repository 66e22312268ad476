package names

import (
	"slices"
	"strconv"
	"strings"
)

// otherWording returns a query's words with numbers in words instead of digits and short forms of states and trades in
// full, or the reverse of either: "36 events" for "thirty six events", "jammu kashmir bank" for "jk bank". It returns
// nil if there is nothing to change.
func otherWording(words []string) []string {
	other := make([]string, 0, maxSounds)
	changed := false
	for i := 0; i < len(words); {
		n, instead := numberAt(words[i:])
		if n == 0 {
			n, instead = shortFormAt(words[i:])
		}
		if n == 0 {
			n, instead = 1, words[i:i+1]
		} else {
			changed = true
		}
		other = append(other, instead...)
		i += n
	}
	if !changed {
		return nil
	}
	return other[:min(len(other), maxSounds)]
}

// shortForms are short forms of states and trades, with the words that names have for them.
var shortForms = [...]struct{ short, full []string }{
	{[]string{"jk"}, []string{"jammu", "kashmir"}}, {[]string{"j", "k"}, []string{"jammu", "kashmir"}},
	{[]string{"hp"}, []string{"himachal"}}, {[]string{"up"}, []string{"uttar", "pradesh"}}, {[]string{"mp"}, []string{"madhya", "pradesh"}},
	{[]string{"ap"}, []string{"andhra", "pradesh"}}, {[]string{"tn"}, []string{"tamil", "nadu"}}, {[]string{"wb"}, []string{"west", "bengal"}},
	{[]string{"guj"}, []string{"gujarat"}}, {[]string{"ne"}, []string{"north", "eastern"}},
	{[]string{"exim"}, []string{"export", "import"}}, {[]string{"exim"}, []string{"import", "export"}},
	{[]string{"exim"}, []string{"exports", "imports"}}, {[]string{"exim"}, []string{"imports", "exports"}},
	{[]string{"realty"}, []string{"real", "estate"}},
}

// shortFormAt returns how many of the first words are a short form or its full form, and the other of the two.
func shortFormAt(words []string) (n int, instead []string) {
	for _, form := range shortForms {
		switch {
		case startsWith(words, form.short):
			return len(form.short), form.full
		case len(form.full) > 1 && startsWith(words, form.full):
			return len(form.full), form.short
		}
	}
	return 0, nil
}

// misread returns a word with letters in place of digits that a bad photo or a scanner reads for them: "logistics" for
// l0gist1cs. A 1 becomes an l after a vowel, before a vowel at the beginning, and after a 1 that became one; else an i.
// A word stays as it is if half of it are digits, if it ends in two of them, if it has other digits, or if it is an
// ordinal number.
func misread(word string) string {
	if _, _, number := digitsOf(word); number || len(strings.TrimRight(word, "0158")) < len(word)-1 {
		return word
	}
	letters := []byte(word)
	digits := 0
	for i, c := range letters {
		at := strings.IndexByte("0158", c)
		switch {
		case c >= 'a' && c <= 'z':
			continue
		case at < 0:
			return word
		case at == 1 && (isVowel(word, i-1) || i == 0 && isVowel(word, 1) || i > 0 && word[i-1] == '1' && letters[i-1] == 'l'):
			letters[i] = 'l'
		default:
			letters[i] = "oisb"[at]
		}
		digits++
	}
	if 2*digits >= len(word) {
		return word
	}
	return string(letters)
}

// lookAlike returns the words with one letter in place of two that a bad photo or a scanner reads for it: "modern" for
// "rnodern". It returns nil if there are none.
func lookAlike(words []string) []string {
	text := strings.Join(words, " ")
	other := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, "rn", "m"), "cl", "d"), "vv", "w")
	if other == text {
		return nil
	}
	return strings.Split(other, " ")
}

// BarsAsLetters returns a name as it was typed, with an l in place of each bar that a scanner may have misread: before a small letter, or
// behind one at the end of a word.
func BarsAsLetters(typed string) string {
	b := []byte(typed)
	small := func(i int) bool { return i >= 0 && i < len(b) && b[i] >= 'a' && b[i] <= 'z' }
	for i, c := range b {
		if c == '|' && (small(i+1) || small(i-1) && (i+1 == len(b) || !isWordByte(b[i+1]))) {
			b[i] = 'l'
		}
	}
	return string(b)
}

func startsWith(words, begin []string) bool {
	return len(words) >= len(begin) && slices.Equal(words[:len(begin)], begin)
}

// The words for numbers and ordinals: those below twenty, and the tens. Each stands at the index of its number.
var (
	units = []string{
		"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
		"ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
	}
	tens     = []string{"-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	ordinals = []string{
		"zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
		"tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
	}
	ordinalTens = []string{"-", "-", "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"}
)

// maxNumber bounds the numbers that are converted.
const maxNumber = 999

// numberAt returns how many of the first words are a number, and the same number in the other form.
func numberAt(words []string) (n int, instead []string) {
	if number, ordinal, ok := digitsOf(words[0]); ok {
		return 1, inWords(number, ordinal)
	}
	number, ordinal, n := spelled(words)
	if n == 0 {
		return 0, nil
	}
	digits := strconv.FormatInt(int64(number), 10)
	if ordinal {
		digits += ordinalEnding(number)
	}
	return n, []string{digits}
}

// digitsOf reads a number such as 36 or 21st.
func digitsOf(word string) (number int, ordinal, ok bool) {
	n := 0
	for n < len(word) && word[n] >= '0' && word[n] <= '9' && number <= maxNumber {
		number = 10*number + int(word[n]-'0')
		n++
	}
	if number < 1 || number > maxNumber || word[0] == '0' {
		return 0, false, false
	}
	ordinal = n < len(word)
	return number, ordinal, !ordinal || word[n:] == ordinalEnding(number)
}

func ordinalEnding(number int) string {
	if number%100 < 11 || number%100 > 13 {
		switch number % 10 {
		case 1:
			return "st"
		case 2:
			return "nd"
		case 3:
			return "rd"
		}
	}
	return "th"
}

// inWords writes a number up to maxNumber.
func inWords(number int, ordinal bool) (words []string) {
	if number >= 100 {
		words = append(words, units[number/100], "hundred")
		number %= 100
	}
	last, lastTens := units, tens
	if ordinal {
		last, lastTens = ordinals, ordinalTens
	}
	switch {
	case number == 0:
	case number < len(units):
		words = append(words, last[number])
	case number%10 == 0:
		words = append(words, lastTens[number/10])
	default:
		words = append(words, tens[number/10], last[number%10])
	}
	return words
}

// isNumeral reports whether a word is part of a number in words. Such a word may occur twice: "six sixty six".
func isNumeral(word string) bool {
	return word != "-" && (has(units, word) || has(tens, word))
}

// spelled reads a number in words at the beginning of words, and returns how many words it takes. It knows "three
// sixty", "three six five" and "one nine four seven" too.
func spelled(words []string) (number int, ordinal bool, n int) {
	if at := index(units[:10], words[0]); at > 0 && len(words) > 1 {
		switch {
		case words[1] == "hundred":
			number, n = 100*at, 2
		case index(tens, words[1]) > 1:
			number, n = 100*at, 1
		default: // digit by digit, up to the four digits of a year
			digits := 1
			for number = at; digits < min(len(words), 4); digits++ {
				next := index(units[:10], words[digits])
				if next < 0 {
					break
				}
				number = 10*number + next
			}
			if digits > 2 {
				return number, false, digits
			}
			number = 0
		}
	}
	rest := words[n:]
	if len(rest) == 0 {
		return number, false, n
	}
	if at := index(tens, rest[0]); at > 1 {
		number, n = number+10*at, n+1
		if rest = rest[1:]; len(rest) > 0 {
			if unit := index(units[:10], rest[0]); unit > 0 {
				return number + unit, false, n + 1
			}
			if unit := index(ordinals[:10], rest[0]); unit > 0 {
				return number + unit, true, n + 1
			}
		}
		return number, false, n
	}
	for _, list := range [...]struct {
		words   []string
		of      int
		ordinal bool
	}{{units, 1, false}, {ordinals, 1, true}, {ordinalTens, 10, true}} {
		if at := index(list.words, rest[0]); at > 0 && rest[0] != "-" {
			return number + at*list.of, list.ordinal, n + 1
		}
	}
	return number, false, n
}

// likeOtherwise asks for names with the words of another wording: short ones whole, others by their beginnings. Among
// four words or more, "hundred" may be left out, as in "three sixty degree".
func (l *list) likeOtherwise(words []string) {
	const hundredLeftOut = 4
	var terms []string
	for _, w := range words {
		if w == "hundred" && len(words) >= hundredLeftOut {
			continue
		}
		term := quoted(markBegin + beginning(w))
		if !hasRunes(w, longBeginLen) {
			term = quoted(markWord + w)
		}
		if !has(terms, term) {
			terms = append(terms, term)
		}
	}
	longestFirst(terms)
	l.all(terms)
}

// schemes are the words that begin the address of a site.
var schemes = []string{"http", "https", "www"}

// pathOf returns how many words follow the domain of a site's address: those of its path. An "in" soon before another domain is
// a word of the name, as in walk-in-wardrobes.com.
func pathOf(words []string) int {
	for i, w := range words {
		if i == 0 || !has(domains, w) || i+1 < len(words) && has(domains, words[i+1]) {
			continue
		}
		if w != "in" || !hasDomain(words[i+1:min(len(words), i+4)]) {
			return len(words) - 1 - i
		}
	}
	return 0
}

func hasDomain(words []string) bool {
	for _, w := range words {
		if w != "in" && has(domains, w) || has(secondLevels, w) {
			return true
		}
	}
	return false
}

// sitesOf returns what may be the name in the address of a site or a mailbox, of at least longLen characters: the two words
// before the domain as one, "goashipyard" for info@goa-shipyard.in, and the last of them, "goashipyard" for
// cs@goashipyard.co.in, or at a mail provider the last that is long enough, "goashipyard" for goashipyard.cs@gmail.com. It
// returns nil for other queries.
func sitesOf(words []string) (sites []string) {
	n := len(words)
	if n < 2 || !has(domains, words[n-1]) {
		return nil
	}
	last := 1
	for n--; n > 1 && has(secondLevels, words[n-1]); n-- {
		if has(providers, words[n-1]) {
			last = 2
		}
	}
	if n > 1 && hasRunes(words[n-2]+words[n-1], longLen) {
		sites = append(sites, words[n-2]+words[n-1])
	}
	for i := n - 1; i >= max(0, n-last); i-- {
		if hasRunes(words[i], longLen) {
			return append(sites, words[i])
		}
	}
	return sites
}

// siteCost is the cost of a name that begins with the one in an address, or that the address continues only with a legal
// ending, a year or the country. It reports false for any other name.
func siteCost(site, name string) (sum int, ok bool) {
	if strings.HasPrefix(Squeeze(name), site) {
		return costExtra * strings.Count(name, " "), true
	}
	joined := whole(name)
	rest, ok := strings.CutPrefix(site, joined)
	rest = strings.TrimRight(rest, "0123456789")
	return costExtra, ok && len(joined) >= wideLen && has(siteEnds, rest)
}

// Top-level domains of companies, and the second-level ones before them or of mail providers, as words of a form.
var (
	domains      = []string{"com", "in", "org", "net", "biz", "info"}
	secondLevels = []string{"co", "company", "org", "net", "firm", "gmail", "yahoo", "rediffmail", "hotmail", "outlook"}
	providers    = secondLevels[5:]
	siteEnds     = []string{"", "india", "limited", "ltd", "private", "pvt", "privatelimited", "pvtltd", "llp"}
)

// likeSite asks for names that begin with the name in an address, which has no spaces, and for names that are its
// beginning.
func (l *list) likeSite(site string) {
	var runs list
	runs.runs(site)
	if runs.count == 0 {
		return
	}
	l.unbounded(strings.ReplaceAll(string(runs.text[1:len(runs.text)-1]), `","`, " AND "))
	if begin := prefixLen(site, wideLen); begin < len(site) {
		l.unbounded(quoted(site[:begin]) + " AND " + quoted(markStart+site[:prefixLen(site, 1)]))
	}
}
