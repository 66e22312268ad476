package writer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The most characters of what people write: it stands in tables, pages and logs.
const (
	maxName = 200
	maxNote = 500
)

// checkLine refuses text that is not one printable line of at most so many characters.
func checkLine(what, text string, most int) error {
	if utf8.RuneCountInString(text) > most {
		return fmt.Errorf("%w: %s has at most %d characters", ErrMalformed, what, most)
	}
	if !Printable(text) {
		return fmt.Errorf("%w: %s holds a character that can't be printed", ErrMalformed, what)
	}
	return nil
}

// Printable reports whether text can be shown as it is: it neither steers a terminal nor
// breaks a table.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable)
}

// unprintable also finds what turns the direction of the text around it. The joiners are
// letters' own in several scripts of India.
func unprintable(c rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	return !unicode.IsPrint(c) && c != joiner && c != nonJoiner
}

// checkName is checkLine of a name; some must be there.
func checkName(what, name string, needed bool) error {
	if needed && strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: %s is empty", ErrMalformed, what)
	}
	return checkLine(what, name, maxName)
}

// checkEmail refuses what is not an e-mail address; none is fine.
func checkEmail(address string) error {
	if address != "" && CanonicalEmail(address) == "" {
		return fmt.Errorf("%w: that is not an e-mail address", ErrMalformed)
	}
	return nil
}
