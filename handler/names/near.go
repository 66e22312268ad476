package names

import (
	"slices"
	"strings"
)

// Suggestions keeps the few names that are most like a query. Names are added in search order; of
// names that are equally alike, the first stays first.
type Suggestions struct {
	words   []string
	typed   []string       // the words as they were typed, nil if they are the same; see meant
	heard   bool           // the words are transliterated
	tamil   bool           // and were in Tamil script
	same    [][]string     // synonyms of each word
	both    []string       // each word but the last, joined with the next one
	kept    [][]string     // the words without the first or last ones; see less
	sites   []string       // what may be the name in an address; see sitesOf
	letters string         // see leadingInitials
	parts   []part         // see partsOf
	others  []*Suggestions // the same for other wordings of the query
	found   [MaxSuggestions]suggestion
	count   int
	sure    bool // a name is like the query, and not only a part of it
	begun   few  // the names that are not like the query, but begin with its first word
	asTyped few  // those that begin with its first word as it was typed
	rest    few  // those that have all other words in a row
}

// MaxSuggestions is how many names are suggested.
const MaxSuggestions = 3

type suggestion struct {
	label  string
	cost   int
	begins bool // with the first word of the query
}

// few holds the first names of a kind, and counts all of them.
type few struct {
	labels []string
	count  int
}

func (f *few) add(label string) {
	if f.count++; len(f.labels) < MaxSuggestions && !has(f.labels, label) {
		f.labels = append(f.labels, label)
	}
}

// suggested returns the names, unless there are too many of the kind to mean something.
func (f *few) suggested() []string {
	if f.count > fewBegin {
		return nil
	}
	return f.labels
}

// Costs of differences. One wrong letter costs 2.
const (
	costLetter   = 2 // a letter that is wrong
	costSpelling = 1 // another spelling of the same sound, and each letter of its plain form
	costExtra    = 1 // a word that only the name has
	costAbsent   = 9 // a word that only the query has
	costShort    = 2 // a word that is abbreviated
	costBegun    = 3 // a word, not the last, that is cut short
	costSite     = 4 // a word that only the address of a site has
)

const (
	// maxLetters is how many letters of a word may be wrong; in words of shortWord characters and
	// fewer, one may be.
	maxLetters = 2
	shortWord  = 4
	// absentOf is the least number of words of a query of which a name may lack one, but not the first, if the others
	// are nearly right. (For names that have only the beginning or the end of the query, see less.)
	absentOf = 3
	// Names that share only the first word with the query are suggested if that has at least minFirst characters, other
	// words than numbers follow it in the query, and there are at most fewBegin of them.
	minFirst = 3
	fewBegin = 6
	// Longer names and words are cut to this many words and bytes before they are compared.
	maxNameWords = 24
	maxWord      = 32
)

// NewSuggestions prepares for a query that Query made.
func NewSuggestions(query string) *Suggestions {
	s := &Suggestions{words: heard(query)}
	s.tamil = strings.ContainsFunc(query, isTamil)
	if s.heard = len(s.words) > 0; !s.heard {
		s.words, s.typed = meant(query)
		s.sites = sitesOf(s.words)
		s.letters = leadingInitials(s.words)
		s.parts = partsOf(query)
		s.addWording(s.typed)
		s.addWording(oneWord(s.words))
		for _, words := range [...][]string{s.words, s.typed} {
			s.addWording(otherWording(words))
			s.addWording(lettersSpelled(words))
			s.addWording(lettersHeard(words))
			s.addWording(letterNamesIn(words))
		}
	}
	s.prepare()
	return s
}

// oneWord returns two or three words of a query as one, since their spaces may be wrong, and nil if it is too short. More words ask
// for names with the commonest parts, and took twice as long.
func oneWord(words []string) []string {
	joined := strings.Join(words, "")
	if len(words) < 2 || len(words) > absentOf || len(words[0]) < minFirst || !isPlainWord(joined) || len(joined) < wideLen {
		return nil
	}
	return []string{joined}
}

// addWording adds another wording of the query, if there is one.
func (s *Suggestions) addWording(words []string) {
	if words != nil {
		wording := &Suggestions{words: words}
		wording.prepare()
		s.others = append(s.others, wording)
	}
}

