package dashboard_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

func TestAnOwnerAcceptsAnInvitationAndSignsInAgain(t *testing.T) {
	w := newWorld(t)
	account := w.account("Acme Traders", 1000)
	i, err := w.client.Invite(t.Context(), "owner@example.com", account)
	require.NoError(t, err)

	b := w.browser()
	path := "/invitations/" + i.Token
	require.Contains(t, b.get(path).body, "Acme Traders")
	require.Equal(t, http.StatusOK, b.get(path).StatusCode, "looking does not use it up")
	p := b.post(path, "password", "short")
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
	require.Contains(t, p.text(), "needs 12 characters")
	p = b.post(path, "password", password)
	require.Equal(t, http.StatusOK, p.StatusCode)
	require.Contains(t, p.text(), "Welcome.")
	require.Contains(t, p.body, "1,000")

	require.Equal(t, http.StatusNotFound, w.browser().get(path).StatusCode, "once")
	b.post("/sign-out")
	require.Contains(t, b.seen.body, "You are signed out.")
	require.Contains(t, b.get("/").body, "<h1>Sign in</h1>")
	require.Contains(t, b.signIn("Owner@Example.com ", password).body, "Acme Traders", "case and spaces do not matter")
}

func TestAnInvitationEnds(t *testing.T) {
	w := newWorld(t)
	i, err := w.client.Invite(t.Context(), "owner@example.com", w.account("Acme", 0))
	require.NoError(t, err)
	w.pass(72 * time.Hour)
	require.Equal(t, http.StatusNotFound, w.browser().get("/invitations/"+i.Token).StatusCode)
	require.ErrorContains(t, w.dashboard.Accept(t.Context(), i.Token, password), "can't be used")
}

// TestAnInvitationChangesNobodyElse: the address may have become another account's, or an operator's, meanwhile.
func TestAnInvitationChangesNobodyElse(t *testing.T) {
	w := newWorld(t)
	account, other := w.account("Acme", 0), w.account("Other", 0)
	w.person("owner@example.com", other)
	for _, meanwhile := range []string{`UPDATE invitation SET account = ?`, `UPDATE user SET account = NULL, operator = 1 WHERE ? > 0`} {
		i, err := w.client.Invite(t.Context(), "owner@example.com", other)
		require.NoError(t, err)
		w.exec(meanwhile, account)
		path := writer.InvitationPath + i.Token
		require.Equal(t, http.StatusNotFound, w.browser().submit(path, path, "password", "another four plain words").StatusCode)
		w.browser().requireIn("owner@example.com")
	}
}

