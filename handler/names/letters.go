package names

import (
	"slices"
	"strings"
)

type letterName struct{ letter, name string }

// letterNames are the names of letters as companies spell their initials, as in Vee Kay for VK. I, O and U are hardly spelled.
// A name that another begins with comes after it.
var letterNames = [...]letterName{
	{"a", "aay"}, {"a", "ay"}, {"b", "bee"}, {"c", "cee"}, {"d", "dee"}, {"e", "ee"}, {"f", "eff"}, {"g", "gee"}, {"g", "jee"},
	{"h", "aitch"}, {"j", "jay"}, {"k", "kay"}, {"l", "ell"}, {"l", "el"}, {"m", "em"}, {"n", "en"}, {"p", "pee"}, {"r", "aar"},
	{"r", "ar"}, {"s", "ess"}, {"s", "es"}, {"t", "tee"}, {"v", "vee"}, {"x", "ex"}, {"y", "wye"}, {"z", "zed"}, {"z", "zee"},
}

// namesOf returns the names of a letter.
func namesOf(letter string) (spelled []string) {
	for _, n := range letterNames {
		if n.letter == letter {
			spelled = append(spelled, n.name)
		}
	}
	return spelled
}

// maxInitials is how many letters are spelled out. Three with a vowel are mostly a word.
const maxInitials = 3

// initialsAt returns the first of several words that may be initials whose names a name has, -1 if none may.
func initialsAt(words []string) int {
	if len(words) < 2 {
		return -1
	}
	return slices.IndexFunc(words, func(w string) bool {
		if len(w) < 2 || len(w) > maxInitials || len(w) == maxInitials && strings.ContainsAny(w, "aeiou") {
			return false
		}
		for i := range len(w) {
			if namesOf(w[i:i+1]) == nil {
				return false
			}
		}
		return true
	})
}

// letterNamesIn returns the words with the names of letters for the first initials, nil if there are none.
func letterNamesIn(words []string) []string {
	at := initialsAt(words)
	if at < 0 {
		return nil
	}
	spelled := slices.Clone(words[:at])
	for i := range len(words[at]) {
		spelled = append(spelled, namesOf(words[at][i : i+1])[0])
	}
	spelled = append(spelled, words[at+1:]...)
	return spelled[:min(len(spelled), maxSounds)]
}

// lettersSpelled returns the words with letters for the first two names of letters or more in a row, which may be one word,
// and for single letters after them: "vk" for "vee kay". It returns nil if there are none.
func lettersSpelled(words []string) []string {
	for i := range words {
		letters, n := "", i
		for ; n < len(words); n++ {
			more := lettersOf(words[n])
			if more == "" && letters != "" && len(words[n]) == 1 {
				more = words[n]
			}
			if more == "" {
				break
			}
			letters += more
		}
		if len(letters) > 1 && n-i < len(words) {
			return slices.Concat(words[:i], []string{letters}, words[n:])
		}
	}
	return nil
}

// lettersOf returns the letters whose names, one after another, are a word; "" if it is something else. The first name that
// fits is the right one: where a shorter one fits too, its rest begins no other name. It does not call itself, since the
// component's stack is too small for a word of a dozen names.
func lettersOf(word string) (letters string) {
	for word != "" {
		at := slices.IndexFunc(letterNames[:], func(n letterName) bool { return strings.HasPrefix(word, n.name) })
		if at < 0 {
			return ""
		}
		letters += letterNames[at].letter
		word = word[len(letterNames[at].name):]
	}
	return letters
}

// likeLetterNames asks for names that have the names of the letters of words[at], as words or as one, and the other words.
func (l *list) likeLetterNames(words []string, at int) {
	var each []string
	joined := ""
	for i := range len(words[at]) {
		spelled := namesOf(words[at][i : i+1])
		joined += spelled[0]
		if term := "(" + anyOf(markWord, spelled) + ")"; !slices.Contains(each, term) {
			each = append(each, term)
		}
	}
	terms := []string{"(" + strings.Join(each, " AND ") + " OR " + quoted(markWord+joined) + ")"}
	for i, w := range words[:min(len(words), maxSounds)] {
		term := quoted(markBegin + beginning(w))
		if i != at && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	l.all(terms)
}

// leadingInitials returns the letters with which the first words of a name may begin, if the first of several words is such:
// "gs" of GS Telecommunication. It returns "" for other queries.
func leadingInitials(words []string) string {
	if len(words) < 2 || len(words[0]) < 2 || len(words[0]) > maxInitials || !isPlainWord(words[0]) ||
		len(words[0]) == maxInitials && strings.ContainsAny(words[0], "aeiou") {
		return ""
	}
	return words[0]
}

// likeInitials asks for names that begin with the first of the letters, have words with the others, and the other words.
func (l *list) likeInitials(letters string, others []string) {
	var terms []string
	for i := range len(letters) {
		if term := quoted(pairBegin(others[0], letters[i:i+1])); !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	for _, w := range others {
		if term := quoted(markBegin + beginning(w)); !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	l.all(append(terms, quoted(markStart+letters[:1])))
}

// initialsCost is the cost of a name whose first words begin with the letters and that has the query's other words after
// them. It reports false for any other.
func (s *Suggestions) initialsCost(name string) (sum int, ok bool) {
	var room [maxNameWords]string
	words := appendWords(room[:0], name)
	n := len(s.letters)
	if len(words) <= n {
		return 0, false
	}
	for i := range n {
		if words[i][0] != s.letters[i] {
			return 0, false
		}
	}
	sum = costBegun
	for i, typed := range s.words[1:] {
		cost := costAbsent
		for _, word := range words[n:] {
			cost = min(cost, s.wordCost(typed, word, i == len(s.words)-2))
		}
		if cost == costAbsent {
			return 0, false
		}
		sum += cost
	}
	return sum + costExtra*max(0, len(words)-n-len(s.words)+1), true
}
