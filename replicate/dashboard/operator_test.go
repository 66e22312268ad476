package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

func TestAnOperatorRunsAnAccount(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	require.Contains(t, b.get("/").body, "<h1>Accounts</h1>")
	p := b.submit("/accounts", "/accounts", "name", "Acme Traders", "plan", "starter")
	require.Contains(t, p.text(), "The account was created.")
	const at = "/accounts/1"
	require.Contains(t, b.submit(at, at+"/plan", "plan", "scale").text(), "The plan is changed.")
	require.Contains(t, b.submit(at, at+"/credits", "amount", "2500", "kind", "bought", "note", "invoice 17").text(), "The credits are added.")
	require.Contains(t, b.submit(at, at+"/credits", "amount", "-500", "kind", "bought").text(), "The credits are taken.")
	for _, amount := range []string{"", "0", "many", "1.5", "99999999999999999999", "999999999999999"} {
		p = b.submit(at, at+"/credits", "amount", amount, "kind", "bought")
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, amount)
	}
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/credits", "amount", "-5", "kind", "compensated").StatusCode)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/credits", "amount", "5", "kind", "stolen").StatusCode)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/plan", "plan", "none").StatusCode)
	require.Contains(t, b.submit(at, at+"/suspension", "suspended", "1").text(), "The account is suspended.")

	a, err := w.client.Account(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "scale", a.Plan)
	require.Equal(t, int64(2000), a.Balance)
	require.True(t, a.Suspended)
	require.Contains(t, b.submit(at, at+"/suspension", "suspended", "0").text(), "active again")
	require.Contains(t, b.get(at+"/credits").body, "invoice 17")
	require.Contains(t, b.get(at+"/credits.csv").body, "invoice 17")
	require.Equal(t, http.StatusNotFound, b.get("/accounts/99").StatusCode)
}

func TestAccountsAreFoundAndPaged(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	for i := range 53 {
		w.account(fmt.Sprintf("Account %d%%_", i), 0)
	}
	w.person("someone@example.com", 7)
	first := b.get("/accounts").body
	require.Equal(t, 50, strings.Count(first, `<a href="/accounts/`), "and no more")
	require.Contains(t, b.get("/accounts?after=50").body, "Account 52")
	require.Contains(t, b.get("/accounts?q=52").body, "Account 52")
	require.Contains(t, b.get("/accounts?q=52").body, "Account 51", "by its number")
	require.Contains(t, b.get("/accounts?q=someone").body, "Account 6%_")
	require.NotContains(t, b.get("/accounts?q=someone").body, "Account 7%_")
	require.Contains(t, b.get("/accounts?q=0%25_").body, "Account 40%_", "signs stand for themselves")
	require.Contains(t, b.get("/accounts?q=_%25").text(), "No account has")
	require.Equal(t, http.StatusNotFound, b.get("/accounts?after=x").StatusCode)
}

func TestOperatorsInviteAndRemovePeople(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	account := w.account("Acme", 0)
	p := b.submit(fmt.Sprint("/accounts/", account), fmt.Sprintf("/accounts/%d/invitations", account), "email", "owner@example.com")
	_, link, found := strings.Cut(p.body, `id="link" value="`+w.server.URL)
	require.True(t, found, p.body)
	path, _, _ := strings.Cut(link, `"`)
	invited := w.browser()
	invited.get(path)
	require.Contains(t, invited.post(path, "password", password).text(), "Welcome.")
	require.Contains(t, b.get(fmt.Sprint("/accounts/", account)).body, "owner@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'invite' AND account = ? AND detail = 'owner@example.com'`, account))

	require.Contains(t, b.submit("/people", "/people", "email", "second@example.com").text(), "/invitations/")
	p = b.submit("/people", "/people", "email", "owner@example.com")
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, "an owner is not made an operator")
	require.NotContains(t, p.body, "/invitations/", "there is no link")
	again, err := w.client.Invite(t.Context(), "owner@example.com", account) // for a new password
	require.NoError(t, err)
	require.Contains(t, b.get("/people/2/remove").body, "owner@example.com")
	require.Contains(t, b.post("/people/2/remove").text(), "can no longer sign in")
	require.Equal(t, http.StatusNotFound, w.browser().get(writer.InvitationPath+again.Token).StatusCode, "nor comes back by an invitation")
	require.Contains(t, invited.get("/").body, "<h1>Sign in</h1>", "and is signed out")
	require.Equal(t, http.StatusUnprocessableEntity, invited.signIn("owner@example.com", password).StatusCode)
	require.Equal(t, http.StatusNotFound, b.get("/people/1/remove").StatusCode, "nobody removes themselves")
	b.get("/people")
	for _, path := range []string{"/people/1/remove", "/people/x/remove", "/people/0/remove"} {
		require.Equal(t, http.StatusNotFound, b.post(path).StatusCode, path)
	}
}

