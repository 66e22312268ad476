package dashboard_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/dashboard"
)

func TestPathTricksLeadNowhere(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	for _, path := range []string{
		"/assets/..%2f..%2fdashboard.go", "/assets/../sign-in", "/assets/%2e%2e/keys", "/assets/none.js", "//evil.example", "/keys/",
		"/Keys", "/keys/..%2faccounts", "/v1/../keys", "/.git/config", "/invitations/", "/invitations/..%2f..%2fkeys", "/%00", "/keys%0d%0aX: y",
	} {
		answer := w.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\nCookie: regedge=" + b.cookie("regedge") + "\r\nConnection: close\r\n\r\n")
		require.Regexp(t, `^HTTP/1\.1 (400|404)`, answer, path)
		require.NotContains(t, answer, "Location:", path)
		require.NotContains(t, answer, "package dashboard", path)
		require.NotRegexp(t, `(?m)^X: y`, answer)
	}
}

// raw sends bytes as they are and returns what comes back.
func (w *world) raw(request string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	require.NoError(w.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	require.NoError(w.t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(w.t, err)
	return string(answer)
}

func TestHeadersCannotBeInjected(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	const split = "x\r\nSet-Cookie: regedge=planted\r\n"
	for _, path := range []string{"/?done=", "/credits?month=", "/credits.csv?month=", "/activity?before="} {
		p := b.get(path + url.QueryEscape(split))
		require.NotContains(t, p.Header.Get("Set-Cookie"), "planted", path)
		require.NotContains(t, p.Header.Get("Content-Disposition"), "planted", path)
	}
	b.submit("/keys", "/keys", "name", split)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key WHERE name = 'xSet-Cookie: regedge=planted'`), "a line stays a line")
	operator := w.operator()
	p := operator.submit("/accounts/1", "/accounts/1/invitations", "email", "a@example.com"+split)
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
}

func TestALinkNeverNamesAHostThatIsNone(t *testing.T) {
	w := newWorld(t)
	operator := w.operator()
	w.account("Acme", 0)
	operator.get("/accounts/1")
	token := tokenField.FindStringSubmatch(operator.seen.body)[1]
	form := url.Values{"token": {token}, "email": {"a@example.com"}}.Encode()
	for _, host := range []string{"user@evil.example", "evil.example:port", strings.Repeat("e", 300)} {
		answer := w.raw(fmt.Sprintf("POST /accounts/1/invitations HTTP/1.1\r\nHost: %s\r\nCookie: regedge=%s\r\nConnection: close\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", host, operator.cookie("regedge"), len(form), form))
		require.NotContains(t, answer, host)
		require.Regexp(t, `^HTTP/1\.1 400|value="/invitations/`, answer, "refused before it comes here, or left out")
	}

	configured := newWorld(t, func(c *dashboard.Config) { c.URL = "https://accounts.example/" })
	configured.account("Acme", 0)
	operator = configured.operator()
	p := operator.submit("/accounts/1", "/accounts/1/invitations", "email", "a@example.com")
	require.Contains(t, p.body, `value="https://accounts.example/invitations/`)
}

// TestABrowserWithoutCookiesIsToldOfThem: loading the page again does not help it.
func TestABrowserWithoutCookiesIsToldOfThem(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	keeps := b.http.Jar
	for jar, told := range map[http.CookieJar]bool{nil: true, keeps: false} {
		b.http.Jar = jar
		b.get("/sign-in")
		form := b.form("email", "a@example.com", "password", "y")
		form.Set("token", "of.another")
		require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/sign-in", form).StatusCode)
		require.Contains(t, b.seen.text(), "Load it again and send the form once more.")
		require.Equal(t, told, strings.Contains(b.seen.text(), "allow cookies"), b.seen.text())
	}
}

// TestARefusedFormLeadsBackToItsPage, also whoever loads its own address.
func TestARefusedFormLeadsBackToItsPage(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	key, err := w.client.AddKey(t.Context(), account, "mine")
	require.NoError(t, err)
	for to, on := range map[string]string{
		"/keys": "/keys", fmt.Sprint("/keys/", key.ID, "/name"): fmt.Sprint("/keys/", key.ID), fmt.Sprint("/keys/", key.ID, "/revoke"): fmt.Sprint("/keys/", key.ID, "/revoke"),
		"/settings/password": "/settings", "/settings/two-factor/off": "/settings/two-factor",
	} {
		refused := b.do(http.MethodPost, to, url.Values{"token": {"of.another"}})
		require.Equal(t, http.StatusForbidden, refused.StatusCode, to)
		require.Contains(t, refused.body, `<a href="`+on+`">Load the page again</a>`, to)
		require.Equal(t, on, b.get(to).Request.URL.Path)
		if led := b.seen.Request.Response; led != nil {
			require.Equal(t, "DENY", led.Header.Get("X-Frame-Options"), "%s: the answer that leads there is as hard as every other", to)
		}
		require.Equal(t, http.StatusOK, b.seen.StatusCode, to)
	}
	for _, to := range []string{"/sign-out", "/nothing/here"} {
		require.NotContains(t, b.do(http.MethodPost, to, url.Values{"token": {"of.another"}}).body, "Load the page again", to)
	}
}

func TestOversizedFormsAreRefused(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	b.get("/sign-in")
	p := b.post("/sign-in", "email", "a@example.com", "password", strings.Repeat("x", 20_000))
	require.Equal(t, http.StatusRequestEntityTooLarge, p.StatusCode)
	b.get("/sign-in")
	p = b.post("/sign-in", "email", strings.Repeat("x", 10_000)+"@example.com", "password", "y")
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
	require.Zero(t, w.count(`SELECT count(*) FROM audit WHERE length(detail) > 100`))
	b.get("/sign-in")
	p = b.do(http.MethodPost, "/sign-in", nil, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("token=%zz")), 9
	})
	require.Equal(t, http.StatusBadRequest, p.StatusCode)
}

