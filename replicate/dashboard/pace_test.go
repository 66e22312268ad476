package dashboard_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/dashboard"
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

// summing is the turn of an account's sums, for which no page waits long, until the returned function is called.
func (w *world) summing(account int64) (end func(), err error) {
	turns := w.writer.SumTurns()
	turns.Wait = time.Millisecond
	return turns.Enter(context.Background(), account)
}

// TestAnAccountsSumsAreMadeOneAfterAnother: an owner's program could else ask for years of usage many times at once, which
// takes the processor from the edges' messages. Pages without a sum, and other accounts, do not wait.
func TestAnAccountsSumsAreMadeOneAfterAnother(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	other, _ := w.owner("Other", 10)
	operator := w.operator()
	end, err := w.summing(account)
	require.NoError(t, err)
	for _, summed := range []struct {
		*browser
		at string
	}{{b, "/"}, {b, "/credits"}, {b, "/activity"}, {b, "/credits.csv?month=all"}, {b, "/usage"}} {
		p := summed.get(summed.at)
		require.Equal(t, http.StatusTooManyRequests, p.StatusCode, summed.at)
		require.Contains(t, p.text(), "Too much at once", summed.at)
		require.Equal(t, "5", p.Header.Get("Retry-After"), summed.at)
	}
	require.Equal(t, http.StatusOK, b.get("/settings").StatusCode)
	require.Equal(t, http.StatusOK, other.get("/").StatusCode)
	for _, at := range []string{"/activity", "/accounts/1", "/accounts/1/credits"} {
		require.Equal(t, http.StatusOK, operator.get(at).StatusCode, at)
	}
	end()
	require.Equal(t, http.StatusOK, b.get("/credits.csv?month=all").StatusCode)
	require.Equal(t, http.StatusOK, b.get("/").StatusCode)
}

// TestAVisitorWhoLeavesIsNoFault, such as one who does not wait for a sum.
func TestAVisitorWhoLeavesIsNoFault(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *dashboard.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	b, account := w.owner("Acme", 10)
	end, err := w.writer.SumTurns().Enter(t.Context(), account)
	require.NoError(t, err)
	defer end()
	ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+"/credits", nil)
	require.NoError(t, err)
	_, err = b.http.Do(r)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	w.server.Close() // once the page has ended
	require.Empty(t, log.String())
}

// TestFormsOfKeysNeedNoSumOfUsage: a key that leaked is revoked at once, even while sums of its account run.
func TestFormsOfKeysNeedNoSumOfUsage(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	key, err := w.client.AddKey(t.Context(), account, "leaked")
	require.NoError(t, err)
	at := fmt.Sprint("/keys/", key.ID)
	forms := make([]url.Values, 3)
	for i := range forms {
		b.get(at)
		forms[i] = b.form("name", fmt.Sprint("name ", i))
	}
	end, err := w.summing(account)
	require.NoError(t, err)
	defer end()
	for _, page := range []string{"/keys", at, at + "/revoke"} {
		p := b.get(page)
		require.Equal(t, http.StatusOK, p.StatusCode, page)
		require.Contains(t, p.text(), "not known at the moment", page)
	}
	require.Contains(t, b.do(http.MethodPost, "/keys", forms[0]).text(), "Your new key")
	b.do(http.MethodPost, at+"/name", forms[1])
	b.do(http.MethodPost, at+"/revoke", forms[2])
	after, err := w.client.Key(t.Context(), key.ID)
	require.NoError(t, err)
	require.Equal(t, "name 1", after.Name)
	require.NotNil(t, after.Revoked)
}

// TestAPageReadsFewOfAnAccountsKeys: its owners may make 100 a day, and each stays in the ledger for ever.
func TestAPageReadsFewOfAnAccountsKeys(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	first, err := w.client.AddKey(t.Context(), account, "the oldest, and active")
	require.NoError(t, err)
	const many = 5000
	w.exec(`INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		SELECT ?2, 'old ' || i, CAST('made up ' || i AS BLOB), 'abcd', ?3, ?3 FROM n`, many, account, w.clock().UnixMilli())
	last := first.ID + many
	w.used(account, first.ID+1, w.clock(), 1, 1)
	for at, shown := range map[string]string{
		"/":                                      first.Name,
		"/keys":                                  first.Name,
		fmt.Sprint("/keys/", first.ID):           first.Name,
		fmt.Sprintf("/usage?key=%d", first.ID+1): "old 1",
		"/usage.csv":                             "old 1",
		"/requests":                              fmt.Sprint("old ", many),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := b.get(at)
		runtime.ReadMemStats(&after)
		require.Equal(t, http.StatusOK, p.StatusCode, at)
		require.Contains(t, p.text(), shown, at)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5<<20), at)
	}
	require.Equal(t, 20, strings.Count(b.get("/keys").text(), "<code>reg_live_abcd…</code>"), "the newest")
	require.Equal(t, http.StatusNotFound, b.get(fmt.Sprint("/keys/", last)).StatusCode, "it is revoked")
}
