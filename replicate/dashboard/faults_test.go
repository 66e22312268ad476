package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/failing"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
)

// newFailingWorld is a world whose ledger fails when it is told to.
func newFailingWorld(t *testing.T) (*world, *failing.DB) {
	t.Helper()
	ledger, faults := failing.Open(t, filepath.Join(t.TempDir(), "ledger.db"))
	w := newWorldOn(t, ledger, func(c *dashboard.Config) { c.Mail = true })
	w.server.Close()
	pages := w.dashboard.Handler()
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(rw, r.WithContext(failing.Marked(r.Context())))
	}))
	w.client = writer.NewClient(w.server.URL, token, w.server.Client())
	return w, faults
}

// stays are the tables that a form changes, but for counts of attempts and the audit log, which are also kept
// of what fails.
func (w *world) stays() string {
	w.t.Helper()
	var all strings.Builder
	for _, table := range []string{"account", "api_key", "credit_entry", "device", "idempotent_change", "invitation", "notice",
		"notice_target", "owner_token", "recovery_code", "session", "sign_in", "two_factor", "user"} {
		rows, err := w.ledger.Query(`SELECT * FROM ` + table + ` ORDER BY 1, 2`)
		require.NoError(w.t, err)
		columns, err := rows.Columns()
		require.NoError(w.t, err)
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		for rows.Next() {
			require.NoError(w.t, rows.Scan(cells...))
			for _, cell := range cells {
				fmt.Fprint(&all, *cell.(*any), " ")
			}
			all.WriteString(table + "\n")
		}
		require.NoError(w.t, rows.Err())
		rows.Close()
	}
	return all.String()
}

// TestNoPageIsShownWithoutWhatItReads: of a ledger that can't be read, a page with less than there is would be
// taken for the truth.
func TestNoPageIsShownWithoutWhatItReads(t *testing.T) {
	w, faults := newFailingWorld(t)
	owner, id := w.owner("Acme Traders", 1000)
	operator := w.operator()
	key, err := w.client.AddKey(t.Context(), id, "billing")
	require.NoError(t, err)
	w.used(id, key.Key.ID, w.clock(), 1, 3)
	require.Equal(t, http.StatusOK, owner.submit("/settings/tokens", "/settings/tokens", "name", "x", "role", "read", "days", "30").StatusCode)
	require.Equal(t, http.StatusOK, owner.submit("/settings/webhook", "/settings/webhook", "url", "https://example.com/", "low", "5").StatusCode)
	require.Equal(t, http.StatusOK, owner.submit("/settings/mail", "/settings/mail", "low", "5").StatusCode)
	invited, err := w.client.Invite(t.Context(), "new@example.com", id)
	require.NoError(t, err)
	_, err = w.client.AddNode(t.Context(), "edge-1")
	require.NoError(t, err)
	for who, paths := range map[*browser][]string{
		owner: {"/", "/activity", "/activity?before=1000", "/keys", "/keys/1", "/keys/1/revoke", "/settings", "/settings/two-factor", "/settings/tokens",
			"/settings/tokens/1/end", "/settings/webhook", "/settings/mail", "/settings/api", "/requests", "/requests?key=1", "/usage",
			"/usage?key=1&endpoint=companies", "/usage.csv", "/credits", "/credits?month=2026-10", "/credits.csv", "/credits.csv?month=all"},
		operator: {"/accounts", "/accounts/1", "/accounts/1/usage", "/accounts/1/usage.csv", "/accounts/1/credits", "/accounts/1/credits.csv",
			"/accounts/1/suspension", "/activity", "/people", "/people/1/remove", "/edges", "/api"},
		w.browser(): {writer.InvitationPath + invited.Token},
	} {
		for _, path := range paths {
			for number := 1; ; number++ {
				faults.FailRead(number)
				p := who.get(path)
				failed := faults.Failed()
				if failed == "" {
					require.Equal(t, http.StatusOK, p.StatusCode, path)
					break
				}
				require.GreaterOrEqual(t, p.StatusCode, http.StatusInternalServerError, "%s without %s", path, failed)
			}
		}
	}
}

// sent is a form with what is typed into it, on the page that open shows. In its path and in that page, KEY,
// TOKEN and PERSON are the newest ones.
type sent struct {
	open   func()
	to     string
	fields func() []string
}

