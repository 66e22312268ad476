package cli

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/devdata"
	"regedge/internal/testkit/browser"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// seed makes an account with everything that a page can show, and returns the pages of each kind
// of user.
func (h *household) seed() (owner, operator, guest []string) {
	h.T.Helper()
	ledger, err := schema.OpenFile(filepath.Join(h.dir, "ledger.db"))
	require.NoError(h.T, err)
	defer ledger.Close()
	account := h.account("Acme Traders of the Made-Up Long Name", 250_000)
	invitation, err := h.client.Invite(h.T.Context(), "ada@example.com", account)
	require.NoError(h.T, err)
	for i, name := range []string{"billing server", "website", "analysts' notebook", "old"} {
		key, err := h.client.AddKey(h.T.Context(), account, name)
		require.NoError(h.T, err)
		h.answers(key.Secret, 200)
		if i == 3 {
			_, err = h.client.RevokeKey(h.T.Context(), key.ID)
			require.NoError(h.T, err)
		}
		h.use(ledger, account, key.ID, i)
	}
	_, err = h.client.AddOwnerToken(h.T.Context(), account, "monthly report", writer.RoleRead, 90*24*time.Hour)
	require.NoError(h.T, err)
	for _, statement := range []string{
		`INSERT INTO notice_target (id, account, channel, url, low, low_told, created_at) VALUES (7, ?1, 'webhook', 'https://hooks.invalid/regedge', 10000, 1, ?2)`,
		`INSERT INTO notice (id, target, kind, about, at, body, attempts, last, delivered_at) VALUES ('evt_A', 7, 'key.ending', '', ?2, '', 1, '204', ?2)`,
		`INSERT INTO notice (id, target, kind, about, at, body, attempts, last, next_at) VALUES ('evt_B', 7, 'balance.low', '', ?2, '', 3, '500', ?2 + 86400000)`,
	} {
		_, err := ledger.ExecContext(h.T.Context(), statement, account, time.Now().UnixMilli())
		require.NoError(h.T, err)
	}
	h.Open(h.dashboard + writer.InvitationPath + invitation.Token)
	h.Type("#password", "four plain words here")
	submit(h.Tab, "form.stack button", `document.querySelector(".who button")`)
	pending, err := h.client.Invite(h.T.Context(), "eve@example.com", account)
	require.NoError(h.T, err)
	at := fmt.Sprint("/accounts/", account)
	return []string{"/", "/keys", "/keys/1/revoke", "/keys/1", "/usage", "/credits", "/activity", "/settings", "/settings/two-factor", "/settings/tokens", "/settings/webhook", "/settings/api", "/requests"},
		[]string{"/accounts", at, at + "/suspension", at + "/usage", at + "/credits", "/people", "/people/1/remove", "/edges", "/api", "/activity"},
		[]string{"/sign-in", writer.InvitationPath + pending.Token, "/none"}
}

// use writes made-up usage of the last weeks, as edges would have reported it.
func (h *household) use(ledger *sql.DB, account, key int64, kind int) {
	h.T.Helper()
	today := time.Now().Unix() / 86400
	for day := today - 27; day < today; day++ {
		calls := (day*day*7+day*13*int64(kind))%(400+300*int64(kind)) + 120
		for outcome, count := range []int64{calls, calls / 9, calls % 23} {
			_, err := ledger.ExecContext(h.T.Context(), `INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (?, ?, ?, 1, ?, ?)`,
				account, key, day*24+9+int64(kind), outcome+1, count)
			require.NoError(h.T, err)
		}
	}
}