func TestAnInvitationGivesANewPasswordAndEndsOldSessions(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	i, err := w.client.Invite(t.Context(), "acme@example.com", account)
	require.NoError(t, err)
	const next = "another four plain words"
	require.NoError(t, w.dashboard.Accept(t.Context(), i.Token, next))
	require.Contains(t, b.get("/").body, "<h1>Sign in</h1>", "the old session ended")
	require.Equal(t, http.StatusUnprocessableEntity, b.signIn("acme@example.com", password).StatusCode)
	require.Contains(t, b.signIn("acme@example.com", next).body, "Sign out")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM user`))
}

func TestAKeyIsShownOnceAndRevoked(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	require.Contains(t, b.get("/").body, "Create the first one")
	p := b.submit("/keys", "/keys", "name", "billing server")
	require.Contains(t, p.text(), "the made-up records of the examples are 404")
	secret := regexp.MustCompile(`value="(reg_live_[^"]+)"`).FindStringSubmatch(p.body)
	require.NotNil(t, secret, p.body)
	require.True(t, ident.ValidKey(secret[1]))
	require.Equal(t, "no-store", p.Header.Get("Cache-Control"))
	for _, path := range []string{"/keys", "/", "/activity"} {
		require.NotContains(t, b.get(path).body, secret[1])
		require.Contains(t, b.get(path).body, "billing server")
	}
	keys, err := w.client.Keys(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, keys, 1)

	revoke := fmt.Sprintf("/keys/%d/revoke", keys[0].ID)
	require.Contains(t, b.get(revoke).text(), "This can't be undone")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key WHERE revoked_at IS NULL`), "looking revokes nothing")
	require.Contains(t, b.post(revoke).text(), "The key is revoked.")
	require.Zero(t, w.count(`SELECT count(*) FROM api_key WHERE revoked_at IS NULL`))
	require.Equal(t, http.StatusNotFound, b.get(revoke).StatusCode)
}

func TestASixthKeyIsRefusedInWords(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	for i := range 5 {
		require.Contains(t, b.submit("/keys", "/keys", "name", fmt.Sprint("key ", i)).body, "reg_live_")
	}
	p := b.submit("/keys", "/keys", "name", "one more")
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
	require.Contains(t, p.text(), "You have 5 active keys")
	keys, err := w.client.Keys(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, keys, 5)
	b.submit(fmt.Sprintf("/keys/%d/revoke", keys[0].ID), fmt.Sprintf("/keys/%d/revoke", keys[0].ID))
	require.Contains(t, b.submit("/keys", "/keys", "name", "one more").body, "reg_live_")
}

// TestTheNewestRevokedKeysAreListed, and not all that there were in years.
func TestTheNewestRevokedKeysAreListed(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	for i := range 22 {
		k, err := w.client.AddKey(t.Context(), account, fmt.Sprintf("key %02d", i))
		require.NoError(t, err)
		_, err = w.client.RevokeKey(t.Context(), k.ID)
		require.NoError(t, err)
	}
	listed := b.get("/keys").text()
	require.Contains(t, listed, "key 21")
	require.Contains(t, listed, "key 02")
	require.NotContains(t, listed, "key 01")
}

func TestAKeyNeedsAName(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit("/keys", "/keys", "name", " \u202e\x00 ").StatusCode, "a name of nothing")
	require.Zero(t, w.count(`SELECT count(*) FROM api_key`))
}

func TestAKeyIsMadeWithLimits(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 100)
	require.Contains(t, b.get("/keys").body, "<details><summary>Limits of the key</summary>", "folded away")
	limits := []string{"name", "job", "days", "30", "per-minute", "7", "monthly-credits", "50", "addresses", "192.0.2.9/24; 2001:db8::7"}
	require.Contains(t, b.submit("/keys", "/keys", limits...).body, `id="secret"`)
	keys, err := w.client.Keys(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	k := keys[0]
	require.Equal(t, []any{"job", int64(7), int64(50), []string{"192.0.2.0/24", "2001:db8::7/128"}}, []any{k.Name, k.PerMinute, k.MonthlyCredits, k.Allowed})
	require.Equal(t, w.clock().AddDate(0, 0, 30), *k.Expires)
	require.Contains(t, b.get("/activity").text(), "7 a minute, 50 credits a month, from 192.0.2.9/24 2001:db8::7")
	plans, err := w.client.Plans(t.Context())
	require.NoError(t, err)
	most := plans[slices.IndexFunc(plans, func(p writer.Plan) bool { return p.ID == "growth" })].PerMinute
	for asked, status := range map[int64]int{most: http.StatusOK, most + 1: http.StatusUnprocessableEntity} {
		require.Equal(t, status, b.submit("/keys", "/keys", "name", "job", "days", "30", "per-minute", fmt.Sprint(asked)).StatusCode, asked)
	}
}

func TestAKeyFormThatIsRefusedKeepsWhatWasTyped(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 100)
	const noName, noLimit, noNetwork = "The key needs a name", "A limit is a number", "Those are not networks or addresses"
	typed := map[string]string{"name": "job", "per-minute": "7", "monthly-credits": "50", "addresses": "192.0.2.0/24"}
	for _, wrong := range [][3]string{
		{"name", "", noName}, {"per-minute", "x", noLimit}, {"per-minute", "-1", noLimit}, {"per-minute", "1000000", noLimit},
		{"per-minute", "0", noLimit}, {"monthly-credits", "0", noLimit}, {"monthly-credits", "1.5", noLimit}, {"monthly-credits", "99999999999999999999", noLimit}, {"monthly-credits", "70368744177665", noLimit}, {"addresses", "192.0.2.0/33", noNetwork},
	} {
		fields := []string{"days", "90"}
		for name, value := range typed {
			if name == wrong[0] {
				value = wrong[1]
			}
			fields = append(fields, name, value)
		}
		p := b.submit("/keys", "/keys", fields...)
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, wrong)
		require.Contains(t, p.text(), wrong[2])
		require.Contains(t, p.body, "<details open>", "the limits are in sight")
		require.Contains(t, p.body, `<option value="90" selected>`)
		for i := 2; i < len(fields); i += 2 {
			require.Regexp(t, `name="`+fields[i]+`" value="`+regexp.QuoteMeta(fields[i+1])+`"`, p.body)
		}
	}
	require.Zero(t, w.count(`SELECT count(*) FROM api_key`))
}

func TestTheOverviewShowsWhatTheLedgerSays(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	key, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	w.used(account, key.ID, w.clock().Add(-26*time.Hour), 1, 100)
	w.used(account, key.ID, w.clock().Add(-27*time.Hour), 1, 20)
	w.used(account, key.ID, w.clock().Add(-26*time.Hour), 3, 4)
	w.used(account, key.ID, w.clock(), 1, 30)
	w.used(account, key.ID, w.clock(), 2, 7)
	w.used(account, key.ID, w.clock().AddDate(0, 0, 1), 3, 9999) // by an edge whose clock is ahead at midnight
	w.exec(`UPDATE account SET bought = bought + 9999 WHERE id = ?`, account)
	w.used(account, key.ID, w.clock().AddDate(0, 0, -40), 1, 9999)
	now := w.clock().UnixMilli()
	w.exec(`INSERT INTO pool VALUES (?, ?, ?, 0, 150, 0), (?, ?, ?, 0, 7, 0), (?, ?, ?, 0, 55, 0)`, syncproto.Volume, account, syncproto.Month(now),
		syncproto.NotFound, key.ID, syncproto.Day(now), syncproto.NotFound, key.ID, syncproto.Day(now)-1)

	w.exec(`INSERT INTO pool VALUES (?, ?, ?, 0, 9, 0), (?, ?, ?, 0, 66, 0)`, syncproto.Volume, account, syncproto.Month(now)+1,
		syncproto.NotFound, key.ID, syncproto.Day(now)+1) // by that edge

	p := b.get("/")
	require.Regexp(t, `<dt>Credits left</dt><dd>850</dd>`, p.body)
	require.Regexp(t, `<dt>Calls in October 2026</dt><dd>150 <span class="soft">of 100,000</span>`, p.body)
	require.Contains(t, p.body, "300 calls a minute, e-mail, no phone")
	require.Contains(t, p.body, "7 of 100")
	require.Contains(t, p.body, "within this hour")
	require.Contains(t, p.body, "Found: 150")
	require.Contains(t, p.body, "<title>19 Oct: 120 found, 0 not found, 4 failed</title>")
	require.Contains(t, p.body, "<title>20 Oct: 30 found, 7 not found, 0 failed</title>")
	require.Contains(t, p.body, `aria-label="Calls of the last 30 days: 161, at most 124 on a day."`)
	require.NotContains(t, p.body, "9,999")
}

// TestTheOverviewIsExactAtItsLimits: the first day of the chart, the last use long ago, and the last call of a month.
func TestTheOverviewIsExactAtItsLimits(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	key, err := w.client.AddKey(t.Context(), account, "server")
	require.NoError(t, err)
	w.exec(`UPDATE api_key SET created_at = 0`)
	w.used(account, key.ID, w.clock().AddDate(0, 0, -30), 1, 5)
	w.used(account, key.ID, w.clock().AddDate(0, 0, -29).Add(-12*time.Hour), 1, 3)
	w.exec(`INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (?, ?, ?, 1, 1, -1)`, account, key.ID, w.clock().Unix()/3600) // a voided call
	p := b.get("/")
	require.Contains(t, p.body, "Found: 3<")
	require.Contains(t, p.body, `<dd>1 <span class="soft">of 5</span></dd>`)
	require.Contains(t, b.get("/keys").body, "1 of 5 are active")
	require.Contains(t, b.seen.body, `<td class="nowrap">21 Sep 2026</td>`, "a voided call is no use")
	w.exec(`UPDATE usage SET hour = ? WHERE count > 0 AND count < 5`, w.clock().AddDate(0, 0, -89).Unix()/3600)
	w.exec(`DELETE FROM usage WHERE count = 5`)
	require.Contains(t, b.get("/keys").body, `<td class="nowrap">23 Jul 2026</td>`)

	const used = "calls are used up"
	month := syncproto.Month(w.clock().UnixMilli())
	w.exec(`INSERT INTO pool VALUES (?, ?, ?, 0, 99999, 0)`, syncproto.Volume, account, month)
	require.NotContains(t, b.get("/").text(), used)
	w.exec(`UPDATE pool SET spent = 100000`)
	require.Contains(t, b.get("/").text(), used)
}

// TestAnOwnerSeesFromWhereSomebodyFailedToSignIn: somebody who was not signed in is not shown as the service.
func TestAnOwnerSeesFromWhereSomebodyFailedToSignIn(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	stranger := w.browser()
	stranger.address = "198.51.100.9"
	stranger.signIn("acme@example.com", "wrong words in here")
	_, rows, found := strings.Cut(b.get("/activity").text(), "<tbody>")
	require.True(t, found)
	row, _, _ := strings.Cut(rows, "</tr>")
	require.Contains(t, row, "fail to sign in")
	require.Contains(t, row, "198.51.100.9")
	require.NotContains(t, row, "the service")
}

// TestTheFirstHourOfAMonthIsOfThatMonth and of its statement.
func TestTheFirstHourOfAMonthIsOfThatMonth(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	key, err := w.client.AddKey(t.Context(), account, "server")
	require.NoError(t, err)
	w.exec(`UPDATE account SET created_at = ? WHERE id = ?`, w.clock().AddDate(0, -1, 0).UnixMilli(), account)
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	w.used(account, key.ID, begin, 1, 8)
	w.used(account, key.ID, begin.Add(-time.Hour), 1, 20)
	require.Contains(t, b.get("/credits").body, `<dt>Spent</dt><dd>8</dd>`)
	require.Contains(t, b.get("/credits?month=2026-09").body, `<dt>Spent</dt><dd>20</dd>`)
}

func TestCreditsAddUp(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	key, err := w.client.AddKey(t.Context(), account, "=HYPERLINK(\"x\")")
	require.NoError(t, err)
	w.exec(`UPDATE account SET created_at = ? WHERE id = ?`, w.clock().AddDate(0, -1, 0).UnixMilli(), account)
	w.used(account, key.ID, w.clock(), 1, 30)
	w.used(account, key.ID, w.clock().Add(-time.Hour), 1, 12)
	w.used(account, key.ID, w.clock().AddDate(0, -1, 0), 1, 100)

	p := b.get("/credits")
	require.Contains(t, p.body, `<dt>At the beginning</dt><dd>−100</dd>`, "what was spent in September")
	require.Contains(t, p.body, `<dt>Spent</dt><dd>42</dd>`)
	require.Contains(t, p.body, `<dt>Now</dt><dd>858</dd>`)
	earlier := b.get("/credits?month=2026-09")
	require.Contains(t, earlier.body, `<dt>Spent</dt><dd>100</dd>`)
	require.Contains(t, earlier.body, `<dt>At the end</dt><dd>−100</dd>`)
	for _, month := range []string{"2026-08", "2026-11", "x", "2026-13", "../../etc"} {
		require.Equal(t, http.StatusNotFound, b.get("/credits?month="+month).StatusCode, month)
	}

	p = b.get("/credits.csv?month=all")
	require.Equal(t, "text/csv; charset=utf-8", p.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="credits-all.csv"`, p.Header.Get("Content-Disposition"))
	rows, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"date", "kind", "key", "amount", "balance", "note"},
		{"2026-09-20", "spent", "'=HYPERLINK(\"x\")", "-100", "-100", ""},
		{"2026-10-20", "bought", "", "1000", "900", "first"},
		{"2026-10-20", "spent", "'=HYPERLINK(\"x\")", "-42", "858", ""},
	}, rows)
	w.exec(`UPDATE account SET compensated = 7 WHERE id = ?`, account)
	w.exec(`INSERT INTO credit_entry (account, at, kind, amount, note) VALUES (?1, ?2, 'compensated', 7, ''), (?1, ?2, 'bought', 0, '')`, account, w.clock().UnixMilli())
	w.used(account, key.ID, w.clock().AddDate(0, 0, -1), 1, 2)
	w.used(account, key.ID, w.clock().AddDate(0, 0, -1).Add(-time.Hour), 1, -2)
	p = b.get("/credits")
	require.Contains(t, p.body, `<dt>Now</dt><dd>865</dd>`)
	require.Contains(t, p.body, `<dt>At the beginning</dt><dd>−100</dd>`, "what was given back is a line")
	require.NotContains(t, p.body, "19 Oct 2026", "what was taken back is none")
	require.Equal(t, 1, strings.Count(p.body, "bought"), "nor what changed nothing")
	_, err = w.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: 5, Note: "=1+1"})
	require.NoError(t, err)
	require.Contains(t, b.get("/credits.csv").body, ",'=1+1\n", "no formula")

	w.pass(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Sub(w.clock()))
	b.requireIn("acme@example.com")
	require.Contains(t, b.get("/credits?month=2026-10").body, `"/credits?month=2026-11"`, "a month that has just begun")
}

