package dashboard_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
)

func change(name string) writer.AccountChange { return writer.AccountChange{Name: &name} }

// TestAKnownAddressLooksLikeAnUnknownOne compares all that a stranger sees: the answers,
// and the work that their time is made of.
func TestAKnownAddressLooksLikeAnUnknownOne(t *testing.T) {
	w := newWorld(t)
	w.person("known@example.com", w.account("Acme", 0))
	type sight struct {
		status  int
		body    string
		headers string
		hashes  int64
		commits int
	}
	look := func(email string) sight {
		b := w.browser()
		b.address = "198.51.100.7"
		hashes, commits := w.dashboard.Hashes(), w.count(`SELECT count(*) FROM audit WHERE act = 'fail to sign in'`)
		p := b.signIn(email, "wrong words in here")
		body := strings.ReplaceAll(tokenField.ReplaceAllString(p.body, ""), email, "EMAIL")
		return sight{
			p.StatusCode, body, fmt.Sprint(len(p.Header), p.Header.Get("Retry-After")),
			w.dashboard.Hashes() - hashes, w.count(`SELECT count(*) FROM audit WHERE act = 'fail to sign in'`) - commits,
		}
	}
	known, unknown := look("known@example.com"), look("nobody@example.com")
	require.Equal(t, known, unknown)
	require.Equal(t, int64(1), known.hashes)
	for range 9 {
		known, unknown = look("known@example.com"), look("nobody@example.com")
		require.Equal(t, known, unknown)
	}
	known, unknown = look("known@example.com"), look("nobody@example.com")
	require.Equal(t, http.StatusTooManyRequests, known.status)
	require.Equal(t, known, unknown, "throttled alike")
	require.Zero(t, known.hashes, "a throttled attempt costs nothing")
}

func TestAStrangerLocksNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	known := w.browser().requireIn("owner@example.com")
	known.submit("/settings", "/sign-out")
	stranger := w.browser()
	for range 30 { // from the same address
		stranger.signIn("owner@example.com", "wrong words in here")
	}
	require.Equal(t, http.StatusTooManyRequests, stranger.signIn("owner@example.com", password).StatusCode)
	elsewhere := w.browser()
	elsewhere.address = "203.0.113.7"
	elsewhere.requireIn("owner@example.com")
	for i := range 30 {
		b := w.browser()
		b.address = fmt.Sprint("198.51.100.", i)
		for range 10 {
			b.signIn("owner@example.com", "wrong words in here")
		}
	}
	known.requireIn("owner@example.com")
	known.submit("/settings", "/sign-out")
	for range 10 {
		require.Equal(t, http.StatusUnprocessableEntity, known.signIn("owner@example.com", "wrong words in here").StatusCode)
	}
	require.Equal(t, http.StatusTooManyRequests, known.signIn("owner@example.com", password).StatusCode, "has a bound of its own")
	require.Equal(t, http.StatusUnprocessableEntity, known.signIn("other@example.com", password).StatusCode)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM attempt WHERE subject LIKE 'device:%'`), "to other users it is a stranger")
	w.pass(15 * time.Minute)
	known.requireIn("owner@example.com")
	require.Equal(t, 2, w.count(`SELECT count(*) FROM device`), "two browsers: each sign-in keeps its cookie")
}

// TestAPasswordChangeForgivesNoStranger: of a known browser nothing is counted for its address.
func TestAPasswordChangeForgivesNoStranger(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	known := w.browser().requireIn("owner@example.com")
	stranger := w.browser()
	try := func(n int) int {
		return stranger.signIn(fmt.Sprint("somebody", n, "@example.com"), "wrong words in here").StatusCode
	}
	for n := range 30 { // from the same address
		require.Equal(t, http.StatusUnprocessableEntity, try(n))
	}
	require.Equal(t, http.StatusTooManyRequests, try(30))
	p := known.submit("/settings", "/settings/password", "current", password, "password", "another four plain words")
	require.Contains(t, p.text(), "The password is changed")
	require.Equal(t, http.StatusTooManyRequests, try(31))
}

func TestGuessesFromManyAddressesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	for i := range 100 {
		b := w.browser()
		b.address = fmt.Sprint("203.0.113.", i)
		require.Equal(t, http.StatusUnprocessableEntity, b.signIn("owner@example.com", "wrong words in here").StatusCode)
	}
	p := w.browser().signIn("owner@example.com", password)
	require.Equal(t, http.StatusTooManyRequests, p.StatusCode, "even with the right one")
	require.Equal(t, "901", p.Header.Get("Retry-After"))
	require.Contains(t, p.text(), "Try again in 16 minutes.")
	w.pass(15 * time.Minute)
	w.browser().requireIn("owner@example.com")
	require.Zero(t, w.count(`SELECT coalesce(sum(count), 0) FROM attempt`), "a success is not counted")
}

// TestOfABrowserThatIsKnownNoMoreNothingIsLeft once another one of the same person becomes known.
func TestOfABrowserThatIsKnownNoMoreNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	w.browser().requireIn("owner@example.com")
	w.pass(365 * 24 * time.Hour)
	w.browser().requireIn("owner@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM device`))
}

