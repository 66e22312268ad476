package names

import (
	"slices"
	"strings"
)

// maxSounds bounds how many words of a query suggestions are compared with.
const maxSounds = 6

// LikeTerms selects the names that are like a query, given in the form that Query made. It returns a JSON array of
// expressions, of which a name matches at least one, and the number of those that share the names to compare: all but the
// last, for parts of the query, and of a query with two readings only those for its words as typed. They find a name
//   - that has all words of the query but one and, if there is just one other, a word that begins or
//     ends as the missing one does;
//   - whose words begin as those of the query do: one with the same three letters, the others with
//     the same letter;
//   - whose words sound the same, where two words of the query may be one of the name, or the first
//     one two of the name;
//   - that has synonyms of the words, such as 9 for nine, or other wordings, such as 36 for thirty six;
//   - that begins with the name in the address of a site or a mailbox;
//   - that begins with the query without its last or first word or two, such as a place, or without both the
//     first and the last, or equals the first of two words;
//   - that is a part of the query, spaces ignored;
//   - that begins with the first of several words;
//   - for a query of one word: whose first word has a key in common with it and begins or ends as it
//     does, or that has a word of the same sound, or with the same first five letters;
//   - for a query in an Indic script: whose words sound the same, or all but one. A Tamil word has
//     several sounds.
func LikeTerms(query string) (terms string, count int) {
	var l list
	if words := heard(query); len(words) > 0 {
		l.likeHeard(words, strings.ContainsFunc(query, isTamil))
		return l.String(), l.count
	}
	words, typed := meant(query)
	l.like(words)
	if count = l.count; typed != nil {
		l.like(typed) // adds as many names as these words would find by themselves
		count = l.count - count
	}
	l.likeParts(partsOf(query)) // adds few, since they are whole names
	return l.String(), count
}

// like asks for names that are like the words of a query.
func (l *list) like(whole []string) {
	words := whole[:min(len(whole), likeWords)]
	switch len(words) {
	case 0:
	case 1:
		l.likeWord(words[0])
	default:
		for i := range words {
			l.likeOthers(words, i)
		}
		l.likeBegins(words, 0)
		if len(words) == 2 {
			l.likeBegins(words, 1)
		}
		l.likeSounds(words)
	}
	l.likeSynonyms(words)
	l.likeLess(whole)
	if other := otherWording(whole); other != nil {
		l.likeOtherwise(other)
	}
	if letters := lettersSpelled(whole); letters != nil {
		l.likeOtherwise(letters)
	}
	if letters := lettersHeard(whole); letters != nil {
		l.likeOtherwise(letters)
	}
	if at := initialsAt(whole); at >= 0 {
		l.likeLetterNames(whole, at)
	}
	if letters := leadingInitials(words); letters != "" {
		l.likeInitials(letters, words[1:])
	}
	for _, site := range sitesOf(whole) {
		l.likeSite(site)
	}
}

// likeParts asks for names that are a part of a query; see partsOf.
func (l *list) likeParts(parts []part) {
	var terms []string
	for _, p := range parts {
		terms = append(terms, p.text)
	}
	if terms != nil {
		l.unbounded(anyOf(markWhole, terms))
	}
}

// likeWords is how many words the expressions for several words use.
const likeWords = 4

func (l *list) likeWord(word string) {
	sound := soundKey(word)
	alike := quoted(markSound + sound)
	eachKey(word, func(key []byte) { alike += " OR " + quoted(markKey+string(key)) })
	begin, end := quoted(markBegin+word[:prefixLen(word, 2)]), quoted(word[suffixStart(word, gramLen):])
	if !hasRunes(word, longLen) {
		l.element("(" + alike + ")")
		return
	}
	l.element("(" + alike + ") AND (" + begin + " OR " + end + ")")
	if len(sound) >= soundLen {
		l.element(quoted(markSound + sound))
	}
	l.element(quoted(markBegin + beginning(word)))
	l.element(quoted(markBegin+word[:prefixLen(word, beginLen)]) + " AND " + end)
}

