package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnOwnersFormsArePaced: each change stays in the audit log for ever, and a program can send forms, too. Whoever is
// refused can still read, and end all sessions.
func TestAnOwnersFormsArePaced(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	w.person("second@example.com", account)
	other := w.browser().requireIn("second@example.com")
	person := int64(w.count(`SELECT id FROM user WHERE email = 'acme@example.com'`))
	for w.writer.CountForm(person) == nil {
	}
	test := func(b *browser) int {
		return b.submit("/settings/webhook", "/settings/webhook", "url", "https://hooks.example/", "low", "5").StatusCode
	}
	refused := b.submit("/keys", "/keys", "name", "web")
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "60", refused.Header.Get("Retry-After"))
	require.Equal(t, http.StatusTooManyRequests, test(b))
	require.Zero(t, w.count(`SELECT count(*) FROM audit WHERE act = 'set webhook'`))
	require.Equal(t, http.StatusOK, b.get("/keys").StatusCode)
	require.Equal(t, http.StatusOK, test(other))
	w.pass(time.Minute)
	require.Equal(t, http.StatusOK, test(b))
	for w.writer.CountForm(person) == nil {
	}
	require.Contains(t, b.submit("/settings", "/settings/sign-out-everywhere").text(), "Sign in")
}

// TestAPersonsSignInsAreBounded: they are no attempts, which a success ends. A program with a password would else have all
// others wait for its hashes.
func TestAPersonsSignInsAreBounded(t *testing.T) {
	w := newWorld(t)
	account := w.account("Acme", 0)
	w.person("owner@example.com", account)
	w.person("other@example.com", account)
	known := w.browser().requireIn("owner@example.com")
	known.submit("/settings", "/sign-out")
	b := w.browser()
	for range 58 {
		w.dashboard.NoteSignIn("owner@example.com")
	}
	b.requireIn("owner@example.com")
	b = w.browser()
	computed := w.dashboard.Hashes()
	p := b.signIn("owner@example.com", password)
	require.Equal(t, http.StatusTooManyRequests, p.StatusCode)
	require.Contains(t, p.text(), "Try again in 16 minutes.")
	require.Equal(t, computed, w.dashboard.Hashes(), "it costs nothing")
	w.browser().requireIn("other@example.com")
	known.requireIn("owner@example.com") // whoever else knows the password does not shut its owner out
	w.pass(15 * time.Minute)
	b.requireIn("owner@example.com")
}

// TestAnAccountsSumsAreMadeOneAfterAnother: an owner's program could else ask for years of usage many times at once, which
// takes the processor from the edges' messages. Pages without a sum, and other accounts, do not wait.
func TestAnAccountsSumsAreMadeOneAfterAnother(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	other, _ := w.owner("Other", 10)
	operator := w.operator()
	end, err := w.dashboard.Summing(account)
	require.NoError(t, err)
	for _, summed := range []struct {
		*browser
		at string
	}{{b, "/"}, {b, "/keys"}, {b, "/credits"}, {b, "/credits.csv?month=all"}, {operator, "/accounts/1"}, {operator, "/accounts/1/credits"}} {
		p := summed.get(summed.at)
		require.Equal(t, http.StatusTooManyRequests, p.StatusCode, summed.at)
		require.Contains(t, p.text(), "Too much at once", summed.at)
		require.Equal(t, "5", p.Header.Get("Retry-After"), summed.at)
	}
	require.Equal(t, http.StatusOK, b.get("/settings").StatusCode)
	require.Equal(t, http.StatusOK, other.get("/").StatusCode)
	end()
	require.Equal(t, http.StatusOK, b.get("/credits.csv?month=all").StatusCode)
	require.Equal(t, http.StatusOK, b.get("/").StatusCode)
}