// prepare fills in what follows from the words.
func (s *Suggestions) prepare() {
	s.kept = less(s.words)
	for i, w := range s.words {
		s.same = append(s.same, synonyms(w))
		if i > 0 {
			s.both = append(s.both, s.words[i-1]+w)
		}
	}
}

// Add compares the query with a name's form, and keeps the label if the name is among the most alike.
func (s *Suggestions) Add(name, label string) {
	cost, ok, sure := s.cost(name)
	for _, wording := range s.others {
		other, also, surely := wording.cost(name)
		if sure = sure || surely; also && (!ok || other < cost) {
			cost, ok = other, true
		}
	}
	if !ok && s.letters != "" {
		cost, ok = s.initialsCost(name)
		sure = ok
	}
	for i, site := range s.sites {
		if other, also := siteCost(site, name); also && (!ok || other+i*costSite < cost) {
			cost, ok, sure = other+i*costSite, true, true
		}
	}
	s.sure = s.sure || sure
	if other, also := s.partCost(name); also && (!ok || other < cost) {
		cost, ok = other, true
	}
	if !ok {
		cost, ok = s.aloneCost(name)
	}
	if !ok {
		s.addBegun(name, label)
		return
	}
	at := s.count
	for i := range s.count {
		if s.found[i].label == label {
			return
		}
		if at == s.count && cost < s.found[i].cost {
			at = i
		}
	}
	if at == MaxSuggestions {
		return
	}
	if s.count < MaxSuggestions {
		s.count++
	}
	copy(s.found[at+1:s.count], s.found[at:])
	s.found[at] = suggestion{label, cost, s.begins(name)}
}

// addBegun notes a name that is not like the query if it begins with the query's first word, or has all the others.
func (s *Suggestions) addBegun(name, label string) {
	switch {
	case s.heard:
	case beginsAs(name, s.typed):
		s.asTyped.add(label)
	case beginsAs(name, s.words):
		s.begun.add(label)
	case hasRest(name, s.words) || hasRest(name, s.typed):
		s.rest.add(label)
	}
}

// hasRest reports whether a name has all words but the first, in a row.
func hasRest(name string, words []string) bool {
	return len(words) >= absentOf && strings.Contains(" "+name+" ", " "+strings.Join(words[1:], " ")+" ")
}

// begins reports whether a name begins with the first of several words. If the others are all numbers it reports false:
// numbers tell names apart.
func (s *Suggestions) begins(name string) bool {
	return beginsAs(name, s.words) || beginsAs(name, s.typed)
}

func beginsAs(name string, words []string) bool {
	return len(words) > 1 && hasRunes(words[0], minFirst) && strings.HasPrefix(name, words[0]+" ") &&
		slices.ContainsFunc(words[1:], isPlainWord)
}

// Unsure reports whether more names should be compared: none was like the query, or began with its first word or had all others. A part
// of it may be a company's name by chance, such as Food Products.
func (s *Suggestions) Unsure() bool {
	return !s.sure && s.asTyped.suggested() == nil && s.begun.suggested() == nil && s.rest.suggested() == nil
}

// Labels returns the suggested names, best first. If none of them begins with the query's first word, names that do
// take the last place and any that is free: another word for the same trade is as likely as a mistake in the first
// word.
func (s *Suggestions) Labels() []string {
	labels, right := make([]string, 0, MaxSuggestions), false
	for _, f := range s.found[:s.count] {
		labels, right = append(labels, f.label), right || f.begins
	}
	if s.count > 0 && right {
		return labels
	}
	begun := append(s.asTyped.suggested(), s.begun.suggested()...)
	if !s.sure && len(begun) == 0 {
		labels = append(append(make([]string, 0, 2*MaxSuggestions), s.rest.suggested()...), labels...)
		return labels[:min(len(labels), MaxSuggestions)]
	}
	labels = labels[:min(s.count, MaxSuggestions-min(1, len(begun)))]
	return append(labels, begun[:min(len(begun), MaxSuggestions-len(labels))]...)
}