// TestABrowserIsKnownForAYear after somebody has signed in there, and then counts as a stranger's.
func TestABrowserIsKnownForAYear(t *testing.T) {
	const year = 365 * 24 * time.Hour
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	known, stranger := w.browser().requireIn("owner@example.com"), w.browser()
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{year - time.Millisecond, http.StatusOK}, {year, http.StatusTooManyRequests}} {
		known.submit("/settings", "/sign-out")
		w.pass(c.pass)
		for range 10 {
			stranger.signIn("owner@example.com", "wrong words in here")
		}
		require.Equal(t, c.want, known.signIn("owner@example.com", password).StatusCode)
	}
}

func TestADeviceIsForgottenWithItsUser(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	for range 25 {
		w.pass(16 * time.Minute)
		w.browser().requireIn("acme@example.com")
	}
	require.Equal(t, 20, w.count(`SELECT count(*) FROM device`))
	i, err := w.client.Invite(t.Context(), "acme@example.com", account)
	require.NoError(t, err)
	b.submit(writer.InvitationPath+i.Token, writer.InvitationPath+i.Token, "password", "another four plain words")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM device`), "a new password by invitation makes the others strangers")
	operator := w.operator()
	operator.submit("/people/1/remove", "/people/1/remove")
	require.Zero(t, w.count(`SELECT count(*) FROM device d WHERE NOT EXISTS (SELECT 1 FROM user WHERE id = d.user)`))
}

// TestACrowdAtTheSignInIsRefused fills the queue of the hashing lane and visits each page that hashes.
func TestACrowdAtTheSignInIsRefused(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	i, err := w.client.Invite(t.Context(), "eve@example.com", account)
	require.NoError(t, err)
	invited := writer.InvitationPath + i.Token
	attempts := w.count(`SELECT coalesce(sum(count), 0) FROM attempt`)
	end := w.dashboard.Crowd()
	for _, p := range []page{
		w.browser().signIn("acme@example.com", password),
		b.submit("/settings", "/settings/password", "current", password, "password", "another four plain words"),
		b.submit("/settings", "/settings/two-factor/off", "current", password, "code", "000000"),
		w.browser().submit(invited, invited, "password", "another four plain words"),
	} {
		require.Equal(t, http.StatusServiceUnavailable, p.StatusCode)
		require.Equal(t, "5", p.Header.Get("Retry-After"))
		require.Contains(t, p.text(), "Too many sign-ins at once")
	}
	require.Equal(t, attempts, w.count(`SELECT coalesce(sum(count), 0) FROM attempt`), "nothing was counted")
	end()
	w.browser().requireIn("acme@example.com")
}

// TestWhoIsBeyondTheirLimitTakesNobodysTurn: many attempts of one address would keep others out.
func TestWhoIsBeyondTheirLimitTakesNobodysTurn(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	for i := range 30 {
		require.Equal(t, http.StatusUnprocessableEntity, b.signIn(fmt.Sprintf("user%d@example.com", i), "wrong words in here").StatusCode)
	}
	defer w.dashboard.Crowd()()
	require.Equal(t, http.StatusTooManyRequests, b.signIn("owner@example.com", "wrong words in here").StatusCode, "it did not ask for one")
	b.address = "198.51.100.7"
	require.Equal(t, http.StatusServiceUnavailable, b.signIn("owner@example.com", "wrong words in here").StatusCode)
}

// TestOfManyWhoSignInAtOnceEachIsAnsweredOrRefused lets 40 clients do so, with hashes that cost what they do in use.
func TestOfManyWhoSignInAtOnceEachIsAnsweredOrRefused(t *testing.T) {
	w := newWorld(t)
	w.dashboard.DearPasswords()
	var together sync.WaitGroup
	statuses := make([]int, 40)
	for i := range statuses {
		b := w.browser()
		b.address = fmt.Sprint("203.0.113.", i)
		b.get("/sign-in")
		together.Go(func() {
			statuses[i] = b.post("/sign-in", "email", "owner@example.com", "password", "wrong words in here").StatusCode
		})
	}
	together.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	require.Positive(t, count[http.StatusUnprocessableEntity])
	require.GreaterOrEqual(t, count[http.StatusServiceUnavailable], 1, "%v", count)
	require.Equal(t, 40, count[http.StatusUnprocessableEntity]+count[http.StatusServiceUnavailable], "%v", count)
	require.LessOrEqual(t, w.dashboard.Hashes(), int64(count[http.StatusUnprocessableEntity]), "who is refused costs no hash")
}

func TestAttemptsAreBoundedByAddress(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	b := w.browser()
	for i := range 30 {
		b.address = fmt.Sprintf("2001:db8:1:2::%x", i+1) // one /64
		require.Equal(t, http.StatusUnprocessableEntity, b.signIn(fmt.Sprintf("user%d@example.com", i), "wrong words in here").StatusCode)
	}
	require.Equal(t, http.StatusTooManyRequests, b.signIn("owner@example.com", password).StatusCode)
	b.address = "2001:db8:1:3::1"
	b.requireIn("owner@example.com")
	require.Zero(t, w.count(`SELECT count(*) FROM attempt WHERE instr(subject, 'example') > 0`), "what was typed is not kept")
}

func TestAttemptsAtTheSameTimeAreCounted(t *testing.T) {
	w := newWorld(t)
	var together sync.WaitGroup
	statuses := make([]int, 14)
	for i := range statuses {
		b := w.browser()
		b.get("/sign-in")
		together.Go(func() { statuses[i] = b.post("/sign-in", "email", "owner@example.com", "password", "wrong").StatusCode })
	}
	together.Wait()
	refused := 0
	for _, s := range statuses {
		if s == http.StatusTooManyRequests {
			refused++
		}
	}
	require.Equal(t, 4, refused, "ten may try: %v", statuses)
}

func TestSessionsEndWithoutUseAndInAnyCaseAfterSevenDays(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	operator := w.operator()
	signedIn := func(b *browser) bool { return strings.Contains(b.get("/settings").body, "Sign out everywhere") }
	for range 2 {
		w.pass(5 * time.Hour)
		require.True(t, signedIn(b))
		require.True(t, signedIn(operator))
	}
	second := w.browser().requireIn("operator@example.com")
	require.Equal(t, 2, strings.Count(second.get("/settings").body, `title="a browser of tests"`))
	w.pass(2 * time.Hour)
	require.False(t, signedIn(operator), "an operator's after 12 hours")
	require.Equal(t, 1, strings.Count(second.get("/settings").body, `title="a browser of tests"`), "it is not listed any more")
	require.True(t, signedIn(b))
	w.pass(8 * time.Hour)
	require.False(t, signedIn(b), "after 8 hours without a request")

	b.requireIn("acme@example.com")
	for range 23 {
		w.pass(7 * time.Hour)
		require.True(t, signedIn(b))
	}
	w.pass(7 * time.Hour)
	require.False(t, signedIn(b), "after 7 days whatever happens")
	w.browser().requireIn("acme@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM session`), "the rows go too")
}

