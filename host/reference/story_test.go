package reference_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"regedge/host/reference"
	"regedge/internal/testkit/browser"
)

// TestANewcomerFindsACompany opens the start page, searches by name, opens the company
// and walks on to one of its directors and back.
func TestANewcomerFindsACompany(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Type("#name", "sandbox every field\r")
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	require.Equal(t, "2 matches, best first", p.Eval(`document.querySelector("#said").textContent`))
	require.Contains(t, p.Eval(`document.querySelector(".call .samples").textContent`), base+"/v1/search/companies?name=sandbox+every+field&limit=10")

	p.Eval(`const asked = fetch; fetch = async (path, how) => { const response = await asked(path, how); left = response.headers.get("RateLimit-Remaining"); return response }, ""`)
	p.Click(`#matches a[href^="#company/"]`)
	p.WaitFor(`document.activeElement.id === "record-title"`)
	record := p.Eval(`document.querySelector("#record").textContent`)
	for _, shown := range []string{"SANDBOX EVERY FIELD (MADE-UP) PRIVATE LIMITED", "r****@e******.com", "+91******3210", "Bengaluru Urban", "BHASKAR SANDBOX"} {
		require.Contains(t, record, shown)
	}
	require.NotContains(t, record, "registry@example.com", "the sandbox key sees masks")
	answer := p.Eval(`document.querySelector("#answer").textContent`)
	require.Contains(t, answer, `"sandbox": true`)
	require.Contains(t, answer, `"credits_remaining": null`)
	require.Contains(t, p.Eval(`document.querySelector("#outcome").textContent`), p.Eval("left")+" of 30 calls left this minute")

	p.Click(`#record a[href="#director/99999902"]`)
	p.WaitFor(`document.querySelector("#record-title").textContent.startsWith("BHASKAR")`)
	p.Do(chromedp.NavigateBack())
	p.WaitFor(`document.querySelector("#record-title").textContent.startsWith("SANDBOX EVERY FIELD")`)
	p.RequireClean(base)
}

// TestARecordHasAnAddress opens an LLP by its link alone.
func TestARecordHasAnAddress(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/#llp/ZZZ-0001")
	p.WaitFor(`document.querySelector("#record h3")?.textContent === "Partners, 3 of 3"`)
	p.RequireClean(base)
}

// TestASearchSaysWhenItFindsNothing also holds that names from the register are text and
// never markup.
func TestASearchSaysWhenItFindsNothing(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/?name=" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20zzqqxxzz")
	p.WaitFor(`document.querySelector("#said").textContent.startsWith("No name matches")`)
	require.Equal(t, "true", p.Eval(`String(document.querySelector("#matches").hidden)`))
	require.Equal(t, "0", p.Eval(`String(document.querySelectorAll("img[src=x]").length)`))
	p.RequireClean(base)
}

// TestTheSearchIsUsedByKeyboardAlone reaches a record with Tab and Enter.
func TestTheSearchIsUsedByKeyboardAlone(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Do(chromedp.KeyEvent("\t"))
	require.Equal(t, "Skip to the content", p.Eval(`document.activeElement.textContent`))
	p.tabTo(`document.activeElement.id === "name"`)
	p.Do(chromedp.KeyEvent("sandbox every field\r"))
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	p.tabTo(`document.activeElement.matches("#matches a[href^='#company/']")`)
	p.Do(chromedp.KeyEvent("\r"))
	p.WaitFor(`document.activeElement.id === "record-title"`)
	p.RequireClean(base)
}

// tabTo presses Tab until the focus is where it should be.
func (p *tab) tabTo(condition string) {
	p.T.Helper()
	for range 40 {
		if p.Eval("String("+condition+")") == "true" {
			return
		}
		p.Do(chromedp.KeyEvent("\t"))
	}
	require.Fail(p.T, "the focus never came to "+condition)
}

