package names

import "strings"

// Lengths of acronyms, in letters. Two letters fit too many names.
const (
	minAcronym = 3
	maxAcronym = 8
)

// byInitial lists the letters by how many words of names begin with them, the fewest first.
const byInitial = "xqyzujwvnkgodbrefhtmilcpas"

// minor are words that an acronym may skip: as ONGC and SAIL skip "and" and "of", and as most skip legal endings.
const minor = " and of the for in to " + privateLimited + " llp opc "

// Acronym is a query of one word, with or without a legal ending, that may be the first letters of a name's words, as
// tngcl is for TRIPURA NATURAL GAS CO LTD.
type Acronym struct {
	// Terms is an FTS5 expression for names with words of these first letters; Pattern is a GLOB pattern for those that
	// have them in this order.
	Terms, Pattern string

	letters string
}

// AcronymOf reads a form that Query made. It reports false if the form is no acronym.
func AcronymOf(query string) (Acronym, bool) {
	query = withoutEnding(query)
	if !isPlainWord(query) || len(query) < minAcronym || len(query) > maxAcronym {
		return Acronym{}, false
	}
	own := query // without the letters of a legal ending, which has no terms
	if n := len(query) - 1; query[n] == 'l' && n >= minAcronym {
		if own = query[:n]; query[n-1] == 'p' && n > minAcronym {
			own = query[:n-1]
		}
	}
	terms := `"` + markStart + own[:1] + `"`
	for i := range byInitial {
		if letter := byInitial[i : i+1]; strings.Contains(own[1:], letter) {
			terms = `(` + terms + ` AND "` + markBegin + letter + `") NOT "` + markSound + `"` // see list.all
		}
	}
	pattern := query[:1]
	for i := 1; i < len(query); i++ {
		pattern += "* " + query[i:i+1]
	}
	return Acronym{terms, pattern + "*", query}, true
}

// IsOnly reports whether the acronym can hardly be a misspelt word: it has no vowels.
func (a Acronym) IsOnly() bool { return !strings.ContainsAny(a.letters, "aeiou") }

// Matches reports whether the acronym is the first letters of the words of a form that Name made.
func (a Acronym) Matches(name string) bool { return a.areOf(name, false) || a.areOf(name, true) }

// areOf is Matches for one way of reading minor words: with also, they give a letter wherever it fits; without, they
// are skipped, except those of "private limited".
func (a Acronym) areOf(name string, also bool) bool {
	at := 0
	for name != "" {
		var word string
		word, name = cutWord(name)
		isMinor := strings.Contains(minor, " "+word+" ")
		switch {
		case at < len(a.letters) && word[0] == a.letters[at] && (also || !isMinor || strings.Contains(privateLimited, word)):
			at++
		case !isMinor:
			return false
		}
	}
	return at == len(a.letters)
}
