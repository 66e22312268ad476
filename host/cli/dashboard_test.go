package cli

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/devdata"
	"regedge/internal/testkit/browser"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/writer"
)

// promptly is how soon a change must reach every edge (guarantees G5 and G8).
const promptly = 2 * time.Second

// household is regedge dev with a tab in front of its pages.
type household struct {
	*program
	*browser.Tab
	dir                  string
	client               *writer.Client
	reference, dashboard string
	operatorPassword     string
	ownerPassword        string
}

func newHousehold(t *testing.T) *household {
	t.Helper()
	tab := browser.New(t)
	dir := filepath.Join(t.TempDir(), "data")
	p := startDev(dir)
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(p.greeted), p.stderr.String())
	out := p.stdout.String()
	h := &household{
		program: p, Tab: tab, dir: dir, reference: "http://" + p.addr("lookups"), dashboard: after(out, "Dashboard    "),
		operatorPassword: after(out, "as operator  "+devdata.Operator+"  "),
		ownerPassword:    after(out, "as owner     "+devdata.Owner+"  "),
	}
	h.client = writer.NewClient("http://"+p.addr("writer"), after(out, "REGEDGE_TOKEN="), nil)
	return h
}

// account makes an account with credits.
func (h *household) account(name string, credits int64) int64 {
	h.T.Helper()
	a, err := h.client.AddAccount(h.T.Context(), name, "", "scale")
	require.NoError(h.T, err)
	_, err = h.client.ChangeCredits(h.T.Context(), a.ID, writer.CreditChange{Amount: credits, Note: "first"})
	require.NoError(h.T, err)
	return a.ID
}

func (h *household) signIn(tab *browser.Tab, email, password string) {
	h.T.Helper()
	tab.Open(h.dashboard + "/sign-in")
	tab.Type("#email", email)
	tab.Type("#password", password+"\r")
	tab.WaitFor(`document.querySelector(".who button")`)
}

// submit clicks on what sends a form, and waits for the page that follows.
func submit(tab *browser.Tab, selector, follows string) {
	tab.T.Helper()
	tab.Click(selector)
	tab.WaitFor(follows)
}

// heading is true when a page with this first heading is shown, all of it.
func heading(words string) string {
	return fmt.Sprintf("document.readyState !== 'loading' && document.querySelector('h1')?.textContent === %q", words)
}

// reload reloads a page until it shows the expected text.
func reload(tab *browser.Tab, url, condition string) {
	tab.T.Helper()
	require.Eventually(tab.T, func() bool {
		tab.Open(url)
		return tab.Eval("String(Boolean("+condition+"))") == "true"
	}, time.Minute, 50*time.Millisecond, "waiting for %s on %s", condition, url)
}

// makeKey makes a key on the page of keys and returns it.
func (h *household) makeKey(name string) string {
	h.T.Helper()
	h.Open(h.dashboard + "/keys")
	h.Type("#name", name)
	submit(h.Tab, `form[action="/keys"] button`, heading("Your new key"))
	return h.Eval(`document.querySelector("#secret").value`)
}

// answers waits until a lookup with a key is answered with a status, and says how long
// that took.
func (h *household) answers(key string, status int) time.Duration {
	h.T.Helper()
	began := time.Now()
	for {
		request, err := http.NewRequestWithContext(h.T.Context(), http.MethodGet, h.reference+"/v1/companies/U72900KA2015PTC990001", nil)
		require.NoError(h.T, err)
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(request)
		require.NoError(h.T, err)
		response.Body.Close()
		if response.StatusCode == status {
			return time.Since(began)
		}
		require.Less(h.T, time.Since(began), time.Minute, "still %d", response.StatusCode)
	}
}

// operation is the lookup that stories try in the reference.
const operation = "#getCompany"

// openReference opens the lookup in the reference with a key of one's own filled in.
func (h *household) openReference(tab *browser.Tab, key string) {
	h.T.Helper()
	tab.Open(h.reference + "/reference")
	for id, value := range map[string]string{
		operation + " .key":         key,
		`[id="getCompany.cin-try"]`: sampletest.CompanyEveryField, // the example is of the sandbox: a live key does not find it
	} {
		tab.WaitFor(fmt.Sprintf("document.querySelector(%q)", id))
		tab.Eval(fmt.Sprintf(`document.querySelector(%q).value = ""`, id))
		tab.Type(id, value)
	}
}

