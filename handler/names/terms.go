package names

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The search index holds a set of terms for each name. A tier of the search asks for the names
// that have certain terms, and then compares their text. AppendTerms makes all of these terms;
// query.go asks for them. The kinds do not collide, since a form has no marks. Examples are of
// TATA STEEL PRIVATE LIMITED, but the one before the last of TATA COMPANY; "the ending" is
// private limited:
//
//	term             stands for                   made from                       asked for by
//	=steel           a word                       each word before the ending     StartTerms, PhraseTerms and
//	                                                                              WordsTerms: complete words
//	.s .st .ste      the beginning of a word      each word before the ending     the same: the last word
//	.steel           (1, 2, 3, 5 characters)
//	^t ^ta ^tat      the beginning of the name    the first word                  StartTerms: the first word
//	                 (the same lengths)
//	ta_s ta_st       the end of a word and the    neighbouring words, the last    StartTerms, PhraseTerms: queries
//	                 beginning of the next one    with private                    under 8 characters
//	ste.tat tat.s    the beginnings of two words  words at most pairReach apart   the same, and WordsTerms: each
//	ste.t            in any order                 before the ending               two words
//	stee             four characters in a row,    the name without spaces, with   InsideTerms: queries of 3 and 4;
//	                 spaces ignored               3 characters of the ending      others: a last word of 4
//	steel            five                         the same with 4                 InsideTerms: queries of 5 to 7;
//	                                                                              others: a last word of 6 or 7
//	tatastee         eight                        the same with 7                 all: queries, or last words, of
//	                                                                              8 and more
//	any              the last three characters    names without the ending        InsideTerms: queries of 3
//	!tatasteel       the name                     its first wholeLen characters,  ExactTerms, LikeTerms
//	                                              spaces and legal ending left out
//	~tt ~stl         the sound of a word          each word before the ending     LikeTerms
//	~^tt ~^tat       keys of the first word       the first word                  LikeTerms: a single word
//	$                the ending                   names with it                   PhraseTerms, WordsTerms and
//	                                                                              InsideTerms: with a term that
//	                                                                              may lie within the ending
//
// Five names of six end in private limited. So the terms within it, and the pairs with its
// words, are not in the index, and a query asks for its own term or for $. docs/search.md,
// "Terms", has the same table.
const (
	markWord  = "="
	markBegin = "." // of a word, and between the words of a pair
	markStart = "^"
	markJoint = "_"
	markEnd   = "$" // private limited
	markWhole = "!"
	markSound = "~"
	markKey   = markSound + markStart

	// TermMarks are the characters that the index's tokenizer must accept in a term, besides ASCII letters and
	// digits and everything outside ASCII.
	TermMarks = "=.^_$!~"
)

const (
	private        = "private"
	limited        = "limited"
	privateLimited = private + " " + limited
)

// Lengths of terms, in characters. A query asks for the longest terms that it has, which the fewest names share;
// the others serve short queries.
const (
	beginLen     = 3 // the longest of the short beginnings
	longBeginLen = 5
	jointLen     = 2 // of the first word; of the second, 1 and 2
	gramLen      = 4
	longLen      = 5
	wideLen      = 8
	wholeLen     = 32
)

// pairReach is how far back a word forms pairs with the words before it. It covers every registered name known, and
// keeps a name of a thousand words from making a million pairs.
const pairReach = 16

// AppendTerms appends the terms of a form that Name made, a space after each. A term may be
// repeated.
func AppendTerms(dst []byte, form string) []byte {
	if form == "" {
		return dst
	}
	core, cut := strings.CutSuffix(form, " "+privateLimited)
	words := strings.Split(core, " ")
	for i, word := range words {
		dst = appendTerm(dst, markWord, word)
		dst = appendBegins(dst, markBegin, word)
		dst = appendSounds(dst, word, i == 0)
		if i == 0 {
			dst = appendBegins(dst, markStart, word)
		} else {
			dst = appendJoints(dst, words[i-1], word)
		}
		for _, other := range words[max(0, i-pairReach):i] {
			dst = appendPairs(dst, word, other)
		}
	}
	run := Squeeze(core)
	if !cut {
		dst = appendTerm(dst, markWhole, whole(form))
		dst = appendGrams(dst, run, gramLen-1)
		return appendRuns(appendRuns(dst, run, longLen), run, wideLen)
	}
	dst = appendTerm(dst, markWhole, whole(form))
	dst = appendJoints(dst, words[len(words)-1], privateLimited)
	dst = appendGrams(dst, run+privateLimited[:gramLen-1], gramLen)
	dst = appendRuns(dst, run+privateLimited[:longLen-1], longLen)
	dst = appendRuns(dst, run+privateLimited[:wideLen-1], wideLen)
	return appendTerm(dst, markEnd, "")
}