// cost is the sum of the distances of the query's words from the nearest words of the name. ok is false for a name that
// is not like the query, and sure also for one that lacks its first word: many names have the others.
func (s *Suggestions) cost(name string) (sum int, ok, sure bool) {
	var room [maxNameWords]string
	words := appendWords(room[:0], name)
	var costs [maxSounds]int
	for i, typed := range s.words {
		costs[i] = costAbsent
		for _, word := range words {
			costs[i] = min(costs[i], s.wordCost(typed, word, i == len(s.words)-1))
			if has(s.same[i], word) {
				costs[i] = min(costs[i], costSpelling)
			}
		}
	}
	if len(s.words) == 1 && !s.heard && costs[0] == costAbsent {
		costs[0] = wholeCost(s.words[0], name)
	}
	s.join(&costs, words)
	s.cutShort(&costs, words)
	first, absent, after := false, 0, 0 // after: of the absent ones, those that end the query
	for i := range s.words {
		after++
		if costs[i] == costAbsent {
			absent++
			first = first || i == 0
		} else {
			after = 0
		}
		sum += costs[i]
	}
	few := absent == 1 || absent == 2 && after == absent && len(s.words) > absentOf
	few = few && len(s.words) >= absentOf && sum <= costAbsent*absent+costLetter
	sure = absent < len(s.words) && (absent == 0 || few && !first || s.beginsWithLess(words))
	ok = sure || few && s.wordCost(s.words[1], words[0], false) < costAbsent // it begins where the query goes on
	return sum + costExtra*max(0, len(words)-len(s.words)+absent), ok, sure
}

// aloneCost is the cost of a name of one word that is nearly the first one of the query: what follows may be a place. It
// reports false for any other name.
func (s *Suggestions) aloneCost(name string) (sum int, ok bool) {
	if n := len(s.words); n < 2 || n > absentOf || len(s.words[0]) < minLast {
		return 0, false
	}
	cost, core := costAbsent, withoutEnding(name)
	if !strings.Contains(core, " ") {
		cost = wordCost(s.words[0], core, false)
	}
	return cost + costAbsent, cost < costAbsent
}

// wholeCost is the distance of a word from a name written as one word, without legal ending, and with or without "and".
func wholeCost(typed, name string) int {
	cost := costAbsent
	for _, form := range [...]string{name, strings.ReplaceAll(name, " and ", " ")} {
		if joined := whole(form); near(len(joined), min(len(typed), wholeLen)) {
			cost = min(cost, wordCost(typed, joined, false))
		}
	}
	return cost
}

// join lowers the costs of a word that the name writes as two, and of two words that it writes as one.
func (s *Suggestions) join(costs *[maxSounds]int, words []string) {
	for i, typed := range s.words {
		if costs[i] != costAbsent {
			continue
		}
		for j := 1; j < len(words); j++ {
			if one, other := words[j-1], words[j]; consonant(one, 0) == consonant(typed, 0) && near(len(one)+len(other), len(typed)) {
				costs[i] = min(costs[i], s.wordCost(typed, one+other, false))
			}
		}
		if i == len(s.both) {
			continue
		}
		for _, word := range words {
			if consonant(word, 0) != consonant(typed, 0) || !near(len(word), len(s.both[i])) {
				continue
			}
			if cost := s.wordCost(s.both[i], word, false); cost < costAbsent {
				costs[i], costs[i+1] = min(costs[i], cost), min(costs[i+1], costSpelling)
			}
		}
	}
}

// cutShort lowers the costs of words that begin a word of the name. It runs after join, which finds closer matches.
func (s *Suggestions) cutShort(costs *[maxSounds]int, words []string) {
	for i, typed := range s.words {
		if costs[i] == costAbsent && len(typed) >= minBeginning && !s.heard {
			if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, typed) }) {
				costs[i] = costBegun
			}
		}
	}
}

// near reports whether words of these lengths may be the same word.
func near(a, b int) bool { return a-b <= maxLetters && b-a <= maxLetters }

// beginsWithLess reports whether a name begins with one of the shortened queries in kept, or equals one that is a
// single word.
func (s *Suggestions) beginsWithLess(words []string) bool {
	for _, kept := range s.kept {
		if len(kept) == 1 && len(words) == 2 && words[1] == "opc" {
			words = words[:1]
		}
		if len(words) >= len(kept) && slices.Equal(words[:len(kept)], kept) && (len(kept) > 1 || len(words) == 1) {
			return true
		}
	}
	return false
}

// appendWords appends those words of a name that are compared.
func appendWords(words []string, name string) []string {
	for len(words) < maxNameWords && name != "" {
		var word string
		if word, name = cutWord(name); !isCommon(word) {
			words = append(words, word)
		}
	}
	return words
}

