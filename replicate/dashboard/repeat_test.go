package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// form returns a form of the page that is open, with its token, to be sent any number of times.
func (b *browser) form(fields ...string) url.Values {
	b.t.Helper()
	found := tokenField.FindStringSubmatch(b.seen.body)
	require.NotNil(b.t, found, b.seen.body)
	form := url.Values{"token": {found[1]}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

// TestAFormThatIsSentTwiceChangesOnce sends forms twice, as a browser does when a person clicks twice
// or loads the answer again. The second answer is as the first.
func TestAFormThatIsSentTwiceChangesOnce(t *testing.T) {
	w := newWorld(t)
	owner, account := w.owner("Acme", 0)
	operator := w.operator()
	const at = "/accounts/1"
	require.EqualValues(t, 1, account)

	operator.get(at)
	credits := operator.form("amount", "100", "kind", "bought")
	for range 2 {
		p := operator.do(http.MethodPost, at+"/credits", credits)
		require.Contains(t, p.text(), "The credits are added.")
	}
	a, err := w.client.Account(t.Context(), account)
	require.NoError(t, err)
	require.EqualValues(t, 100, a.Bought)

	credits.Set("amount", "200")
	p := operator.do(http.MethodPost, at+"/credits", credits)
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
	require.Contains(t, p.text(), "This form was sent before")
	operator.submit(at, at+"/credits", "amount", "100", "kind", "bought")
	a, err = w.client.Account(t.Context(), account)
	require.NoError(t, err)
	require.EqualValues(t, 200, a.Bought, "a new form is a new change, with the same amount too")

	operator.get("/accounts")
	added := operator.form("name", "Second", "plan", "starter")
	for range 2 {
		require.Contains(t, operator.do(http.MethodPost, "/accounts", added).text(), "The account was created.")
	}
	require.Equal(t, 2, w.count(`SELECT count(*) FROM account`))

	owner.get("/keys")
	key := owner.form("name", "billing")
	shown := regexp.MustCompile(`value="(reg_live_[^"]+)"`)
	first := shown.FindStringSubmatch(owner.do(http.MethodPost, "/keys", key).body)
	require.NotNil(t, first)
	require.Equal(t, first, shown.FindStringSubmatch(owner.do(http.MethodPost, "/keys", key).body))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key`))

	owner.get("/keys/1/revoke")
	revoke := owner.form()
	for range 2 {
		require.Contains(t, owner.do(http.MethodPost, "/keys/1/revoke", revoke).text(), "The key is revoked.")
	}
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'revoke key'`))

	operator.get("/people/1/remove")
	remove := operator.form()
	for range 2 {
		require.Contains(t, operator.do(http.MethodPost, "/people/1/remove", remove).text(), "can no longer sign in")
	}
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'remove person'`))
}

// TestOperatorsWhoRemoveEachOtherLeaveOne: the second one was removed after asking for the page.
func TestOperatorsWhoRemoveEachOtherLeaveOne(t *testing.T) {
	w := newWorld(t)
	first := w.operator()
	w.person("second@example.com", 0)
	first.get("/people/2/remove")
	form := first.form()
	w.exec(`CREATE TRIGGER meanwhile AFTER DELETE ON invitation BEGIN
		DELETE FROM session WHERE user = 1; DELETE FROM device WHERE user = 1; DELETE FROM user WHERE id = 1; END`)
	_, err := w.client.Invite(t.Context(), "second@example.com", 0) // which goes with its person
	require.NoError(t, err)
	first.do(http.MethodPost, "/people/2/remove", form)
	require.NotZero(t, w.count(`SELECT count(*) FROM user WHERE operator = 1`))
	require.Zero(t, w.count(`SELECT count(*) FROM audit WHERE act = 'remove person'`), "nothing was done")
}

// TestATestThatIsAskedForTwiceIsSentOnce, and another form asks for another one.
func TestATestThatIsAskedForTwiceIsSentOnce(t *testing.T) {
	w := newWorld(t, withMail)
	owner, _ := w.owner("Acme", 0)
	for i, at := range []string{"/settings/webhook", "/settings/mail"} {
		owner.submit(at, at, "url", "https://example.com/hook", "low", "5")
		for n := 1; n <= 2; n++ {
			owner.get(at)
			form := owner.form()
			for range 2 {
				require.Contains(t, owner.do(http.MethodPost, at+"/test", form).text(), "A test is on its way.", at)
			}
			require.Equal(t, 2*i+n, w.count(`SELECT count(*) FROM notice WHERE kind = 'test'`), at)
		}
	}
	require.Equal(t, 4, w.count(`SELECT count(*) FROM audit WHERE act IN ('test webhook', 'test e-mail notices')`))
}

// TestEveryFormHasATokenOfItsOwn: one token for two forms would make the second one a repetition.
func TestEveryFormHasATokenOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.account("Acme", 0)
	b := w.operator()
	seen := map[string]bool{}
	forms := 0
	for _, page := range []string{"/accounts/1", "/accounts/1/suspension", "/accounts/1", "/accounts/1/suspension"} {
		for _, found := range tokenField.FindAllStringSubmatch(b.get(page).body, -1) {
			seen[found[1]] = true
			forms++
		}
	}
	require.Greater(t, forms, 8)
	require.Len(t, seen, forms)
}

// TestAFormThatEndsItsSessionCanComeTwice sends forms twice with the cookies of the first time, as two clicks do,
// and once more with those of the answer.
func TestAFormThatEndsItsSessionCanComeTwice(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	const next = "four other words here"
	for _, c := range []struct {
		page, to, words, act string
		fields               []string
	}{
		{"/settings", "/settings/password", "The password is changed, and every other browser is signed out.", "change password", []string{"current", password, "password", next}},
		{"/settings", "/sign-out", "You are signed out.", "sign out", nil},
		{"/sign-in", "/sign-in", "Sign out", "sign in", []string{"email", "acme@example.com", "password", next}},
		{"/settings", "/settings/sign-out-everywhere", "You are signed out in every browser.", "sign out everywhere", nil},
	} {
		acts := w.count(`SELECT count(*) FROM audit WHERE act = ?`, c.act)
		b.get(c.page)
		form, first := b.form(c.fields...), b.cookies()
		require.Contains(t, b.do(http.MethodPost, c.to, form).text(), c.words, c.to)
		require.Contains(t, b.do(http.MethodPost, c.to, form).text(), c.words, c.to+" with the cookies of the answer")
		b.setCookies(first)
		w.pass(time.Minute - time.Second)
		require.Contains(t, b.do(http.MethodPost, c.to, form).text(), c.words, c.to+" with the cookies of the first time")
		require.Equal(t, acts+1, w.count(`SELECT count(*) FROM audit WHERE act = ?`, c.act), c.to)
	}

	invitation, err := w.client.Invite(t.Context(), "new@example.com", account)
	require.NoError(t, err)
	guest := w.browser()
	guest.get(writer.InvitationPath + invitation.Token)
	form := guest.form("password", next)
	for range 2 {
		require.Contains(t, guest.do(http.MethodPost, writer.InvitationPath+invitation.Token, form).text(), "Welcome.")
	}
}

// TestAnInvitationThatBeginsNoSessionCanComeTwice: its person signs in with a code. Who else is signed in in the browser
// stays so.
func TestAnInvitationThatBeginsNoSessionCanComeTwice(t *testing.T) {
	w := newWorld(t)
	w.operator().enrol()
	other, _ := w.owner("Acme", 0)
	const accepted = `SELECT count(*) FROM audit WHERE act = 'accept invitation'`
	before := w.count(accepted)
	for b, words := range map[*browser]string{w.browser(): "Sign in with it and a code", other: "Sign out"} {
		i, err := w.client.Invite(t.Context(), "operator@example.com", 0)
		require.NoError(t, err)
		at := writer.InvitationPath + i.Token
		b.get(at)
		form := b.form("password", password)
		for range 2 {
			p := b.do(http.MethodPost, at, form)
			require.Equal(t, http.StatusOK, p.StatusCode, p.text())
			require.Contains(t, p.text(), words)
		}
	}
	require.Equal(t, before+2, w.count(accepted))
}

// TestAFormThatEndedItsSessionIsNoKey: with anything else than the same form within a minute, and once the session that
// it began has ended, it is refused as ever.
func TestAFormThatEndedItsSessionIsNoKey(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	b.get("/settings")
	form := b.form("current", password, "password", "four other words here")
	require.Contains(t, b.do(http.MethodPost, "/settings/password", form).text(), "The password is changed")

	other := b.form("current", password, "password", "quite other words here")
	other.Set("token", form.Get("token"))
	require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/settings/password", other).StatusCode, "other values")
	require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/settings/sign-out-everywhere", form).StatusCode, "another form")
	foreign := b.do(http.MethodPost, "/settings/password", form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	require.Equal(t, http.StatusForbidden, foreign.StatusCode)
	w.pass(time.Minute)
	require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/settings/password", form).StatusCode, "a minute later")

	b.get("/settings")
	form = b.form("current", "four other words here", "password", "quite other words here")
	require.Contains(t, b.do(http.MethodPost, "/settings/password", form).text(), "The password is changed")
	b.submit("/settings", "/settings/sign-out-everywhere")
	require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/settings/password", form).StatusCode, "its session has ended")
	require.NotContains(t, b.get("/").text(), "Sign out")
}
