package dashboard

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// commonPasswords has one password in lower case to a line. It is searched as text: a password is
// chosen rarely, and 20 µs are little beside its hash.
//
//go:embed common-passwords.txt
var commonPasswords string

// minLeft is how many characters a password must have besides the guessable ones.
const minLeft = 4

// guessable reports whether a password would be tried first (NIST SP 800-63B, section 5.1.1.2): a
// common one, a sequence, or words about the user, with no more than a few characters or digits before
// and after.
func guessable(password string, about ...string) bool {
	plain := lettersAndDigits(password)
	if sequence(plain) {
		return true
	}
	lower := strings.ToLower(password)
	core := strings.TrimFunc(lower, func(c rune) bool { return !unicode.IsLetter(c) })
	for _, form := range []string{plain, unmasked.Replace(plain), lettersAndDigits(unmasked.Replace(lower)), lettersAndDigits(unmasked.Replace(core))} {
		if weak(form) || weak(without(form, wordsOf(about))) {
			return true
		}
	}
	return false
}

// weak reports whether a password is common, even if repeated or between digits.
func weak(form string) bool {
	form = unit(form)
	core := unit(strings.TrimFunc(form, unicode.IsDigit))
	return utf8.RuneCountInString(core) < minLeft || common(form) || common(core)
}

func common(form string) bool { return strings.Contains(commonPasswords, "\n"+form+"\n") }

// lettersAndDigits normalizes passwords for comparison: compatible characters of Unicode are one, case is
// ignored, and all others are dropped.
func lettersAndDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) {
			return c
		}
		return -1
	}, strings.ToLower(norm.NFKC.String(text)))
}

// unmasked undoes the usual replacements of letters.
var unmasked = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// unit is the shortest text whose repetition is form.
func unit(form string) string {
	for n := 1; n <= len(form)/2; n++ {
		if len(form)%n == 0 && form == strings.Repeat(form[:n], len(form)/n) {
			return form[:n]
		}
	}
	return form
}

// sequence reports whether nearly every character is the one before, its neighbour, or follows 9.
func sequence(form string) bool {
	var last rune
	steps, jumps := 0, 0
	for _, c := range form {
		if step := c - last; steps > 0 && (step < -1 || step > 1) && !(last == '9' && c == '0') {
			jumps++
		}
		last = c
		steps++
	}
	return steps > 0 && jumps <= 1+steps/10
}

// wordsOf are the words of texts about a user that are long enough to count, each also without the
// digits around it, and each text as one word.
func wordsOf(about []string) (words []string) {
	for _, text := range append(about, "regedge") {
		parts := strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) })
		for _, part := range append(parts, text) {
			word := strings.TrimFunc(lettersAndDigits(part), unicode.IsDigit)
			if utf8.RuneCountInString(word) >= minLeft {
				words = append(words, word, unmasked.Replace(word))
			}
		}
	}
	return words
}

// without removes words from a form, the longest first.
func without(form string, words []string) string {
	for len(words) > 0 {
		longest := 0
		for i, word := range words {
			if len(word) > len(words[longest]) {
				longest = i
			}
		}
		form = strings.ReplaceAll(form, words[longest], "")
		words = append(words[:longest:longest], words[longest+1:]...)
	}
	return form
}