// TestAPageThatIsNotThereIsMissingOnlyIfTheLedgerIsThere: a visitor whose session can't be read is told that.
func TestAPageThatIsNotThereIsMissingOnlyIfTheLedgerIsThere(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	require.Equal(t, http.StatusNotFound, b.get("/nowhere").StatusCode)
	w.exec(`ALTER TABLE session RENAME TO gone`)
	require.Equal(t, http.StatusInternalServerError, b.get("/nowhere").StatusCode)
	require.Equal(t, http.StatusInternalServerError, b.get("/assets/none.js").StatusCode)
	require.Equal(t, http.StatusNotFound, w.browser().get("/nowhere").StatusCode)
	w.exec(`ALTER TABLE gone RENAME TO session`)
	require.Equal(t, http.StatusNotFound, b.get("/nowhere").StatusCode)
}

func TestOtherMethodsAreRefused(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, "TRACE", http.MethodOptions} {
		refused := b.do(method, "/sign-in", nil)
		require.Equal(t, http.StatusMethodNotAllowed, refused.StatusCode, method)
		require.Equal(t, "GET, HEAD, POST", refused.Header.Get("Allow"), method)
	}
	require.Equal(t, http.StatusMethodNotAllowed, b.get("/sign-out").StatusCode, "nothing changes by a link")
	require.Contains(t, b.seen.text(), "This page does not take that method.")
}

// TestHEADHasTheHeaderOfGET, and no body (RFC 9110, section 9.3.2): checks of links and monitors ask so.
func TestHEADHasTheHeaderOfGET(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	for path, status := range map[string]int{"/keys": 200, "/usage.csv": 200, "/assets/style.css": 200, "/accounts": 404, "/nowhere": 404, "/sign-out": 405} {
		plain := func(r *http.Request) { r.Header.Set("Accept-Encoding", "identity") } // Go's client asks for gzip only with GET
		want := b.do(http.MethodGet, path, nil, plain)
		got := b.do(http.MethodHead, path, nil, plain)
		require.Equal(t, status, got.StatusCode, path)
		require.Equal(t, status, want.StatusCode, path)
		require.Empty(t, got.body, path)
		for _, header := range []http.Header{want.Header, got.Header} {
			header.Del("Date")
			header.Del("Content-Length") // may be left out
		}
		require.Equal(t, want.Header, got.Header, path)
	}
	moved := w.browser().do(http.MethodHead, "/keys", nil)
	require.Equal(t, "/sign-in", moved.Request.URL.Path)
	require.Equal(t, http.StatusOK, moved.StatusCode)
}

func TestTheLogHasTheMethodOfAPageThatFailed(t *testing.T) {
	var log testkit.Log
	w := newWorld(t, func(c *dashboard.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	b, _ := w.owner("Acme", 0)
	w.exec(`ALTER TABLE session RENAME TO gone`)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		require.Equal(t, http.StatusInternalServerError, b.do(method, "/keys", nil).StatusCode)
		require.Contains(t, log.String(), "method="+method+" route=/keys ")
	}
}

func TestTheAPIIsServedBesideThePages(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/v1/accounts": 401, "/metrics": 401, "/v1/none": 404} {
		require.Equal(t, status, b.get(path).StatusCode, "%s: a session is no token", path)
	}
}
