package reference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"regedge/host/reference"
	"regedge/internal/testkit/browser"
)

// TestABrokenLinkBreaksNothing: people shorten links anywhere, and guess what might stand in them.
func TestABrokenLinkBreaksNothing(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.Missing("/v1/llps/%25E0")
	for _, hash := range []string{"#%", "#llp", "#constructor/x", "#llp/%E0"} {
		p.open(base + "/" + hash)
		p.Eval(`location.hash = "#llp/ZZZ%2D0001", ""`)
		p.WaitFor(`document.querySelector("#record-title")?.textContent === "SANDBOX EVERY FIELD (MADE-UP) LLP"`)
	}
	p.As(browser.Views[2])
	p.open(base + "/reference#%")
	p.Click(".contents-small summary")
	p.Click(`.contents-small a[href="#getLLP"] span`)
	p.WaitFor(`location.hash === "#getLLP" && !document.querySelector(".contents-small").open`)
	p.RequireClean(base)
}

// TestARecordThatComesLateIsNotShownWhereTheReaderIsNow: the reader went back before the answer came.
func TestARecordThatComesLateIsNotShownWhereTheReaderIsNow(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Type("#name", "sandbox every field\r")
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	p.HoldAnswers("/v1/companies/")
	p.Click(`#matches a[href^="#company/"]`)
	const said = `document.querySelector("#said").textContent`
	p.WaitFor(`window.release !== undefined && ` + said + ` === "Asking…"`)
	p.Do(chromedp.NavigateBack())
	p.WaitFor(`location.hash === "" && ` + said + ` === ""`)
	p.ReleaseAnswers()
	require.Equal(t, "hidden", p.Eval(`document.querySelector("#record").hidden ? "hidden" : "shown"`))
	p.Eval(`window.release = undefined, ""`)
	p.Do(chromedp.NavigateForward())
	p.WaitFor(`window.release !== undefined`)
	p.ReleaseAnswers()
	p.WaitFor(`!document.querySelector("#record").hidden && ` + said + ` === ""`)

	p.open(base + "/") // a search that was left is made again
	p.Eval(`location.hash = "#llp/ZZZ-0001", ""`)
	p.WaitFor(`!document.querySelector("#record").hidden`)
	p.HoldAnswers("/v1/search/")
	p.Type("#name", "sandbox every field\r")
	p.WaitFor(`window.release !== undefined`)
	p.Do(chromedp.NavigateBack())
	p.WaitFor(`location.search === "" && ` + said + ` === ""`)
	p.Eval(`window.release = undefined, ""`)
	p.Do(chromedp.NavigateForward())
	p.WaitFor(`window.release !== undefined`)
	p.ReleaseAnswers()
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	p.RequireClean(base)
}

// TestSkippingToTheContentKeepsWhatIsFound: a keyboard's user does so while the search is under way.
func TestSkippingToTheContentKeepsWhatIsFound(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.HoldAnswers("/v1/search/")
	p.Type("#name", "sandbox every field\r")
	p.WaitFor(`window.release !== undefined`)
	p.Eval(`document.querySelector("a.skip").click(), ""`)
	p.WaitFor(`location.hash === "#main"`)
	p.ReleaseAnswers()
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	require.Equal(t, "1,1", p.Eval(`["/v1/search/", "/assets/samples.json"].map((of) =>
		performance.getEntriesByType("resource").filter(({ name }) => name.includes(of)).length).join()`))
	p.RequireClean(base)
}

