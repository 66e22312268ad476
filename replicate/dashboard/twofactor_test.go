package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

var (
	secretField   = regexp.MustCompile(`name="secret" value="([A-Z2-7]{32})"`)
	pendingField  = regexp.MustCompile(`name="pending" value="([^"]{43})"`)
	recoveryCodes = regexp.MustCompile(`[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}`)
)

// app is an authenticator app.
type app struct {
	*world
	secret   string
	recovery []string
}

// code is what the app shows when its clock is off by some steps.
func (a *app) code(steps int) string {
	a.t.Helper()
	code, err := totp.GenerateCode(a.secret, a.clock().Add(time.Duration(steps)*30*time.Second))
	require.NoError(a.t, err)
	return code
}

// enrol switches two-factor authentication on in a browser, and lets a new code begin.
func (b *browser) enrol() *app {
	b.t.Helper()
	a := &app{world: b.world, secret: secretField.FindStringSubmatch(b.get("/settings/two-factor").body)[1]}
	p := b.post("/settings/two-factor", "secret", a.secret, "current", password, "code", a.code(0))
	require.Equal(b.t, http.StatusOK, p.StatusCode, p.body)
	a.recovery = recoveryCodes.FindAllString(p.body, -1)
	require.Len(b.t, a.recovery, 10)
	b.pass(30 * time.Second)
	return a
}

// enter signs in up to the code, and sends one.
func (b *browser) enter(email, code string) page {
	b.t.Helper()
	p := b.signIn(email, password)
	require.Contains(b.t, p.body, "<h1>Enter the code</h1>")
	return b.again(code)
}

// again sends a code with the form that is open.
func (b *browser) again(code string) page {
	b.t.Helper()
	return b.post("/sign-in/code", "pending", pendingField.FindStringSubmatch(b.seen.body)[1], "code", code)
}

func TestTwoFactorIsSwitchedOnByPasswordAndCode(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	other := w.browser().requireIn("operator@example.com")
	require.Contains(t, b.get("/settings").text(), "so switch it on")
	p := b.get("/settings/two-factor")
	require.Contains(t, p.body, `<svg class="qr"`)
	a := &app{world: w, secret: secretField.FindStringSubmatch(p.body)[1]}
	require.Contains(t, p.body, a.secret[:4]+" "+a.secret[4:8])
	for _, wrong := range [][2]string{{password, "000000"}, {password, ""}, {password, a.code(2)}, {"wrong words in here", a.code(0)}} {
		p = b.post("/settings/two-factor", "secret", a.secret, "current", wrong[0], "code", wrong[1])
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, wrong)
		require.Contains(t, p.body, a.secret, "the app has it already")
	}
	short := &app{world: w, secret: "AAAAAAAA"}
	require.Equal(t, http.StatusBadRequest, b.post("/settings/two-factor", "secret", short.secret, "current", password, "code", short.code(0)).StatusCode)
	require.Zero(t, w.count(`SELECT count(*) FROM two_factor`))
	b.get("/settings/two-factor")
	p = b.post("/settings/two-factor", "secret", a.secret, "current", password, "code", a.code(0))
	codes := recoveryCodes.FindAllString(p.body, -1)
	require.Len(t, codes, 10)
	require.Contains(t, other.get("/").body, "<h1>Sign in</h1>", "other browsers are signed out")
	w.person("second@example.com", 0)
	w.exec(`INSERT INTO recovery_code (hash, user) SELECT x'00', id FROM user WHERE email = 'second@example.com'`)
	require.Contains(t, b.get("/settings").text(), "10 recovery codes are left")
	require.Contains(t, b.get("/settings/two-factor").body, "<h1>Settings</h1>", "it is on: nothing to enrol")
	require.Zero(t, w.count(`SELECT count(*) FROM recovery_code WHERE instr(CAST(hash AS TEXT), ?)`, codes[0]))
	require.Zero(t, w.count(`SELECT count(*) FROM audit WHERE instr(detail, ?)`, a.secret))
	require.Equal(t, http.StatusForbidden, b.do(http.MethodPost, "/settings/two-factor/off", nil).StatusCode, "a form needs its token")
}

