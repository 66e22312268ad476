package names

import (
	"strings"
	"unicode/utf8"

	"regedge/handler/fastbytes"
)

// fold lower-cases Latin, Greek and Cyrillic letters, drops their accents, apostrophes and "M/s", writes
// "&" as "and", joins "co-" to the next word, and replaces everything else that is not a
// letter, digit or mark by a space. Text that is not UTF-8 becomes spaces. Ampersands and apostrophes
// may be escaped as in HTML, and ampersands and spaces as in an address, by a client that escapes twice.
func fold(s string) string {
	b := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case isMessrs(s, i):
				i += len("m/s")
				continue
			case strings.HasPrefix(s[i:], "&#39;"):
				i += len("&#39;")
				continue
			case strings.HasPrefix(s[i:], "&amp;"):
				i += len("amp;")
			case strings.HasPrefix(s[i:], "%20"):
				i, c = i+len("20"), ' '
			case strings.HasPrefix(s[i:], "%26"):
				i, c = i+len("26"), '&'
			}
			if c != '-' || !endsInCo(b) {
				b = appendASCII(b, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		b = appendRune(b, r)
		i += size
	}
	return string(b)
}

func appendASCII(b []byte, c byte) []byte {
	switch {
	case isAlnum(c):
		return append(b, fastbytes.Lower(c))
	case c == '\'' || c == '`':
		return b
	case c == '&':
		return append(b, " and "...)
	}
	return append(b, ' ')
}

// isMessrs reports whether there is an "M/s" at i that is a word of its own.
func isMessrs(s string, i int) bool {
	if len(s)-i < 3 || s[i+1] != '/' || fastbytes.Lower(s[i]) != 'm' || fastbytes.Lower(s[i+2]) != 's' {
		return false
	}
	return (i == 0 || !isWordByte(s[i-1])) && (len(s) == i+3 || !isWordByte(s[i+3]))
}

// endsInCo reports whether the last word of b is "co", as before the hyphen of
// "co-operative".
func endsInCo(b []byte) bool {
	n := len(b)
	return n >= 2 && b[n-2] == 'c' && b[n-1] == 'o' && (n == 2 || b[n-3] == ' ')
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}

func isWordByte(c byte) bool { return isAlnum(c) || c >= utf8.RuneSelf }

// latin has the ASCII forms of U+00C0 to U+017F, one word each; a dot stands for a space.
var latin = strings.Fields(
	"a a a a a a ae c e e e e i i i i d n o o o o o . o u u u u y th ss " +
		"a a a a a a ae c e e e e i i i i d n o o o o o . o u u u u y th y " +
		"a a a a a a c c c c c c c c d d d d e e e e e e e e e e g g g g g g g g " +
		"h h h h i i i i i i i i i i ij ij j j k k k l l l l l l l l l l " +
		"n n n n n n n n n o o o o o o oe oe r r r r r r s s s s s s s s " +
		"t t t t t t u u u u u u u u u u u u w w y y y z z z z z z s")

// latinMore has the ASCII letters of U+1E00 to U+1EFF, of transliterations and of Vietnamese; a dot stands for two.
const latinMore = "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprr" +
	"rrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwyasss.daaaaaaaaaaaaaaaaaaaa" +
	"aaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyllvvyy"

// greek and cyrillic have the lower case without accents, two bytes each, of U+0386 to U+03CE and of U+0400 to U+045F;
// a middle dot stands for a space.
const (
	greek    = "α·εηι·ο·υωιαβγδεζηθικλμνξοπρ·στυφχψωιυαεηιυαβγδεζηθικλμνξοπρσστυφχψωιυουω"
	cyrillic = "ееђгєѕііјљњћкиуџабвгдежзииклмнопрстуфхцчшщъыьэюя" +
		"абвгдежзииклмнопрстуфхцчшщъыьэюяееђгєѕііјљњћкиуџ"
)

// ligatures has the ASCII forms of U+FB00 to U+FB06.
var ligatures = [...]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}

const (
	firstLatin    = 0xC0
	firstGreek    = 0x386
	firstCyrillic = 0x400
	firstMore     = 0x1E00
	firstLigature = 0xFB00
	firstMark     = 0x300 // combining accents, to 0x36F
	wideFirst     = 0xFF01
	wideLast      = 0xFF5E  // full-width forms of "!" to "~"
	firstStyled   = 0x1D400 // letters for formulas: thirteen alphabets, bold to monospace, used to stand out
	lastStyled    = 0x1D6A3
	firstEmoji    = 0x1F000
	lastEmoji     = 0x1FAFF
)

// appendRune appends the form of a rune outside ASCII.
func appendRune(b []byte, r rune) []byte {
	switch {
	case r < firstLatin || r == utf8.RuneError:
		return append(b, ' ')
	case int(r-firstLatin) < len(latin):
		if plain := latin[r-firstLatin]; plain != "." {
			return append(b, plain...)
		}
		return append(b, ' ')
	case r >= firstGreek && int(r-firstGreek) < len(greek)/2:
		return appendPair(b, greek, int(r-firstGreek))
	case r >= firstCyrillic && int(r-firstCyrillic) < len(cyrillic)/2:
		return appendPair(b, cyrillic, int(r-firstCyrillic))
	case r >= firstMore && int(r-firstMore) < len(latinMore):
		if plain := latinMore[r-firstMore]; plain != '.' {
			return append(b, plain)
		}
		return append(b, "ss"...)
	case r >= firstLigature && int(r-firstLigature) < len(ligatures):
		return append(b, ligatures[r-firstLigature]...)
	case r >= firstMark && r < firstMark+0x70, r == 0x200C, r == 0x200D, r == 0x2018, r == 0x2019:
		return b // accents, joiners and apostrophes
	case r >= wideFirst && r <= wideLast:
		return appendASCII(b, byte(r-wideFirst+'!'))
	case r >= firstStyled && r <= lastStyled:
		return append(b, 'a'+byte((r-firstStyled)%26))
	case r >= 0x2000 && r < 0x2C00, r >= 0x3000 && r < 0x3003, r == 0xFEFF, r == 0xFE0F, r >= firstEmoji && r <= lastEmoji:
		return append(b, ' ') // punctuation, symbols, arrows, spaces, emoji
	}
	return utf8.AppendRune(b, r)
}

// appendPair appends the letter with an index in greek or cyrillic.
func appendPair(b []byte, letters string, index int) []byte {
	if letter := letters[2*index : 2*index+2]; letter != "·" {
		return append(b, letter...)
	}
	return append(b, ' ')
}