// TestARecordShowsEachValueUnderItsName. Here each value is the name of its field.
func TestARecordShowsEachValueUnderItsName(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Eval(`own = (names) => Object.fromEntries(names.split(" ").map((name) => [name, name])), records = {
		company: { ...own("cin company_name registration_no status incorporation_date category sub_category class roc activity state district pincode last_updated"),
			authorized_capital: 1, paid_up_capital: 2, listed: true, contact: own("address email phone website"),
			directors: [own("din name designation appointment_date")] },
		llp: { ...own("llpin llp_name status incorporation_date state district pincode address activity last_updated"), contribution: 3,
			partners: [own("din name status joined_on left_on")], partners_total: 4 },
		director: { ...own("din name status"), linked_companies: [own("cin company_name status designation appointment_date")], linked_companies_total: 5 },
	}, fetch = async (path) => Response.json({ data: records[{ c: "company", l: "llp", d: "director" }[path["/v1/".length]]], meta: {} }), ""`)
	for kind, want := range map[string]string{
		"company": `company_name / cin status / Incorporated: incorporation_date / Registration number: registration_no / Class: class / Category: category / Sub-category: sub_category / ` +
			`Listed: yes / Registrar: roc / Authorised capital: ₹ 1 / Paid-up capital: ₹ 2 / Activity: activity / Address: address / District: district / State: state / ` +
			`Postal code: pincode / E-mail: email / Phone: phone / Website: website / Last updated: last_updated / Directors / Name / DIN / Designation / Appointed / ` +
			`name / din / designation / appointment_date / Directors / #director/din`,
		"llp": `llp_name / llpin status / Incorporated: incorporation_date / Contribution: ₹ 3 / Activity: activity / Address: address / District: district / State: state / Postal code: pincode / ` +
			`Last updated: last_updated / Partners, 1 of 4 / Name / DIN / Status / Joined / Left / name / din / status / joined_on / left_on / Partners, 1 of 4`,
		"director": `name / din status / Linked companies, 1 of 5 / Company / CIN / Status / Designation / Appointed / company_name / cin / status / designation / appointment_date / ` +
			`Linked companies, 1 of 5 / #company/cin`,
	} {
		p.Eval(fmt.Sprintf(`location.hash = "#%s/x", ""`, kind))
		p.WaitFor(fmt.Sprintf(`document.querySelector("#record-title")?.textContent === %q`, strings.Fields(want)[0]))
		require.Equal(t, want, p.Eval(`(() => {
			const all = (selector, words) => [...document.querySelectorAll("#record " + selector)].map(words);
			return [...all("h2", (e) => e.textContent), ...all(".status", (e) => [...e.children].map((part) => part.textContent).join(" ")),
				...all("dl > div", (e) => [...e.children].map((part) => part.textContent).join(": ")), ...all(":is(h3, th, td)", (e) => e.textContent),
				...all("[role=region]", (e) => e.ariaLabel), ...all("a", (e) => e.getAttribute("href"))].join(" / ");
		})()`))
	}
	p.Eval(`records.company.status = null, location.hash = "#company/y", ""`)
	p.WaitFor(`!document.querySelector("#record .badge")`)
	require.Equal(t, "cin", p.Eval(`document.querySelector("#record .status").textContent`))
	p.RequireClean(base)
}

// TestAnAnswerLooksLikeTheExample in whose place it stands, from its beginning.
func TestAnAnswerLooksLikeTheExample(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Eval(`answer = document.querySelector("#answer"), example = answer.innerHTML, value = JSON.parse(answer.textContent),
		fetch = async () => Response.json(value), answer.style.height = "4em", answer.scrollTop = 9, ""`)
	p.Type("#name", "x\r")
	p.WaitFor(`document.querySelector("#said").textContent.startsWith("2 matches")`)
	require.Equal(t, p.Eval("example"), p.Eval("answer.innerHTML"))
	require.Equal(t, "0", p.Eval("String(answer.scrollTop)"))
	p.RequireClean(base)
}

// TestARefusedSearchShowsNothingOfTheOneBefore, and of blanks alone nothing is asked.
func TestARefusedSearchShowsNothingOfTheOneBefore(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Eval(`window.here = true, ""`)
	const suggested = `document.querySelectorAll("#suggestions a").length === 2`
	p.Type("#name", "evry feild\r")
	p.WaitFor(suggested)
	p.Click("#suggestions a")
	p.WaitFor(`document.querySelectorAll("#matches a").length === 1 && window.here`)
	p.Eval(`document.querySelector("#name").value = ""`)
	p.Type("#name", "evry feild\r")
	p.WaitFor(suggested)
	p.Eval(`calls = 0, fetch = async () => { calls++; return Response.json({ title: "Overloaded", detail: "Try again." }, { status: 503 }) },
		document.querySelector("#name").value = "", ""`)
	p.Type("#name", "  \r")
	require.Equal(t, "0", p.Eval(`String(calls)`))
	p.Type("#name", "x\r")
	p.WaitFor(`document.querySelector("#said").textContent === "Overloaded. Try again."`)
	require.Equal(t, "true,true,true,1", p.Eval(`["#suggestions", "#meant", "#matches"].map((id) => document.querySelector(id).hidden).join() + "," + calls`))
	p.RequireClean(base)
}

