package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Asset is a file that is the same for everyone.
type Asset struct {
	contentType string
	body        []byte
	packed      []byte // body with gzip, nil if that is not smaller
	tag         string // ETag without quotes
}

// comment matches a comment that has its lines to itself, of a style sheet or a script.
var comment = regexp.MustCompile(`(?m)^[ \t]*(//.*|/\*(?s:.*?)\*/)\n`)

// NewAsset makes an asset of a file's content. Its ETag is the content's digest. Style sheets and scripts are
// served without their comments, which are a tenth of their size.
func NewAsset(contentType string, body []byte) Asset {
	if strings.HasPrefix(contentType, "text/css") || strings.HasPrefix(contentType, "text/javascript") {
		body = comment.ReplaceAll(body, nil)
	}
	sum := sha256.Sum256(body)
	a := Asset{contentType: contentType, body: body, tag: hex.EncodeToString(sum[:8])}
	if packed := Gzip(body, gzip.BestCompression); len(packed) < len(body) {
		a.packed = packed
	}
	return a
}

// Gzip compresses a text with a level of package gzip.
func Gzip(text []byte, level int) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic(err) // there is no such level
	}
	w.Write(text) // a buffer takes all
	w.Close()
	return b.Bytes()
}

// Serve answers 304 to a browser that has this very file. Browsers revalidate each time, so
// that a new version of the program never meets files of an old one.
func (a Asset) Serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Vary", "Accept-Encoding")
	body, tag := a.body, a.tag
	if a.packed != nil && AcceptsGzip(r.Header) {
		body, tag = a.packed, a.tag+"-gzip"
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// Common are the files that pages share, by file name.
func Common() map[string]Asset {
	return map[string]Asset{
		"style.css":     NewAsset("text/css; charset=utf-8", Style),
		"icon.svg":      NewAsset("image/svg+xml", Icon),
		"samples.js":    NewAsset("text/javascript; charset=utf-8", Samples),
		"suggestion.js": NewAsset("text/javascript; charset=utf-8", Suggestion),
	}
}