// TestASessionTakesTheGuestsCookieAway: it is for the form of somebody who is not signed in.
func TestASessionTakesTheGuestsCookieAway(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	names := func(b *browser) (list []string) {
		for _, c := range b.cookies() {
			list = append(list, c.Name)
		}
		return list
	}
	b := w.browser()
	b.get("/sign-in")
	require.Equal(t, []string{"regedge-guest"}, names(b))
	b.requireIn("owner@example.com")
	require.ElementsMatch(t, []string{"regedge", "regedge-device"}, names(b))
}

// TestTheSessionUsedLastIsListedFirst, not the one that began last.
func TestTheSessionUsedLastIsListedFirst(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	second := w.browser()
	second.address = "198.51.100.9"
	listed := func() []string {
		return regexp.MustCompile(`<td>(?:192\.0\.2\.1|198\.51\.100\.9)</td>`).FindAllString(b.get("/settings").body, -1)
	}
	w.pass(time.Minute)
	second.requireIn("acme@example.com")
	require.Equal(t, []string{"<td>198.51.100.9</td>", "<td>192.0.2.1</td>"}, listed())
	w.pass(time.Hour)
	b.get("/")
	require.Equal(t, []string{"<td>192.0.2.1</td>", "<td>198.51.100.9</td>"}, listed())
}

