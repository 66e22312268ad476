package ident

import "math/bits"

// HashSize is the length of a key's hash in bytes.
const HashSize = 32

// Hash returns the SHA-256 of a key (FIPS 180-4, section 6.2); databases hold keys only by
// their hash. crypto/sha256 would bring the standard library's FIPS module into the component:
// 40% of its size, and data that a host would restore before each request.
func Hash(key string) [HashSize]byte {
	state := hashStart
	var block [blockSize]byte
	rest := key
	for ; len(rest) >= blockSize; rest = rest[blockSize:] {
		copy(block[:], rest)
		compress(&state, &block)
	}
	// The padding: a one bit, zeros, and the length in bits.
	clear(block[copy(block[:], rest):])
	block[len(rest)] = 0x80
	if len(rest) >= blockSize-lengthSize {
		compress(&state, &block)
		clear(block[:])
	}
	length := uint64(len(key)) * 8
	putWord(block[blockSize-lengthSize:], uint32(length>>32))
	putWord(block[blockSize-lengthSize/2:], uint32(length))
	compress(&state, &block)

	var sum [HashSize]byte
	for i, word := range state {
		putWord(sum[i*4:], word)
	}
	return sum
}

// putWord writes a word in big-endian order. Package encoding/binary would bring reflection
// into the component.
func putWord(b []byte, word uint32) {
	b[0], b[1], b[2], b[3] = byte(word>>24), byte(word>>16), byte(word>>8), byte(word)
}

// Sizes in bytes of a block and of the length at the end of the last one.
const (
	blockSize  = 64
	lengthSize = 8
)

// compress adds one block to the state.
func compress(state *[8]uint32, block *[blockSize]byte) {
	var words [len(hashConstants)]uint32
	for i := range blockSize / 4 {
		b := block[i*4:][:4]
		words[i] = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	}
	for i := blockSize / 4; i < len(words); i++ {
		w15, w2 := words[i-15], words[i-2]
		words[i] = words[i-16] + words[i-7] +
			(bits.RotateLeft32(w15, -7) ^ bits.RotateLeft32(w15, -18) ^ w15>>3) +
			(bits.RotateLeft32(w2, -17) ^ bits.RotateLeft32(w2, -19) ^ w2>>10)
	}
	a, b, c, d, e, f, g, h := state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
	for i := 0; i < len(words); i += 8 { // eight rounds rotate each variable back to its own name
		k, w := hashConstants[i:][:8], words[i:][:8]
		d, h = step(a, b, c, d, e, f, g, h, k[0]+w[0])
		c, g = step(h, a, b, c, d, e, f, g, k[1]+w[1])
		b, f = step(g, h, a, b, c, d, e, f, k[2]+w[2])
		a, e = step(f, g, h, a, b, c, d, e, k[3]+w[3])
		h, d = step(e, f, g, h, a, b, c, d, k[4]+w[4])
		g, c = step(d, e, f, g, h, a, b, c, k[5]+w[5])
		f, b = step(c, d, e, f, g, h, a, b, k[6]+w[6])
		e, a = step(b, c, d, e, f, g, h, a, k[7]+w[7])
	}
	for i, word := range [...]uint32{a, b, c, d, e, f, g, h} {
		state[i] += word
	}
}

// step is one round, which changes two of the variables: it returns the new d and h.
func step(a, b, c, d, e, f, g, h, kw uint32) (newD, newH uint32) {
	t1 := h + kw + (g ^ e&(f^g)) + (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25))
	t2 := (a&b ^ c&(a^b)) + (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22))
	return d + t1, t1 + t2
}

// hashStart are the first 32 bits of the fractional parts of the square roots of the
// first 8 primes (FIPS 180-4, section 5.3.3).
var hashStart = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

// hashConstants are the same of the cube roots of the first 64 primes (section 4.2.2).
var hashConstants = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
