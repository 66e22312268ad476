package handler

import (
	"regedge/handler/charge"
	"regedge/handler/fastbytes"
	"regedge/handler/ident"
)

// HeaderIdempotency is the request header under which a lookup that is made again is not charged
// again (docs/contract.md, "A retry is not charged twice").
const HeaderIdempotency = "Idempotency-Key"

// maxIdempotency bounds an Idempotency-Key, in bytes.
const maxIdempotency = 64

// readIdempotency reads the Idempotency-Key. It reports false if that is invalid or comes twice.
func (c *call) readIdempotency(req *Request) bool {
	seen := false
	for i := range req.Headers {
		h := &req.Headers[i]
		if len(h.Name) != len(HeaderIdempotency) || !fastbytes.EqualFold(h.Name, HeaderIdempotency) {
			continue
		}
		if seen || !validIdempotency(h.Value) {
			return false
		}
		seen, c.idempotency = true, h.Value
	}
	return true
}

func validIdempotency(key string) bool {
	for i := 0; i < len(key); i++ {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxIdempotency
}

// shortHash returns the first half of a text's SHA-256, in hexadecimal. The meter never sees the
// text itself.
//
//go:noinline
func shortHash(text string) string {
	const hex = "0123456789abcdef"
	hash := ident.Hash(text)
	var b [charge.HashLength]byte
	for i := range charge.HashLength / 2 {
		b[2*i], b[2*i+1] = hex[hash[i]>>4], hex[hash[i]&15]
	}
	return string(b[:])
}
