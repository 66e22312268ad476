package names

import (
	"strings"
)

// A list of terms selects the candidates of a tier of the search: the names that have each of
// the terms. Every name that belongs to the tier is a candidate, and some others are; their
// text is compared afterwards. So a search may leave terms out of a list, the most common ones
// first. A list is a JSON array of strings, each an FTS5 expression: a term in quotes, with a
// star for a prefix, or several with OR between them. The empty list selects nothing. The
// functions take a form that Query made; the table of terms is in terms.go.
//
// A list asks for a term that may lie within the ending private limited only together with
// markEnd, unless the term must come before the ending.

// NoTerms is the empty list.
const NoTerms = "[]"

// maxTerms bounds a list. Of a longer text, this many runs of characters are used, evenly spaced.
const maxTerms = 8

// ExactTerms selects the names that equal the query, or would without their legal ending.
func ExactTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	l.element(isWhole(query))
	return l.String()
}

// isWhole is an expression for the names that equal a form, with or without their legal ending.
func isWhole(form string) string {
	terms := []string{whole(form)}
	for _, ending := range legalEndings {
		if t := whole(form + ending); !has(terms, t) {
			terms = append(terms, t)
		}
	}
	return anyOf(markWhole, terms)
}

// anyOf is an expression for the names that have one of the terms, which begin with a mark.
func anyOf(mark string, terms []string) string {
	return `\"` + mark + strings.Join(terms, `\" OR \"`+mark) + `\"`
}

// WholeTerms selects the names that start with the words of the query, the last one whole too.
func WholeTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	words := strings.Split(query, " ")
	if last := words[len(words)-1]; len(words) == 1 || last != private && last != limited {
		l.add(markWord + last)
	}
	l.start(query, words)
	return l.String()
}

// StartTerms selects the names that start with the query. The beginning of a name is never
// within the ending.
func StartTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	l.start(query, strings.Split(query, " "))
	return l.String()
}

// start asks for the terms of names that start with the query, which has these words.
func (l *list) start(query string, words []string) {
	if len(words) == 1 {
		l.begin(markStart, query)
		return
	}
	l.add(markStart + beginning(words[0]))
	l.add(markWord + words[0])
	l.phrase(query, words)
}

// PhraseTerms selects the names that contain the query from the start of a word on.
func PhraseTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	words := strings.Split(query, " ")
	if strings.Contains(" "+privateLimited, " "+query) {
		l.addOrEnd(markBegin + beginning(words[0]))
	} else {
		l.phrase(query, words)
	}
	return l.String()
}

// WordsTerms selects the names that have all words of the query in any order; the last may be
// the beginning of one. It is NoTerms for a single word, for which PhraseTerms selects the same.
func WordsTerms(query string) string {
	words := strings.Split(query, " ")
	n := len(words) - 1
	if n == 0 {
		return NoTerms
	}
	last, own := words[n], make([]string, 0, n)
	ending := ""
	var l list
	for _, w := range words[:n] {
		if w == private || w == limited {
			ending = w
			continue
		}
		l.add(markWord + w)
		own = append(own, w)
	}
	if !strings.HasPrefix(private, last) && !strings.HasPrefix(limited, last) {
		l.begin(markBegin, last)
		for _, w := range own {
			if !strings.HasPrefix(w, last) { // if it did, one word of the name could match both
				l.pairOfLast(w, last)
			}
		}
	}
	for i, w := range own {
		for _, other := range own[:i] {
			if w != other {
				l.add(pair(w, other))
			}
		}
	}
	if ending != "" {
		l.addOrEnd(markWord + ending)
	}
	return l.String()
}

// InsideTerms selects the names that contain the query anywhere, spaces ignored. It is NoTerms
// for a query of fewer than three characters.
func InsideTerms(query string) string {
	text := Squeeze(query)
	size := prefixLen(text, gramLen)
	within := strings.Contains(private+limited, text)
	var l list
	switch {
	case prefixLen(text, gramLen-2) == len(text):
	case prefixLen(text, gramLen-1) == len(text):
		l.addShort(text, within)
	case within:
		l.addOrEnd(text[:size])
	default:
		if l.grams(text, l.addOwn); l.count == 0 {
			l.add(text[:prefixLen(text, longLen)]) // a long text begins before the ending
		}
	}
	return l.String()
}

// CutLast returns the words of a query but the last as a JSON array, and the last.
func CutLast(query string) (before, last string) {
	words := strings.Split(query, " ")
	n := len(words) - 1
	if n == 0 {
		return "[]", query
	}
	return `["` + strings.Join(words[:n], `","`) + `"]`, words[n]
}

// list builds the JSON array.
type list struct {
	text  []byte
	count int
}

func (l *list) String() string { return "[" + string(l.text) + "]" }