// TestTheLedgersOwnEntriesAreListedOnce: spent credits are summed by day and key, lost ones are gone, and a note
// stays though nothing was changed.
func TestTheLedgersOwnEntriesAreListedOnce(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	w.used(account, 7, w.clock(), 1, 30)
	for kind, amount := range map[string]int{"spent": -30, "lost": -5, "bought": 0} {
		w.exec(`INSERT INTO credit_entry (account, at, kind, amount, note) VALUES (?, ?, ?, ?, ?)`, account, w.clock().UnixMilli(), kind, amount, "note of "+kind)
	}
	w.exec(`UPDATE account SET lost = 5 WHERE id = ?`, account)
	w.used(account, 7, w.clock().AddDate(0, 0, -1), 1, -2) // voided after midnight
	p := b.get("/credits")
	for _, shown := range []string{`<dt>At the beginning</dt><dd>0</dd>`, `<dt>Spent</dt><dd>28</dd>`, `<dt>Now</dt><dd>967</dd>`, "note of lost", "note of bought"} {
		require.Contains(t, p.body, shown)
	}
	require.NotContains(t, p.body, "note of spent")
}

// TestChargesThatWereNotDebitedAreListed: an edge spent them beyond its lease, as on an older copy of its disk. They are
// usage, and cost nothing.
func TestChargesThatWereNotDebitedAreListed(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	w.used(account, 7, w.clock(), 1, 30)
	w.exec(`UPDATE account SET spent = spent - 3 WHERE id = ?`, account)
	for _, note := range []string{"5 charges beyond the lease of edge-1", "2 charges beyond the lease of edge-1 taken back"} {
		w.exec(`INSERT INTO credit_entry (account, at, kind, amount, note) VALUES (?, ?, 'spent', 0, ?)`, account, w.clock().UnixMilli(), note)
	}
	p := b.get("/credits")
	for _, shown := range []string{`<dt>At the beginning</dt><dd>0</dd>`, `<dt>Spent</dt><dd>30</dd>`, `<dt>Adjusted</dt><dd>3</dd>`, `<dt>Now</dt><dd>973</dd>`} {
		require.Contains(t, p.body, shown)
	}
	csv := b.get("/credits.csv").body
	require.Contains(t, csv, ",not charged,,5,")
	require.Contains(t, csv, ",not charged,,-2,")
}

