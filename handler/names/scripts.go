package names

import "strings"

// indic transliterates the letter at each offset of a block of Unicode between U+0900 and U+0D7F. The nine
// scripts have blocks of 128 with the same letters at the same offsets. A dot stands for nothing.
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
	// Offsets in a block: consonants, the labial ones among them, letters with a nukta, single signs, and
	// vowel signs.
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
		case r == tamilCha:
			b = append(b, 's')
		case latin != ".":
			b = append(b, latin...)
		}
		if isIndicConsonant(offset) && next >= 0 && next != nukta && (next < firstSign || next > lastSign) ||
			offset == nukta && next >= 0 && (next < firstSign || next > lastSign) {
			b = append(b, 'a') // the vowel that a consonant has without a vowel sign
		}
	}
	return string(b), true
}

// One Tamil letter stands for the sounds k and g, one for t and d, one for p, b and f, and one for s, ch
// and j.
const (
	firstTamil, lastTamil = 0xB80, 0xBFF
	tamilCha              = 'ச'
)

func isTamil(r rune) bool { return r >= firstTamil && r <= lastTamil }

// tamilSounds has for each of these letters its usual sound, then the others that it may stand for.
var tamilSounds = [...]string{"kg", "td", "pbf", "skj"}

// maxTamil bounds how many sounds a Tamil word may stand for.
const maxTamil = 32

// soundsOfTamil returns all sounds that a word transliterated from Tamil may stand for.
func soundsOfTamil(word string) []string {
	sounds := []string{soundKey(word)}
	for at := range len(sounds[0]) {
		for _, alike := range tamilSounds {
			if alike[0] != sounds[0][at] || len(sounds)*len(alike) > maxTamil {
				continue
			}
			for _, sound := range sounds {
				for i := 1; i < len(alike); i++ {
					sounds = append(sounds, sound[:at]+alike[i:i+1]+sound[at+1:])
				}
			}
		}
	}
	return sounds
}

// foldTamil replaces each letter of a sound by the usual sound of the Tamil letter for it.
func foldTamil(sound []byte) []byte {
	for i, c := range sound {
		for _, alike := range tamilSounds {
			if strings.IndexByte(alike, c) >= 0 {
				sound[i] = alike[0]
				break
			}
		}
	}
	return sound
}

func isIndic(r rune) bool { return r >= firstIndic && r <= lastIndic }

func isIndicConsonant(offset rune) bool {
	return offset >= firstConsonant && offset <= lastConsonant || offset >= firstNukta && offset <= lastNukta
}

// heard transliterates the words of a query in an Indic script, so that names are found by their sound. The
// legal ending, "and" and "Dr" at the beginning are left out. It returns nil for other scripts.
func heard(query string) []string {
	latin, ok := inLatin(query)
	if !ok {
		return nil
	}
	latin = strings.TrimPrefix(strings.ReplaceAll(strings.Join(strings.Fields(latin), " "), " end ", " and "), "do ") // and, Dr
	words := suggestible(latin)
	for n := len(words); n > 1 && isHeardEnding(words[n-1]); n-- {
		words = words[:n-1]
	}
	return words
}

func isHeardEnding(word string) bool {
	sound := soundKey(word)
	return sound == soundKey(private) || sound == soundKey(limited) || sound == soundKey("pvt") || sound == soundKey("ltd") || word == "pra" || word == "li"
}

// likeHeard asks for names that have the sounds of all words, or of all but one and some word that begins
// like that one.
func (l *list) likeHeard(words []string, tamil bool) {
	words = words[:min(len(words), likeWords)]
	sounds := make([]string, len(words))
	for i, w := range words {
		sounds[i] = quoted(markSound + soundKey(w))
		if tamil {
			sounds[i] = "(" + anyOf(markSound, soundsOfTamil(w)) + ")"
		}
	}
	if len(words) == 1 {
		alike := sounds[0]
		eachKey(words[0], func(key []byte) { alike += " OR " + quoted(markKey+string(key)) })
		l.element("(" + alike + ")")
		return
	}
	if l.likeSounds(words); tamil {
		l.all(sounds)
	}
	for at := range words {
		letters := firstLetters(words[at])
		for _, alike := range tamilSounds {
			if tamil && strings.Contains(alike, words[at][:1]) {
				letters += alike
			}
		}
		others := append(sounds[:at:at], sounds[at+1:]...)
		l.all(append(others, "("+anyOf(markBegin, strings.Split(letters, ""))+")"))
	}
}

// firstLetters are the letters by which a name may spell the first sound of a transliterated word.
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
func heardCost(typed, word string, tamil bool) int {
	if !isPlainWord(typed) || !isPlainWord(word) {
		return wordCost(typed, word, false)
	}
	var roomA, roomB, plainA, plainB [2 * maxSound]byte
	a, b := appendSound(roomA[:0], typed), appendSound(roomB[:0], word)
	a, b = a[:min(len(a), maxWord)], b[:min(len(b), maxWord)]
	if tamil {
		a, b = foldTamil(a), foldTamil(b)
	}
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
	if tamil {
		p, q = foldTamil(p), foldTamil(q)
	}
	return costLetter*letters + min(costSpelling*distance(string(p), string(q), maxLetters), costHeard)
}

const (
	// shortSound is the least length of a sound of which one letter may be wrong.
	shortSound = 3
	// costHeard caps the cost of different vowels.
	costHeard = 3
)