// TestLanguagesAreChosenOnce chooses Python on one page and finds it on the next.
func TestLanguagesAreChosenOnce(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/guides/first-call")
	shown := `[...document.querySelectorAll(".sample:not([hidden])")].map((e) => e.dataset.language).join()`
	require.Equal(t, "curl,curl", p.Eval(shown))
	p.Click(`[role=tab][data-language=python]`)
	require.Equal(t, "python,python", p.Eval(shown))

	p.Eval(`navigator.clipboard.writeText = async (text) => { window.copied = text }, ""`)
	p.Click(".copy")
	p.WaitFor(`document.querySelector(".copy").textContent === "Copied"`)
	require.Equal(t, p.Eval(`document.querySelector(".sample:not([hidden]) code").innerText`), p.Eval("copied"))
	p.WaitFor(`document.querySelector(".copy").textContent === "Copy"`)
	require.Equal(t, "curl,Go,Python,JavaScript", p.Eval(`[...document.querySelector(".samples").querySelectorAll("[role=tabpanel]")].map((panel) =>
		document.getElementById(panel.getAttribute("aria-labelledby")).textContent).join()`))

	languages := strings.Split(p.Eval(`[...document.querySelector(".samples").querySelectorAll("[role=tab]")].map((tab) => tab.dataset.language).join()`), ",")
	python, last := slices.Index(languages, "python"), len(languages)-1
	p.Eval(`document.querySelector("[role=tab][data-language=python]").focus(), ""`)
	place := p.Eval("String(scrollY)")
	for _, move := range []struct {
		key string
		to  int
	}{{kb.ArrowLeft, python - 1}, {kb.End, last}, {kb.ArrowRight, 0}, {kb.ArrowLeft, last}, {kb.Home, 0}, {kb.ArrowRight, 1}} {
		p.Do(chromedp.KeyEvent(move.key))
		require.Equal(t, languages[move.to]+","+languages[move.to], p.Eval(shown))
		require.Equal(t, languages[move.to], p.Eval("document.activeElement.dataset.language"), "it has the focus")
		require.Equal(t, place, p.Eval("String(scrollY)"), "the page stays where it is")
	}
	p.Click(`[role=tab][data-language=python]`)
	p.open(base + "/guides/sandbox")
	require.Equal(t, "python", p.Eval(shown))
	require.Equal(t, "python", p.Eval(`localStorage.getItem("language")`), "for other tabs, too")
	p.RequireClean(base)
}

// TestTheReferenceTriesACall changes a parameter of a lookup, finds it in the samples of every language,
// and sends the call with the key that is filled in.
func TestTheReferenceTriesACall(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.openOperation(base)
	outcome := `document.querySelector("#getCompany .outcome").textContent`
	for _, sign := range []string{"r****@e******.com", `"sandbox": true`, "x-request-id: ", "ratelimit-remaining: "} {
		require.Contains(t, p.Eval(outcome), sign)
	}
	p.Eval(`document.getElementById("getCompany.cin-try").value = ""`)
	p.Type(`[id="getCompany.cin-try"]`, "U72900ZZ2017PTC000003")
	samples := p.Eval(`document.querySelector("#getCompany .samples").textContent`)
	for _, sign := range []string{
		base + "/v1/companies/U72900ZZ2017PTC000003", `client.Company(context.Background(), "U72900ZZ2017PTC000003")`,
		`client.company("U72900ZZ2017PTC000003")`, "Authorization: Bearer reg_sandbox_public",
	} {
		require.Contains(t, samples, sign)
	}
	p.Click("#getCompany .try button")
	p.WaitFor(outcome + `.includes('"STRUCK_OFF"')`)
	p.Type(`#getCompany [data-in=header]`, "one-of-mine")
	require.Contains(t, p.Eval(`document.querySelector("#getCompany .sample code").innerText`), `-H "Idempotency-Key: one-of-mine"`)
	p.Eval(`const asked = fetch; fetch = (path, how) => { sent = how.headers["Idempotency-Key"]; return asked(path, how) }, sent = ""`)
	p.Click("#getCompany .try button")
	p.WaitFor(`sent === "one-of-mine"`)
	p.RequireClean(base)
}