// TestAnOwnerMayTryASearch at the edge that serves the reference, which nothing else on the page may call.
func TestAnOwnerMayTryASearch(t *testing.T) {
	const calls = "connect-src https://api.example"
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	p := b.get("/")
	require.Contains(t, p.body, `data-lookups="https://api.example"`)
	require.Contains(t, p.Header.Get("Content-Security-Policy"), calls)
	p = b.get("/keys")
	require.NotContains(t, p.body, "data-lookups")
	require.NotContains(t, p.Header.Get("Content-Security-Policy"), calls)

	w = newWorld(t, func(c *dashboard.Config) { c.ReferenceURL = "" })
	b, _ = w.owner("Acme", 0)
	p = b.get("/")
	require.NotContains(t, p.body, "data-lookups")
	require.NotContains(t, p.body, "search.js")
	require.NotContains(t, p.Header.Get("Content-Security-Policy"), "connect-src")
}

// TestAPasswordMadeOfTheAccountsNameIsRefused when it is first chosen.
func TestAPasswordMadeOfTheAccountsNameIsRefused(t *testing.T) {
	w := newWorld(t)
	i, err := w.client.Invite(t.Context(), "owner@example.com", w.account("Acme Traders", 0))
	require.NoError(t, err)
	b, path := w.browser(), "/invitations/"+i.Token
	b.get(path)
	require.Contains(t, b.post(path, "password", "Acme-Traders-12").text(), "This password would be guessed soon")
	require.Equal(t, http.StatusUnprocessableEntity, b.seen.StatusCode)
	require.Contains(t, b.post(path, "password", password).text(), "Welcome.")
}