func TestSigningOutEndsTheSessionNotOnlyTheCookie(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	second := w.browser().requireIn("acme@example.com")
	stolen, other := b.cookie("regedge"), second.cookie("regedge")
	b.submit("/settings", "/sign-out")
	for _, c := range b.cookies() {
		require.NotEqual(t, "regedge", c.Name, "nor does the browser keep it")
	}
	require.Contains(t, w.withCookie(stolen).body, "<h1>Sign in</h1>")
	require.Contains(t, w.withCookie(other).body, "Sign out")
	b.requireIn("acme@example.com")
	stolen = b.cookie("regedge")
	require.Contains(t, second.submit("/settings", "/settings/sign-out-everywhere").body, "You are signed out in every browser.")
	require.Contains(t, w.withCookie(stolen).body, "<h1>Sign in</h1>")
	require.Contains(t, w.withCookie(other).body, "<h1>Sign in</h1>")
}

func TestAPasswordIsChangedByWhoKnowsIt(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	second := w.browser().requireIn("acme@example.com")
	const next = "another four plain words"
	p := b.submit("/settings", "/settings/password", "current", "wrong words in here", "password", next)
	require.Contains(t, p.text(), "The current password is wrong.")
	for _, poor := range []string{"short", strings.Repeat("ab", 10), "acme@example.com", strings.Repeat("long ", 50)} {
		p = b.submit("/settings", "/settings/password", "current", password, "password", poor)
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, poor)
	}
	before := b.cookie("regedge")
	p = b.submit("/settings", "/settings/password", "current", password, "password", next)
	require.Contains(t, p.text(), "The password is changed")
	require.NotEqual(t, before, b.cookie("regedge"))
	require.Contains(t, second.get("/").body, "<h1>Sign in</h1>")
	require.Equal(t, http.StatusUnprocessableEntity, w.browser().signIn("acme@example.com", password).StatusCode)
	require.Equal(t, http.StatusOK, w.browser().signIn("acme@example.com", next).StatusCode)
}