// TestAFormIsDoneWholeOrNot: a form of which one statement fails says so, and has changed nothing.
func TestAFormIsDoneWholeOrNot(t *testing.T) {
	w, faults := newFailingWorld(t)
	id := w.account("Acme Traders", 1000)
	w.person("owner@example.com", id)
	w.person("careful@example.com", id)
	operator, owner, careful := w.operator(), w.browser(), w.browser()
	app := careful.requireIn("careful@example.com").enrol()
	newest := func(path string) string {
		for word, query := range map[string]string{
			"KEY": `SELECT max(id) FROM api_key`, "TOKEN": `SELECT max(id) FROM owner_token`, "PERSON": `SELECT max(id) FROM user`,
		} {
			if strings.Contains(path, word) {
				path = strings.ReplaceAll(path, word, fmt.Sprint(w.count(query)))
			}
		}
		return path
	}
	on := func(b *browser, page, to string, fields ...string) sent {
		return sent{func() { b.get(newest(page)) }, to, func() []string { return fields }}
	}
	// shows are the forms whose answer reads the ledger again.
	shows := map[string]bool{"/settings/webhook": true, "/settings/webhook/secret": true, "/accounts/1/invitations": true, "/people": true}
	try := func(b *browser, fail func(int), form sent) {
		t.Helper()
		for number := 1; ; number++ {
			w.exec(`DELETE FROM attempt`) // else there are too many
			form.open()
			to, fields, before, had := newest(form.to), form.fields(), w.stays(), b.cookies()
			fail(number)
			b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			filled := url.Values{"token": {tokenField.FindStringSubmatch(b.seen.body)[1]}}
			for i := 0; i < len(fields); i += 2 {
				filled.Set(fields[i], fields[i+1])
			}
			p := b.do(http.MethodPost, to, filled)
			b.http.CheckRedirect = nil
			failed := faults.Failed()
			if failed == "" {
				require.Less(t, p.StatusCode, http.StatusBadRequest, "%s: %s", to, p.text())
				if !shows[form.to] {
					require.NotEqual(t, before, w.stays(), "%s is a form that changes something", to)
				}
				return
			}
			require.GreaterOrEqual(t, p.StatusCode, http.StatusInternalServerError, "%s without %s", to, failed)
			if now := w.stays(); shows[form.to] && now != before {
				require.Equal(t, http.StatusOK, b.do(http.MethodPost, to, filled).StatusCode, "%s shows what it did when it is sent again", to)
				require.Equal(t, now, w.stays(), "%s is done once", to)
				continue
			}
			require.Equal(t, before, w.stays(), "%s without %s", to, failed)
			require.Equal(t, had, b.cookies(), "%s without %s", to, failed)
		}
	}
	for turn, fail := range []func(int){faults.FailRead, faults.FailChange} {
		email := fmt.Sprintf("new%d@example.com", turn)
		invited, err := w.client.Invite(t.Context(), email, id)
		require.NoError(t, err)
		guest := w.browser()
		invitation := writer.InvitationPath + invited.Token
		try(guest, fail, on(guest, invitation, invitation, "password", password))
		name := fmt.Sprint("turn ", turn)
		for _, form := range []sent{
			on(owner, "/sign-in", "/sign-in", "email", "owner@example.com", "password", password),
			on(owner, "/keys", "/keys", "name", name, "days", "30", "per-minute", "5", "monthly-credits", "100"),
			on(owner, "/keys/KEY", "/keys/KEY/name", "name", name+" again"),
			on(owner, "/keys/KEY", "/keys/KEY/end", "days", "90"),
			on(owner, "/keys/KEY", "/keys/KEY/addresses", "addresses", "192.0.2.0/24"),
			on(owner, "/keys/KEY", "/keys/KEY/limits", "per-minute", "7", "monthly-credits", "200"),
			on(owner, "/keys/KEY", "/keys/KEY/rotate", "hours", "1"),
			on(owner, "/keys/KEY/revoke", "/keys/KEY/revoke"),
			on(owner, "/settings/tokens", "/settings/tokens", "name", name, "role", "all", "days", "30"),
			on(owner, "/settings/tokens/TOKEN/end", "/settings/tokens/TOKEN/end"),
			on(owner, "/settings/webhook", "/settings/webhook", "url", "https://example.com/", "low", "5"),
			on(owner, "/settings/webhook", "/settings/webhook/test"),
			on(owner, "/settings/webhook", "/settings/webhook/secret"),
			on(owner, "/settings/webhook", "/settings/webhook/remove"),
			on(owner, "/settings/mail", "/settings/mail", "low", "5"),
			on(owner, "/settings/mail", "/settings/mail/test"),
			on(owner, "/settings/mail", "/settings/mail/remove"),
			on(owner, "/settings", "/settings/password", "current", password, "password", password),
			on(owner, "/settings", "/sign-out"),
		} {
			try(owner, fail, form)
		}
		for _, form := range []sent{
			on(careful, "/settings", "/settings/sign-out-everywhere"),
			{func() {
				w.pass(time.Minute) // to another code
				careful.signIn("careful@example.com", password)
			}, "/sign-in/code", func() []string {
				return []string{"pending", pendingField.FindStringSubmatch(careful.seen.body)[1], "code", app.code(0)}
			}},
			{func() {
				w.pass(time.Minute)
				careful.get("/settings")
			}, "/settings/two-factor/off", func() []string { return []string{"current", password, "code", app.code(0)} }},
			{func() {
				app.secret = secretField.FindStringSubmatch(careful.get("/settings/two-factor").body)[1]
			}, "/settings/two-factor", func() []string {
				return []string{"secret", app.secret, "current", password, "code", app.code(0)}
			}},
		} {
			try(careful, fail, form)
		}
		for _, form := range []sent{
			on(operator, "/accounts", "/accounts", "name", name, "plan", "starter"),
			on(operator, "/accounts/1", "/accounts/1/plan", "plan", []string{"scale", "growth"}[turn]),
			on(operator, "/accounts/1", "/accounts/1/credits", "amount", "5", "kind", "bought", "note", "gift"),
			on(operator, "/accounts/1", "/accounts/1/credits", "amount", "-5", "kind", "bought"),
			on(operator, "/accounts/1", "/accounts/1/suspension", "suspended", "1"),
			on(operator, "/accounts/1", "/accounts/1/suspension", "suspended", "0"),
			on(operator, "/accounts/1", "/accounts/1/invitations", "email", "x"+email),
			on(operator, "/people", "/people", "email", "y"+email),
			on(operator, "/people/PERSON/remove", "/people/PERSON/remove"),
		} {
			try(operator, fail, form)
		}
	}
}