// TestTwoFactorIsNotSwitchedOnBesideCodesThatStay: they would be good for ever, and nobody is shown them.
func TestTwoFactorIsNotSwitchedOnBesideCodesThatStay(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	w.exec(`INSERT INTO recovery_code (hash, user) SELECT x'00', id FROM user`)
	w.exec(`CREATE TRIGGER stays BEFORE DELETE ON recovery_code BEGIN SELECT RAISE(ABORT, 'it stays'); END`)
	a := &app{world: w, secret: secretField.FindStringSubmatch(b.get("/settings/two-factor").body)[1]}
	p := b.post("/settings/two-factor", "secret", a.secret, "current", password, "code", a.code(0))
	require.Equal(t, http.StatusInternalServerError, p.StatusCode)
	require.Zero(t, w.count(`SELECT count(*) FROM two_factor`))
}

// TestSwitchingTwoFactorTwiceShowsTheSameCodes sends its forms twice, as two clicks do: the browser shows the
// second answer alone, and the recovery codes are shown nowhere else.
func TestSwitchingTwoFactorTwiceShowsTheSameCodes(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	a := &app{world: w, secret: secretField.FindStringSubmatch(b.get("/settings/two-factor").body)[1]}
	form := b.form("secret", a.secret, "current", password, "code", a.code(0))
	on := func() page { return b.do(http.MethodPost, "/settings/two-factor", form) }
	codes := recoveryCodes.FindAllString(on().body, -1)
	require.Len(t, codes, 10)
	w.pass(5 * time.Minute) // the answer is loaded again later
	again := on()
	require.Equal(t, http.StatusOK, again.StatusCode, again.text())
	require.Equal(t, codes, recoveryCodes.FindAllString(again.body, -1))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'switch on two-factor authentication'`))
	require.Equal(t, 10, w.count(`SELECT count(*) FROM recovery_code`))

	form.Set("current", "wrong words in here")
	require.NotContains(t, on().body, codes[0], "the password is asked for again")
	form.Set("current", password)
	b.get("/settings")
	other := b.form("secret", a.secret, "current", password, "code", a.code(0))
	require.Empty(t, recoveryCodes.FindString(b.do(http.MethodPost, "/settings/two-factor", other).body), "another form has other codes")
	w.browser().enter("acme@example.com", codes[0])
	require.Equal(t, http.StatusUnprocessableEntity, on().StatusCode, "one code was used")

	b.get("/settings")
	off := b.form("current", password, "code", codes[1])
	for range 2 {
		p := b.do(http.MethodPost, "/settings/two-factor/off", off)
		require.Contains(t, p.text(), "Two-factor authentication is off.")
	}
}

func TestACodeIsGoodOnce(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	a := b.enrol()
	fresh := func(code string) page { return w.browser().enter("operator@example.com", code) }
	require.Equal(t, http.StatusUnprocessableEntity, fresh(a.code(-1)).StatusCode, "that which confirmed it")
	require.Contains(t, fresh(a.code(0)[:3]+" "+a.code(0)[3:]).body, "Sign out")
	require.Contains(t, fresh(a.code(0)).text(), "was used already")
	w.pass(20 * time.Minute) // the attempts are forgotten
	require.Equal(t, http.StatusUnprocessableEntity, fresh(a.code(-2)).StatusCode)
	require.Equal(t, http.StatusUnprocessableEntity, fresh(a.code(2)).StatusCode)
	require.Contains(t, fresh(a.code(-1)).body, "Sign out", "one step behind")
	require.Contains(t, fresh(a.code(1)).body, "Sign out", "one step ahead")
	require.Equal(t, http.StatusUnprocessableEntity, fresh(a.code(0)).StatusCode, "earlier than the last")
	w.pass(20 * time.Minute)
	require.Contains(t, fresh(a.recovery[3]).body, "Sign out")
	require.Contains(t, fresh(a.recovery[3]).text(), "was used already")
	owner, _ := w.owner("Acme", 0)
	require.Equal(t, http.StatusUnprocessableEntity, fresh(owner.enrol().recovery[0]).StatusCode, "another person's")
	require.Equal(t, 9+10, w.count(`SELECT count(*) FROM recovery_code`))
}

// TestTheCodesOfOnePersonAreNoOtherPersons: what one uses up or switches off, another still has.
func TestTheCodesOfOnePersonAreNoOtherPersons(t *testing.T) {
	w := newWorld(t)
	operator := w.operator()
	owner, _ := w.owner("Acme", 0)
	one, other := operator.enrol(), owner.enrol()
	require.Contains(t, w.browser().enter("operator@example.com", one.code(0)).body, "Sign out")
	require.Contains(t, w.browser().enter("acme@example.com", other.code(0)).body, "Sign out", "at the same time")
	w.pass(30 * time.Second)
	p := operator.submit("/settings", "/settings/two-factor/off", "current", password, "code", one.code(0))
	require.NotContains(t, p.text(), "wrong")
	require.Zero(t, w.count(`SELECT count(*) FROM two_factor f JOIN user u ON u.id = f.user WHERE u.email = 'operator@example.com'`))
	require.Contains(t, w.browser().enter("acme@example.com", other.recovery[9]).body, "Sign out")
	require.Contains(t, owner.get("/settings").text(), "9 recovery codes")
}

// TestASignInIsCompletedOnce: what asked for its code takes no other one.
func TestASignInIsCompletedOnce(t *testing.T) {
	w := newWorld(t)
	a := w.operator().enrol()
	b := w.browser()
	b.signIn("operator@example.com", password)
	pending := pendingField.FindStringSubmatch(b.seen.body)[1]
	require.Contains(t, b.again(a.code(0)).body, "Sign out")
	b.post("/sign-in/code", "pending", pending, "code", a.recovery[0])
	require.Equal(t, 10, w.count(`SELECT count(*) FROM recovery_code`))
}

// TestASignInThatWaitsInVainIsDropped by the next one that waits for a code.
func TestASignInThatWaitsInVainIsDropped(t *testing.T) {
	w := newWorld(t)
	w.operator().enrol()
	for range 2 {
		w.browser().signIn("operator@example.com", password)
	}
	require.Equal(t, 2, w.count(`SELECT count(*) FROM sign_in`), "both may get their code yet")
	w.pass(5 * time.Minute)
	w.browser().signIn("operator@example.com", password)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM sign_in`))
}

