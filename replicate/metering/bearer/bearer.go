// Package bearer checks the bearer tokens of HTTP requests, for the meter.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// scheme precedes the token in an Authorization header (RFC 6750).
const scheme = "Bearer "

// Token is a token that requests have to carry.
type Token struct {
	hash [sha256.Size]byte // of the whole header
	set  bool
}

// New makes a Token. No request carries an empty one.
func New(token string) Token {
	return Token{sha256.Sum256([]byte(scheme + token)), token != ""}
}

// In reports whether a request carries the token. The comparison takes the same time
// wherever the tokens differ.
func (t Token) In(r *http.Request) bool {
	got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	return subtle.ConstantTimeCompare(got[:], t.hash[:]) == 1 && t.set
}
