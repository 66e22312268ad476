package names

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The search index holds a set of terms for each name; a search asks for the names that
// have all terms of a query, and then compares the text. The kinds of terms do not
// collide, for no form holds a mark:
//
//	=steel               the word steel
//	.s .st .ste .steel   a word that begins so
//	^s ^st ^ste ^steel   the name begins so
//	ta_s ta_st           a word that ends so stands before one that begins so
//	tat.s ste.t ste.tat  two words begin so, in any order
//	stee steel tatastee  four, five and eight characters in a row, spaces ignored, and the
//	                     last three
//	$                    the name ends in private limited
//
// The terms that lie wholly within that ending are left out of the index, for five names
// of six have it, and a query asks for them or for "$". So are pairs with its words.
const (
	markWord  = "="
	markBegin = "."
	markStart = "^"
	markJoint = "_"

	// TermMarks are the characters that the index's tokenizer must take as parts of a
	// term, besides ASCII letters and digits and everything outside ASCII.
	TermMarks = "=.^_$"
)

const (
	private        = "private"
	limited        = "limited"
	privateLimited = private + " " + limited
	privateTerm    = "$"
)

// How many characters of the beginning of a word or a name, of each side of a joint,
// and of a run make a term. A query long enough for longer runs asks for these, which fewer
// names have; the others are for queries of a few characters.
const (
	beginLen     = 3 // and all below it
	longBeginLen = 5
	jointLen     = 2 // and the first character of the second side
	gramLen      = 4
	longLen      = 5
	wideLen      = 8
)

// pairReach is how many words before a word make pairs with it: all of any name that is
// known to be registered, but not so many that a name of a thousand words has a million pairs.
const pairReach = 16

// AppendTerms appends the terms of a form that Name made, a space after each. A term may
// come more than once.
func AppendTerms(dst []byte, form string) []byte {
	if form == "" {
		return dst
	}
	core, cut := strings.CutSuffix(form, " "+privateLimited)
	words := strings.Split(core, " ")
	dst = appendBegins(dst, markStart, words[0])
	for i, word := range words {
		dst = appendTerm(dst, markWord, word)
		dst = appendBegins(dst, markBegin, word)
		if i > 0 {
			dst = appendJoints(dst, words[i-1], word)
		}
		for _, other := range words[max(0, i-pairReach):i] {
			dst = appendPairs(dst, word, other)
		}
	}
	run := Squeeze(core)
	if !cut {
		dst = appendGrams(dst, run, gramLen-1)
		return appendLong(appendLong(dst, run, longLen), run, wideLen)
	}
	dst = appendJoints(dst, words[len(words)-1], privateLimited)
	dst = appendTerm(dst, privateTerm, "")
	dst = appendGrams(dst, run+privateLimited[:gramLen-1], gramLen)
	dst = appendLong(dst, run+privateLimited[:longLen-1], longLen)
	return appendLong(dst, run+privateLimited[:wideLen-1], wideLen)
}

func appendTerm(dst []byte, mark, text string) []byte {
	dst = append(dst, mark...)
	dst = append(dst, text...)
	return append(dst, ' ')
}

// appendBegins appends the beginnings of word under mark.
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

// hasRunes reports whether s, which is not empty, has at least n characters.
func hasRunes(s string, n int) bool { return prefixLen(s, n-1) < len(s) }

// appendJoints appends the terms of two words that stand side by side.
func appendJoints(dst []byte, before, word string) []byte {
	for n := 1; n <= jointLen; n++ {
		dst = appendTerm(dst, "", joint(before, word, n))
	}
	return dst
}

// joint is the term of two words that stand side by side, with n characters of the second.
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

// pairBegin is the term of a word and of another one's first character.
func pairBegin(word, other string) string {
	return word[:prefixLen(word, beginLen)] + markBegin + other[:prefixLen(other, 1)]
}

// appendGrams appends each run of gramLen characters of text, and the shorter ones at its
// end that have at least shortest. Three ASCII characters before another one are a term
// too, for a search for the three asks for what may follow them in ASCII only.
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

// appendLong appends each run of size characters of text.
func appendLong(dst []byte, text string, size int) []byte {
	for i := range text {
		if !hasRunes(text[i:], size) {
			break
		}
		dst = appendTerm(dst, "", text[i:i+prefixLen(text[i:], size)])
	}
	return dst
}

// prefixLen is the length in bytes of the first n characters of s, or of all of it.
func prefixLen(s string, n int) int {
	size := 0
	for ; n > 0 && size < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[size:])
		size += w
	}
	return size
}

// suffixStart is where the last n characters of s start.
func suffixStart(s string, n int) int {
	start := len(s)
	for ; n > 0 && start > 0; n-- {
		_, w := utf8.DecodeLastRuneInString(s[:start])
		start -= w
	}
	return start
}

// Terms lists the terms of a form that Name made, each once.
func Terms(form string) []string {
	list := strings.Fields(string(AppendTerms(nil, form)))
	slices.Sort(list)
	return slices.Compact(list)
}