// try makes the call of the lookup until it is answered with a status: a key that is new,
// or an account that no edge holds a lease of, may have to be tried again.
func try(tab *browser.Tab, status string) {
	tab.T.Helper()
	shown := fmt.Sprintf(`document.querySelector(%q)?.textContent`, operation+" .outcome .http")
	said := ""
	for began := time.Now(); !strings.Contains(said, status); {
		require.Less(tab.T, time.Since(began), time.Minute, "still %s", said)
		tab.Eval(fmt.Sprintf(`String(document.querySelector(%q).replaceChildren())`, operation+" .outcome"))
		tab.Click(operation + " .try button")
		tab.WaitFor(shown)
		said = tab.Eval(shown)
	}
}

// TestAnOwnersFirstDay accepts an invitation, makes a key, calls the API with it from the
// reference, sees the credit go and the chart grow, and revokes the key.
func TestAnOwnersFirstDay(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	account := h.account("Acme Traders", 5)
	invitation, err := h.client.Invite(t.Context(), "ada@example.com", account)
	require.NoError(t, err)
	h.Open(h.dashboard + writer.InvitationPath + invitation.Token)
	h.Type("#password", "four plain words here")
	submit(h.Tab, "form.stack button", heading("Acme Traders"))
	require.Contains(t, h.Eval(`document.querySelector(".stats").textContent`), "Credits left5")
	require.Contains(t, h.Eval(`document.querySelector(".chart").textContent`), "There were no calls")

	key := h.makeKey("billing server")
	require.Regexp(t, `^reg_live_[0-9A-Za-z]{38}$`, key)
	h.WaitFor(`!document.querySelector("[data-copy]").hidden`) // with scripts there is a button to copy
	h.Eval(`navigator.clipboard.writeText = async (text) => { window.copied = text }, ""`)
	h.Click("[data-copy]")
	h.WaitFor(`document.querySelector("#secret-said").textContent === "Copied."`)
	require.Equal(t, key, h.Eval("copied"))
	h.Eval(`navigator.clipboard.writeText = async () => { throw new Error("forbidden") }, getSelection().removeAllRanges(), ""`)
	h.Click("[data-copy]")
	h.WaitFor(`document.querySelector("#secret-said").textContent.startsWith("Press Ctrl-C")`)
	require.Equal(t, key, h.Eval(`(field => field.value.slice(field.selectionStart, field.selectionEnd))(document.activeElement)`), "it is marked, to be copied by hand")

	visitor := browser.New(t)
	h.openReference(visitor, key)
	try(visitor, "200")
	require.Contains(t, visitor.Eval(`document.querySelector("`+operation+` .outcome").textContent`), `"credits_remaining": 4`)
	visitor.RequireClean(h.reference)

	reload(h.Tab, h.dashboard+"/", `document.querySelector(".stats").textContent.includes("Credits left4")`)
	require.Equal(t, "1", h.Eval(`String(document.querySelectorAll(".chart .wide rect.found").length)`), "the chart has grown")
	require.Contains(t, h.Eval(`document.querySelector("[aria-label='Active keys']").textContent`), "within this hour")
	h.Open(h.dashboard + "/credits")
	require.Contains(t, h.Eval(`document.querySelector("tbody").textContent`), "billing server−14", "one credit by this key, four are left")

	h.Open(h.dashboard + "/keys")
	submit(h.Tab, `a[href$="/revoke"]`, heading("Revoke a key"))
	submit(h.Tab, "button.danger", heading("API keys"))
	require.LessOrEqual(t, h.answers(key, 401), promptly)
	try(visitor, "401")
	require.Contains(t, h.Eval(`document.querySelector("[role=status]").textContent`), "The key is revoked.")
	h.RequireClean(h.dashboard)
}

