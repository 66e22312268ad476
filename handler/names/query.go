package names

import "strings"

// A list of terms says which names a tier of the search has to look at: those that hold
// each of the terms. It finds every name that belongs to the tier and some that do not,
// so the text is compared after it; and because it is, a search may leave terms out, the
// commonest first. A list is a JSON array of strings, each an expression of FTS5 (a term in
// quotes, with a star for a beginning of one, or several with OR between); an empty list finds
// nothing. The functions take a form that Query made.
//
// Of a name that ends in private limited, the terms within that ending are not in the
// index. A list never asks for such a term unless it must stand before the ending.

// NoTerms is the empty list.
const NoTerms = "[]"

// maxTerms bounds a list; of the runs of characters in a long text as many are taken at
// even distances.
const maxTerms = 8

// StartTerms are for the names that start with the query. What a name starts with stands
// before the ending.
func StartTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	words := strings.Split(query, " ")
	if len(words) == 1 {
		l.begin(markStart, query)
		return l.String()
	}
	l.add(markStart + beginning(words[0]))
	l.add(markWord + words[0])
	l.phrase(query, words)
	return l.String()
}

// PhraseTerms are for the names that hold the query from the start of a word on.
func PhraseTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	words := strings.Split(query, " ")
	if strings.Contains(" "+privateLimited, " "+query) {
		l.addOrPrivate(markBegin + beginning(words[0]))
	} else {
		l.phrase(query, words)
	}
	return l.String()
}

// WordsTerms are for the names that hold all words of the query in any order; the last
// may be a beginning. They are none for a single word, of which PhraseTerms says the
// same.
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
			if !strings.HasPrefix(w, last) { // else one word of a name may be both
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
		l.addOrPrivate(markWord + ending)
	}
	return l.String()
}

// InsideTerms are for the names that hold the query anywhere, spaces ignored. They are
// none for a query of fewer than three characters.
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
		l.addOrPrivate(text[:size])
	default:
		if l.grams(text, l.addOwn); l.count == 0 {
			l.add(text[:prefixLen(text, longLen)]) // of a long text: it begins before the ending
		}
	}
	return l.String()
}

// CutLast returns the words of the query before its last as a JSON array, and its last.
func CutLast(query string) (before, last string) {
	words := strings.Split(query, " ")
	n := len(words) - 1
	if n == 0 {
		return "[]", query
	}
	return `["` + strings.Join(words[:n], `","`) + `"]`, words[n]
}

// list gathers the elements of a JSON array.
type list struct {
	text  []byte
	count int
}

func (l *list) String() string { return "[" + string(l.text) + "]" }

// add asks for a term. Terms hold nothing that JSON or FTS5 would read otherwise.
func (l *list) add(term string) { l.element(`\"` + term + `\"`) }

// addOrPrivate asks for a term that a private limited at the end has too.
func (l *list) addOrPrivate(term string) {
	l.element(`\"` + term + `\" OR \"` + privateTerm + `\"`)
}

// addShort asks for a run of one character less than gramLen: for any run that it begins,
// or the term of itself at the end of a name, or a private limited at the end.
func (l *list) addShort(text string, orPrivate bool) {
	expression := `\"` + text + `\"`
	if len(text) == gramLen-1 {
		for i := range len(followers) {
			expression += ` OR \"` + text + followers[i:i+1] + `\"`
		}
	} else {
		expression += " *"
	}
	if orPrivate {
		expression += ` OR \"` + privateTerm + `\"`
	}
	l.element(expression)
}

// followers are the ASCII characters of a form. FTS5 finds a list of terms in order and
// stops when it has enough; of a beginning it would gather all names first.
const followers = "abcdefghijklmnopqrstuvwxyz0123456789"

// addOwn asks for a run of characters unless it may lie within a private limited at the
// end.
func (l *list) addOwn(run string) {
	if !strings.Contains(private+limited, run) {
		l.add(run)
	}
}

func (l *list) element(expression string) {
	if l.count == maxTerms || strings.Contains(string(l.text), `"`+expression+`"`) {
		return
	}
	if l.count++; l.count > 1 {
		l.text = append(l.text, ',')
	}
	l.text = append(append(append(l.text, '"'), expression...), '"')
}

// phrase asks for what names have that hold the words side by side; the last may be a
// beginning. Not all of them lie within the ending.
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

// inEnding is how many of the last words of a phrase may lie within the ending while those
// before them stand before it.
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

// begin asks for the beginning of a word that stands before the ending, or of a name with
// markStart, and for the end of what is there of the word; of a long one, for all between.
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
		l.add(word) // of gramLen
	}
}

// beginning is the longest beginning of word that is a term.
func beginning(word string) string {
	if hasRunes(word, longBeginLen) {
		return word[:prefixLen(word, longBeginLen)]
	}
	return word[:prefixLen(word, beginLen)]
}

// grams hands to add the runs of the most characters that text has, which are gramLen at
// least.
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
