package dashboard_test

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
)

// find returns the first element below a node that fits, nil for none.
func find(in *html.Node, fits func(*html.Node) bool) *html.Node {
	for n := range in.Descendants() {
		if n.Type == html.ElementNode && fits(n) {
			return n
		}
	}
	return nil
}

// saying fits elements of a kind with these words.
func saying(kind, words string) func(*html.Node) bool {
	return func(n *html.Node) bool { return n.Data == kind && textOf(n) == words }
}

func textOf(in *html.Node) string {
	var text strings.Builder
	for n := range in.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
		}
	}
	return text.String()
}

// attribute is the value of an attribute, and whether there is one.
func attribute(of *html.Node, name string) (string, bool) {
	for _, a := range of.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// filled holds the fields of a form as the page has filled them in.
func filled(form *html.Node) url.Values {
	fields := url.Values{}
	for n := range form.Descendants() {
		name, named := attribute(n, "name")
		if !named {
			continue
		}
		switch n.Data {
		case "input":
			value, _ := attribute(n, "value")
			fields.Set(name, value)
		case "select":
			chosen := find(n, func(o *html.Node) bool {
				_, selected := attribute(o, "selected")
				return o.Data == "option" && selected
			})
			if chosen == nil {
				chosen = find(n, func(o *html.Node) bool { return o.Data == "option" })
			}
			value, given := attribute(chosen, "value")
			if !given {
				value = textOf(chosen)
			}
			fields.Set(name, value)
		}
	}
	return fields
}

// checkForms checks that each form of the page that is open has a token of its own, without which it is refused, and that
// passwords are hidden and get into no address. No search engine lists the page.
func (b *browser) checkForms() {
	b.t.Helper()
	document := b.parsed()
	if strings.HasPrefix(b.seen.body, "<!DOCTYPE html>") {
		require.NotNil(b.t, find(document, func(n *html.Node) bool {
			name, _ := attribute(n, "name")
			content, _ := attribute(n, "content")
			return n.Data == "meta" && name == "robots" && content == "noindex"
		}), b.seen.Request.URL.Path)
	}
	for form := range document.Descendants() {
		for field := range form.Descendants() {
			if name, _ := attribute(field, "name"); form.Data == "form" && (name == "password" || name == "current") {
				kind, _ := attribute(field, "type")
				method, _ := attribute(form, "method")
				require.Equal(b.t, []string{"password", "post"}, []string{kind, method}, "%s at %s", name, b.seen.Request.URL.Path)
			}
		}
		if method, _ := attribute(form, "method"); form.Data == "form" && method == "post" {
			action, _ := attribute(form, "action")
			require.NotEmpty(b.t, filled(form).Get("token"), "the form to %q at %s", action, b.seen.Request.URL.Path)
		}
	}
}

// parsed is the page that is open.
func (b *browser) parsed() *html.Node {
	b.t.Helper()
	document, err := html.Parse(strings.NewReader(b.seen.body))
	require.NoError(b.t, err)
	return document
}

// press sends the form of a button to where the page says, with what the page has filled in and these fields.
func (b *browser) press(words string, fields ...string) page {
	b.t.Helper()
	document := b.parsed()
	form := find(document, func(n *html.Node) bool { return n.Data == "form" && find(n, saying("button", words)) != nil })
	require.NotNil(b.t, form, "there is no button %q: %s", words, b.seen.body)
	values := filled(form)
	for i := 0; i < len(fields); i += 2 {
		require.True(b.t, values.Has(fields[i]), "there is no field %q", fields[i])
		values.Set(fields[i], fields[i+1])
	}
	to, _ := attribute(find(form, saying("button", words)), "formaction")
	action, _ := attribute(form, "action")
	to = cmp.Or(to, action, b.seen.Request.URL.Path)
	if method, _ := attribute(form, "method"); method != "post" {
		return b.get(to + "?" + values.Encode())
	}
	return b.do(http.MethodPost, to, values)
}

// follow opens the link with these words.
func (b *browser) follow(words string) page {
	b.t.Helper()
	link := find(b.parsed(), saying("a", words))
	require.NotNil(b.t, link, "there is no link %q: %s", words, b.seen.body)
	to, _ := attribute(link, "href")
	return b.get(to)
}

// TestButtonsDoWhatTheySay, with the forms as the pages have filled them in.
func TestButtonsDoWhatTheySay(t *testing.T) {
	w := newWorld(t, func(c *dashboard.Config) { c.Mail, c.PrivateWebhooks = true, true })
	o, account := w.owner("Acme", 1000)
	targets := func() int { return w.count(`SELECT count(*) FROM notice_target`) }
	tests := func() int { return w.count(`SELECT count(*) FROM notice WHERE kind = 'test'`) }

	o.get("/settings/webhook")
	first := hookSecret.FindStringSubmatch(o.press("Save webhook", "url", "https://hooks.invalid/").text())
	require.NotNil(t, first, o.seen.body)
	require.Contains(t, o.press("Save webhook").text(), "The webhook is saved.")
	second := hookSecret.FindStringSubmatch(o.press("Create a new secret").text())
	require.NotNil(t, second, o.seen.body)
	require.NotEqual(t, first, second)
	o.press("Send a test")
	require.Equal(t, []int{1, 1}, []int{targets(), tests()})
	o.press("Remove webhook")
	require.Zero(t, targets())

	o.get("/settings/mail")
	o.press("Switch on", "low", "7")
	o.press("Save")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM notice_target WHERE channel = 'mail' AND low = 7`))
	o.press("Send a test")
	require.Equal(t, []int{1, 1}, []int{targets(), tests()})
	o.press("Switch off")
	require.Zero(t, targets())

	made, err := w.client.AddKeyWith(t.Context(), account, writer.KeySettings{Name: "billing", PerMinute: 9, MonthlyCredits: 50, Allowed: []string{"192.0.2.0/24"}})
	require.NoError(t, err)
	for _, button := range []string{"Rename key", "Change addresses", "Change limits"} {
		o.get("/keys/" + strconv.FormatInt(made.ID, 10))
		require.Equal(t, http.StatusOK, o.press(button).StatusCode, button)
		key, err := w.client.Key(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, made.Key, key, button)
	}

	op := w.operator()
	op.get("/accounts/" + strconv.FormatInt(account, 10))
	op.press("Change plan")
	a, err := w.client.Account(t.Context(), account)
	require.NoError(t, err)
	require.Equal(t, "growth", a.Plan, "another was not chosen")
	for _, suspended := range []bool{true, false} {
		if suspended {
			op.follow("Suspend account…")
			op.press("Suspend account")
		} else {
			op.press("Resume account")
		}
		a, err = w.client.Account(t.Context(), account)
		require.NoError(t, err)
		require.Equal(t, suspended, a.Suspended)
	}
}

// TestAPageKeepsWhatIsChosen when its form is sent, and in what is downloaded.
func TestAPageKeepsWhatIsChosen(t *testing.T) {
	w := newWorld(t)
	o, account := w.owner("Acme", 1000)
	made, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	key := strconv.FormatInt(made.ID, 10)
	for _, path := range []string{"/requests?key=" + key + "&search=none", "/usage?endpoint=llps&from=2026-09-01&key=" + key + "&to=2026-09-30"} {
		o.get(path)
		require.Equal(t, path, o.press("Show").Request.URL.RequestURI())
	}
	saved := o.follow("CSV by day, key and endpoint")
	require.Contains(t, saved.Header.Get("Content-Disposition"), "usage-2026-09-01-to-2026-09-30.csv")
	require.Contains(t, saved.Request.URL.RawQuery, "endpoint=llps&")

	w.pass(31 * 24 * time.Hour)
	o.requireIn("acme@example.com").get("/credits?month=2026-10")
	require.Contains(t, o.follow("This month as CSV").Header.Get("Content-Disposition"), "credits-2026-10.csv")
}

// cells are the cells of a table's row with these words in one of them, by the heads of their columns.
func (b *browser) cells(words string) map[string]string {
	b.t.Helper()
	is := func(kinds ...string) func(*html.Node) bool {
		return func(n *html.Node) bool { return slices.Contains(kinds, n.Data) }
	}
	for table := range b.parsed().Descendants() {
		if table.Data != "table" {
			continue
		}
		var heads []string
		for n := range find(table, is("thead")).Descendants() {
			if n.Data == "th" {
				heads = append(heads, textOf(n))
			}
		}
		for row := range find(table, is("tbody")).ChildNodes() {
			if row.Data != "tr" || find(row, func(n *html.Node) bool { return strings.Contains(textOf(n), words) }) == nil {
				continue
			}
			cells := map[string]string{}
			for cell := range row.ChildNodes() {
				if is("td", "th")(cell) {
					cells[heads[len(cells)]] = textOf(cell)
				}
			}
			return cells
		}
	}
	require.Fail(b.t, "no row", "%q: %s", words, b.seen.body)
	return nil
}

// TestTablesSayWhatTheirHeadsSay
func TestTablesSayWhatTheirHeadsSay(t *testing.T) {
	w := newWorld(t, func(c *dashboard.Config) {
		c.Releases = func(context.Context) ([]push.Release, error) {
			return []push.Release{{ID: "release-9", Companies: 11, LLPs: 12, Directors: 13, Appointments: 14, Partners: 15}}, nil
		}
	})
	o, account := w.owner("Acme", 1000)
	key, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	for outcome, count := range map[int]int{1: 3, 2: 4, 3: 5} {
		w.used(account, key.ID, w.clock(), outcome, count)
	}
	expect := func(b *browser, path, words string, want map[string]string) {
		t.Helper()
		b.get(path)
		cells := b.cells(words)
		for head, cell := range want {
			require.Equal(t, cell, cells[head], "%s of %s at %s", head, words, path)
		}
	}
	calls := map[string]string{"Found": "3", "Not found": "4", "Failed": "5"}
	expect(o, "/", "20 Oct 2026", calls)
	expect(o, "/usage", "billing", calls)
	expect(o, "/usage", "companies", calls)
	expect(o, "/credits", "spent", map[string]string{"Credits": "−3", "Balance": "997", "Key or note": "billing"})
	for role, may := range map[writer.Role]string{writer.RoleRead: "read", writer.RoleAll: "read and change keys"} {
		_, err = w.client.AddOwnerToken(t.Context(), account, "may "+string(role), role, time.Hour)
		require.NoError(t, err)
		expect(o, "/settings/tokens", "may "+string(role), map[string]string{"May": may})
	}
	elsewhere := w.browser()
	elsewhere.address = "192.0.2.77"
	expect(elsewhere.requireIn("acme@example.com"), "/settings", "this one", map[string]string{"Address": "192.0.2.77"})

	w.pass(72 * time.Hour)
	_, err = w.client.RevokeKey(t.Context(), key.ID)
	require.NoError(t, err)
	expect(o.requireIn("acme@example.com"), "/keys", "billing", map[string]string{"Created": "20 Oct 2026", "Ended": "23 Oct 2026, revoked"})

	node, err := w.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	_, err = writer.NewClient(w.server.URL, node.Token, w.server.Client()).Report(t.Context(), writer.Report{
		Release: "2026-10", Version: "1.2.3", Unsettled: 4, Ready: "the disk hangs",
		Replicas: []writer.Replica{{Database: "registry", AgeMillis: 1000}, {Database: "access", AgeMillis: 2000}},
	})
	require.NoError(t, err)
	op := w.operator()
	expect(op, "/accounts", "Acme", map[string]string{"Balance": "997", "Spent": "3", "Plan": "growth"})
	expect(op, "/edges", "one", map[string]string{"Release": "2026-10", "Registry lag": "1s", "Access lag": "2s", "Charges unsettled": "4", "Credits leased": "0", "Version": "1.2.3", "State": "away the disk hangs"})
	expect(op, "/edges", "release-9", map[string]string{"Companies": "11", "LLPs": "12", "Directors": "13", "Appointments": "14", "Partners": "15"})
}

// TestTheNextPageIsOfTheSameSearch
func TestTheNextPageIsOfTheSameSearch(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	for path, c := range map[string]struct{ insert, more string }{
		"/accounts": {`INSERT INTO account (name, email, plan, suspended, created_at) SELECT name, '', 'growth', 0, 0 FROM named`, "More"},
		"/people":   {`INSERT INTO user (email, password, operator, created_at) SELECT name || '@example.com', '', 1, 0 FROM named`, "More"},
		"/activity": {`INSERT INTO audit (at, actor, address, act, detail) SELECT 0, name, '', 'made up', '' FROM named`, "Older"},
	} {
		w.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150),
			named(name) AS (SELECT iif(i % 2, 'odd-', 'even-') || i FROM n) ` + c.insert)
		op.get(path)
		op.press("Search", "q", "even-")
		require.Equal(t, 50, strings.Count(op.seen.body, ">even-"), path)
		op.follow(c.more)
		require.Equal(t, 25, strings.Count(op.seen.body, ">even-"), path)
		require.NotContains(t, op.seen.body, ">odd-", path)
	}
}