// TestTriesShowErrors sends a search whose parameters are refused, and one under an invalid key.
func TestTriesShowErrors(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/reference#searchCompanies")
	p.Missing("limit=50")
	p.Eval(`document.getElementById("searchCompanies.limit-try").value = ""`)
	p.Type(`[id="searchCompanies.limit-try"]`, "50")
	require.Contains(t, p.Eval(`document.querySelector("#searchCompanies .samples").textContent`), `search("sandbox every field", limit=50)`)
	p.Click("#searchCompanies .try button")
	outcome := `document.querySelector("#searchCompanies .outcome").textContent`
	p.WaitFor(outcome + `.includes('"code": "invalid_query"')`)
	p.Eval(`document.querySelector("#searchCompanies .key").value = ""`)
	p.Type("#searchCompanies .key", "reg_live_mistyped")
	p.Click("#searchCompanies .try button")
	p.WaitFor(outcome + `.includes('"code": "invalid_api_key"')`)
	p.RequireClean(base)
}

// TestTheReferenceIsReadFromALink follows links to an operation, to a field within two others, and to an
// error that is folded away.
func TestTheReferenceIsReadFromALink(t *testing.T) {
	base := service(t)
	p := newTab(t)
	for _, id := range []string{"searchLLPs", "getCompany.answer.data.directors.din", "getLLP.overloaded", "header-retry-after"} {
		p.open(base + "/reference#" + id)
		p.WaitFor(fmt.Sprintf(`(() => {
			const {top, height} = document.getElementById(%q).getBoundingClientRect();
			return height > 0 && top >= 0 && top < innerHeight;
		})()`, id))
	}
	p.WaitFor(`document.querySelector(".contents a[aria-current]").textContent === "Headers"`) // it follows the scrolling
	p.RequireClean(base)
}

// TestTheReferenceNeedsNoScripts reads it without: all samples are there, and no form that does nothing.
func TestTheReferenceNeedsNoScripts(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.As(browser.Views[0])
	p.WithoutScripts()
	p.open(base + "/reference#getCompany")
	for _, sign := range []string{"curl -H", "regedge.New", "from regedge import Client", "baseUrl:"} {
		p.WaitFor(fmt.Sprintf(`document.querySelector("#getCompany .code").innerText.includes(%q)`, sign))
	}
	require.Equal(t, "0", p.Eval(`String([...document.querySelectorAll(".try")].filter((form) => form.checkVisibility()).length)`))
	p.Click(`.contents a[href="#getLLP"]`)
	p.WaitFor(`Math.abs(document.getElementById("getLLP").getBoundingClientRect().top) < 100`)
	p.RequireClean(base)
}

// TestAScriptInAPageIsRefused writes one into a page as an attacker would who found a
// hole in the templates: the policy stops it.
func TestAScriptInAPageIsRefused(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	require.Equal(t, "refused", p.Eval(`new Promise((done) => {
		document.addEventListener("securitypolicyviolation", () => done("refused"));
		const script = document.createElement("script");
		script.textContent = "window.entered = true";
		document.body.append(script);
		if (window.entered) done("entered");
	})`))
	require.Equal(t, "refused", p.Eval(`fetch("http://127.0.0.1:9/").then(() => "sent", () => "refused")`))
}

// TestPagesFitAPhone holds that no page is wider than the screen: what is wide scrolls
// in its own frame.
func TestPagesFitAPhone(t *testing.T) {
	base := service(t)
	p := newTab(t)
	for _, width := range []int64{320, 390, 768} {
		p.As(browser.View{Width: width, Height: 800})
		for _, path := range pagePaths {
			p.open(base + path)
			require.Equal(t, "fits", p.Eval(`document.documentElement.scrollWidth <= innerWidth ? "fits" : "is " + document.documentElement.scrollWidth + " wide"`),
				"%s on %d pixels", path, width)
		}
		p.openRecord(base)
		require.Equal(t, "fits", p.Eval(`document.documentElement.scrollWidth <= innerWidth ? "fits" : "is " + document.documentElement.scrollWidth + " wide"`))
	}
}

// TestGuidesNeedNoScripts reads the samples of every language in a page without scripts.
func TestGuidesNeedNoScripts(t *testing.T) {
	site := newSite(t, reference.Config{})
	body := bodyOf(t, get(t, site, "/guides/first-call"))
	for _, sign := range []string{"curl -H", "net/http", "urllib.request", "await fetch"} {
		require.Contains(t, body, sign)
	}
}