func TestThePasswordAloneLetsNobodyIn(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	a := b.enrol()
	sessions := w.count(`SELECT count(*) FROM session`)
	stranger := w.browser()
	require.Contains(t, stranger.signIn("operator@example.com", password).body, "Enter the code")
	require.Empty(t, stranger.cookie("regedge"))
	require.Contains(t, stranger.get("/accounts").body, "<h1>Sign in</h1>")
	require.Equal(t, sessions, w.count(`SELECT count(*) FROM session`))
	stranger.signIn("operator@example.com", password)
	w.pass(5 * time.Minute)
	require.Contains(t, stranger.again(a.code(0)).text(), "took too long")
	stranger.signIn("operator@example.com", password)
	b.submit("/settings", "/settings/password", "current", password, "password", "another four plain words")
	require.Contains(t, stranger.again(a.code(0)).text(), "the password was changed")
}

func TestGuessingCodesIsBounded(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	a := b.enrol()
	for i := range 10 { // each from an address of its own
		stranger := w.browser()
		stranger.address = fmt.Sprint("203.0.113.", i)
		require.Equal(t, http.StatusUnprocessableEntity, stranger.enter("operator@example.com", "000000").StatusCode)
	}
	p := w.browser().enter("operator@example.com", a.code(0))
	require.Equal(t, http.StatusTooManyRequests, p.StatusCode, "even with the right one")
	require.NotEmpty(t, p.Header.Get("Retry-After"))
	require.Equal(t, 10, w.count(`SELECT count(*) FROM audit WHERE act = 'enter wrong code' AND detail = 'operator@example.com'`))
	require.Zero(t, w.count(`SELECT count(*) FROM attempt WHERE instr(subject, '@') > 0`), "people type passwords into that field, too")
	b.submit("/settings", "/sign-out")
	require.Contains(t, b.enter("operator@example.com", a.code(0)).body, "Sign out", "the browser that is known goes on")
}

