package reference_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/browser"
)

// TestScreens takes a picture of every page on every kind of screen.
func TestScreens(t *testing.T) {
	browser.NeedScreens(t)
	base := service(t)
	p := newTab(t)
	for _, v := range browser.Views {
		p.As(v)
		for _, path := range pagePaths {
			p.open(base + path)
			p.Picture(pictureName(path), v)
		}
		p.openRecord(base)
		p.Picture("record", v)
		p.openOperation(base)
		p.Picture("reference-operation", v)
	}
}

func pictureName(path string) string {
	return cmp.Or(strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"), "start")
}

// tab is a tab that knows the pages of the reference.
type tab struct{ *browser.Tab }

func newTab(t *testing.T) *tab {
	t.Helper()
	return &tab{browser.New(t)}
}

// open goes to a page and waits until all that it loads is there.
func (p *tab) open(url string) {
	p.T.Helper()
	p.Open(url)
}

// openRecord searches on the start page and opens the company that was found.
func (p *tab) openRecord(base string) {
	p.T.Helper()
	p.open(base + "/")
	p.Type("#name", "sandbox every field\r")
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	p.Click(`#matches a[href^="#company/"]`)
	p.WaitFor(`document.querySelector("#record-title")?.textContent.startsWith("SANDBOX EVERY FIELD")`)
}

// TestTheStartPageSuggestsNames searches for a misspelt name and follows the suggestion.
func TestTheStartPageSuggestsNames(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.Type("#name", "evry feild\r")
	p.WaitFor(`document.querySelectorAll("#suggestions a").length === 2 && !document.querySelector("#meant").hidden`)
	p.Click("#suggestions a")
	p.WaitFor(`document.querySelectorAll("#matches a").length === 1 && document.querySelector("#suggestions").hidden`)
	p.open(base + "/")
	p.Type("#name", "etoilee first madeup\r")
	p.WaitFor(`document.querySelector("#suggestions a")?.textContent === "\u00c9TOILE \ufb01RST \ud83d\ude00 (MADE-UP) PVT. LTD."`)
	p.RequireClean(base)
}

// TestTheStartPageShowsTheAnswerToTheLastSearch also when that to the one before comes later.
func TestTheStartPageShowsTheAnswerToTheLastSearch(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/")
	p.HoldAnswers("every")
	p.Type("#name", "sandbox every field\r")
	p.WaitFor(`window.release !== undefined`)
	p.Eval(`document.querySelector("#name").value = ""`)
	p.Type("#name", "no such name at all\r")
	const last = `document.querySelector("#said").textContent.startsWith("No name matches")`
	p.WaitFor(last)
	p.ReleaseAnswers()
	require.Equal(t, "true", p.Eval(last+`.toString()`))
	require.Equal(t, "true", p.Eval(`document.querySelector("#matches").hidden.toString()`))
	p.RequireClean(base)
}

// TestALinkToARecordOfASearchShowsBoth: the address names the last search and the record, also after it was loaded anew.
func TestALinkToARecordOfASearchShowsBoth(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.openRecord(base)
	address := p.Eval(`location.href`)
	require.Equal(t, base+"/?name=sandbox+every+field#company/U72900ZZ2015PTC000001", address)
	p.Click(`[data-query="sandbox"]`)
	p.WaitFor(`document.querySelectorAll("#matches a").length === 10 && location.hash === ""`)
	p.Click("#matches a")
	p.WaitFor(`location.hash !== "" && document.querySelector("#record-title")`)
	p.Click(`[data-query="sandbox"]`)
	p.WaitFor(`location.hash === "" && document.querySelector("#record").hidden`)
	p.Eval(`history.go(-2), ""`)
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2 && document.querySelector("#name").value === "sandbox every field"`)
	p.open(base + "/guides")
	p.open(address)
	p.WaitFor(`document.querySelectorAll("#matches a").length === 2`)
	p.WaitFor(`document.querySelector("#record-title")?.textContent.startsWith("SANDBOX EVERY FIELD")`)
	p.RequireClean(base)
}

// openOperation opens a lookup in the reference and makes its call.
func (p *tab) openOperation(base string) {
	p.T.Helper()
	p.open(base + "/reference#getCompany")
	p.Click("#getCompany .try button")
	p.WaitFor(`document.querySelector("#getCompany .outcome .http")?.textContent.startsWith("200")`)
}

// TestAKeyIsShownWithItsUnderscores in the form of a call.
func TestAKeyIsShownWithItsUnderscores(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.open(base + "/reference#getCompany")
	p.RequireUnderscores("#getCompany .key")
	p.RequireClean(base)
}

func TestEveryPageIsAccessible(t *testing.T) {
	axe := browser.Axe(t)
	base := service(t)
	p := newTab(t)
	look := func(where string, open func()) {
		p.InEachView(open, func(v browser.View) {
			p.RequireAccessible(axe, v.Name+" "+where)
			p.RequireWholePlaceholders(v.Name + " " + where)
		})
	}
	for _, path := range pagePaths {
		look(path, func() { p.open(base + path) })
	}
	look("a record", func() { p.openRecord(base) })
	look("a call in the reference", func() { p.openOperation(base) })
	p.RequireClean(base)
}

// TestNothingMovesWhenSamplesBecomeTabs: before their script has run, samples take
// the room that they take as tabs.
func TestNothingMovesWhenSamplesBecomeTabs(t *testing.T) {
	base := service(t)
	p := newTab(t)
	for _, v := range browser.Views {
		p.As(v)
		for _, path := range []string{"/guides/first-call", "/reference"} {
			p.open(base + path)
			p.WaitFor(`!document.querySelector(".samples:not(.tabbed)")`)
			moved := p.Eval(`[...document.querySelectorAll(".samples")].filter(group => {
				const tabbed = group.offsetHeight;
				group.querySelector(".choice").remove();
				group.querySelectorAll(".sample").forEach(sample => sample.hidden = false);
				group.classList.remove("tabbed");
				return Math.abs(group.offsetHeight - tabbed) > 2;
			}).length.toString()`)
			require.Equal(t, "0", moved, v.Name+" "+path)
		}
	}
	p.RequireClean(base)
}

// TestTablesFitOnAPhone: content beyond a phone's edge is easily missed.
func TestTablesFitOnAPhone(t *testing.T) {
	base := service(t)
	p := newTab(t)
	for _, v := range browser.Views {
		if v.Width > 500 {
			continue
		}
		p.As(v)
		for _, path := range pagePaths {
			p.open(base + path)
			wide := p.Eval(`[...document.querySelectorAll(".scroll")].filter(table => table.scrollWidth > table.clientWidth).map(table =>
				table.ariaLabel + ": " + table.scrollWidth + " in " + table.clientWidth).join("; ")`)
			require.Empty(t, wide, v.Name+" "+path)
		}
	}
	p.RequireClean(base)
}

// TestTabsAreOneLineOnASmallPhone, with the button beside them.
func TestTabsAreOneLineOnASmallPhone(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.As(browser.View{Width: 360, Height: 740})
	for _, path := range []string{"/", "/guides/first-call", "/reference"} {
		p.open(base + path)
		p.WaitFor(`document.querySelector(".samples .choice") && !document.querySelector(".samples:not(.tabbed)")`)
		require.Empty(t, p.Eval(`[...document.querySelectorAll(".samples .choice")].filter(choice =>
			choice.offsetHeight > 48 || choice.scrollWidth > choice.clientWidth).map(choice =>
			choice.offsetHeight + " high, " + choice.scrollWidth + " in " + choice.clientWidth).join("; ")`), path)
	}
	p.RequireClean(base)
}

// TestCodesInTablesBreakAtTheirJoints: insufficient_credits breaks after the underscore, and nowhere else.
func TestCodesInTablesBreakAtTheirJoints(t *testing.T) {
	base := service(t)
	p := newTab(t)
	p.As(browser.View{Width: 360, Height: 740})
	for _, path := range []string{"/", "/problems", "/guides/errors", "/guides/credits-and-limits", "/guides/moving"} {
		p.open(base + path)
		broken := p.Eval(`(() => {
			const words = [];
			for (const code of document.querySelectorAll(".scroll tbody code")) {
				for (const text of code.childNodes) {
					for (const word of (text.data ?? "").matchAll(/\w+/g)) {
						const range = document.createRange();
						range.setStart(text, word.index);
						range.setEnd(text, word.index + word[0].length);
						if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) words.push(word[0]);
					}
				}
			}
			return words.join(" ");
		})()`)
		require.Empty(t, broken, path)
	}
}