// TestAPasswordThatIsChangedMeanwhileLetsNobodyIn: the sessions of the old one have ended, and this one would begin
// after that.
func TestAPasswordThatIsChangedMeanwhileLetsNobodyIn(t *testing.T) {
	var w *world
	var soon atomic.Bool
	var meanwhile, second string
	const on, off = `INSERT INTO two_factor (user, secret, used_step, created_at) SELECT id, 'made up', 0, 0 FROM user`, `DELETE FROM two_factor`
	w = newWorld(t, func(c *dashboard.Config) {
		c.Random = func(p []byte) {
			rand.Read(p)
			if soon.Swap(false) { // the password was right, and this is the secret of the session
				if second != "" {
					w.exec(second)
					return
				}
				w.exec(`UPDATE user SET password = ?`, w.dashboard.HashAt(meanwhile, 1, 64, 1))
			}
		}
	})
	w.person("owner@example.com", w.account("Acme", 0))
	b := w.browser()
	for _, second = range []string{on, off, ""} { // with a second step since then, without one, or with another password
		if second == off {
			w.exec(on)
		}
		b.get("/sign-in")
		meanwhile = "another four plain words"
		soon.Store(true)
		p := b.post("/sign-in", "email", "owner@example.com", "password", password)
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
		require.Zero(t, w.count(`SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM sign_in)`))
		w.exec(off)
	}
	require.Equal(t, http.StatusOK, b.signIn("owner@example.com", "another four plain words").StatusCode)

	b.get("/settings")
	meanwhile = "words of somebody else"
	soon.Store(true) // when the current password was right, for the salt of the new one
	p := b.post("/settings/password", "current", "another four plain words", "password", "a third of four words")
	require.Equal(t, http.StatusForbidden, p.StatusCode)
	require.Equal(t, http.StatusUnprocessableEntity, w.browser().signIn("owner@example.com", "a third of four words").StatusCode)
}

func TestGuessingTheCurrentPasswordIsBounded(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	for range 10 {
		b.submit("/settings", "/settings/password", "current", "wrong words in here", "password", "another four plain words")
	}
	p := b.submit("/settings", "/settings/password", "current", password, "password", "another four plain words")
	require.Contains(t, p.text(), "too many attempts")
}

func TestAPasswordOfAnotherCostIsHashedAnew(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	cheap := w.dashboard.HashAt(password, 1, 8, 1)
	w.exec(`UPDATE user SET password = ?`, cheap)
	w.dashboard.DearPasswords()
	w.browser().requireIn("owner@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM user WHERE password LIKE '$argon2id$v=19$m=65536,t=3,p=1$%'`))
	w.browser().requireIn("owner@example.com")
	w.exec(`UPDATE user SET password = 'broken'`)
	require.Equal(t, http.StatusInternalServerError, w.browser().signIn("owner@example.com", password).StatusCode)
}

// TestAPasswordOfAnotherCostIsHashedAnewBeforeTheCode, which may never come.
func TestAPasswordOfAnotherCostIsHashedAnewBeforeTheCode(t *testing.T) {
	w := newWorld(t)
	a := w.operator().enrol()
	w.exec(`UPDATE user SET password = ?`, w.dashboard.HashAt(password, 1, 8, 1))
	w.dashboard.DearPasswords()
	b := w.browser()
	require.Contains(t, b.signIn("operator@example.com", password).body, "Enter the code")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM user WHERE password LIKE '$argon2id$v=19$m=65536,t=3,p=1$%'`))
	require.Contains(t, b.again(a.code(0)).body, "Sign out")
}

// TestTheBrowsersUsedLastAreKnown: of more than 20 the one that was used longest ago goes.
func TestTheBrowsersUsedLastAreKnown(t *testing.T) {
	w := newWorld(t)
	w.owner("Acme", 0)
	w.exec(`DELETE FROM device`)
	for i := range 20 {
		w.exec(`INSERT INTO device (hash, user, seen_at) SELECT ?, id, ? FROM user`, []byte{byte(i)}, w.clock().Add(-time.Hour).UnixMilli()+int64(i))
	}
	w.browser().requireIn("acme@example.com")
	require.Equal(t, 20, w.count(`SELECT count(*) FROM device`))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM device WHERE seen_at = ?`, w.clock().UnixMilli()), "the one that was used just now")
	require.Zero(t, w.count(`SELECT count(*) FROM device WHERE hash = x'00'`))

	w.person("eve@example.com", w.account("Other", 0))
	w.exec(`INSERT INTO device (hash, user, seen_at) SELECT x'aabb', id, ? FROM user WHERE email = 'eve@example.com'`, w.clock().Add(-time.Hour).UnixMilli())
	w.browser().requireIn("acme@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM device WHERE hash = x'aabb'`), "those of others stay")
	require.Equal(t, 2, w.count(`SELECT count(*) FROM device WHERE seen_at = ?`, w.clock().UnixMilli()))
}

