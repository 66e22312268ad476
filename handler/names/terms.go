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
//	=steel        the word steel
//	.s .st .ste   a word that begins so
//	^s ^st ^ste   the name begins so
//	ta_st         a word that ends so stands before one that begins so
//	stee steel    four and five characters in a row, spaces ignored, and the last three
//	$             the name ends in private limited
//
// The terms that lie wholly within that ending are left out of the index, for five names
// of six have it, and a query asks for them or for "$".
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
	privateLimited = "private limited"
	privateTerm    = "$"
	privateTerms   = " =private =limited .p .pr .pri .l .li .lim te_li " +
		"priv riva ivat vate atel teli elim limi imit mite ited " +
		"priva rivat ivate vatel ateli telim elimi limit imite mited "
)

// How many characters of the beginning of a word or a name, of each side of a joint,
// and of a run make a term. A query long enough for the longer runs asks for them, which a
// tenth as many names have; the others are for queries of three and four characters.
const (
	beginLen = 3
	jointLen = 2
	gramLen  = 4
	longLen  = 5
)

// AppendTerms appends the terms of a form that Name made, a space after each. A term may
// come more than once.
func AppendTerms(dst []byte, form string) []byte {
	if form == "" {
		return dst
	}
	core, private := strings.CutSuffix(form, " "+privateLimited)
	before := ""
	for word := range strings.SplitSeq(core, " ") {
		if before == "" {
			dst = appendBegins(dst, markStart, word)
		} else {
			dst = appendTerm(dst, "", joint(before, word))
		}
		dst = appendTerm(dst, markWord, word)
		dst = appendBegins(dst, markBegin, word)
		before = word
	}
	run := Squeeze(core)
	if !private {
		return appendLong(appendGrams(dst, run, gramLen-1), run)
	}
	dst = appendTerm(dst, "", joint(before, privateLimited))
	dst = appendTerm(dst, privateTerm, "")
	dst = appendGrams(dst, run+privateLimited[:gramLen-1], gramLen)
	return appendLong(dst, run+privateLimited[:longLen-1])
}

func appendTerm(dst []byte, mark, text string) []byte {
	dst = append(dst, mark...)
	dst = append(dst, text...)
	return append(dst, ' ')
}

// appendBegins appends the beginnings of word, up to beginLen characters, under mark.
func appendBegins(dst []byte, mark, word string) []byte {
	for n := 1; n <= beginLen; n++ {
		end := prefixLen(word, n)
		dst = appendTerm(dst, mark, word[:end])
		if end == len(word) {
			break
		}
	}
	return dst
}

// joint is the term of two words that stand side by side.
func joint(before, word string) string {
	return before[suffixStart(before, jointLen):] + markJoint + word[:prefixLen(word, jointLen)]
}

// appendGrams appends each run of gramLen characters of text, and the shorter ones at its
// end that have at least shortest. Three ASCII characters before another one are a term
// too, for a search for the three asks for what may follow them in ASCII only.
func appendGrams(dst []byte, text string, shortest int) []byte {
	for i := range text {
		if prefixLen(text[i:], shortest-1) == len(text)-i {
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

// appendLong appends each run of longLen characters of text.
func appendLong(dst []byte, text string) []byte {
	for i := range text {
		if prefixLen(text[i:], longLen-1) == len(text)-i {
			break
		}
		dst = appendTerm(dst, "", text[i:i+prefixLen(text[i:], longLen)])
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
