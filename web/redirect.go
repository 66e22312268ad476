package web

import (
	"net/http"
	"net/url"
)

// Redirect sends a browser from a mistyped path to a page of this host, with the query of the request. Browsers
// ask again each time: a later version may have a page at the mistyped path.
func Redirect(w http.ResponseWriter, r *http.Request, page string) {
	to := url.URL{Path: page, RawQuery: r.URL.RawQuery}
	w.Header().Set("Cache-Control", "no-cache")
	http.Redirect(w, r, to.String(), http.StatusPermanentRedirect)
}