// FurtherTerms selects names that are less like the query, to compare if none that LikeTerms selects is alike. It
// returns a JSON array of expressions, NoTerms if there are none, and their number. They find a name
//   - whose first word is like the first of several, or like the first two joined, and that has a word
//     like the next one, so that both may be wrong;
//   - that has parts of a query of one word, or of two or three as one, spaces ignored: they are the name, or two of
//     its words, joined and misspelt.
func (s *Suggestions) FurtherTerms() (terms string, count int) {
	if s.heard {
		return NoTerms, 0
	}
	s.addWording(lookAlike(s.words)) // from now on, names are compared with that, too
	var l list
	l.further(s.words)
	l.further(s.typed)
	l.further(oneWord(s.words))
	return l.String(), l.count
}

// MisreadTerms is FurtherTerms for names that are like the query as a bad photo may show it; see lookAlike.
func (s *Suggestions) MisreadTerms() (terms string, count int) {
	var l list
	if words := lookAlike(s.words); words != nil && !s.heard {
		l.like(words)
	}
	return l.String(), l.count
}

func (l *list) further(words []string) {
	switch len(words) {
	case 0:
	case 1:
		if isPlainWord(words[0]) && len(words[0]) >= wideLen {
			l.likeJoined(words[0])
		}
	default:
		l.likeFirst(words)
		if len(words) > 2 { // the first two may be one word, and another one wrong
			l.likeFirst(append([]string{words[0] + words[1]}, words[2:]...))
		}
		if len(words) <= absentOf && len(words[0]) >= minLast {
			l.unbounded(anyOf(markKey, keysOf(words[0]))) // the shortest names come first, such as those of one word
		}
	}
}

// likeJoined asks for names with two of three parts of a long word, so that the third may have a mistake, or with its
// middle.
func (l *list) likeJoined(word string) {
	n := len(word)
	from := (n - wideLen) / 2
	begin, middle, end := quoted(word[:longLen]), quoted(word[from:from+wideLen]), quoted(word[n-longLen:])
	if l.element(middle); n < 2*wideLen {
		first := quoted(markStart + word[:1])
		l.element(begin + " AND " + first)
		l.element(end + " AND " + first)
		return
	}
	l.element(begin + " AND " + end)
	half := quoted(word[n/2 : n/2+longLen])
	l.element(begin + " AND " + half)
	l.element(end + " AND " + half)
}

// likeFirst asks for names whose first word has a key in common with the query's, and that have a word which begins or
// ends as the second one does. So both may be wrong.
func (l *list) likeFirst(words []string) {
	second := words[1]
	like := quoted(markBegin + second[:prefixLen(second, 2)])
	if isPlainWord(second) && !strings.ContainsAny(second, "aeiou") { // perhaps an abbreviation
		like = quoted(markBegin + second[:1])
	}
	if hasRunes(second, gramLen) {
		like = "(" + like + " OR " + quoted(second[suffixStart(second, gramLen):]) + ")"
	}
	l.unbounded("(" + anyOf(markKey, keysOf(words[0])) + ") AND " + like)
}

// keysOf returns the keys of a word, each once.
func keysOf(word string) (keys []string) {
	eachKey(word, func(key []byte) {
		if k := string(key); !has(keys, k) {
			keys = append(keys, k)
		}
	})
	return keys
}

// likeOthers asks for names that have all words but words[at], and one that begins or ends as that does, with one
// expression for each part of it that may be right. Several other words are asked for by pairs of their beginnings,
// which are rarer than common words.
func (l *list) likeOthers(words []string, at int) {
	word, others := words[at], append(words[:at:at], words[at+1:]...)
	known := pairsOf(others)
	switch {
	case len(others) > 1:
	case at == 0 && hasRunes(others[0], longBeginLen): // the last word may be unfinished, or a singular
		known = []string{quoted(markBegin + beginning(others[0]))}
	default:
		known = []string{quoted(markWord + others[0])}
	}
	if at == 0 || len(others) == 1 { // for three words and more, each at would ask for the same names: all words begin right
		l.all(append(known, quoted(pair(word, others[0]))))
	}
	if hasRunes(word, gramLen) {
		l.all(append(known, quoted(word[suffixStart(word, gramLen):])))
	}
	begin := quoted(pairBegin(others[0], word))
	if second := word[prefixLen(word, 1):]; second != "" { // the first letter may be one too many, or swapped
		begin += " OR " + quoted(pairBegin(others[0], second))
	}
	for _, alike := range [...]string{"zj", "jz", "jg", "gj"} { // another letter of the same sound
		if word[0] == alike[0] {
			begin += " OR " + quoted(pairBegin(others[0], alike[1:]))
		}
	}
	l.all(append(known, "("+begin+")"))
	if len(others) > 1 { // the word may be one too many, or wrong at both ends
		l.all(known)
	}
}