// TestASixthKeyIsRefusedInABrowser makes five keys and tries one more.
func TestASixthKeyIsRefusedInABrowser(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword) // has one key already
	for i := range 4 {
		h.makeKey(fmt.Sprint("server ", i))
	}
	h.Open(h.dashboard + "/keys")
	h.Type("#name", "one more\r")
	h.WaitFor(`document.querySelector("[role=alert]")?.textContent.includes("You have 5 active keys")`)
	require.Equal(t, "5", h.Eval(`String(document.querySelectorAll("[aria-label='Active keys'] tbody tr").length)`))
}

// TestAnOperatorSuspendsAnAccount finds an account, suspends it, and lifts it again.
func TestAnOperatorSuspendsAnAccount(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	account := h.account("Doubtful & Sons", 50)
	key, err := h.client.AddKey(t.Context(), account, "theirs")
	require.NoError(t, err)
	h.answers(key.Secret, 200)

	h.signIn(h.Tab, devdata.Operator, h.operatorPassword)
	h.Type("#q", "doubtful\r")
	h.WaitFor(`document.querySelectorAll("[aria-label=Accounts] tbody tr").length === 1`)
	submit(h.Tab, "[aria-label=Accounts] tbody a", heading("Doubtful & Sons"))
	submit(h.Tab, `a[href$="/suspension"]`, heading("Suspend an account"))
	submit(h.Tab, "button.danger", `document.querySelector("[role=status]")?.textContent.includes("suspended")`)
	require.LessOrEqual(t, h.answers(key.Secret, 403), promptly)
	submit(h.Tab, `[action$="/suspension"] button`, `document.querySelector("[role=status]")?.textContent.includes("active again")`)
	require.LessOrEqual(t, h.answers(key.Secret, 200), promptly)
	h.Open(h.dashboard + "/edges")
	reload(h.Tab, h.dashboard+"/edges", `document.querySelector("[aria-label=Edges]").textContent.includes("live")`)
	h.RequireClean(h.dashboard)
}

// TestTheDashboardNeedsNoScripts makes and revokes a key in a browser that runs none.
func TestTheDashboardNeedsNoScripts(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.WithoutScripts()
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	key := h.makeKey("by hand")
	require.Regexp(t, `^reg_live_`, key)
	require.Equal(t, "true", h.Eval(`String(document.querySelector("[data-copy]").hidden)`), "a button that would do nothing is not there")
	h.Open(h.dashboard + "/keys")
	submit(h.Tab, `a[href$="/revoke"]`, heading("Revoke a key"))
	submit(h.Tab, "button.danger", heading("API keys"))
	submit(h.Tab, ".who button", heading("Sign in"))
	h.RequireClean(h.dashboard)
}

// TestAnOwnerMakesAKeyWithLimits in a browser that runs no scripts: unfolds them, mistypes one and mends it.
func TestAnOwnerMakesAKeyWithLimits(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.WithoutScripts()
	h.Missing("/keys") // of the form that is refused the console tells too
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	h.Open(h.dashboard + "/keys")
	h.Type("#name", "nightly job")
	const folded = `String(document.querySelector("#per-minute").checkVisibility())`
	require.Equal(t, "false", h.Eval(folded))
	h.Click("summary")
	require.Equal(t, "true", h.Eval(folded))
	h.Type("#per-minute", "five")
	h.Type("#addresses", "127.0.0.0/8")
	submit(h.Tab, `form[action="/keys"] button`, `document.querySelector("[role=alert]")?.textContent.includes("A limit is a number")`)
	require.Equal(t, "true", h.Eval(folded))
	require.Equal(t, "nightly job five 127.0.0.0/8", h.Eval(`["#name", "#per-minute", "#addresses"].map(f => document.querySelector(f).value).join(" ")`))
	h.Eval(`document.querySelector("#per-minute").value = ""`)
	h.Type("#per-minute", "5")
	submit(h.Tab, `form[action="/keys"] button`, heading("Your new key"))
	h.answers(h.Eval(`document.querySelector("#secret").value`), 200)
	h.RequireClean(h.dashboard)
}

