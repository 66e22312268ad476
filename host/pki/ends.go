package pki

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"
)

// ReadTokenLife is the lifetime of an edge's tokens for its replicas. They are renewed long before.
const ReadTokenLife = 30 * 24 * time.Hour

// Ends returns when a token expires, false for one without an expiry. It does not check the signature.
func Ends(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Exp int64 }
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Exp == 0 {
		return time.Time{}, false
	}
	return time.Unix(claims.Exp, 0).UTC(), true
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