// everyPage opens each page as each kind of visitor on each screen.
func (h *household) everyPage(look func(name string, v browser.View)) {
	h.T.Helper()
	owner, operator, guest := h.seed()
	keys, err := h.client.Keys(h.T.Context(), 2)
	require.NoError(h.T, err)
	owner[2] = fmt.Sprintf("/keys/%d/revoke", keys[0].ID)
	owner[3] = fmt.Sprintf("/keys/%d", keys[0].ID)
	for _, who := range []struct {
		name  string
		pages []string
	}{{"owner", owner}, {"operator", operator}, {"guest", guest}} {
		switch who.name {
		case "operator":
			h.signIn(h.Tab, devdata.Operator, h.operatorPassword)
		case "guest":
			submit(h.Tab, ".who button", heading("Sign in"))
		}
		for _, path := range who.pages {
			h.InEachView(func() { h.Open(h.dashboard + path) }, func(v browser.View) {
				look("dashboard-"+who.name+"-"+nameOf(path), v)
			})
		}
		if who.name == "owner" {
			secret := h.makeKey("newest")
			require.NotEmpty(h.T, secret)
			for _, v := range browser.Views {
				h.As(v)
				look("dashboard-owner-new-key", v)
			}
			submit(h.Tab, ".who button", heading("Sign in"))
		}
	}
}