// TestTheStartPageSaysWhatWentWrong: of a service that can't be reached and of a refusal, and takes back what the call
// before had shown.
func TestTheStartPageSaysWhatWentWrong(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.openRecord(base)
	const shown = `[document.querySelector("#record"), document.querySelector("#matches")].map((e) => e.hidden ? "hidden" : "shown").join()`
	said := `document.querySelector("#said").textContent`
	p.Eval(`asked = fetch; fetch = async () => { throw new TypeError("gone") }, ""`)
	p.Eval(`location.hash = "#llp/ZZZ-0001", ""`)
	p.WaitFor(said + ` === "The service cannot be reached. Try again in a moment."`)
	require.Equal(t, "hidden,shown", p.Eval(shown), "the record is no answer")

	p.Eval(`fetch = async () => Response.json({ title: "Rate limit exceeded", detail: "Wait <b>9</b> s." },
		{ status: 429, statusText: "Too Many Requests", headers: { "RateLimit-Limit": "30", "RateLimit-Remaining": "0" } }), ""`)
	p.Type("#name", "x\r")
	p.WaitFor(said + ` === "Rate limit exceeded. Wait <b>9</b> s."`)
	require.Equal(t, "hidden,hidden", p.Eval(shown))
	require.Equal(t, "429 Too Many Requests", p.Eval(`document.querySelector("#outcome .bad").textContent`))
	require.Contains(t, p.Eval(`document.querySelector("#outcome").textContent`), "0 of 30 calls left this minute")
	require.Contains(t, p.Eval(`document.querySelector("#answer").textContent`), `"detail": "Wait <b>9</b> s."`)

	p.Eval(`fetch = asked, ""`)
	p.Click(".chip")
	p.WaitFor(`!document.querySelector("#matches").hidden && !document.querySelector("#outcome .bad")`)
	require.Equal(t, p.Eval(`document.querySelector(".chip").textContent`), p.Eval(`document.querySelector("#name").value`))
	p.RequireClean(base)
}

// TestAMatchIsOpenedAgain after another search, though the address of the page is its own already.
func TestAMatchIsOpenedAgain(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.openRecord(base)
	p.Type("#name", " \r")
	p.WaitFor(`document.querySelector("#record").hidden && document.querySelector("#said").textContent.startsWith("2 matches")`)
	p.As(browser.View{Width: 360, Height: 300}) // where the record begins below the screen
	p.Click(`#matches a[href^="#company/"]`)
	p.WaitFor(`!document.querySelector("#record").hidden`)
	p.WaitFor(`scrollY > 0 && document.querySelector("#record-title").getBoundingClientRect().top < innerHeight`)
	p.Eval(`location.hash = "", ""`)
	p.WaitFor(`document.querySelector("#record").hidden`)
	p.RequireClean(base)
}

// TestARecordTellsNothingFromNoAndNone: a value that is not known is neither no nor 0.
func TestARecordTellsNothingFromNoAndNone(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Eval(`company = { cin: "U1", company_name: "A & B <i>LTD</i>", status: "STRUCK_OFF", contact: { address: null, email: null, phone: null, website: null },
		incorporation_date: "2015-01-02", registration_no: "1", class: null, category: null, sub_category: null, listed: false, roc: null,
		authorized_capital: 12345678, paid_up_capital: 0, activity: null, district: null, state: null, pincode: null, last_updated: null, directors: [] }, ""`)
	p.Eval(`fetch = async () => Response.json({ data: company, meta: {} }), ""`)
	value := func(term string) string {
		return p.Eval(fmt.Sprintf(`[...document.querySelectorAll("#record dt")].find((dt) => dt.textContent === %q).nextElementSibling.textContent`, term))
	}
	p.Eval(`location.hash = "#company/U1", ""`)
	p.WaitFor(`document.querySelector("#record-title")?.textContent === "A & B <i>LTD</i>"`)
	for term, want := range map[string]string{"Listed": "no", "Paid-up capital": "₹ 0", "Authorised capital": "₹ 1,23,45,678", "Registrar": "–", "E-mail": "–", "Incorporated": "2015-01-02"} {
		require.Equal(t, want, value(term), term)
	}
	require.Contains(t, p.Eval(`document.querySelector("#outcome").textContent`), " ms round trip")
	require.NotContains(t, p.Eval(`document.querySelector("#outcome").textContent`), "calls left", "an edge that can't know says nothing of them")
	require.Equal(t, "STRUCK OFF", p.Eval(`document.querySelector("#record .badge.warn").textContent`))
	require.Contains(t, p.Eval(`document.querySelector("#record").textContent`), "Directors: none on record.")
	p.Eval(`company.listed = null, company.paid_up_capital = null, company.status = null, location.hash = "#company/U2", ""`)
	p.WaitFor(`!document.querySelector("#record .badge")`)
	require.Equal(t, []string{"–", "–"}, []string{value("Listed"), value("Paid-up capital")})
	p.RequireClean(base)
}