// add asks for a term. Terms have no characters that need an escape in JSON or FTS5.
func (l *list) add(term string) { l.element(`\"` + term + `\"`) }

// addOrEnd asks for a term, or for the ending, which contains the term.
func (l *list) addOrEnd(term string) {
	l.element(`\"` + term + `\" OR \"` + markEnd + `\"`)
}

// addShort asks for a run of gramLen-1 characters. That is any run of gramLen that begins with it,
// or the run itself at the end of a name, or, with orEnd, the ending.
func (l *list) addShort(text string, orEnd bool) {
	expression := `\"` + text + `\"`
	if len(text) == gramLen-1 {
		for i := range len(followers) {
			expression += ` OR \"` + text + followers[i:i+1] + `\"`
		}
	} else {
		expression += " *"
	}
	if orEnd {
		expression += ` OR \"` + markEnd + `\"`
	}
	l.element(expression)
}

// followers are the ASCII characters of a form. Given terms with OR, FTS5 returns names in order
// and stops when it has enough; for a prefix it would collect all names first.
const followers = "abcdefghijklmnopqrstuvwxyz0123456789"

// addOwn asks for a run of characters unless it may lie within the ending.
func (l *list) addOwn(run string) {
	if !strings.Contains(private+limited, run) {
		l.add(run)
	}
}

func (l *list) element(expression string) {
	if l.count < maxTerms && !strings.Contains(string(l.text), `"`+expression+`"`) {
		l.unbounded(expression)
	}
}

// unbounded adds an expression to a list.
func (l *list) unbounded(expression string) {
	if l.count++; l.count > 1 {
		l.text = append(l.text, ',')
	}
	l.text = append(append(append(l.text, '"'), expression...), '"')
}

// phrase asks for the terms of names that have the words in a row; the last may be the beginning
// of one. Not all of the words lie within the ending.
func (l *list) phrase(query string, words []string) {
	last, own := len(words)-1, len(words)-inEnding(words)
	for _, w := range words[:min(own, last)] {
		l.add(markWord + w)
	}
	if text := Squeeze(query); hasRunes(text, wideLen) {
		if own > last {
			l.add(markBegin + beginning(words[last]))
		}
		l.grams(text, l.addOwn)
		return
	}
	if own > last {
		l.begin(markBegin, words[last])
	}
	for i := 1; i <= min(own, last); i++ {
		size := jointLen
		if i == last && !hasRunes(words[i], jointLen) {
			size = 1
		}
		l.add(joint(words[i-1], words[i], size))
		switch {
		case i < own && i < last:
			l.add(pair(words[i-1], words[i]))
		case i < own:
			l.pairOfLast(words[i-1], words[i])
		}
	}
}

// inEnding returns how many of the last words of a phrase may lie within the ending while the
// others come before it.
func inEnding(words []string) int {
	last := len(words) - 1
	switch {
	case strings.HasPrefix(private, words[last]):
		return 1
	case last > 0 && words[last-1] == private && strings.HasPrefix(limited, words[last]):
		return 2
	}
	return 0
}

// pairOfLast asks for a word and another that begins with last.
func (l *list) pairOfLast(word, last string) {
	if hasRunes(last, beginLen) {
		l.add(pair(word, last))
	} else {
		l.add(pairBegin(word, last))
	}
}

// begin asks for the beginning of a word before the ending, or of a name with markStart. If the
// word is longer than that, it also asks for a run at its end, or for all its runs if these two
// would leave a gap.
func (l *list) begin(mark, word string) {
	begin := beginning(word)
	l.add(mark + begin)
	switch {
	case len(begin) == len(word):
	case hasRunes(word, longBeginLen+wideLen+1):
		l.grams(word, l.add)
	case hasRunes(word, wideLen):
		l.add(word[suffixStart(word, wideLen):])
	case hasRunes(word, longLen):
		l.add(word[suffixStart(word, longLen):])
	default:
		l.add(word) // of gramLen characters
	}
}

// beginning returns the longest beginning of word that is a term.
func beginning(word string) string {
	if hasRunes(word, longBeginLen) {
		return word[:prefixLen(word, longBeginLen)]
	}
	return word[:prefixLen(word, beginLen)]
}

// grams calls add with the longest kind of runs in text, which has at least gramLen
// characters.
func (l *list) grams(text string, add func(term string)) {
	starts := make([]int, 0, len(text))
	for i := range text {
		starts = append(starts, i)
	}
	size := min(len(starts), longLen)
	if len(starts) >= wideLen {
		size = wideLen
	}
	count := len(starts) - size + 1
	step := (count + maxTerms - 1) / maxTerms
	for i := 0; i < count; i += step {
		from := starts[i]
		add(text[from : from+prefixLen(text[from:], size)])
	}
	if last := count - 1; last%step != 0 {
		add(text[starts[last]:])
	}
}
