package names

import (
	"strings"
)

// Forgiven is a query as the last tier reads it: for names that contain each of its words, where singular and
// plural are the same, words may be joined or split, and "and" does not count.
type Forgiven struct {
	// Terms selects the candidates; NoTerms if the query has no word of minInside characters.
	Terms string
	// Inside are words to find anywhere in a name, spaces ignored; Begins, words to find at
	// the beginning of a word. Both are JSON arrays.
	Inside, Begins string
	// Start is what the best matches begin with, spaces and "and" ignored: the query's words up to the first
	// plural, which is cut to its singular.
	Start string
}

// minInside is the least length of a word that is looked for inside other words. Shorter ones would be found
// in any name.
const minInside = 4

// Forgive reads a query that Query made.
func Forgive(query string) Forgiven {
	words := strings.Split(query, " ")
	words = words[:len(words)-endingOf(words)]
	kept := make([]string, 0, len(words))
	for _, w := range words {
		if w != "and" {
			kept = append(kept, w)
		}
	}
	var terms, inside, begins list
	start, cut := "", false
	stems := make([]string, 0, len(kept))
	for _, w := range joinInitials(kept) {
		stem := singular(w)
		if !cut {
			start, cut = start+stem, stem != w
		}
		if has(stems, stem) {
			continue
		}
		stems = append(stems, stem)
		switch {
		case !hasRunes(stem, minInside):
			begins.word(stem)
		case strings.Contains(private+limited, stem):
			inside.word(stem)
			terms.addOrEnd(stem[:prefixLen(stem, gramLen)])
		default:
			inside.word(stem)
			terms.runs(stem)
		}
	}
	return Forgiven{Terms: terms.String(), Inside: inside.String(), Begins: begins.String(), Start: start}
}

// endingOf returns how many of the last words are a legal ending, or the beginning of one.
func endingOf(words []string) int {
	n := 0
	for n+1 < len(words) {
		switch words[len(words)-1-n] {
		case private, limited, "llp", "opc":
			n++
		default:
			return n
		}
	}
	return n
}

// word adds a word to a list of words.
func (l *list) word(w string) {
	if l.count++; l.count > 1 {
		l.text = append(l.text, ',')
	}
	l.text = append(append(append(l.text, '"'), w...), '"')
}

// runs asks for the first and the last run of a word of at least minInside characters.
func (l *list) runs(word string) {
	size := gramLen
	switch {
	case hasRunes(word, wideLen):
		size = wideLen
	case hasRunes(word, longLen):
		size = longLen
	}
	l.addOwn(word[:prefixLen(word, size)])
	l.addOwn(word[suffixStart(word, size):])
}

// singular cuts the ending of a plural off a word, so that what is left begins both forms.
func singular(word string) string {
	for _, plural := range [...]string{"ies", "y"} { // industries, industry
		if stem, ok := strings.CutSuffix(word, plural); ok && hasRunes(stem, minInside) {
			return stem
		}
	}
	stem, ok := strings.CutSuffix(word, "s")
	if !ok || !hasRunes(stem, minInside) || strings.HasSuffix(stem, "s") {
		return word
	}
	for _, hiss := range [...]string{"se", "xe", "ze", "che", "she"} { // boxes, box
		if strings.HasSuffix(stem, hiss) {
			return stem[:len(stem)-1]
		}
	}
	return stem
}