// TestTheBrowserOfASignInIsKnownAmongManyOfThatMoment: of the 21, another one is forgotten.
func TestTheBrowserOfASignInIsKnownAmongManyOfThatMoment(t *testing.T) {
	w := newWorld(t)
	w.owner("Acme", 0)
	w.exec(`DELETE FROM device`)
	for i := range 20 {
		w.exec(`INSERT INTO device (hash, user, seen_at) SELECT ?, id, ? FROM user`, []byte{byte(i)}, w.clock().UnixMilli())
	}
	w.browser().requireIn("acme@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM device WHERE length(hash) = 32`))
	require.Equal(t, 20, w.count(`SELECT count(*) FROM device`))
}

// TestABrowserIsKnownForThoseWhoSignedInThere: there, guesses at another's password count as a stranger's, until that
// person has signed in, too.
func TestABrowserIsKnownForThoseWhoSignedInThere(t *testing.T) {
	w := newWorld(t)
	account := w.account("Acme", 0)
	w.person("bob@example.com", account)
	w.person("eve@example.com", account)
	shared := w.browser().requireIn("bob@example.com")
	shared.post("/sign-out")
	guess := func(b *browser) {
		for range 10 {
			b.signIn("eve@example.com", "wrong words in here")
		}
		require.Equal(t, http.StatusTooManyRequests, w.browser().signIn("eve@example.com", password).StatusCode)
	}
	guess(shared)
	w.pass(16 * time.Minute)
	shared.requireIn("eve@example.com").post("/sign-out")
	require.Equal(t, 2, w.count(`SELECT count(DISTINCT user) FROM device`))
	guess(w.browser())
	shared.requireIn("eve@example.com")
}

// TestTwoWhoAcceptOneInvitationAtOnce: the second would have the account of the first, with a password of its own.
func TestTwoWhoAcceptOneInvitationAtOnce(t *testing.T) {
	w := newWorld(t)
	i, err := w.client.Invite(t.Context(), "owner@example.com", w.account("Acme", 0))
	require.NoError(t, err)
	begun, goOn := make(chan struct{}), make(chan struct{})
	accepted := make(chan error, 3)
	go func() {
		accepted <- w.writer.Commit(t.Context(), writer.Act{}, func(context.Context, *sql.Tx, int64) error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	for _, chosen := range []string{password, "another four plain words"} {
		go func() { accepted <- w.dashboard.Accept(t.Context(), i.Token, chosen) }()
	}
	queued := func() bool { // both have found the invitation
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		w.writer.Handler().ServeHTTP(answer, r)
		return strings.Contains(answer.Body.String(), "\nregedge_writer_queued 2\n")
	}
	require.Eventually(t, queued, time.Minute, time.Millisecond)
	close(goOn)
	require.NoError(t, <-accepted)
	refused := 0
	for range 2 {
		if err := <-accepted; err != nil {
			require.ErrorContains(t, err, "can't be used")
			refused++
		}
	}
	require.Equal(t, 1, refused)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'accept invitation'`))
}