// TestASignInWithACodeLeavesNoAttemptBehind: an office behind one address signs in all morning, with a
// password and a code each.
func TestASignInWithACodeLeavesNoAttemptBehind(t *testing.T) {
	w := newWorld(t)
	a := w.operator().enrol()
	for range 3 {
		require.Contains(t, w.browser().enter("operator@example.com", a.code(0)).body, "Sign out")
		w.pass(30 * time.Second)
	}
	require.Zero(t, w.count(`SELECT coalesce(sum(count), 0) FROM attempt`))
}

// TestThePasswordDoesNotBeginTheCountOfCodesAgain: somebody who has the password and a known browser could
// otherwise try codes without end.
func TestThePasswordDoesNotBeginTheCountOfCodesAgain(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	a := b.enrol()
	b.submit("/settings", "/sign-out")
	for range 5 { // a password and a code each
		require.Equal(t, http.StatusUnprocessableEntity, b.enter("operator@example.com", "000000").StatusCode)
	}
	require.Equal(t, http.StatusTooManyRequests, b.signIn("operator@example.com", password).StatusCode)
	w.pass(20 * time.Minute)
	require.Contains(t, b.enter("operator@example.com", a.code(0)).body, "Sign out")
}

// TestAPasswordChangeDoesNotBeginTheCountOfCodesAgain: somebody with the password and an open session could otherwise
// try codes without end.
func TestAPasswordChangeDoesNotBeginTheCountOfCodesAgain(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 1000)
	a := b.enrol()
	tries, refused := 0, false
	for !refused && tries < 30 {
		if p := b.submit("/settings", "/settings/two-factor/off", "current", password, "code", "000000"); strings.Contains(p.text(), "too many attempts") {
			refused = true
			continue
		}
		tries++
		refused = strings.Contains(b.submit("/settings", "/settings/password", "current", password, "password", password).text(), "too many attempts")
	}
	require.True(t, refused)
	require.LessOrEqual(t, tries, 10)
	w.pass(20 * time.Minute)
	require.Contains(t, b.submit("/settings", "/settings/two-factor/off", "current", password, "code", a.code(0)).text(), "Switch on")
}

func TestTwoFactorIsSwitchedOffByPasswordAndCode(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	a := b.enrol()
	off := func(with, code string) page {
		return b.submit("/settings", "/settings/two-factor/off", "current", with, "code", code)
	}
	require.Contains(t, off("wrong words in here", a.code(0)).text(), "The current password is wrong.")
	require.Contains(t, off(password, "000000").text(), "This code is wrong")
	require.Contains(t, off(password, a.code(0)).text(), "Two-factor authentication is off.")
	require.Zero(t, w.count(`SELECT (SELECT count(*) FROM two_factor) + (SELECT count(*) FROM recovery_code)`))
	w.browser().requireIn("acme@example.com")
}

// TestSwitchingTwoFactorLeavesNoAttemptBehind: its owner, from whichever browser, would be locked out by right passwords.
func TestSwitchingTwoFactorLeavesNoAttemptBehind(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	for _, known := range []bool{true, false} {
		if !known {
			w.exec(`DELETE FROM device`)
		}
		a := b.enrol()
		require.Zero(t, w.count(`SELECT coalesce(sum(count), 0) FROM attempt`), "on, known: %v", known)
		b.submit("/settings", "/settings/two-factor/off", "current", password, "code", a.code(0))
		require.Zero(t, w.count(`SELECT count(*) FROM two_factor`))
		require.Zero(t, w.count(`SELECT coalesce(sum(count), 0) FROM attempt`), "off, known: %v", known)
		b.pass(30 * time.Second)
	}
}