func cutWord(name string) (word, rest string) {
	for i := range len(name) {
		if name[i] == ' ' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

func (s *Suggestions) wordCost(typed, word string, last bool) int {
	if s.heard {
		return heardCost(typed, word, s.tamil)
	}
	cost := wordCost(typed, word, last)
	if cost < costAbsent || typed[0] != word[0] {
		return cost
	}
	one, other := singular(typed), singular(word)
	if len(one) < len(typed) || len(other) < len(word) {
		cost = min(cost, costSpelling+wordCost(one, other, last))
	}
	if abbreviates(typed, word) || abbreviates(typed, other) || lacksVowels(typed, word) {
		cost = min(cost, costShort)
	}
	return cost
}

// minBeginning is the least length of a word that may be cut short.
const minBeginning = 3

// lacksVowels reports whether typed, of at least three letters, is word without its vowels, the first letter aside.
func lacksVowels(typed, word string) bool {
	if len(typed) < minBeginning || len(typed) > len(word)-1 || !isPlainWord(typed) || typed[0] != word[0] {
		return false
	}
	at := 1
	for i := 1; i < len(word); i++ {
		if strings.IndexByte("aeiou", word[i]) >= 0 {
			continue
		}
		if at == len(typed) || typed[at] != word[i] {
			return false
		}
		at++
	}
	return at == len(typed)
}

// abbreviates reports whether typed is letters of word in order, with the first and the last one and at most one vowel,
// as mgmt, govt, dr and engrs are of management, government, doctor and engineers.
func abbreviates(typed, word string) bool {
	const longest, withVowel = 6, 4
	if n := len(typed); n < 2 || n > longest || n > len(word)-3 || typed[0] != word[0] || typed[n-1] != word[len(word)-1] {
		return false
	}
	vowels, at := 0, 0
	for i := range len(typed) {
		if strings.IndexByte("aeiou", typed[i]) >= 0 {
			vowels++
		}
		next := strings.IndexByte(word[at:], typed[i])
		if next < 0 {
			return false
		}
		at += next + 1
	}
	return vowels == 0 || vowels == 1 && len(typed) >= withVowel
}

// wordCost is the distance of a typed word from a word of a name; costAbsent if they are different words. The last
// typed word may be unfinished.
func wordCost(typed, word string, last bool) int {
	if typed == word {
		return 0
	}
	if last && len(word) > len(typed) && word[:len(typed)] == typed {
		return costSpelling
	}
	typed, word = typed[:min(len(typed), maxWord)], word[:min(len(word), maxWord)]
	cost := costAbsent
	if letters := distance(typed, word, maxLetters); letters <= allowed(len(typed), len(word)) {
		cost = costLetter * letters
	}
	if soundAlike(typed, word) {
		var roomA, roomB [2 * maxSound]byte
		a, b := appendPlain(roomA[:0], typed), appendPlain(roomB[:0], word)
		a, b = a[:min(len(a), maxWord)], b[:min(len(b), maxWord)]
		if letters := distance(string(a), string(b), maxLetters); letters <= allowed(len(a), len(b)) {
			cost = min(cost, costSpelling*(1+letters))
		}
	}
	return cost
}

// allowed is how many letters may be wrong, by the lengths of both words.
func allowed(one, other int) int {
	if min(one, other) <= shortWord {
		return 1
	}
	return maxLetters
}

// distance is how many bytes must be added, removed, replaced or swapped with their neighbours to turn a into b; more
// than most, if that is exceeded. Words have at most maxWord bytes.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][maxWord + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, before, twice := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		first, last := max(1, i-most), min(len(b), i+most) // cells further from the diagonal cost more than most
		row[first-1] = most + 1
		if first == 1 {
			row[0] = i
		}
		least := row[first-1]
		for j := first; j <= last; j++ {
			n := before[j-1]
			if a[i-1] != b[j-1] {
				n = 1 + min(n, before[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					n = min(n, 1+twice[j-2])
				}
			}
			row[j] = n
			least = min(least, n)
		}
		if last < len(b) {
			row[last+1] = most + 1
		}
		if least > most {
			return most + 1
		}
	}
	return min(rows[len(a)%3][len(b)], most+1)
}
