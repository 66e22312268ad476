// Package fastbytes reads and writes text eight bytes at a time ("SIMD within a register"), for
// the component's sake: its compiler checks the place of each byte of a slice and reads it
// by itself, which takes longer than all that is done with eight of them together.
package fastbytes

import "unsafe"

// Size is the number of bytes of a word.
const Size = 8

const (
	ones  = 0x0101010101010101
	tops  = 0x8080808080808080
	cases = 0x2020202020202020
)

// Load is the word of s at i. The caller has made sure that 0 <= i <= len(s)-Size.
func Load(s string, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// Store writes a word into b at i. The caller has made sure that 0 <= i <= len(b)-Size.
func Store(b []byte, i int, word uint64) {
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i)) = word
}

// Special reports whether a word holds a byte that is not ASCII, a control character or one
// of two others. At times it takes a byte next to such a one for it too.
func Special(word uint64, one, other byte) bool {
	x, y := word^ones*uint64(one), word^ones*uint64(other)
	return (word|(word-ones*' ')|(x-ones)|(y-ones))&tops != 0
}

// Control reports whether a word of ASCII holds a control character below the space, or a
// byte that is not ASCII. At times it takes a byte next to such a one for it too.
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
	Store(b, last, Load(s, last)) // over a part of the one before
}

// EqualFold compares ASCII texts without regard to the case of letters.
func EqualFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for ; i+Size <= len(a); i += Size {
		// Letters differ from their other case in one bit. So do other characters from
		// others, so that what differs there is looked at again.
		differs := Load(a, i) ^ Load(b, i)
		if differs&^cases != 0 || differs != 0 && !equalFold(a[i:i+Size], b[i:i+Size]) {
			return false
		}
	}
	return equalFold(a[i:], b[i:])
}

func equalFold(a, b string) bool {
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