// TestSuggestionsAreReadAsTheyWereWritten, with quotes, backslashes and other letters.
func TestSuggestionsAreReadAsTheyWereWritten(t *testing.T) {
	site := httptest.NewServer(newSite(t, reference.Config{}))
	t.Cleanup(site.Close)
	p := newTab(t)
	p.open(site.URL + "/")
	require.Equal(t, `["A \"B\" C","\\, 5% É",""]`, p.Eval(`import("/assets/suggestion.js").then(({ listed }) => JSON.stringify([
		...listed(String.raw`+"`\"A \\\"B\\\" C\", \"\\\\, 5%25 %C3%89\", \"\"`"+`), ...listed("")]))`))
}

// TestSamplesComeWithTheNetwork: after it was away, and after a refusal.
func TestSamplesComeWithTheNetwork(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.BeforeScripts(`{
		const ask = window.fetch;
		let failures = 0;
		window.fetch = async (address, how) => {
			if (address !== "/assets/samples.json" || ++failures > 2) return ask(address, how);
			if (failures === 1) throw new TypeError("no network");
			return Response.json({ title: "Overloaded" }, { status: 503 });
		};
	}`)
	p.open(base + "/")
	for _, llpin := range []string{"ZZZ-0002", "ZZZ-0001"} {
		p.Eval(`location.hash = "#llp/` + llpin + `", ""`)
		p.WaitFor(`document.querySelector("#record code")?.textContent === "` + llpin + `" && document.querySelector("#said").textContent === ""`)
	}
	p.WaitFor(`document.querySelector(".call .samples").textContent.includes("/v1/llps/ZZZ-0001")`)
	p.RequireClean(base)
}

// TestSamplesHaveTheAddressThatReachesTheService: the one that is configured, else the reader's, which behind a proxy
// is not the server's.
func TestSamplesHaveTheAddressThatReachesTheService(t *testing.T) {
	p := newTab(t)
	p.TrustsEveryCertificate()
	const call = `import("/assets/samples.js").then(({ showCall }) => showCall(document.querySelector(".samples"), "/v1/x"))
		.then(() => document.querySelector(".samples").textContent)`
	configured := httptest.NewServer(newSite(t, reference.Config{BaseURL: "https://api.example/"}))
	t.Cleanup(configured.Close)
	p.open(configured.URL + "/guides/first-call")
	called := p.Eval(call)
	require.Equal(t, []int{4, 4}, []int{strings.Count(called, "https://api.example/v1/x"), strings.Count(called, "Bearer reg_sandbox_public")})

	site := newSite(t, reference.Config{})
	proxied := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS, r.Host = nil, "backend:8080"
		site.ServeHTTP(w, r)
	}))
	t.Cleanup(proxied.Close)
	for _, path := range []string{"/", "/guides/first-call", "/guides/production", "/guides/testing", "/reference"} {
		p.open(proxied.URL + path)
		p.WaitFor(`!document.querySelector(".samples:not(.tabbed)")`)
		code := p.Eval(`[...document.querySelectorAll("main pre")].map((pre) => pre.textContent).join("")`)
		require.Contains(t, code, proxied.URL, path)
		require.NotContains(t, code, "backend", path)
	}
	require.Contains(t, p.Eval(`document.querySelector("#introduction pre").textContent`), proxied.URL)
}