// TestInvitationsOfARemovedOperatorEnd: they would come back under another address.
func TestInvitationsOfARemovedOperatorEnd(t *testing.T) {
	w := newWorld(t)
	b, account := w.operator(), w.account("Acme", 0)
	w.person("leaving@example.com", 0)
	leaving := w.browser().requireIn("leaving@example.com")
	invite := func(by *browser, page, action, email string) string {
		_, link, found := strings.Cut(by.submit(page, action, "email", email).body, `id="link" value="`+w.server.URL)
		require.True(t, found)
		path, _, _ := strings.Cut(link, `"`)
		return path
	}
	ofAccount := fmt.Sprint("/accounts/", account)
	theirs := []string{
		invite(leaving, "/people", "/people", " Theirs@example.com"), invite(leaving, ofAccount, ofAccount+"/invitations", "friend@example.com"),
	}
	invite(leaving, "/people", "/people", "again@example.com")
	kept := []string{
		invite(b, "/people", "/people", "again@example.com"), invite(b, "/people", "/people", "other@example.com"),
		invite(b, ofAccount, ofAccount+"/invitations", "owner@example.com"),
	}
	remove := fmt.Sprintf("/people/%d/remove", w.count(`SELECT id FROM user WHERE email = 'leaving@example.com'`))
	require.Contains(t, b.get(remove).text(), "invitations that they made end")
	require.Contains(t, b.post(remove).text(), "can no longer sign in")
	for _, path := range theirs {
		require.Equal(t, http.StatusNotFound, w.browser().get(path).StatusCode, "nor is anybody let in by them")
	}
	for _, path := range kept {
		require.Equal(t, http.StatusOK, w.browser().get(path).StatusCode)
	}
}

func TestOperatorsSeeTheEdges(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	require.Contains(t, b.get("/edges").body, "There is no edge yet")
	_, err := w.client.AddNode(t.Context(), "mumbai-1")
	require.NoError(t, err)
	_, err = w.client.AddNode(t.Context(), "old")
	require.NoError(t, err)
	_, err = w.client.RetireNode(t.Context(), "old", false)
	require.NoError(t, err)
	p := b.get("/edges")
	require.Regexp(t, `mumbai-1</th><td><span class="badge warn">away`, p.body)
	require.Regexp(t, `old</th><td><span class="badge ">retired`, p.body)
}

// TestEveryActionIsAudited does everything that the pages can do, and finds each in the
// log, with the person, the account and the address.
func TestEveryActionIsAudited(t *testing.T) {
	w := newWorld(t)
	operator := w.operator()
	b, account := w.owner("Acme", 10)
	const next = "another four plain words"
	w.browser().signIn("acme@example.com", "wrong words in here")
	b.submit("/keys", "/keys", "name", "billing")
	b.submit("/keys/1/revoke", "/keys/1/revoke")
	b.submit("/settings", "/settings/password", "current", password, "password", next)
	b.submit("/settings", "/sign-out")
	b.signIn("acme@example.com", next)
	b.submit("/settings", "/settings/sign-out-everywhere")
	at := fmt.Sprint("/accounts/", account)
	operator.submit("/accounts", "/accounts", "name", "Second", "plan", "free")
	operator.submit(at, at+"/plan", "plan", "scale")
	operator.submit(at, at+"/credits", "amount", "5", "kind", "bought", "note", "gift")
	operator.submit(at, at+"/suspension", "suspended", "1")
	operator.submit(at, at+"/suspension", "suspended", "0")
	operator.submit(at, at+"/invitations", "email", "third@example.com")
	operator.submit("/people", "/people/2/remove")

	const mine, theirs = "acme@example.com", "operator@example.com"
	for _, want := range []writer.Act{
		{Actor: mine, Account: account, Name: "accept invitation"},
		{Actor: mine, Account: account, Name: "sign in", Detail: "a browser of tests"},
		{Actor: "", Account: account, Name: "fail to sign in", Detail: mine},
		{Actor: mine, Account: account, Name: "create key", Detail: "billing"},
		{Actor: mine, Account: account, Name: "revoke key", Detail: "billing (reg_live_"},
		{Actor: mine, Account: account, Name: "change password"},
		{Actor: mine, Account: account, Name: "sign out"},
		{Actor: mine, Account: account, Name: "sign out everywhere"},
		{Actor: theirs, Account: account + 1, Name: "create account", Detail: "Second, plan free"},
		{Actor: theirs, Account: account, Name: "change plan", Detail: "to scale"},
		{Actor: theirs, Account: account, Name: "change credits", Detail: "+5 bought gift"},
		{Actor: theirs, Account: account, Name: "suspend account"},
		{Actor: theirs, Account: account, Name: "resume account"},
		{Actor: theirs, Account: account, Name: "invite", Detail: "third@example.com"},
		{Actor: theirs, Account: account, Name: "remove person", Detail: mine},
	} {
		n := w.count(`SELECT count(*) FROM audit WHERE actor = ? AND coalesce(account, 0) = ? AND act = ?
			AND substr(detail, 1, length(?4)) = ?4 AND (address = '192.0.2.1' OR act = 'accept invitation')`,
			want.Actor, want.Account, want.Name, want.Detail)
		require.Positive(t, n, "%+v", want)
	}
	require.Zero(t, w.count(`SELECT count(*) FROM audit WHERE act LIKE 'POST %' AND actor = ?`, theirs), "said in words, once")
	log := operator.get("/activity").body
	for _, act := range []string{"change plan", "fail to sign in", "a stranger", "192.0.2.1"} {
		require.Contains(t, log, act)
	}
}

