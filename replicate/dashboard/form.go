package dashboard

import (
	"crypto/subtle"
	"errors"
	"mime"
	"net/http"
	"strings"
)

// maxForm bounds a form, in bytes. The longest has three short fields.
const maxForm = 16 << 10

// policy lets a page use this host's own files, and be framed by nobody.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// harden sets what every answer says to the browser. The referrer stays within this
// host: without any, a browser would not say where a form comes from.
func (d *Dashboard) harden(v *visit) {
	header := v.w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Cookie")
	if d.secure(v.r) {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// sameOrigin asks the browser where a form comes from (Sec-Fetch-Site, else Origin).
var sameOrigin = http.NewCrossOriginProtection()

// checkForm reads the form of a POST and refuses it unless it comes from a page of ours:
// by what the browser says of its origin, and by the token, which also stops a client
// that says nothing.
func (d *Dashboard) checkForm(v *visit) error {
	if sameOrigin.Check(v.r) != nil {
		return errForeign
	}
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return errFormType
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return errFormSize
		}
		return errFormBroken
	}
	want := formToken(v.secret)
	if v.secret == "" || subtle.ConstantTimeCompare([]byte(v.field("token")), []byte(want)) != 1 {
		return errOldForm
	}
	return nil
}

// field is a field of the form, as it was typed. What stands in the address does not
// count.
func (v *visit) field(name string) string { return v.r.PostForm.Get(name) }

// line is a field of one line: trimmed, without what can't be printed.
func (v *visit) line(name string) string {
	return strings.TrimSpace(printable(v.field(name), maxForm))
}