// TestTheOverviewWarnsOfAKeyTwoWeeksBeforeItEnds.
func TestTheOverviewWarnsOfAKeyTwoWeeksBeforeItEnds(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	end := w.clock().Add(14 * 24 * time.Hour)
	_, err := w.client.AddKeyWith(t.Context(), account, writer.KeySettings{Name: "billing", Expires: &end})
	require.NoError(t, err)
	require.NotContains(t, b.get("/").text(), "Give it a later end")
	w.pass(time.Minute)
	require.Contains(t, b.get("/").text(), "Give it a later end")
}

// TestAnOwnerMakesFewKeysADay, revoked ones included: each would have a hundred lookups a day that find nothing, for nothing.
func TestAnOwnerMakesFewKeysADay(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	w.exec(`INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT ?1, '', CAST('made up ' || i AS BLOB), 'abcd', ?2, ?2 FROM n`,
		account, w.clock().UnixMilli())
	require.Contains(t, b.submit("/keys", "/keys", "name", "the hundredth").body, `value="reg_live_`)
	p := b.submit("/keys", "/keys", "name", "one more")
	require.Contains(t, p.text(), "Your account has made 100 keys within a day")
	require.Contains(t, p.body, `value="one more"`)
	_, err := w.client.AddKey(t.Context(), account, "by operators")
	require.NoError(t, err)
	w.pass(24 * time.Hour)
	b.requireIn("acme@example.com")
	require.Contains(t, b.submit("/keys", "/keys", "name", "one more").body, `value="reg_live_`)
}