// TestASampleIsTheCallThatIsSent, whatever is typed; what is hidden in it is not copied. A call is sent once, and a
// reader without a mouse stays where they are.
func TestASampleIsTheCallThatIsSent(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/reference#searchCompanies")
	fill := func(id, value string) {
		p.Eval(fmt.Sprintf(`(field => { field.value = %q; field.dispatchEvent(new Event("input", { bubbles: true })); return "" })(document.getElementById(%q))`, value, id))
	}
	curl := func(operation string) string {
		return p.Eval(`document.querySelector("#` + operation + ` [data-language=curl] code").innerText`)
	}
	const name = `Yahoo! "A & B" (x)* 5%`
	fill("searchCompanies.name-try", name)
	fill("searchCompanies.limit-try", "many")
	require.Contains(t, p.Eval(`document.querySelector("#searchCompanies [data-language=python] code").textContent`), "limit=0")
	fill("searchCompanies.limit-try", "")
	require.NotContains(t, p.Eval(`[...document.querySelectorAll("#searchCompanies .sample")].map((e) => (e.hidden = false, e.innerText)).join("")`), "limit")
	quoted, err := json.Marshal(name)
	require.NoError(t, err)
	require.Contains(t, p.Eval(`document.querySelector("#searchCompanies [data-language=go] code").textContent`), strings.ReplaceAll(string(quoted), `\u0026`, "&"))

	p.Eval(`sent = [], now = 1000, performance.now = () => now += 21, fetch = (path) => { sent.push(path); return new Promise((go) => { answer = () => go(Response.json({})) }) }, ""`)
	p.Eval(`document.querySelector("#searchCompanies .try button").focus(), ""`)
	p.Do(chromedp.KeyEvent(kb.Enter))
	p.WaitFor(`sent.length === 1`)
	p.Do(chromedp.KeyEvent(kb.Enter))
	p.Eval(`answer(), ""`)
	p.WaitFor(`document.querySelector("#searchCompanies .outcome")?.checkVisibility()`)
	require.Equal(t, "200 21 ms", p.Eval(`document.querySelector("#searchCompanies .outcome .bar").textContent`))
	require.Equal(t, "1 Try it", p.Eval(`sent.length + " " + document.activeElement.textContent`))
	require.Contains(t, curl("searchCompanies"), `"`+base+p.Eval("sent[0]")+`"`)

	fill("getCompany.cin-try", " u/+!")
	p.Click("#getCompany .try button")
	p.WaitFor(`sent.length === 2`)
	require.Contains(t, curl("getCompany"), `"`+base+strings.Replace(p.Eval("sent[1]"), "!", "%21", 1)+`"`)
	p.Eval(`navigator.clipboard.writeText = async (text) => { window.copied = text }, ""`)
	p.Click("#getCompany .copy")
	p.WaitFor(`window.copied`)
	require.NotContains(t, p.Eval("copied"), "Idempotency-Key")
	require.Equal(t, curl("getCompany"), p.Eval("copied"))
	p.RequireClean(base)
}

// TestTheContentsMarkOnePlace, the one where the reader is, and keep it in view. A link opens all that its target lies in, also
// where the browser does not do so.
func TestTheContentsMarkOnePlace(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.As(browser.Views[0])
	p.open(base + "/reference")
	const marked = `[...document.querySelectorAll(".contents [aria-current]")].map((link) => link.hash).join()`
	for _, id := range []string{"getLLP", "searchLLPs", "errors"} {
		p.Eval(fmt.Sprintf(`document.getElementById(%q).scrollIntoView(), ""`, id))
		p.WaitFor(fmt.Sprintf(marked+` === %q`, "#"+id))
		require.Equal(t, "true", p.Eval(`((link, list) => String(link.top >= list.top && link.bottom <= list.bottom))(
			...[".contents [aria-current]", ".contents"].map((part) => document.querySelector(part).getBoundingClientRect()))`), id)
	}
	p.Eval(`scrollTo(0, 1), ""`)
	p.WaitFor(marked + ` === "#introduction"`)
	p.Eval(`document.querySelectorAll(".op details").forEach((part) => part.open = false), history.replaceState(null, "", "#getCompany.answer.data.directors.din"), dispatchEvent(new HashChangeEvent("hashchange")), ""`)
	p.WaitFor(`(({ top, height }) => height > 0 && top >= 0 && top < innerHeight)(document.getElementById(location.hash.slice(1)).getBoundingClientRect())`)
	p.RequireClean(base)
}
