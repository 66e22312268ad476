package names

import "strings"

// A list of terms says which names a tier of the search has to look at: those that hold
// each of the terms. It finds every name that belongs to the tier and some that do not,
// so the text is compared after it; and because it is, a search may leave terms out, the
// commonest first. A list is a JSON array of strings, each an expression of FTS5 (a term in
// quotes, with a star for a beginning of one, or two with OR between); an empty list finds nothing. The functions take a
// form that Query made.
//
// Of a name that ends in private limited, the terms within that ending are not in the
// index. A list never asks for such a term unless it must stand before the ending.

// NoTerms is the empty list.
const NoTerms = "[]"

// maxTerms bounds a list; of the runs of characters in a long text as many are taken at
// even distances.
const maxTerms = 12

// StartTerms are for the names that start with the query. What a name starts with stands
// before the ending.
func StartTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	words := strings.Split(query, " ")
	first := words[0]
	if len(words) == 1 {
		l.begin(markStart, first, l.add)
		return l.String()
	}
	l.add(markStart + first[:prefixLen(first, beginLen)])
	l.add(markWord + first)
	l.words(words[1:])
	l.joints(words)
	return l.String()
}

// PhraseTerms are for the names that hold the query from the start of a word on.
func PhraseTerms(query string) string {
	if query == "" {
		return NoTerms
	}
	var l list
	words := strings.Split(query, " ")
	l.words(words)
	l.joints(words)
	switch {
	case l.count > 0:
	case strings.Contains(" "+privateLimited, " "+query):
		l.addOrPrivate(markBegin + words[0][:prefixLen(words[0], beginLen)])
	case len(words) > 1:
		l.add(markWord + words[0])
	default:
		l.begin(markBegin, query, l.add)
	}
	return l.String()
}

// WordsTerms are for the names that hold all words of the query in any order; the last
// may be a beginning. They are none for a single word, of which PhraseTerms says the
// same.
func WordsTerms(query string) string {
	words := strings.Split(query, " ")
	if len(words) == 1 {
		return NoTerms
	}
	var l list
	l.words(words)
	if l.count == 0 {
		l.addOrPrivate(markWord + words[0])
	}
	return l.String()
}

// InsideTerms are for the names that hold the query anywhere, spaces ignored. They are
// none for a query of fewer than three characters.
func InsideTerms(query string) string {
	text := Squeeze(query)
	size := prefixLen(text, gramLen)
	within := strings.Contains(Squeeze(privateLimited), text)
	var l list
	switch {
	case prefixLen(text, gramLen-2) == len(text):
	case prefixLen(text, gramLen-1) == len(text):
		l.addShort(text, within)
	case within:
		l.addOrPrivate(text[:size])
	default:
		if l.grams(text, l.addOwn); l.count == 0 {
			l.grams(text, l.add)
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

// addOwn asks for a term unless it may lie within a private limited at the end.
func (l *list) addOwn(term string) {
	if !strings.Contains(privateTerms, " "+term+" ") {
		l.add(term)
	}
}

func (l *list) element(expression string) {
	if l.count == maxTerms {
		return
	}
	if l.count++; l.count > 1 {
		l.text = append(l.text, ',')
	}
	l.text = append(append(append(l.text, '"'), expression...), '"')
}

// words asks for whole words, but for the last, which may be a beginning.
func (l *list) words(words []string) {
	last := len(words) - 1
	for _, w := range words[:last] {
		l.addOwn(markWord + w)
	}
	l.begin(markBegin, words[last], l.addOwn)
}

// begin hands add the beginning of a word, or of a name with markStart, and the runs of
// characters in the rest of the word.
func (l *list) begin(mark, word string, add func(term string)) {
	end := prefixLen(word, beginLen)
	add(mark + word[:end])
	if end < len(word) {
		l.grams(word, add)
	}
}

// joints asks for what each two neighbours among words have in common. A last word of one
// character may be the beginning of a longer one, which has another joint.
func (l *list) joints(words []string) {
	for i, w := range words[1:] {
		last := i+2 == len(words)
		if !last || prefixLen(w, jointLen-1) < len(w) {
			l.addOwn(joint(words[i], w))
		}
	}
}

// grams hands runs of longLen characters of text, or of gramLen, which it has at least, to
// add.
func (l *list) grams(text string, add func(term string)) {
	starts := make([]int, 0, len(text))
	for i := range text {
		starts = append(starts, i)
	}
	size := min(len(starts), longLen)
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
