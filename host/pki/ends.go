package pki

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// ReadTokenLife is how long an edge's tokens for its replicas are good. They are renewed long before.
const ReadTokenLife = 30 * 24 * time.Hour

// Ends returns when a token ends, false for one without an end. It does not check the signature.
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