// nameOf is a page's path as a file name: without tokens and numbers.
func nameOf(path string) string {
	var words []string
	for word := range strings.SplitSeq(path, "/") {
		if word != "" && len(word) < 40 && strings.Trim(word, "0123456789") != "" {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "start"
	}
	switch {
	case len(words) == 1 && strings.HasPrefix(path, "/accounts/"):
		return "account"
	case len(words) == 1 && strings.HasPrefix(path, "/keys/"):
		return "key"
	}
	return strings.Join(words, "-")
}

func TestEveryPageOfTheDashboardIsAccessible(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	h := newHousehold(t)
	h.Missing("/none")
	h.everyPage(func(name string, v browser.View) {
		h.RequireAccessible(axe, v.Name+" "+name)
		h.RequireWholePlaceholders(v.Name + " " + name)
		require.Equal(t, "fits", h.Eval(`document.documentElement.scrollWidth <= innerWidth ? "fits" : "is " + document.documentElement.scrollWidth + " wide"`), "%s on %s", name, v.Name)
		if v.Width < 500 { // content beyond a phone's edge is easily missed
			h.WaitFor(`![...document.querySelectorAll(".scroll")].some(table => table.scrollWidth > table.clientWidth + 1)`)
		}
	})
	h.RequireClean(h.dashboard)
}

func TestScreensOfTheDashboard(t *testing.T) {
	t.Parallel()
	browser.NeedScreens(t)
	h := newHousehold(t)
	h.everyPage(func(name string, v browser.View) { h.Picture(name, v) })
}

// TestTheDashboardFitsASmallPhone opens the widest pages on the narrowest screen.
func TestTheDashboardFitsASmallPhone(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	h.makeKey(strings.Repeat("PRODUCTION_", 5)) // a name without a place to break
	h.As(browser.View{Width: 320, Height: 640})
	const waysBack = `String([...document.querySelectorAll(".eyebrow a")].every(a => {
		const r = a.getBoundingClientRect()
		return a.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2))
	}))`
	const placeShown = `(place => String(!place || place.left >= 0 && place.right <= innerWidth))(
		document.querySelector(".head nav [aria-current]")?.getBoundingClientRect())`
	const columnsNamed = `String([...document.querySelectorAll(".scroll tbody tr > *")].every(cell => {
		const head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex]
		return cell.dataset.column === (head.querySelector(".hidden") ? "" : head.textContent)
	}))`
	for _, path := range []string{"/", "/keys", "/keys/2", "/usage", "/credits", "/activity", "/settings", "/settings/tokens", "/settings/webhook", "/settings/api"} {
		h.Open(h.dashboard + path)
		require.Equal(t, "320", h.Eval(`String(document.documentElement.scrollWidth)`), path)
		h.RequireWholePlaceholders(path)
		require.Equal(t, "true", h.Eval(placeShown), "the page that is open is shown in the head of %s", path)
		require.Equal(t, "true", h.Eval(columnsNamed), "cells of %s have the names of their columns", path)
		require.Equal(t, "true", h.Eval(waysBack), "nothing covers the way back on %s", path)
	}
}

// TestFieldsAndButtonsOfAFormAreOfOneHeight measures what stands in one row.
func TestFieldsAndButtonsOfAFormAreOfOneHeight(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	const heights = `JSON.stringify([...new Set([...document.querySelectorAll("main form, main form .pair")].flatMap(
		form => [...form.querySelectorAll("input:not([type=hidden]), select, button, .button")].map(e => e.offsetHeight)))])`
	h.signIn(h.Tab, devdata.Operator, h.operatorPassword)
	for _, path := range []string{"/accounts", "/accounts/1", "/accounts/1/usage", "/people"} {
		h.Open(h.dashboard + path)
		require.Equal(t, "[44]", h.Eval(heights), path)
	}
}

func TestANewKeyIsShownWithItsUnderscores(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	require.NotEmpty(t, h.makeKey("newest"))
	require.Equal(t, "44", h.Eval(`String(document.querySelector("#secret").offsetHeight)`), "as high as the button beside it")
	h.RequireUnderscores("#secret")
}

func TestTimesAreInTheZoneOfTheReader(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.InZone("Asia/Kolkata")
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	h.Open(h.dashboard + "/activity")
	moment := h.Eval(`JSON.stringify((m => [m.dateTime, m.textContent, m.title])(document.querySelector("main time")))`)
	var seen [3]string
	require.NoError(t, json.Unmarshal([]byte(moment), &seen))
	at, err := time.Parse(time.RFC3339, seen[0])
	require.NoError(t, err)
	require.Equal(t, at.In(time.FixedZone("", 5*3600+1800)).Format("2 Jan 2006, 15:04"), strings.Replace(seen[1], "Sept", "Sep", 1))
	require.Equal(t, at.Format("2 Jan 2006, 15:04 UTC"), seen[2])
	require.Contains(t, h.Eval(`document.querySelector("#zone").textContent`), "Times are of your zone (Asia/")
	for zone, says := range map[string]string{"GMT": "Times are UTC.", "Africa/Abidjan": "Times are UTC.", "Europe/London": "Times are of your zone (Europe/London)"} {
		h.InZone(zone)
		h.Open(h.dashboard + "/activity")
		require.Contains(t, h.Eval(`document.querySelector("#zone").textContent`), says)
	}
	h.WithoutScripts()
	h.Open(h.dashboard + "/activity")
	require.Equal(t, "true", h.Eval(`String([...document.querySelectorAll("main time")].every(m => m.title === m.textContent + " UTC"))`))
	require.Equal(t, "Times are UTC.", h.Eval(`document.querySelector("#zone").textContent`))
}

// TestATableThatIsWiderThanAPhoneBecomesAList, with the names of the columns. One that is wider than a tablet says so.
func TestATableThatIsWiderThanAPhoneBecomesAList(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Operator, h.operatorPassword)
	const table = `document.querySelector(".scroll")`
	const hint = table + `.previousElementSibling`
	h.Open(h.dashboard + "/edges")
	for _, c := range []struct {
		width        int64
		stacks, says bool
	}{{1280, false, false}, {700, false, true}, {390, true, false}, {360, true, false}, {1280, false, false}} {
		h.As(browser.View{Width: c.width, Height: 800})
		h.WaitFor(fmt.Sprintf(`%s.className === "sideways" && %s.hidden === %t && %s.classList.contains("stacked") === %t`, hint, hint, !c.says, table, c.stacks))
	}
	h.As(browser.View{Width: 360, Height: 740})
	h.WaitFor(table + `.classList.contains("stacked")`)
	require.Equal(t, `"Last heard"`, h.Eval(`getComputedStyle(document.querySelector("tbody td:nth-child(3)"), "::before").content`))
	require.Equal(t, "none", h.Eval(`getComputedStyle(document.querySelector("tbody th"), "::before").display`), "what the row is about needs no name")
	require.Empty(t, h.Eval(`[...document.querySelectorAll("tbody td")].filter(cell =>
		parseFloat(getComputedStyle(cell, "::before").height) > cell.clientHeight).map(cell => cell.dataset.column).join()`), "a name of two lines lies over no other cell")
}
