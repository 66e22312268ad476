package browser_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/browser"
)

// TestAConditionIsOfAWholePage, since what a test reads next may be at its end.
func TestAConditionIsOfAWholePage(t *testing.T) {
	t.Parallel()
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
	page := browser.New(t)
	page.Open(server.URL)
	page.Eval(`location.href = "/slow"`)
	page.WaitFor(`document.querySelector(".first")`)
	require.Equal(t, "1", page.Eval(`String(document.querySelectorAll(".last").length)`))
}