// TestASecretThatIsReplacedWorksAsLongAsItsPageSays: each choice is of as many hours as its words are.
func TestASecretThatIsReplacedWorksAsLongAsItsPageSays(t *testing.T) {
	w := newWorld(t)
	o, account := w.owner("Acme", 0)
	key, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	page := "/keys/" + strconv.FormatInt(key.ID, 10)
	choices := map[string]string{}
	o.get(page)
	for n := range find(o.parsed(), func(n *html.Node) bool { id, _ := attribute(n, "id"); return id == "hours" }).ChildNodes() {
		if n.Data == "option" {
			choices[textOf(n)], _ = attribute(n, "value")
		}
	}
	require.Equal(t, map[string]string{"an hour": "1", "a day": "24", "7 days": "168", "30 days": "720"}, choices)
	o.press("Rotate key")
	changed, err := w.client.Key(t.Context(), key.ID)
	require.NoError(t, err)
	require.Equal(t, w.clock().Add(24*time.Hour).UTC(), changed.OldEnds.UTC(), "a day, when nothing is chosen")
}

// TestPagesSayWhatHolds of keys, plans, people and months.
func TestPagesSayWhatHolds(t *testing.T) {
	w := newWorld(t, func(c *dashboard.Config) { c.Mail = true })
	o, account := w.owner("Acme", 1000)
	at := "/accounts/" + strconv.FormatInt(account, 10)
	key, err := w.client.AddKeyWith(t.Context(), account, writer.KeySettings{Name: "billing", PerMinute: 9, MonthlyCredits: 50})
	require.NoError(t, err)
	o.get("/keys/" + strconv.FormatInt(key.ID, 10))
	for _, row := range []string{"Requests a minute9", "Credits a month50", "Allowed fromeverywhere", "Endsnever", "Last usenever"} {
		require.Contains(t, textOf(o.parsed()), row)
	}
	require.Contains(t, o.get("/settings/mail").text(), "A message goes to <strong>acme@example.com</strong>")

	op := w.operator()
	for plan, contact := range map[string]string{
		"scale": "1,200 calls a minute, e-mail and phone", "growth": "300 calls a minute, e-mail, no phone",
		"starter": "60 calls a minute, no contact data", "free": "no API access",
	} {
		op.get(at)
		op.press("Change plan", "plan", plan)
		require.Contains(t, textOf(op.parsed()), "Plan"+plan+"\n"+contact, plan)
		require.Equal(t, plan == "free", strings.Contains(o.get("/").body, "has no API access"), plan)
	}
	op.get("/accounts")
	require.Equal(t, "active", op.cells("Acme")["State"])
	w.person("eve@example.com", account)
	op.get(at)
	op.follow("Remove eve@example.com")
	require.Contains(t, op.seen.text(), "eve@example.com can no longer sign in")
	op.press("Remove eve@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM user WHERE account = ?`, account))

	month := func(path string) (last string) {
		o.get(path)
		for n := range o.parsed().Descendants() {
			if n.Data == "dt" {
				last = textOf(n)
			}
		}
		return last
	}
	w.pass(31 * 24 * time.Hour)
	o.requireIn("acme@example.com")
	require.Equal(t, "Now", month("/credits"))
	require.Equal(t, "At the end", month("/credits?month=2026-10"))
}

// TestPagesSayWhatEnds: a token when it does, and a key that ended by itself.
func TestPagesSayWhatEnds(t *testing.T) {
	w := newWorld(t)
	o, account := w.owner("Acme", 0)
	o.get("/settings/tokens")
	require.Contains(t, o.press("Create token", "name", "report").text(), "It ends on ")
	o.get("/settings/tokens")
	require.Equal(t, "read", o.cells("report")["May"], "another was not chosen")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM owner_token WHERE ends_at - created_at = 90 * 86400000`))
	ends := w.clock().Add(24 * time.Hour)
	_, err := w.client.AddKeyWith(t.Context(), account, writer.KeySettings{Name: "ended", Expires: &ends})
	require.NoError(t, err)
	o.get("/keys")
	require.NotContains(t, o.press("Create key", "name", "new").text(), "The secret before works", "it has no other")
	w.pass(25 * time.Hour)
	o.requireIn("acme@example.com").get("/keys")
	require.Equal(t, ends.UTC().Format("2 Jan 2006, 15:04")+", expired", o.cells("ended")["Ended"])
}

// TestCancelLeadsBack to the list or the page that what would end is of, and ends nothing.
func TestCancelLeadsBack(t *testing.T) {
	w := newWorld(t)
	o, account := w.owner("Acme", 0)
	key, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	_, err = w.client.AddOwnerToken(t.Context(), account, "report", writer.RoleRead, time.Hour)
	require.NoError(t, err)
	op := w.operator()
	at := "/accounts/" + strconv.FormatInt(account, 10)
	for _, c := range []struct {
		who              *browser
		from, link, back string
	}{
		{o, "/settings/tokens", "End report", "/settings/tokens"},
		{o, "/keys/" + strconv.FormatInt(key.ID, 10), "Revoke key…", "/keys"},
		{op, at, "Suspend account…", at},
		{op, at, "Remove acme@example.com", "/people"},
	} {
		c.who.get(c.from)
		c.who.follow(c.link)
		require.Equal(t, c.back, c.who.follow("Cancel").Request.URL.Path, c.link)
	}
	require.Equal(t, 1, w.count(`SELECT count(*) FROM owner_token WHERE ends_at > ?`, w.clock().UnixMilli()))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key WHERE revoked_at IS NULL`))
	require.Zero(t, w.count(`SELECT count(*) FROM account WHERE suspended`))
}
