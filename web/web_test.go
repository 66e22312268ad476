package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/web"
)

func TestBrowsersAcceptHTML(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"application/json, text/html;q=0.5":                               true,
		"TEXT/HTML":                                                       true, "*/*": false, "": false, "text/*": false, "application/json": false,
		"text/html;q=0": false, "text/html;q=0.0, application/json": false, ";;;": false, "text/htmlx": false,
	} {
		require.Equal(t, want, web.AcceptsHTML(http.Header{"Accept": {accept}}), accept)
	}
}

func TestGzipIsAcceptedByName(t *testing.T) {
	for accept, want := range map[string]bool{
		"gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8": true, "": false, "identity": false, "gzip;q=0": false, "br, gzip; q=0.0": false,
		"xgzip": false, "GZIP": true, "gzip;Q=0": false,
	} {
		require.Equal(t, want, web.AcceptsGzip(http.Header{"Accept-Encoding": {accept}}), accept)
	}
}

func TestAssetsAreCompressedWhereThatIsAccepted(t *testing.T) {
	text := strings.Repeat("a style sheet ", 500)
	asset := web.NewAsset("text/css", []byte(text))
	serve := func(change func(*http.Request)) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "/assets/style.css", nil)
		change(r)
		w := httptest.NewRecorder()
		asset.Serve(w, r)
		return w.Result()
	}
	plain := serve(func(*http.Request) {})
	for name, want := range map[string]string{
		"Vary": "Accept-Encoding", "Content-Type": "text/css", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
	} {
		require.Equal(t, want, plain.Header.Get(name), name)
	}
	require.EqualValues(t, len(text), plain.ContentLength)
	packed := serve(func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
	require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
	require.Less(t, packed.ContentLength, int64(len(text)/10))
	require.NotEqual(t, plain.Header.Get("ETag"), packed.Header.Get("ETag"))
	unpacked, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	got, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	again := serve(func(r *http.Request) {
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("If-None-Match", packed.Header.Get("ETag"))
	})
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	short := web.NewAsset("text/css", []byte("a{}"))
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	short.Serve(w, r)
	require.Empty(t, w.Result().Header.Get("Content-Encoding"), "it would grow")
}

func TestCommentsAreNotServed(t *testing.T) {
	for text, want := range map[[2]string]string{
		{"text/css; charset=utf-8", "/* Head */\na { b: c; } /* stays */\n  /* two\n  lines */\nd { e: url(//f); }\n"}: "a { b: c; } /* stays */\nd { e: url(//f); }\n",
		{"text/javascript; charset=utf-8", "// Why.\nf(\"//g\"); // stays\n\t// How.\nh();\n"}:                         "f(\"//g\"); // stays\nh();\n",
		{"text/markdown", "// kept\n"}: "// kept\n",
	} {
		w := httptest.NewRecorder()
		web.NewAsset(text[0], []byte(text[1])).Serve(w, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, want, w.Body.String())
	}
}

// TestSharedFilesAreWhatTheyAreCalled: a browser takes a script or a style sheet by its type alone.
func TestSharedFilesAreWhatTheyAreCalled(t *testing.T) {
	for name, want := range map[string][2]string{
		"style.css": {"text/css; charset=utf-8", "body {"}, "icon.svg": {"image/svg+xml", "<svg"},
		"samples.js": {"text/javascript; charset=utf-8", "tab"}, "suggestion.js": {"text/javascript; charset=utf-8", "function listed("},
	} {
		w := httptest.NewRecorder()
		web.Common()[name].Serve(w, httptest.NewRequest(http.MethodGet, "/assets/"+name, nil))
		require.Equal(t, want[0], w.Header().Get("Content-Type"), name)
		require.Contains(t, w.Body.String(), want[1], name)
	}
	require.Len(t, web.Common(), 4)
}

// TestAMistypedPathKeepsItsQuery, and no cache keeps the redirect: a later version may have a page there.
func TestAMistypedPathKeepsItsQuery(t *testing.T) {
	w := httptest.NewRecorder()
	web.Redirect(w, httptest.NewRequest(http.MethodGet, "/Guides?lang=go", nil), "/guides")
	require.Equal(t, http.StatusPermanentRedirect, w.Code)
	require.Equal(t, "/guides?lang=go", w.Header().Get("Location"))
	require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
}
