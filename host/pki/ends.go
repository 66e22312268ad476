package pki

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// ReadTokenLife is the lifetime of an edge's tokens for its replicas. They are renewed long before.
const ReadTokenLife = 30 * 24 * time.Hour

// lastEnd is the latest time that RFC 3339 can express, in Unix seconds.
const lastEnd = 253402300799

// Ends returns when a token expires; false if it has no expiry. An expiry that is not a number counts as expired. Ends
// does not check the signature.
func Ends(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct{ Exp *float64 } // a NumericDate (RFC 7519, section 2)
	err = json.Unmarshal(payload, &claims)
	if other := new(json.UnmarshalTypeError); errors.As(err, &other) && other.Field != "" {
		return time.Unix(0, 0).UTC(), true
	}
	if err != nil || claims.Exp == nil {
		return time.Time{}, false
	}
	return time.Unix(int64(min(max(*claims.Exp, 0), lastEnd)), 0).UTC(), true
}

// CertificateEnd returns the earliest expiry of the certificates in a PEM file.
func CertificateEnd(path string) (end time.Time, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return end, fmt.Errorf("read certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certBlock { // its key, say
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return end, fmt.Errorf("read certificate %s: %w", path, err)
		}
		if end.IsZero() || c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	if end.IsZero() {
		return end, fmt.Errorf("%s holds no certificate", path)
	}
	return end, nil
}
