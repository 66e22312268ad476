package fastbytes

import "unsafe"

// Size is the number of bytes in a word.
const Size = 8

const (
	ones  = 0x0101010101010101
	tops  = 0x8080808080808080
	cases = 0x2020202020202020
)

// Load returns the word at s[i]. It does not check that 0 <= i <= len(s)-Size.
func Load(s string, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// Store writes a word to b[i]. It does not check that 0 <= i <= len(b)-Size.
func Store(b []byte, i int, word uint64) {
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i)) = word
}

// Special reports whether a word may hold a byte that is not ASCII, a control character below
// the space, or one of two others. It misses none, but a byte after such a one can make it
// report true without need; so the caller looks at each byte then.
func Special(word uint64, one, other byte) bool {
	x, y := word^ones*uint64(one), word^ones*uint64(other)
	return (word|(word-ones*' ')|(x-ones)|(y-ones))&tops != 0
}

// Control is Special without the two others.
func Control(word uint64) bool { return (word|(word-ones*' '))&tops != 0 }

// Copy copies s to the beginning of b, which has room for it.
func Copy(b []byte, s string) {
	b = b[:len(s)]
	if len(s) < Size {
		for i := range len(s) {
			b[i] = s[i]
		}
		return
	}
	last := len(s) - Size
	for i := 0; i < last; i += Size {
		Store(b, i, Load(s, i))
	}
	Store(b, last, Load(s, last)) // overlaps the word before
}

// EqualFold compares texts, ignoring the case of ASCII letters only: names of header fields
// and authentication schemes (RFC 9110, sections 5.1 and 11.1).
func EqualFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for ; i+Size <= len(a); i += Size {
		// The two cases of a letter differ in one bit. So do some other characters, such as @
		// and `, so a word that differs only in that bit is compared byte by byte.
		differs := Load(a, i) ^ Load(b, i)
		if differs&^cases != 0 || differs != 0 && !equalFold(a[i:i+Size], b[i:i+Size]) {
			return false
		}
	}
	return equalFold(a[i:], b[i:])
}

func equalFold(a, b string) bool {
	for i := range len(a) {
		if Lower(a[i]) != Lower(b[i]) {
			return false
		}
	}
	return true
}

// Lower returns an ASCII letter in lower case, and any other byte as it is.
func Lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// Upper returns s with its ASCII letters in upper case, as SQLite's upper does: a letter of
// another script never becomes an ASCII letter.
func Upper(s string) string {
	for i := 0; i < len(s); i++ {
		if isLower(s[i]) {
			b := []byte(s)
			for ; i < len(b); i++ {
				if isLower(b[i]) {
					b[i] -= 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
