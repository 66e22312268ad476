package browser_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/browser"
)

// failed is a test that keeps why it failed.
type failed struct {
	testing.TB
	why string
}

func (f *failed) Helper()                           {}
func (f *failed) Errorf(format string, args ...any) { f.why += fmt.Sprintf(format, args...) }
func (f *failed) FailNow()                          { panic(f) }

// failure returns why a check fails its test, "" if it does not.
func failure(page *browser.Tab, check func()) string {
	before, f := page.T, &failed{TB: page.T}
	defer func() { page.T = before }()
	func() {
		defer func() {
			if cause := recover(); cause != nil && cause != any(f) {
				panic(cause)
			}
		}()
		page.T = f
		check()
	}()
	return f.why
}

func TestTab(t *testing.T) {
	t.Parallel()
	page := browser.New(t)
	t.Run("a check fails for what it is about", func(t *testing.T) { checksFail(t, page) })
	t.Run("a condition is of a whole page", func(t *testing.T) { conditionOfAWholePage(t, page) })
}

// checksFail opens a page without a fault, and pages of one fault each.
func checksFail(t *testing.T, page *browser.Tab) {
	page.T = t
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><html lang=en><title>Made up</title><main><h1>Made up</h1>"+map[string]string{
			"/unnamed": `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`,
			"/cut":     `<input aria-label=some placeholder="more than there is room for" style="width: 3em">`,
			"/folded":  `<details><summary>More</summary><input aria-label=some placeholder="more than there is room for" style="width: 3em"></details>`,
			"/blank":   `<input id=some aria-label=some style="color: transparent">`,
			"/warns":   `<script>console.warn("it warns")</script>`, "/throws": `<script>throw new Error()</script>`,
		}[r.URL.Path])
	}))
	defer server.Close()
	axe := browser.Axe(t)
	accessible := func() { page.RequireAccessible(axe, "here") }
	whole := func() { page.RequireWholePlaceholders("here") }
	underscores := func() { page.RequireUnderscores("#some") }
	clean := func() { page.RequireClean(server.URL) }
	page.Open(server.URL + "/")
	require.Contains(t, failure(page, func() { page.RequireClean("http://elsewhere.example") }), "was loaded from elsewhere")
	for _, c := range []struct {
		path  string
		check func()
		want  string
	}{
		{"/", accessible, ""}, {"/unnamed", accessible, "image-alt"}, {"/", whole, ""}, {"/cut", whole, "more than"}, {"/folded", whole, "more than"},
		{"/blank", underscores, "shows no underscores"}, {"/", clean, ""}, {"/warns", clean, "it warns"}, {"/throws", clean, "Uncaught"},
	} {
		page.Open(server.URL + c.path)
		why := failure(page, c.check)
		require.Equal(t, c.want == "", why == "", "%s: %s", c.path, why)
		require.Contains(t, why, c.want, c.path)
	}
}

// conditionOfAWholePage: what a test reads next may be at its end.
func conditionOfAWholePage(t *testing.T, page *browser.Tab) {
	page.T = t
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/slow" {
			return
		}
		io.WriteString(w, "<p class=first>"+strings.Repeat("first ", 1000))
		http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second): // a slow network
		}
		io.WriteString(w, "<p class=last>")
	}))
	defer server.Close()
	page.Open(server.URL)
	page.Eval(`location.href = "/slow"`)
	page.WaitFor(`document.querySelector(".first")`)
	require.Equal(t, "1", page.Eval(`String(document.querySelectorAll(".last").length)`))
}
