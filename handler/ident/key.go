package ident

import (
	"strings"

	"regedge/handler/fastbytes"
)

const (
	// LivePrefix begins every live API key.
	LivePrefix = "reg_live_"
	// SandboxKey is the public key with which anyone may try the API.
	SandboxKey = "reg_sandbox_public"

	secretLength   = 32 // base62 characters: 190 bits
	checksumLength = 6  // base62 digits hold the 32 bits of a CRC-32

	// KeyLength is the length of a live key, in bytes.
	KeyLength = len(LivePrefix) + secretLength + checksumLength
	// ShownLength is how many characters of a key's secret part are stored and shown in lists.
	ShownLength = 4
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// ValidKey reports whether key has the form of a live key and a correct checksum. It finds
// nearly all mistyped keys without a query.
func ValidKey(key string) bool {
	if len(key) != KeyLength || key[:len(LivePrefix)] != LivePrefix {
		return false
	}
	for i := len(LivePrefix); i < KeyLength; i++ {
		if !isBase62(key[i]) {
			return false
		}
	}
	body := key[:KeyLength-checksumLength]
	return key[KeyLength-checksumLength:] == checksum(body)
}

// NewKey makes a live key. random fills its argument with cryptographically secure bytes; it is
// called until enough of them are usable.
func NewKey(random func(p []byte)) string {
	key := make([]byte, 0, KeyLength)
	key = append(key, LivePrefix...)
	var pool [2 * secretLength]byte
	for len(key) < KeyLength-checksumLength {
		random(pool[:])
		for _, c := range pool {
			// 248 is the largest multiple of 62 in a byte: values above it would make some
			// characters more likely than others.
			if c < 248 && len(key) < KeyLength-checksumLength {
				key = append(key, base62[c%62])
			}
		}
	}
	return string(append(key, checksum(string(key))...))
}

// Bearer returns the token of an Authorization header (RFC 6750, section 2.1) with the given
// values. present is false if there is no header or no token in it. Several values or another
// scheme return "" with present true: a token that nobody has.
func Bearer(authorization []string) (token string, present bool) {
	if len(authorization) == 0 {
		return "", false
	}
	if len(authorization) > 1 {
		return "", true
	}
	scheme, token, _ := strings.Cut(strings.Trim(authorization[0], " \t"), " ")
	token = strings.TrimLeft(token, " ")
	if !fastbytes.EqualFold(scheme, "Bearer") {
		return "", scheme != ""
	}
	return token, token != ""
}

// KeyShown returns the part of a live key's secret that lists may show.
func KeyShown(key string) string {
	return key[len(LivePrefix) : len(LivePrefix)+ShownLength]
}

// checksum is the CRC-32 (IEEE) of body as base62 digits, most significant first.
func checksum(body string) string {
	sum := crc32(body)
	var digits [checksumLength]byte
	for i := checksumLength - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return string(digits[:])
}

// crcNibbles is the CRC table for half a byte (polynomial of IEEE 802.3, bits reversed). The
// tables of hash/crc32 take 9 KB of memory, which a host would restore before each request.
var crcNibbles = [16]uint32{
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
}

// crc32 returns the CRC-32 (IEEE 802.3) of text.
func crc32(text string) uint32 {
	sum := ^uint32(0)
	for i := range len(text) {
		sum ^= uint32(text[i])
		sum = crcNibbles[sum&15] ^ sum>>4
		sum = crcNibbles[sum&15] ^ sum>>4
	}
	return ^sum
}

func isBase62(c byte) bool { return isDigit(c) || isUpper(c) || c >= 'a' && c <= 'z' }