// legalEndings are the endings that a query may leave out of a name that it equals: the longer ones
// first.
var legalEndings = []string{" opc private limited", " private limited", " limited", " llp"}

// whole returns a form without legal ending and spaces, cut to wholeLen.
func whole(form string) string {
	text := Squeeze(withoutEnding(form))
	return text[:prefixLen(text, wholeLen)]
}

func withoutEnding(form string) string {
	for _, ending := range legalEndings {
		if core, ok := strings.CutSuffix(form, ending); ok {
			return core
		}
	}
	return form
}

// Terms lists the terms of a form that Name made, sorted, each once.
func Terms(form string) []string {
	list := strings.Fields(string(AppendTerms(nil, form)))
	slices.Sort(list)
	return slices.Compact(list)
}

func appendTerm(dst []byte, mark, text string) []byte {
	dst = append(dst, mark...)
	dst = append(dst, text...)
	return append(dst, ' ')
}

// appendBegins appends the beginnings of word, which is not empty, with mark.
func appendBegins(dst []byte, mark, word string) []byte {
	for n := 1; n <= beginLen; n++ {
		end := prefixLen(word, n)
		dst = appendTerm(dst, mark, word[:end])
		if end == len(word) {
			return dst
		}
	}
	if hasRunes(word, longBeginLen) {
		dst = appendTerm(dst, mark, word[:prefixLen(word, longBeginLen)])
	}
	return dst
}

// appendJoints appends the terms of two neighbouring words.
func appendJoints(dst []byte, before, word string) []byte {
	for n := 1; n <= jointLen; n++ {
		dst = appendTerm(dst, "", joint(before, word, n))
	}
	return dst
}

// joint is the term of two neighbouring words, with n characters of the second.
func joint(before, word string, n int) string {
	return before[suffixStart(before, jointLen):] + markJoint + word[:prefixLen(word, n)]
}

// appendPairs appends the terms of two words of a name.
func appendPairs(dst []byte, one, other string) []byte {
	dst = appendTerm(dst, "", pair(one, other))
	dst = appendTerm(dst, "", pairBegin(one, other))
	return appendTerm(dst, "", pairBegin(other, one))
}

// pair is the term of two words in any order.
func pair(one, other string) string {
	one, other = one[:prefixLen(one, beginLen)], other[:prefixLen(other, beginLen)]
	return min(one, other) + markBegin + max(one, other)
}

// pairBegin is the term of a word and the first character of another one.
func pairBegin(word, other string) string {
	return word[:prefixLen(word, beginLen)] + markBegin + other[:prefixLen(other, 1)]
}

// appendGrams appends each run of gramLen characters of text, and the shorter ones at its end of at least shortest
// characters. Three ASCII characters before one outside ASCII are a term too, since a search for three characters
// asks only for runs with an ASCII character after them (see list.addShort).
func appendGrams(dst []byte, text string, shortest int) []byte {
	for i := range text {
		if !hasRunes(text[i:], shortest) {
			break
		}
		gram := text[i : i+prefixLen(text[i:], gramLen)]
		dst = appendTerm(dst, "", gram)
		if n := prefixLen(gram, gramLen-1); n == gramLen-1 && n < len(gram) && gram[n] >= utf8.RuneSelf {
			dst = appendTerm(dst, "", gram[:n])
		}
	}
	return dst
}

// appendRuns appends each run of size characters of text.
func appendRuns(dst []byte, text string, size int) []byte {
	for i := range text {
		if !hasRunes(text[i:], size) {
			break
		}
		dst = appendTerm(dst, "", text[i:i+prefixLen(text[i:], size)])
	}
	return dst
}

// hasRunes reports whether s, which is not empty, has at least n characters.
func hasRunes(s string, n int) bool { return prefixLen(s, n-1) < len(s) }

// prefixLen returns the length in bytes of the first n characters of s, or of all of s. It is not inlined: the component is
// 2.7 KB smaller (30 November 2026).
//
//go:noinline
func prefixLen(s string, n int) int {
	size := 0
	for ; n > 0 && size < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[size:])
		size += w
	}
	return size
}

// suffixStart returns the index of the last n characters of s. It is not inlined: the component is 1.2 KB smaller (30 November
// 2026).
//
//go:noinline
func suffixStart(s string, n int) int {
	start := len(s)
	for ; n > 0 && start > 0; n-- {
		_, w := utf8.DecodeLastRuneInString(s[:start])
		start -= w
	}
	return start
}
