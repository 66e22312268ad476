package dashboard_test

import (
	"context"
	"database/sql"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	token    = "operator-token-of-tests"
	password = "four plain words here"
)

// world is a writer and its dashboard on a server, with a clock of its own.
type world struct {
	t         testing.TB
	ledger    *sql.DB
	access    *sql.DB
	writer    *writer.Writer
	client    *writer.Client
	dashboard *dashboard.Dashboard
	server    *httptest.Server

	mu  sync.Mutex
	now time.Time
}

func newWorld(t testing.TB, change ...func(*dashboard.Config)) *world {
	t.Helper()
	ledger, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	return newWorldOn(t, ledger, change...)
}

// newWorldOn takes a ledger for itself.
func newWorldOn(t testing.TB, ledger *sql.DB, change ...func(*dashboard.Config)) *world {
	t.Helper()
	w := &world{t: t, ledger: ledger, now: time.Date(2026, 10, 20, 12, 30, 0, 0, time.UTC)}
	var err error
	w.access, err = schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
	require.NoError(t, err)
	w.writer, err = writer.Open(t.Context(), writer.Config{Ledger: w.ledger, Access: w.access, OperatorToken: token, Now: w.clock})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.writer.Run(ctx) }()
	config := dashboard.Config{Writer: w.writer, Ledger: w.ledger, OperatorToken: token, Now: w.clock, ReferenceURL: "https://api.example/"}
	config.Client = func(r *http.Request) string { // tests say who they are
		if from := r.Header.Get("Test-Address"); from != "" {
			return from
		}
		return "192.0.2.1"
	}
	for _, c := range change {
		c(&config)
	}
	w.dashboard, err = dashboard.New(config)
	require.NoError(t, err)
	w.dashboard.CheapPasswords()
	w.server = httptest.NewServer(w.dashboard.Handler())
	w.client = writer.NewClient(w.server.URL, token, w.server.Client())
	t.Cleanup(func() {
		w.server.Close()
		require.Zero(t, w.dashboard.Hashing(), "every page gives its place at the hashing lane back")
		cancel()
		require.NoError(t, <-done)
		w.ledger.Close()
		w.access.Close()
	})
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// account makes an account with credits.
func (w *world) account(name string, credits int64) int64 {
	w.t.Helper()
	a, err := w.client.AddAccount(w.t.Context(), name, "", "growth")
	require.NoError(w.t, err)
	if credits > 0 {
		_, err = w.client.ChangeCredits(w.t.Context(), a.ID, writer.CreditChange{Amount: credits, Note: "first"})
		require.NoError(w.t, err)
	}
	return a.ID
}

// person makes somebody who can sign in, without a browser; account 0 is an operator.
func (w *world) person(email string, account int64) {
	w.t.Helper()
	i, err := w.client.Invite(w.t.Context(), email, account)
	require.NoError(w.t, err)
	require.NoError(w.t, w.dashboard.Accept(w.t.Context(), i.Token, password))
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.ledger.QueryRow(query, args...).Scan(&n))
	return n
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	_, err := w.ledger.Exec(statement, args...)
	require.NoError(w.t, err)
}

// used writes usage as the ledger does when an edge reports it.
func (w *world) used(account, key int64, at time.Time, outcome, count int) {
	w.t.Helper()
	w.exec(`INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (?, ?, ?, 1, ?, ?)`,
		account, key, at.Unix()/3600, outcome, count)
	if outcome == 1 {
		w.exec(`UPDATE account SET spent = spent + ? WHERE id = ?`, count, account)
	}
}

// browser keeps cookies and follows redirections, as a person's does.
type browser struct {
	*world
	http    *http.Client
	address string
	seen    page
}

// cookies are those that the browser has now.
func (b *browser) cookies() []*http.Cookie {
	address, err := url.Parse(b.server.URL)
	require.NoError(b.t, err)
	return b.http.Jar.Cookies(address)
}

// setCookies takes the browser back to the cookies that it had.
func (b *browser) setCookies(had []*http.Cookie) {
	address, err := url.Parse(b.server.URL)
	require.NoError(b.t, err)
	b.http.Jar, err = cookiejar.New(nil)
	require.NoError(b.t, err)
	b.http.Jar.SetCookies(address, had)
}

// page is an answer, read.
type page struct {
	*http.Response
	body string
}

func (w *world) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(w.t, err)
	client := w.server.Client()
	own := *client
	own.Jar = jar
	return &browser{world: w, http: &own, address: "192.0.2.1"}
}

// do sends a request with the headers of a browser.
func (b *browser) do(method, path string, form url.Values, change ...func(*http.Request)) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL+path, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	r.Header.Set("Test-Address", b.address)
	r.Header.Set("User-Agent", "a browser of tests")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, c := range change {
		c(r)
	}
	response, err := b.http.Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	b.seen = page{response, string(body)}
	b.checkForms()
	return b.seen
}

func (b *browser) get(path string) page {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil)
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// submit opens a page and posts a form of it with its token.
func (b *browser) submit(on, to string, fields ...string) page {
	b.t.Helper()
	b.get(on)
	return b.post(to, fields...)
}

// post posts a form with the token of the page that is open.
func (b *browser) post(to string, fields ...string) page {
	b.t.Helper()
	form := url.Values{}
	if found := tokenField.FindStringSubmatch(b.seen.body); found != nil {
		form.Set("token", found[1])
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.do(http.MethodPost, to, form)
}

func (b *browser) signIn(email, with string) page {
	b.t.Helper()
	return b.submit("/sign-in", "/sign-in", "email", email, "password", with)
}

// requireIn signs in and fails unless that works.
func (b *browser) requireIn(email string) *browser {
	b.t.Helper()
	p := b.signIn(email, password)
	require.Equal(b.t, http.StatusOK, p.StatusCode, p.body)
	require.Contains(b.t, p.body, "Sign out")
	return b
}

// text is a page's body without its escapes.
func (p page) text() string { return html.UnescapeString(p.body) }

// owner makes an account, an owner of it, and a browser in which they are signed in.
func (w *world) owner(name string, credits int64) (*browser, int64) {
	w.t.Helper()
	id := w.account(name, credits)
	email := strings.ToLower(strings.Fields(name)[0]) + "@example.com"
	w.person(email, id)
	return w.browser().requireIn(email), id
}

func (w *world) operator() *browser {
	w.t.Helper()
	w.person("operator@example.com", 0)
	return w.browser().requireIn("operator@example.com")
}
