package names

import (
	"slices"
	"strings"
)

// A part of a query is words in a row that may be a whole name among others, spaces ignored: the party of a lawsuit, a
// line of a form, a payment or a list, the name of a file or an account.
type part struct {
	text string
	left int    // how many words of the query it leaves out
	word string // itself, if it is one word of the query, not the last, without a legal ending
}

const (
	// minPart is the least length of a part, in bytes: a name is longer than most words that may stand about one.
	minPart = 9
	// minLast is the same for one word that ends the query or has a legal ending behind it, as in CEO Emperos. Of 65,000 names, 20 end with a
	// word of this length that is another company's whole name.
	minLast = 6
	// maxParts bounds them, since each is looked up in the index. The words of a query share them, so that a name at its end has some,
	// too: of 20 words each begins at least three, which are names of two to four words.
	maxParts = 64
)

// partsOf returns the parts of a query of several words, in the form that whole has for names.
func partsOf(query string) (parts []part) {
	words := strings.Split(query, " ")
	for from := range words {
		text, share := "", (maxParts-len(parts)+len(words)-from-1)/(len(words)-from)
		for to := from; to < len(words) && len(text) < wholeLen && share > 0; to++ {
			w, ends := words[to], to == len(words)-1
			if w == private || w == limited || w == "llp" {
				ends = true
			} else {
				text += w
			}
			if len(text) < minPart && (!ends || text != words[from] || len(text) < minLast) || to-from == len(words)-1 {
				continue
			}
			p := part{text: text[:prefixLen(text, wholeLen)], left: len(words) - 1 - to + from}
			if to == from && !ends {
				p.word = text
			}
			if at := slices.IndexFunc(parts, func(other part) bool { return other.text == p.text }); at >= 0 {
				if p.left < parts[at].left { // it has its legal ending behind it
					parts[at] = p
				}
				continue
			}
			parts = append(parts, p)
			share--
		}
	}
	return parts
}

// partCost is the cost of a name that is a part of the query. It reports false for any other name, and for a name of
// one word that is one of the query's, unless it is the last or has a legal ending there.
func (s *Suggestions) partCost(name string) (sum int, ok bool) {
	if s.parts == nil {
		return 0, false
	}
	text := whole(name)
	for _, p := range s.parts {
		if p.text == text && (p.word == "" || !strings.HasPrefix(name, p.word)) {
			return costAbsent + p.left, true
		}
	}
	return 0, false
}
