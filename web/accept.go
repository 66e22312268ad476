package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// AcceptsHTML reports whether a request's Accept header names HTML, as a browser's does when it opens a
// page. Programs that accept everything, or send no Accept, want something else.
func AcceptsHTML(header http.Header) bool {
	for _, value := range header.Values("Accept") {
		for part := range strings.SplitSeq(value, ",") {
			kind, parameters, err := mime.ParseMediaType(part)
			if err != nil || kind != "text/html" {
				continue
			}
			if q, err := strconv.ParseFloat(parameters["q"], 64); err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}

// AcceptsGzip reports whether an answer may be compressed with gzip. Names of codings and of the weight are the same in any
// case (RFC 9110, sections 8.4.1 and 12.4.2).
func AcceptsGzip(header http.Header) bool {
	for _, value := range header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(strings.ToLower(value), ",") {
			coding, parameters, _ := strings.Cut(part, ";")
			if strings.TrimSpace(coding) != "gzip" {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(parameters), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}