// TestTriesShowAnyAnswer, also none, and one that is no JSON; what is sent is what the form says.
func TestTriesShowAnyAnswer(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/reference#searchCompanies")
	const form = "#searchCompanies .try"
	outcome := `document.querySelector("#searchCompanies .outcome").textContent`
	ready := `!document.querySelector("` + form + ` button").ariaDisabled`
	p.Eval(`fetch = async () => { throw new TypeError("gone") }, ""`)
	p.Click(form + " button")
	p.WaitFor(outcome + ` === "No answer: gone" && ` + ready)

	p.Eval(`fetch = async (path, how) => { sent = [path, how.headers.Authorization]; return new Response("<b>busy</b>", { status: 502 }) }, ""`)
	p.Eval(`document.querySelector("` + form + ` .key").value = " reg_live_pasted\n", document.getElementById("searchCompanies.name-try").value = "a & b",
		document.getElementById("searchCompanies.limit-try").value = "", ""`)
	p.Click(form + " button")
	p.WaitFor(outcome + `.includes("<b>busy</b>") && ` + ready)
	require.Equal(t, "/v1/search/companies?name=a+%26+b Bearer reg_live_pasted", p.Eval(`sent.join(" ")`))
	require.Equal(t, "502", p.Eval(`document.querySelector("#searchCompanies .outcome .http.bad").textContent`))
	p.Eval(`document.getElementById("getCompany.cin-try").value = "A/B?c", ""`)
	p.Click("#getCompany .try button")
	p.WaitFor(`sent[0] === "/v1/companies/A%2FB%3Fc"`)
	p.RequireClean(base)
}

// TestSamplesNeedNoMemory: where storage and the clipboard are forbidden, and where another page had a language that this
// one has not.
func TestSamplesNeedNoMemory(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/guides/first-call")
	shown := `[...document.querySelectorAll(".sample:not([hidden])")].map((e) => e.dataset.language).join()`
	p.Eval(`localStorage.setItem("language", "cobol"), ""`)
	p.open(base + "/guides/sandbox")
	p.WaitFor(shown + ` === "curl"`)
	p.Eval(`navigator.clipboard.writeText = async () => { throw new Error("forbidden") }, ""`)
	p.Click(".copy")
	p.WaitFor(`document.querySelector(".copy").textContent === "Selected"`)
	require.Equal(t, p.Eval(`document.querySelector(".sample:not([hidden]) code").innerText.trim()`), p.Eval(`getSelection().toString()`))
	p.Eval(`Storage.prototype.setItem = () => { throw new Error("forbidden") }, ""`)
	p.Click(`[role=tab][data-language=python]`)
	require.Equal(t, "python", p.Eval(shown))
	require.Equal(t, "python", p.Eval(`[...document.querySelectorAll("[role=tab][aria-selected=true]")].map((tab) => tab.dataset.language).join()`))
	require.Equal(t, "0", p.Eval(`String([...document.querySelectorAll("[role=tab]")].filter((tab) => (tab.tabIndex === 0) !== (tab.ariaSelected === "true")).length)`))
	p.BeforeScripts(`Object.defineProperty(window, "localStorage", { get() { throw new DOMException("forbidden", "SecurityError") } })`)
	p.open(base + "/guides/sandbox")
	p.WaitFor(shown + ` === "curl"`)
	p.RequireClean(base)
}
