package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// Asset is a file that is the same for everyone.
type Asset struct {
	contentType string
	body        []byte
	tag         string // ETag, quoted
}

// NewAsset makes an asset of a file's content. Its ETag is the content's digest.
func NewAsset(contentType string, body []byte) Asset {
	sum := sha256.Sum256(body)
	return Asset{contentType: contentType, body: body, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// Serve answers 304 to a browser that has this very file. Browsers ask each time, so
// that a new version of the program never meets files of an old one.
func (a Asset) Serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", a.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// Common are the files that pages share, by file name.
func Common() map[string]Asset {
	return map[string]Asset{
		"style.css":     NewAsset("text/css; charset=utf-8", Style),
		"icon.svg":      NewAsset("image/svg+xml", Icon),
		"suggestion.js": NewAsset("text/javascript; charset=utf-8", Suggestion),
	}
}
