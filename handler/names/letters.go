package names

import (
	"slices"
	"strings"
)

type letterName struct{ letter, name string }

// letterNames are the names of letters as companies spell out their initials, such as Vee Kay for VK. I, O and U are
// hardly ever spelled out. A name stands after the longer ones that begin with it.
var letterNames = [...]letterName{
	{"a", "aay"}, {"a", "ay"}, {"b", "bee"}, {"c", "cee"}, {"d", "dee"}, {"e", "ee"}, {"f", "eff"}, {"g", "gee"}, {"g", "jee"},
	{"h", "aitch"}, {"j", "jay"}, {"k", "kay"}, {"l", "ell"}, {"l", "el"}, {"m", "em"}, {"n", "en"}, {"p", "pee"}, {"r", "aar"},
	{"r", "ar"}, {"s", "ess"}, {"s", "es"}, {"t", "tee"}, {"v", "vee"}, {"x", "ex"}, {"y", "wye"}, {"z", "zed"}, {"z", "zee"},
}

// heardAs are words that sound like the name of a letter.
var heardAs = [...]letterName{
	{"c", "see"}, {"i", "eye"}, {"o", "oh"}, {"q", "cue"}, {"r", "are"}, {"t", "tea"}, {"u", "you"}, {"y", "why"},
}

// namesOf returns the ways to spell out a letter.
func namesOf(letter string) (spelled []string) {
	for _, n := range letterNames {
		if n.letter == letter {
			spelled = append(spelled, n.name)
		}
	}
	return spelled
}

// maxInitials is the most letters that are spelled out. Three letters with a vowel are mostly a word.
const maxInitials = 3

// initialsAt returns the index of the first word that may be initials which a name spells out; -1 if there is none.
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

// letterNamesIn returns the words with the first initials spelled out; nil if there are none.
func letterNamesIn(words []string) []string {
	at := initialsAt(words)
	if at < 0 {
		return nil
	}
	spelled := words[:at:at]
	for i := range len(words[at]) {
		spelled = append(spelled, namesOf(words[at][i : i+1])[0])
	}
	spelled = append(spelled, words[at+1:]...)
	return spelled[:min(len(spelled), maxSounds)]
}

// lettersSpelled is the reverse: it returns the words with letters in place of the first two or more names of letters
// in a row, which may be one word, and of single letters after them: "vk" for "vee kay". It returns nil if there are
// none.
func lettersSpelled(words []string) []string { return withLetters(words, false) }

// lettersHeard is lettersSpelled also for words of heardAs; nil if it is the same. Since these may be words of the name, as
// in S M Eye Institute, both are asked for.
func lettersHeard(words []string) []string {
	heard := withLetters(words, true)
	if slices.Equal(heard, lettersSpelled(words)) {
		return nil
	}
	return heard
}

func withLetters(words []string, heard bool) []string {
	for i := range words {
		letters, n, spelled := "", i, false
		for ; n < len(words); n++ {
			more := lettersOf(words[n], heard)
			if spelled = spelled || more != ""; more == "" && (len(words[n]) == 1 && letters != "" || len(words[n]) == 2 && letters == "") {
				more = words[n]
			}
			if more == "" {
				break
			}
			letters += more
		}
		if spelled && len(letters) > 1 && n-i < len(words) {
			return append(append(words[:i:i], letters), words[n:]...)
		}
	}
	return nil
}

// lettersOf returns the letters that a word spells out by their names, also by words of heardAs with heard; "" if it is another word. The first name that
// fits is the right one: where a shorter one fits too, what follows that begins no name. It is not recursive, since the
// component's stack is too small for a word of a dozen names.
func lettersOf(word string, heard bool) (letters string) {
	for _, n := range heardAs {
		if heard && n.name == word {
			return n.letter
		}
	}
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

// likeLetterNames asks for names that have the letters of words[at] spelled out, as several words or as one, and the
// other words.
func (l *list) likeLetterNames(words []string, at int) {
	var each []string
	joined := ""
	for i := range len(words[at]) {
		spelled := namesOf(words[at][i : i+1])
		joined += spelled[0]
		if term := "(" + anyOf(markWord, spelled) + ")"; !has(each, term) {
			each = append(each, term)
		}
	}
	terms := []string{"(" + strings.Join(each, " AND ") + " OR " + quoted(markWord+joined) + ")"}
	for i, w := range words[:min(len(words), maxSounds)] {
		term := quoted(markBegin + beginning(w))
		if i != at && !has(terms, term) {
			terms = append(terms, term)
		}
	}
	l.all(terms)
}

// leadingInitials returns the first of several words if it may be initials, with which the first words of a name begin:
// "gs" of GS Telecommunication. It returns "" for other queries.
func leadingInitials(words []string) string {
	if len(words) < 2 || len(words[0]) < 2 || len(words[0]) > maxInitials || !isPlainWord(words[0]) ||
		len(words[0]) == maxInitials && strings.ContainsAny(words[0], "aeiou") {
		return ""
	}
	return words[0]
}

// likeInitials asks for names that begin with the first letter, and have words with the other letters and the other
// words.
func (l *list) likeInitials(letters string, others []string) {
	var terms []string
	for i := range len(letters) {
		if term := quoted(pairBegin(others[0], letters[i:i+1])); !has(terms, term) {
			terms = append(terms, term)
		}
	}
	for _, w := range others {
		if term := quoted(markBegin + beginning(w)); !has(terms, term) {
			terms = append(terms, term)
		}
	}
	l.all(append(terms, quoted(markStart+letters[:1])))
}

// initialsCost is the cost of a name whose first words begin with the letters and that has the query's other words
// after them. It reports false for any other name.
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
