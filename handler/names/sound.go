package names

import (
	"bytes"
	"strings"
)

// A word's sound is a phonetic key, the same for all usual spellings of an Indian name: its
// consonants, without aspiration and doubling, after a mark for a vowel at its beginning. Shree,
// Shri and Sri are "sr"; Chaudhary and Choudhury are "kdr".
//
// The index has the sound of each word, and keys of the first word of a name. The keys are its
// sound, and the sound without one of its letters: two words whose keys meet differ in vowels, in
// spelling, and in one consonant at most. Sounds under soundLen letters say too little for that;
// words with such a sound have their plain form without one of its letters in addition.
const (
	// soundLen is the least length of a sound that is compared without one of its letters, or that makes a word like
	// another by itself.
	soundLen = 4
	// plainLen is the least length of a plain form that is compared without one of its letters.
	plainLen = 4
	// keyLen bounds keys: of a longer sound, only the first keyLen+1 letters count.
	keyLen = 9
)

// appendSounds appends the terms of the sound of a word, and those of its keys if it is the first one.
func appendSounds(dst []byte, word string, first bool) []byte {
	if isCommon(word) {
		return dst
	}
	dst = appendTerm(dst, markSound, soundKey(word))
	if first {
		eachKey(word, func(key []byte) { dst = append(append(append(dst, markKey...), key...), ' ') })
	}
	return dst
}

// isCommon reports whether a word is too common to tell names apart.
func isCommon(word string) bool {
	return word == "and" || word == private || word == limited || word == "llp"
}

// soundKey is the sound of a word as the index has it.
func soundKey(word string) string {
	if !isPlainWord(word) {
		return word[:prefixLen(word, keyLen)]
	}
	var room [2 * maxSound]byte
	sound := appendSound(room[:0], word)
	return string(sound[:min(len(sound), keyLen)])
}

// eachKey calls do with the keys of a word. A key may come more than once, and is valid until do returns.
func eachKey(word string, do func(key []byte)) {
	if !isPlainWord(word) {
		do([]byte(soundKey(word)))
		return
	}
	var room [2 * maxSound]byte
	sound := appendSound(room[:0], word)
	do(sound[:min(len(sound), keyLen)])
	if len(sound) >= soundLen {
		leaveOut(sound, do)
		return
	}
	var plainRoom [2 * maxSound]byte
	if plain := appendPlain(plainRoom[:0], word); len(plain) >= plainLen {
		do(plain[:min(len(plain), keyLen)])
		leaveOut(plain, do)
	}
}

// leaveOut calls do with the first keyLen+1 letters of text, each time without another one of them.
func leaveOut(text []byte, do func(key []byte)) {
	text = text[:min(len(text), keyLen+1)]
	var key [keyLen]byte
	for i := range text {
		if i > 0 && text[i] == text[i-1] {
			continue
		}
		n := copy(key[:], text[:i])
		n += copy(key[n:], text[i+1:])
		do(key[:n])
	}
}

// maxSound bounds the part of a word from which its sound is made, in bytes.
const maxSound = 24

func isPlainWord(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return word != ""
}

// appendSound appends the sound of a word of ASCII letters.
func appendSound(dst []byte, word string) []byte {
	word = word[:min(len(word), maxSound)]
	start := len(dst)
	for i := 0; i < len(word); i++ {
		c := word[i]
		switch {
		case isVowel(word, i):
			if i == 0 {
				dst = append(dst, 'a')
			}
			continue
		case isSilent(word, i):
			continue
		case c == 'x':
			dst = append(dst, 'k')
		}
		c = consonant(word, i)
		if n := len(dst); n == start || dst[n-1] != c || isVowel(word, i-1) {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendPlain appends the plain form of a word of ASCII letters: as appendSound, but with the vowels,
// where "ee" is "i" and "oo" is "u".
func appendPlain(dst []byte, word string) []byte {
	word = word[:min(len(word), maxSound)]
	start := len(dst)
	for i := 0; i < len(word); i++ {
		c := word[i]
		switch double := strings.HasPrefix(word[i:], "ee") || strings.HasPrefix(word[i:], "oo"); {
		case double:
			c = 'i' + ('u'-'i')*(word[i]/'o')
			i++
		case isVowel(word, i):
			if c == 'y' {
				c = 'i'
			}
		case isSilent(word, i):
			continue
		default:
			if c == 'x' {
				dst = append(dst, 'k')
			}
			c = consonant(word, i)
		}
		if n := len(dst); n == start || dst[n-1] != c {
			dst = append(dst, c)
		}
	}
	return dst
}

// isVowel reports whether the letter i of word is a vowel: a "y" is, unless the word begins with
// it and a vowel, and the "w" of Chowdhary.
func isVowel(word string, i int) bool {
	if i < 0 || i >= len(word) {
		return false
	}
	switch word[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 || len(word) > 1 && word[1] != 'y' && !isVowel(word, 1)
	case 'w':
		return i > 0 && (word[i-1] == 'a' || word[i-1] == 'o') && i+1 < len(word) && !isVowel(word, i+1)
	}
	return false
}

// isSilent reports whether the consonant at i is an "h" that is hardly heard: next to another consonant, or at the end.
func isSilent(word string, i int) bool {
	return word[i] == 'h' && i > 0 && (!isVowel(word, i-1) || i+1 == len(word) || !isVowel(word, i+1))
}

// consonant returns the letter that stands for the consonants that sound like the one at i. It is not inlined, as prefixLen
// is not.
//
//go:noinline
func consonant(word string, i int) byte {
	next := byte(0)
	if i+1 < len(word) {
		next = word[i+1]
	}
	switch c := word[i]; c {
	case 'p':
		if next == 'h' {
			return 'f'
		}
	case 'w':
		return 'v'
	case 'q':
		return 'k'
	case 'c':
		if next == 'e' || next == 'i' || next == 'y' {
			return 's'
		}
		return 'k'
	case 'x', 'z':
		return 's'
	}
	return word[i]
}

// soundAlike reports whether two words of ASCII letters have the same sound.
func soundAlike(a, b string) bool {
	if !isPlainWord(a) || !isPlainWord(b) {
		return false
	}
	var roomA, roomB [2 * maxSound]byte
	return bytes.Equal(appendSound(roomA[:0], a), appendSound(roomB[:0], b))
}