// TestAnOwnerTriesASearch on the first page: a misspelt name has suggestions as links, and one of them finds
// the name, which leads to its record.
func TestAnOwnerTriesASearch(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	h.WithoutAddress()
	h.Type("#try-name", "pandmi onlin solutions\r")
	h.WaitFor(`document.querySelector("#try-suggestions a") && !document.querySelector("#try-meant").hidden`)
	require.Equal(t, "No name matches.", h.Eval(`document.querySelector("#try-said").textContent`))
	suggested := h.Eval(`document.querySelector("#try-suggestions a").textContent`)
	require.Contains(t, suggested, "PANDIM ONLINE SOLUTIONS")
	h.Click("#try-suggestions a")
	h.WaitFor(`document.querySelector("#try-matches a")`)
	require.Contains(t, h.Eval(`document.querySelector("#try-matches a").textContent`), suggested)
	require.Equal(t, "true,true,"+suggested, h.Eval(`["#try-suggestions", "#try-meant"].map((id) => document.querySelector(id).hidden).join() + "," + document.querySelector("#try-name").value`))
	require.Equal(t, "1 match", h.Eval(`document.querySelector("#try-said").textContent`))
	h.Click("#try-matches a")
	h.WaitFor(`document.activeElement.id === "record-title"`)
	h.RequireClean(h.dashboard, h.reference)
}

// TestAnOwnersSearchSaysWhatWentWrong, and shows nothing of the one before. Of blanks alone nothing is asked.
func TestAnOwnersSearchSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	h.WithoutAddress()
	for answer, says := range map[string]string{
		`throw new TypeError("gone")`: h.reference + " cannot be reached. Try again in a moment.",
		`return Response.json({ title: "Rate limit exceeded", detail: "Wait <b>9</b> s." }, { status: 429 })`: "Rate limit exceeded. Wait <b>9</b> s.",
		`return new Response("<h1>Bad gateway</h1>", { status: 502 })`:                                        h.reference + " cannot be reached. Try again in a moment.",
	} {
		h.Open(h.dashboard + "/")
		h.Type("#try-name", "sandbox\r")
		h.WaitFor(`document.querySelector("#try-said").textContent === "5 matches, best first" && document.querySelectorAll("#try-matches a").length === 5`)
		h.Eval(`calls = 0, fetch = async () => { calls++; ` + answer + ` }, document.querySelector("#try-name").value = "", ""`)
		h.Type("#try-name", "  \r")
		require.Equal(t, "0", h.Eval(`String(calls)`))
		h.Type("#try-name", "x\r")
		h.WaitFor(fmt.Sprintf(`document.querySelector("#try-said").textContent === %q`, says))
		require.Equal(t, "true", h.Eval(`String(document.querySelector("#try-matches").hidden)`))
	}
	h.Open(h.dashboard + "/")
	h.Type("#try-name", "pandmi onlin solutions\r")
	h.WaitFor(`document.querySelector("#try-suggestions a") && !document.querySelector("#try-meant").hidden`)
	h.Eval(`fetch = async () => { throw new TypeError("gone") }, document.querySelector("#try-name").value = "", ""`)
	h.Type("#try-name", "x\r")
	h.WaitFor(`document.querySelector("#try-said").textContent.endsWith("cannot be reached. Try again in a moment.")`)
	require.Equal(t, "true,true", h.Eval(`["#try-suggestions", "#try-meant"].map((id) => document.querySelector(id).hidden).join()`))
	h.RequireClean(h.dashboard, h.reference)
}

// TestAnOwnerSeesTheAnswerToTheLastSearch also when that to the one before comes later.
func TestAnOwnerSeesTheAnswerToTheLastSearch(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.signIn(h.Tab, devdata.Owner, h.ownerPassword)
	h.WithoutAddress()
	h.HoldAnswers("pandim")
	h.Type("#try-name", "pandim online solutions\r")
	h.WaitFor(`window.release !== undefined`)
	h.Eval(`document.querySelector("#try-name").value = ""`)
	h.Type("#try-name", "no such name at all\r")
	const said = `document.querySelector("#try-said").textContent`
	h.WaitFor(said + ` === "No name matches."`)
	h.ReleaseAnswers()
	require.Equal(t, "No name matches.", h.Eval(said))
	require.Equal(t, "true", h.Eval(`String(document.querySelector("#try-matches").hidden)`))
	h.RequireClean(h.dashboard, h.reference)
}
