package names

import "strings"

// indic transliterates the letter at each offset of a block in U+0900 to U+0D7F. The nine scripts have
// the same letters at the same offsets of their blocks of 128. A dot stands for nothing.
var indic = strings.Fields(
	". n n . a a a i i u u ri li e e e " +
		"ai o o o au k kh g gh n ch chh j jh n t " +
		"th d dh n t th d dh n n p ph b bh m y " +
		"r r l l l v sh sh s h . . . . a i " +
		"i u u ri ri e e e ai o o o au . . . " +
		". . . . . . . . k kh g z r rh f y " +
		"ri li i i . . 0 1 2 3 4 5 6 7 8 9 " +
		"n . . . . . . . . . n n r l l k")

const (
	firstIndic, lastIndic = 0x900, 0xD7F
	indicBlock            = 0x80
	// Offsets in a block: consonants, those of them that are said with the lips, vowel signs, and marks.
	firstConsonant, lastConsonant = 0x15, 0x39
	firstLabial, lastLabial       = 0x2A, 0x2E
	firstNukta, lastNukta         = 0x58, 0x5F
	anusvara, jay, nukta          = 0x02, 0x1C, 0x3C
	firstSign, lastSign           = 0x3E, 0x4D
)

// inLatin transliterates a form to Latin letters. It reports false for a form without letters of an
// Indic script.
func inLatin(form string) (string, bool) {
	if !strings.ContainsFunc(form, isIndic) {
		return "", false
	}
	runes := []rune(form)
	b := make([]byte, 0, len(form))
	for i, r := range runes {
		if !isIndic(r) {
			b = append(b, string(r)...)
			continue
		}
		offset := r % indicBlock
		next := rune(-1) // the offset of the next letter
		if i+1 < len(runes) && isIndic(runes[i+1]) {
			next = runes[i+1] % indicBlock
		}
		switch latin := indic[offset]; {
		case offset == anusvara && next >= firstLabial && next <= lastLabial:
			b = append(b, 'm')
		case offset == jay && next == nukta:
			b = append(b, 'z')
		case latin != ".":
			b = append(b, latin...)
		}
		if isIndicConsonant(offset) && next >= 0 && next != nukta && (next < firstSign || next > lastSign) ||
			offset == nukta && next >= 0 && (next < firstSign || next > lastSign) {
			b = append(b, 'a') // the vowel that is not written
		}
	}
	return string(b), true
}

func isIndic(r rune) bool { return r >= firstIndic && r <= lastIndic }

func isIndicConsonant(offset rune) bool {
	return offset >= firstConsonant && offset <= lastConsonant || offset >= firstNukta && offset <= lastNukta
}

// heard transliterates the words of a query in an Indic script, without the legal ending, to find names
// by their sound. It returns nil for other scripts.
func heard(query string) []string {
	latin, ok := inLatin(query)
	if !ok {
		return nil
	}
	words := suggestible(strings.Join(strings.Fields(latin), " "))
	for n := len(words); n > 1 && isHeardEnding(words[n-1]); n-- {
		words = words[:n-1]
	}
	return words
}

func isHeardEnding(word string) bool {
	sound := soundKey(word)
	return sound == soundKey(private) || sound == soundKey(limited) || sound == soundKey("pvt") || sound == soundKey("ltd")
}

// likeHeard asks for names that have the sounds of all words, or of all but one and a word that begins
// like that one.
func (l *list) likeHeard(words []string) {
	words = words[:min(len(words), likeWords)]
	if len(words) == 1 {
		alike := quoted(markSound + soundKey(words[0]))
		eachKey(words[0], func(key []byte) { alike += " OR " + quoted(markKey+string(key)) })
		l.element("(" + alike + ")")
		return
	}
	l.likeSounds(words)
	for at := range words {
		var terms []string
		for i, w := range words {
			if i != at {
				terms = append(terms, quoted(markSound+soundKey(w)))
			}
		}
		l.all(append(terms, "("+anyOf(markBegin, strings.Split(firstLetters(words[at]), ""))+")"))
	}
}

// firstLetters are the letters with which names may spell the first sound of a transliterated word.
func firstLetters(word string) string {
	for _, alike := range [...]string{"kcq", "sczx", "jzgs", "zjs", "gj", "vwb", "bv", "fp", "pf", "td", "dt"} {
		if word[:1] == alike[:1] {
			return alike
		}
	}
	if isPlainWord(word) && isVowel(word, 0) {
		return "aeiouy"
	}
	return word[:prefixLen(word, 1)]
}

// heardCost is the distance of a transliterated word from a word of a name.
func heardCost(typed, word string) int {
	if !isPlainWord(typed) || !isPlainWord(word) {
		return wordCost(typed, word, false)
	}
	var roomA, roomB, plainA, plainB [2 * maxSound]byte
	a, b := appendSound(roomA[:0], typed), appendSound(roomB[:0], word)
	a, b = a[:min(len(a), maxWord)], b[:min(len(b), maxWord)]
	letters := distance(string(a), string(b), maxLetters)
	most := allowed(len(a), len(b))
	if min(len(a), len(b)) < shortSound {
		most = 0
	}
	if letters > most {
		return costAbsent
	}
	p, q := appendPlain(plainA[:0], typed), appendPlain(plainB[:0], word)
	p, q = p[:min(len(p), maxWord)], q[:min(len(q), maxWord)]
	return costLetter*letters + min(costSpelling*distance(string(p), string(q), maxLetters), costHeard)
}

const (
	// shortSound is the least length of a sound of which one letter may be wrong.
	shortSound = 3
	// costHeard caps the cost of different vowels.
	costHeard = 3
)
