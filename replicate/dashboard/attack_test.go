package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/dashboard"
)

func TestAFormOfAnotherSiteIsRefused(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	b.get("/keys")
	form := url.Values{"token": {tokenField.FindStringSubmatch(b.seen.body)[1]}, "name": {"planted"}}
	for name, change := range map[string]func(*http.Request){
		"of another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"of another port":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"by its origin":     func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
		"of a sandbox":      func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
		"as plain text":     func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"as several parts":  func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") },
		"without its type":  func(r *http.Request) { r.Header.Del("Content-Type") },
		"with a wrong type": func(r *http.Request) { r.Header.Set("Content-Type", ";") },
	} {
		p := b.do(http.MethodPost, "/keys", form, change)
		require.Contains(t, []int{http.StatusForbidden, http.StatusUnsupportedMediaType}, p.StatusCode, name)
	}
	for name, token := range map[string]string{"none": "", "a wrong one": "AAAA", "of another session": w.browserToken()} {
		form.Set("token", token)
		p := b.do(http.MethodPost, "/keys", form, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") })
		require.Equal(t, http.StatusForbidden, p.StatusCode, name)
	}
	require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/keys?"+form.Encode(), nil).StatusCode, "in the address")
	require.Zero(t, w.count(`SELECT count(*) FROM api_key`))
}

// browserToken is the token of a browser in which nobody is signed in.
func (w *world) browserToken() string {
	w.t.Helper()
	return tokenField.FindStringSubmatch(w.browser().get("/sign-in").body)[1]
}

func TestNobodyIsSignedInByAnotherSite(t *testing.T) {
	w := newWorld(t)
	w.person("attacker@example.com", w.account("Attacker", 0))
	form := url.Values{"email": {"attacker@example.com"}, "password": {password}, "token": {w.browserToken()}}
	victim := w.browser()
	victim.get("/sign-in")
	p := victim.do(http.MethodPost, "/sign-in", form, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") })
	require.Equal(t, http.StatusForbidden, p.StatusCode, "the token is of another browser")
	p = w.browser().do(http.MethodPost, "/sign-in", form, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") })
	require.Equal(t, http.StatusForbidden, p.StatusCode, "a browser without any cookie")
}

func TestASessionIsNeverOneThatTheBrowserBrought(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	b := w.browser()
	site, err := url.Parse(w.server.URL)
	require.NoError(t, err)
	b.http.Jar.SetCookies(site, []*http.Cookie{{Name: "regedge-guest", Value: "planted", Path: "/"}})
	b.get("/sign-in")
	require.NotEqual(t, "planted", b.cookie("regedge-guest"))
	const planted = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	b.http.Jar.SetCookies(site, []*http.Cookie{{Name: "regedge", Value: planted, Path: "/"}})
	b.requireIn("owner@example.com")
	first := b.cookie("regedge")
	require.NotEqual(t, planted, first)
	require.Contains(t, w.withCookie(planted).body, "<h1>Sign in</h1>")

	b.get("/settings")
	b.seen = w.browserPage(b, "/sign-in")
	b.requireIn("owner@example.com")
	require.NotEqual(t, first, b.cookie("regedge"), "renewed at every sign-in")
}

// TestSigningInAgainEndsTheSessionBefore: otherwise whoever has its cookie stays signed in, and the
// owner does not see it.
func TestSigningInAgainEndsTheSessionBefore(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	b := w.browser().requireIn("owner@example.com")
	first := b.cookie("regedge")
	require.Contains(t, w.withCookie(first).body, "Sign out")
	b.get("/settings")
	p := b.post("/sign-in", "email", "owner@example.com", "password", password)
	require.Contains(t, p.body, "Sign out")
	require.NotEqual(t, first, b.cookie("regedge"))
	require.Contains(t, w.withCookie(first).body, "<h1>Sign in</h1>")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM session`))
}

// TestAnInvitationEndsTheSessionBefore of the browser in which it is accepted, too.
func TestAnInvitationEndsTheSessionBefore(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	before := b.cookie("regedge")
	i, err := w.client.Invite(t.Context(), "new@example.com", w.account("Acme", 0))
	require.NoError(t, err)
	b.get("/invitations/" + i.Token)
	require.Contains(t, b.post("/invitations/"+i.Token, "password", password).body, "Sign out")
	require.Contains(t, w.withCookie(before).body, "<h1>Sign in</h1>")
}

// TestWhatARemovedOwnerDidStaysTheirs: a backdoor is not the service's.
func TestWhatARemovedOwnerDidStaysTheirs(t *testing.T) {
	w := newWorld(t)
	a, account := w.owner("Acme", 1000)
	w.person("bob@example.com", account)
	bob := w.browser().requireIn("bob@example.com")
	bob.address = "198.51.100.66"
	bob.submit("/keys", "/keys", "name", "backdoor")
	var id int
	require.NoError(t, w.ledger.QueryRow(`SELECT id FROM user WHERE email = 'bob@example.com'`).Scan(&id))
	remove := fmt.Sprintf("/people/%d/remove", id)
	w.operator().submit(remove, remove)
	shown := a.get("/activity").text()
	require.Contains(t, shown, "bob@example.com")
	require.Contains(t, shown, "198.51.100.66")
	require.NotContains(t, shown, "operator@example.com")
}

// browserPage opens the page to sign in with the session's cookie dropped, and puts the
// cookie back: somebody signs in who is signed in already.
func (w *world) browserPage(b *browser, path string) page {
	w.t.Helper()
	b.post("/sign-out")
	return b.get(path)
}

func (b *browser) cookie(name string) string {
	b.t.Helper()
	site, err := url.Parse(b.server.URL)
	require.NoError(b.t, err)
	for _, c := range b.http.Jar.Cookies(site) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// withCookie opens the start with a session's cookie alone.
func (w *world) withCookie(value string) page {
	w.t.Helper()
	return w.browser().do(http.MethodGet, "/", nil, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "regedge", Value: value}) })
}

func TestCookiesAreOutOfReach(t *testing.T) {
	plain, secure := newWorld(t), newWorld(t, func(c *dashboard.Config) { c.Secure = true })
	plain.person("owner@example.com", plain.account("Acme", 0))
	b := plain.browser()
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := b.signIn("owner@example.com", password)
	require.Equal(t, http.StatusSeeOther, p.StatusCode)
	requireCookie(t, p, "regedge", false, 0)
	requireCookie(t, p, "regedge-device", false, 365*24*time.Hour)

	p = secure.browser().get("/sign-in")
	requireCookie(t, p, "__Host-regedge-guest", true, 0)
	require.Equal(t, "max-age=31536000", p.Header.Get("Strict-Transport-Security"))

	short := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "regedge-guest", Value: "x"}) }
	requireCookie(t, plain.browser().do(http.MethodGet, "/sign-in", nil, short), "regedge-guest", false, 0) // another one: forms derive from it
}

// requireCookie wants a cookie that lasts for life, or with 0 as long as the browser runs.
func requireCookie(t *testing.T, p page, name string, secure bool, life time.Duration) {
	t.Helper()
	for _, c := range p.Cookies() {
		if c.Name != name {
			continue
		}
		require.True(t, c.HttpOnly)
		require.Equal(t, secure, c.Secure)
		require.EqualValues(t, life/time.Second, c.MaxAge)
		require.Equal(t, http.SameSiteLaxMode, c.SameSite)
		require.Equal(t, "/", c.Path)
		require.Empty(t, c.Domain)
		require.Len(t, c.Value, 43)
		return
	}
	require.Fail(t, "no cookie "+name)
}

func TestTheDatabaseHoldsNoSecret(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	i, err := w.client.Invite(t.Context(), "second@example.com", account)
	require.NoError(t, err)
	for _, secret := range []string{password, b.cookie("regedge"), i.Token} {
		require.NotEmpty(t, secret)
		for _, query := range []string{
			`SELECT count(*) FROM user WHERE instr(password, ?) > 0`,
			`SELECT count(*) FROM session WHERE instr(hash, ?1) > 0 OR instr(agent, ?1) > 0`,
			`SELECT count(*) FROM invitation WHERE instr(hash, ?) > 0`,
			`SELECT count(*) FROM audit WHERE instr(detail || act || actor, ?) > 0`,
		} {
			require.Zero(t, w.count(query, secret), query)
		}
	}
}

func TestStoredScriptsAreText(t *testing.T) {
	w := newWorld(t)
	const attack = `</title><script>alert(1)</script><img src=x onerror=a()>"'`
	account := w.account(attack, 10)
	w.person("owner@example.com", account)
	b := w.browser().requireIn("owner@example.com")
	b.do(http.MethodGet, "/settings", nil, func(r *http.Request) { r.Header.Set("User-Agent", attack) })
	b.submit("/keys", "/keys", "name", attack)
	require.NotContains(t, b.seen.body, "<script>alert", "/keys")
	_, err := w.client.ChangeAccount(t.Context(), account, change(attack))
	require.NoError(t, err)
	w.used(account, 1, w.clock(), 1, 3)
	key := "/keys/1/revoke"
	operator := w.operator()
	pages := map[*browser][]string{
		b:        {"/", "/keys", key, "/credits", "/activity", "/settings"},
		operator: {"/accounts", "/accounts?q=" + url.QueryEscape(attack), "/accounts/1", "/accounts/1/credits", "/people", "/people/1/remove", "/activity", "/edges"},
	}
	for who, paths := range pages {
		for _, path := range paths {
			p := who.get(path)
			require.Equal(t, http.StatusOK, p.StatusCode, path)
			require.NotContains(t, p.body, "<script>alert", path)
			require.NotContains(t, p.body, "<img src=x", path)
		}
	}
	require.Contains(t, b.get("/").text(), attack[:40], "it is shown, as what it is")
	require.NotContains(t, w.browser().signIn(attack+"@example.com", attack).body, "<script>alert")
}

func TestEveryPageKeepsToItself(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	operator := w.operator()
	shared := 0
	for _, file := range []string{"style.css", "icon.svg", "dashboard.js", "search.js", "suggestion.js"} {
		p := b.get("/assets/" + file)
		require.Equal(t, http.StatusOK, p.StatusCode, file)
		require.Equal(t, "nosniff", p.Header.Get("X-Content-Type-Options"), file)
		shared += len(p.body)
	}
	for who, paths := range map[*browser][]string{
		w.browser(): {"/sign-in", "/invitations/none", "/none"},
		b:           {"/", "/keys", "/credits", "/activity", "/settings", "/none"},
		operator:    {"/accounts", fmt.Sprint("/accounts/", account), "/people", "/activity", "/edges"},
	} {
		for _, path := range paths {
			p := who.get(path)
			require.Less(t, len(p.body)+shared, 100_000, "%s with all that it loads", path)
			require.Equal(t, "Cookie", p.Header.Get("Vary"), path)
			policy := p.Header.Get("Content-Security-Policy")
			require.Contains(t, policy, "default-src 'none'")
			require.Contains(t, policy, "frame-ancestors 'none'")
			require.Contains(t, policy, "form-action 'self'")
			require.NotContains(t, policy, "unsafe")
			require.Equal(t, "no-store", p.Header.Get("Cache-Control"), path)
			require.Equal(t, "nosniff", p.Header.Get("X-Content-Type-Options"))
			require.Equal(t, "same-origin", p.Header.Get("Referrer-Policy"))
			require.NotRegexp(t, `(?i)\sstyle=|\son[a-z]+=|<style|javascript:`, p.body, path)
			require.Equal(t, 1, strings.Count(p.body, "<h1"), path)
		}
	}
}

func TestWhatIsOfOthersDoesNotExist(t *testing.T) {
	w := newWorld(t)
	mine, own := w.owner("Mine", 10)
	_, other := w.owner("Other", 10)
	_, err := w.client.AddKey(t.Context(), own, "mine") // who has a key may revoke it, and no other
	require.NoError(t, err)
	key, err := w.client.AddKey(t.Context(), other, "theirs")
	require.NoError(t, err)
	mine.get("/keys")
	for _, path := range []string{
		fmt.Sprintf("/keys/%d/revoke", key.ID), "/keys/999/revoke", "/keys/0/revoke", "/keys/-1/revoke", "/keys/x/revoke",
		"/keys/99999999999999999999/revoke",
	} {
		require.Equal(t, http.StatusNotFound, mine.get(path).StatusCode, path)
		mine.get("/keys")
		require.Equal(t, http.StatusNotFound, mine.post(path).StatusCode, path)
	}
	for _, path := range []string{"/accounts", fmt.Sprint("/accounts/", other), "/people", "/edges", "/people/1/remove"} {
		require.Equal(t, http.StatusNotFound, mine.get(path).StatusCode, path)
	}
	for _, path := range []string{"/plan", "/credits", "/suspension", "/invitations"} {
		mine.get("/keys")
		p := mine.post(fmt.Sprint("/accounts/", other)+path, "plan", "scale", "amount", "1000", "kind", "bought", "suspended", "1", "email", "x@example.com")
		require.Equal(t, http.StatusNotFound, p.StatusCode, path)
	}
	require.NotContains(t, mine.get("/activity").body, "Other")
	a, err := w.client.Account(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, int64(10), a.Balance)
	require.False(t, a.Suspended)
	require.Equal(t, 1, a.Keys)

	operator := w.operator()
	for _, path := range []string{"/keys", "/credits", "/credits.csv"} {
		require.Equal(t, http.StatusNotFound, operator.get(path).StatusCode, path)
	}
}

// TestPagesOfAnotherRoleDoNotExist, nor do their forms.
func TestPagesOfAnotherRoleDoNotExist(t *testing.T) {
	w := newWorld(t, withMail)
	owner, account := w.owner("Acme", 10)
	_, err := w.client.AddKey(t.Context(), account, "server")
	require.NoError(t, err)
	for _, c := range []struct {
		visitor *browser
		pages   string
		forms   string
	}{
		{w.operator(), "/keys /keys/1 /keys/1/revoke /settings/tokens /settings/tokens/1/end /settings/webhook /settings/mail /settings/api /requests /usage /usage.csv /credits /credits.csv",
			"/keys /keys/1/name /keys/1/end /keys/1/addresses /keys/1/limits /keys/1/rotate /keys/1/revoke /settings/tokens /settings/tokens/1/end " +
				"/settings/webhook /settings/webhook/test /settings/webhook/secret /settings/webhook/remove /settings/mail /settings/mail/test /settings/mail/remove"},
		{owner, "/accounts /accounts/1 /accounts/1/usage /accounts/1/usage.csv /accounts/1/credits /accounts/1/credits.csv /accounts/1/suspension /people /people/2/remove /edges /api",
			"/accounts /accounts/1/plan /accounts/1/credits /accounts/1/suspension /accounts/1/invitations /people /people/2/remove"},
	} {
		for path := range strings.FieldsSeq(c.pages) {
			require.Equal(t, http.StatusNotFound, c.visitor.get(path).StatusCode, path)
		}
		for path := range strings.FieldsSeq(c.forms) {
			p := c.visitor.submit("/settings", path, "name", "x", "days", "1", "hours", "1", "role", "read", "url", "https://example.com", "low", "1", "email", "x@example.com", "amount", "1", "kind", "bought")
			require.Equal(t, http.StatusNotFound, p.StatusCode, path)
			require.Equal(t, path, p.Request.URL.Path, "at once, and not behind a redirect")
		}
	}
	require.Zero(t, w.count(`SELECT count(*) FROM notice_target`))
}

// TestNoPageWithAFormIsCompressed: its length would reveal something of the form's token to somebody who chose a part of the page.
// Only the references are, which show nothing of anybody.
func TestNoPageWithAFormIsCompressed(t *testing.T) {
	w := newWorld(t)
	owner, _ := w.owner("Acme", 0)
	operator := w.operator()
	packed := func(b *browser, path string) string {
		p := b.do(http.MethodGet, path, nil, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
		require.Equal(t, http.StatusOK, p.StatusCode, path)
		return p.Header.Get("Content-Encoding")
	}
	for _, path := range []string{"/", "/keys", "/settings", "/settings/webhook", "/activity", "/usage", "/credits", "/requests?search=x"} {
		require.Empty(t, packed(owner, path), path)
	}
	for _, path := range []string{"/accounts?q=x", "/accounts/1", "/people?q=x", "/activity?q=x", "/edges"} {
		require.Empty(t, packed(operator, path), path)
	}
	require.Empty(t, packed(w.browser(), "/sign-in"))
	require.Equal(t, "gzip", packed(operator, "/api"))
}