// pairsOf returns the terms of the pairs of neighbouring words.
func pairsOf(words []string) []string {
	terms := make([]string, 0, len(words)+1)
	for i := 1; i < len(words); i++ {
		terms = append(terms, quoted(pair(words[i-1], words[i])))
	}
	return terms
}

// likeBegins asks for names with a word that begins with three letters of words[at], and words that begin
// with the first letters of the others.
func (l *list) likeBegins(words []string, at int) {
	var terms []string
	for i, other := range words {
		if term := quoted(pairBegin(words[at], other)); i != at && !has(terms, term) {
			terms = append(terms, term)
		}
	}
	l.all(terms)
}

// likeSynonyms asks for names that have the words or their synonyms.
func (l *list) likeSynonyms(words []string) {
	var terms []string
	some := false
	for _, w := range words {
		term := quoted(markBegin + beginning(w)) // not whole: it may be misspelt
		if same := synonyms(w); same != nil {
			some = true
			term = "(" + anyOf(markWord, same) + ")"
		}
		terms = append(terms, term)
	}
	if some {
		l.all(terms)
	}
}

// likeLess asks for names that begin with a shortened query (see less) or with the first word.
func (l *list) likeLess(words []string) {
	if len(words) > 1 {
		first := "(" + nested([]string{quoted(markStart + beginning(words[0])), quoted(markWord + words[0])}) + ")"
		l.unbounded(isWhole(words[0]) + " OR " + first)
	}
	for _, kept := range less(words) {
		if len(kept) == 1 {
			continue
		}
		terms := []string{quoted(markStart + beginning(kept[0]))}
		for _, w := range kept {
			terms = append(terms, quoted(markWord+w))
		}
		l.all(terms)
	}
}

// less returns the words without the last one or two, without the first one or two, such as a place, and without both
// the first and the last, as long as at least two remain: fewer begin too many names. Of two words it returns the first.
func less(words []string) (kept [][]string) {
	const fewest = 2
	if n := len(words); n == fewest {
		kept = append(kept, words[:1])
	} else if n > fewest {
		kept = append(kept, words[:n-1], words[1:])
		if n-2 >= fewest {
			kept = append(kept, words[:n-2], words[2:], words[1:n-1])
		}
	}
	return kept
}

// isLongPlace reports whether two words are the name of a state or of the capital.
func isLongPlace(words []string) bool {
	return words[1] == "pradesh" || startsWith(words, []string{"new", "delhi"}) || startsWith(words, []string{"tamil", "nadu"}) || startsWith(words, []string{"west", "bengal"})
}

// quoted makes an expression in JSON of a term. Inlined, it would add 1.7 KB to the component (27 November 2026).
//
//go:noinline
func quoted(term string) string { return `\"` + term + `\"` }

// likeSounds asks for names with words that sound like the query's. Two of the query's words may sound like one of the
// name. Or the name has the first letters of the first word, spaces ignored, and words that sound like the others.
func (l *list) likeSounds(words []string) {
	expression := "(" + nested(soundsOf(words)) + ")"
	for i := 1; i < len(words); i++ {
		terms := []string{quoted(markSound + soundKey(words[i-1]+words[i]))} // the rarest
		for _, sound := range soundsOf(append(words[:i-1:i-1], words[i+1:]...)) {
			if !has(terms, sound) {
				terms = append(terms, sound)
			}
		}
		expression += " OR (" + nested(terms) + ")"
	}
	if hasRunes(words[0], longLen) { // the name may write the first word as two
		expression += " OR (" + nested(append([]string{quoted(words[0][:prefixLen(words[0], longLen)])}, soundsOf(words[1:])...)) + ")"
	}
	l.unbounded(expression)
}

func soundsOf(words []string) (terms []string) {
	for _, w := range words {
		if sound := quoted(markSound + soundKey(w)); !has(terms, sound) {
			terms = append(terms, sound)
		}
	}
	longestFirst(terms)
	return terms
}

// longestFirst sorts a few terms: the longest are mostly the rarest. It adds as little to the component as it can:
// slices.SortFunc added 3.1 KB (30 November 2026).
func longestFirst(terms []string) {
	for i := range terms {
		for ; i > 0 && len(terms[i]) > len(terms[i-1]); i-- {
			terms[i], terms[i-1] = terms[i-1], terms[i]
		}
	}
}