func TestOwnersSeeWhatWasDoneNotByWhom(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	operator := w.operator()
	operator.address = "203.0.113.99"
	at := fmt.Sprint("/accounts/", account)
	operator.submit(at, at+"/plan", "plan", "scale")
	log := b.get("/activity").body
	require.Contains(t, log, "change plan")
	require.Contains(t, log, "the service")
	require.NotContains(t, log, "operator@example.com")
	require.NotContains(t, log, "203.0.113.99")
	require.Contains(t, log, "acme@example.com")
}

// TestOwnersSeeWhatTheirOwnDidAlsoAfterTheyWereRemoved: what a colleague did who has left is not shown as the service's.
func TestOwnersSeeWhatTheirOwnDidAlsoAfterTheyWereRemoved(t *testing.T) {
	w := newWorld(t)
	owner, account := w.owner("Acme", 10)
	w.person("left@example.com", account)
	colleague := w.browser()
	colleague.address = "198.51.100.7"
	colleague.requireIn("left@example.com").submit("/keys", "/keys", "name", "of a colleague")
	before := owner.get("/activity").body
	remove := fmt.Sprintf("/people/%d/remove", w.count(`SELECT id FROM user WHERE email = 'left@example.com'`))
	operator := w.operator()
	operator.address = "203.0.113.99"
	require.Contains(t, operator.submit(remove, remove).text(), "can no longer sign in")
	after := owner.get("/activity").body
	for _, of := range []string{"left@example.com", "198.51.100.7"} {
		require.Positive(t, strings.Count(before, of))
		require.GreaterOrEqual(t, strings.Count(after, of), strings.Count(before, of), of)
	}
	require.NotContains(t, after, "operator@example.com")
	require.NotContains(t, after, "203.0.113.99")
}

func TestActivityIsPaged(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	for i := range 60 {
		w.exec(`INSERT INTO audit (at, actor, account, address, act, detail) VALUES (?, '', ?, '', 'made up', ?)`, i, account, fmt.Sprint("row ", i, "."))
	}
	first := b.get("/activity").body
	require.Contains(t, first, "row 59.")
	require.NotContains(t, first, "row 9.")
	_, older, found := strings.Cut(first, `href="/activity?before=`)
	require.True(t, found)
	id, _, _ := strings.Cut(older, `"`)
	second := b.get("/activity?before=" + id).body
	require.Contains(t, second, "row 9.")
	require.NotContains(t, second, "row 10.")
	require.Equal(t, http.StatusNotFound, b.get("/activity?before=x").StatusCode)
	after := w.count(`SELECT id FROM audit WHERE account = ? ORDER BY id LIMIT 1 OFFSET 50`, account)
	last := b.get(fmt.Sprint("/activity?before=", after)).body
	require.Contains(t, last, "row 9.")
	require.NotContains(t, last, `href="/activity?before=`, "it would lead to an empty page")
}

// TestPeopleAreListedByPages, operators first, and found by a part of their address.
func TestPeopleAreListedByPages(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	account := w.account("Acme", 0)
	for i := range 120 {
		w.exec(`INSERT INTO user (email, password, account, operator, created_at) VALUES (?, 'x', ?, 0, 0)`, fmt.Sprintf("p+%03d@example.com", i), account)
	}
	for i := range 60 { // more than a page has
		w.exec(`INSERT INTO user (email, password, operator, created_at) VALUES (?, 'x', 1, 0)`, fmt.Sprintf("q%02d@example.com", i))
	}
	address := regexp.MustCompile(`<th scope="row">([^<]+)</th>`)
	more := regexp.MustCompile(`<a href="(/people\?after=[^"]+)">More</a>`)
	var found []string
	for next, pages := "/people", 1; next != ""; pages++ {
		p := b.get(next)
		require.Equal(t, http.StatusOK, p.StatusCode)
		rows := address.FindAllStringSubmatch(p.body, -1)
		require.LessOrEqual(t, len(rows), 50)
		for _, row := range rows {
			found = append(found, html.UnescapeString(row[1]))
		}
		next = ""
		if link := more.FindStringSubmatch(p.body); link != nil {
			next = html.UnescapeString(link[1])
		}
		require.LessOrEqual(t, pages, 4)
	}
	require.Len(t, found, 181)
	require.Equal(t, "operator@example.com", found[0])
	require.True(t, slices.IsSorted(found[:61]), "operators first")
	require.True(t, slices.IsSorted(found[61:]))

	require.Len(t, address.FindAllString(b.get("/people?q=P%2B09").body, -1), 10)
	require.Contains(t, b.get("/people?q=x%25").text(), "Nobody’s e-mail address has “x%” in it.")
	require.Equal(t, http.StatusNotFound, b.get("/people?after=x").StatusCode)
}