// TestAnInvitationResetsTwoFactorOnlyWhenItSaysSo lets an operator choose a new password, without the app
// and then with an invitation that resets it.
func TestAnInvitationResetsTwoFactorOnlyWhenItSaysSo(t *testing.T) {
	w := newWorld(t)
	a := w.operator().enrol()
	i, err := w.client.Invite(t.Context(), "operator@example.com", 0)
	require.NoError(t, err)
	b := w.browser()
	p := b.submit(writer.InvitationPath+i.Token, writer.InvitationPath+i.Token, "password", password)
	require.Contains(t, p.text(), "Sign in with it and a code")
	require.Empty(t, b.cookie("regedge"))
	require.Contains(t, b.enter("operator@example.com", a.code(0)).body, "Sign out")

	i, err = w.client.InviteAndReset(t.Context(), "operator@example.com", 0)
	require.NoError(t, err)
	require.True(t, i.Resets)
	p = w.browser().submit(writer.InvitationPath+i.Token, writer.InvitationPath+i.Token, "password", password)
	require.Contains(t, p.body, "Sign out")
	require.Zero(t, w.count(`SELECT count(*) FROM two_factor`))
	w.browser().requireIn("operator@example.com")

	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'accept invitation' AND detail = 'resets two-factor authentication'`))

	owner, _ := w.owner("Acme", 0)
	owner.enrol()
	remover := w.browser().requireIn("operator@example.com")
	page := fmt.Sprintf("/people/%d/remove", w.count(`SELECT id FROM user WHERE email = 'acme@example.com'`))
	p = remover.submit(page, page)
	require.Contains(t, p.text(), "can no longer sign in")
	require.Zero(t, w.count(`SELECT count(*) FROM two_factor`), "it goes with its person")
}

// TestGuessingTheCodeThatSwitchesOffIsBounded as at the sign-in, for somebody with the password and a stolen session:
// each guess is from an address of its own, in a browser that is not known.
func TestGuessingTheCodeThatSwitchesOffIsBounded(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	a := b.enrol()
	w.exec(`DELETE FROM device`)
	off := func(from int, code string) string {
		b.address = fmt.Sprint("203.0.113.", from)
		return b.submit("/settings", "/settings/two-factor/off", "current", password, "code", code).text()
	}
	for i := range 10 {
		require.Contains(t, off(i, "000000"), "This code is wrong")
	}
	require.Contains(t, off(10, a.code(0)), "There were too many attempts", "even with the right one")
}

// TestARecoveryCodeIsTakenAsPeopleTypeIt: in capitals, without its hyphens, or with spaces.
func TestARecoveryCodeIsTakenAsPeopleTypeIt(t *testing.T) {
	w := newWorld(t)
	a := w.operator().enrol()
	for i, typed := range []string{strings.ToUpper(a.recovery[0]), strings.ReplaceAll(a.recovery[1], "-", ""), strings.ReplaceAll(a.recovery[2], "-", " ") + " "} {
		require.Contains(t, w.browser().enter("operator@example.com", typed).body, "Sign out", typed)
		require.Equal(t, 9-i, w.count(`SELECT count(*) FROM recovery_code`))
	}
}

// TestTheLogSaysFromWhereACodeWasEntered, a wrong one and the right one.
func TestTheLogSaysFromWhereACodeWasEntered(t *testing.T) {
	w := newWorld(t)
	a := w.operator().enrol()
	b := w.browser()
	b.address = "192.0.2.77"
	b.enter("operator@example.com", "wrong")
	require.Contains(t, b.again(a.code(0)).body, "Sign out")
	log, err := w.client.AuditPage(t.Context(), 0, writer.ListQuery{Limit: 3})
	require.NoError(t, err)
	var said [][4]string
	for _, e := range log.Data {
		said = append(said, [4]string{e.Act, e.Actor, e.Address, e.Detail})
	}
	require.Equal(t, [][4]string{
		{"sign in", "operator@example.com", "192.0.2.77", "a browser of tests"},
		{"enter wrong code", "", "192.0.2.77", "operator@example.com"},
		{"enter password", "operator@example.com", "192.0.2.77", "a browser of tests"},
	}, said)
}