// all asks for names that match all of the expressions, the rarest first if possible. FTS5 reads the lists of all parts
// of an AND in step, so the ANDs are nested: a common part is read only at the names that match the parts before it.
// This takes a half to a fifth of the time. The NOT between them keeps FTS5 from flattening the nested ANDs.
func (l *list) all(expressions []string) { l.unbounded(nested(expressions)) }

func nested(expressions []string) string {
	all := expressions[0]
	for i, expression := range expressions[1:] {
		if i > 0 {
			all = "((" + all + ") NOT " + noName + ")"
		}
		all += " AND " + expression
	}
	return all
}

// noName is a term that no name has.
const noName = `\"` + markSound + `\"`

// suggestible returns the words of a query by which similar names are found. It leaves out the legal ending and what
// follows it, such as an address, the words of leading, the path of a site's address, a pincode at the end, a place of two
// words there after two or more others, and common words.
func suggestible(query string) []string {
	words := strings.Split(query, " ")
	words = words[:len(words)-endingOf(words)]
	for n := len(words); n > 1 && (nearly(words[n-1], private) || nearly(words[n-1], limited)); n-- {
		words = words[:n-1]
	}
	address := has(schemes, words[0])
	for len(words) > 1 && has(leading, words[0]) {
		words = words[1:]
	}
	if address { // leave out its path
		words = words[:len(words)-pathOf(words)]
	}
	words = words[:len(words)-phoneOf(words)]
	if last := words[len(words)-1]; len(words) > 1 && isPincode(last) {
		words = words[:len(words)-1]
	}
	if n := len(words); n > 3 && isLongPlace(words[n-2:]) {
		words = words[:n-2]
	}
	kept := make([]string, 0, len(words))
	for i, w := range words {
		if i > 0 && (w == limited || w == "llp") {
			break
		}
		if w != "" && !isCommon(w) && len(kept) < maxSounds && (!has(kept, w) || lettersOf(w, false) != "" || isNumeral(w)) {
			kept = append(kept, w)
		}
	}
	return kept
}

// meant returns the suggestible words of a query as they were probably meant: digits that were misread for letters are
// replaced, and what follows a word of behind or "group of companies" is cut off, as is a place of two words after one. typed
// are the words before that, nil if they are the same. The address of a site stays as it is.
func meant(query string) (words, typed []string) {
	typed = suggestible(query)
	if sitesOf(typed) != nil {
		return typed, nil
	}
	words = slices.Clone(typed)
	for i, w := range words {
		cut := len(words) == maxSounds && startsWith(groupOfCompanies, words[i:]) // by suggestible, after "group" or "of"
		place := i == 1 && len(words) == 3 && isLongPlace(words[1:])
		if i > 0 && (has(behind, w) || startsWith(words[i:], groupOfCompanies) || cut || place) {
			words = words[:i]
			break
		}
		words[i] = misread(w)
	}
	if slices.Equal(words, typed) {
		return words, nil
	}
	return words, typed
}

// leading are words before a name that are not part of it: "M/s" in full, the beginning of a site's address or of "CIN
// number of".
var leading = []string{"the", "messrs", "http", "https", "www", "cin", "formerly", "erstwhile"}

// behind are words after which a query seldom has more of the name: a former name, a tax number.
var behind = []string{"formerly", "erstwhile", "gstin"}

var groupOfCompanies = []string{"group", "of", "companies"}

func isPincode(word string) bool {
	return len(word) == 6 && word[0] != '0' && isNumber(word)
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

// phoneOf returns how many words at the end are a phone number: numbers with at least eight digits together. A short number
// before that many digits is part of the name, unless it is an area code, such as 022, or India's country code.
func phoneOf(words []string) int {
	const fewest, longest = 8, 3
	n, digits := len(words), 0
	for ; n > 1 && isNumber(words[n-1]); n-- {
		if digits >= fewest && len(words[n-1]) <= longest && words[n-1] != "91" && words[n-1][0] != '0' {
			break
		}
		digits += len(words[n-1])
	}
	if digits < fewest {
		return 0
	}
	return len(words) - n
}

// nearly reports whether a word is a misspelling or the beginning of the other.
func nearly(word, other string) bool {
	return hasRunes(word, beginLen) && (strings.HasPrefix(other, word) || len(word) > 4 && distance(word, other, 2) <= 2)
}
