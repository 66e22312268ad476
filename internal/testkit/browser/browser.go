// Package browser drives Chromium in tests: it opens pages, reads and operates them, checks them with
// axe, takes screenshots, and fails a test for errors in the console. Without Chromium the test is
// skipped.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// stepTimeout bounds each wait in a page. It is long since test machines may be slow.
const stepTimeout = 60 * time.Second

// Tab is a page in a browser of its own, with the errors that occurred in it.
type Tab struct {
	context.Context
	T testing.TB

	mu       sync.Mutex
	problems []string // console errors, exceptions, refused loads
	asked    []string // addresses that were loaded
	missing  string   // the end of an address that is missing on purpose
}

// tabs counts the tabs of this process.
var tabs atomic.Int64

// New starts a browser with empty cookies and storage.
func New(t *testing.T) *Tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.WSURLReadTimeout(stepTimeout), chromedp.NoSandbox,
		chromedp.UserDataDir(profile(t)),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocated)
	t.Cleanup(closeTab) // waits for the browser, which still writes into its directory
	p := &Tab{Context: ctx, T: t}
	require.NoError(t, chromedp.Listen(ctx, p.observe))
	command(p, network.Enable, network.EnableParams{})
	// The sandbox key's rate limit is for each client address: every tab has its own.
	command(p, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"X-Forwarded-For": fmt.Sprintf("198.18.0.%d", tabs.Add(1))},
	})
	command(p, log.Enable, cdp.Empty{})
	command(p, runtime.Enable, cdp.Empty{})
	return p
}

// profile makes a directory for a browser. It is removed again and again until it stays so: on a busy machine processes of
// the browser write into it for a moment after the browser has ended.
func profile(t *testing.T) string {
	dir, err := os.MkdirTemp("", "browser-")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, stepTimeout, 20*time.Millisecond, dir)
	})
	return dir
}

// WithoutAddress drops the header that gives the tab its address: lookups do not accept that header from pages
// of another origin.
func (p *Tab) WithoutAddress() {
	command(p, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{}})
}

func chromium(t *testing.T) string {
	t.Helper()
	// The first has no windows, and starts with half the work: a small test of the dashboard takes 3.9 s of a processor's
	// time with it, and 6.9 s with the second.
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testkit.MissingTool(t, "no browser: install chromium to run this test")
	return ""
}

func (p *Tab) observe(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	case *log.EventEntryAdded:
		if p.missing != "" && strings.HasSuffix(e.Entry.URL, p.missing) {
			return
		}
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.problems = append(p.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var text []string
			for _, arg := range e.Args {
				text = append(text, string(arg.Value)+arg.Description)
			}
			p.problems = append(p.problems, strings.Join(text, " "))
		}
	}
}

func command[P, R any](p *Tab, c cdp.Command[P, R], params P) {
	p.T.Helper()
	_, err := chromedp.Call(p, c, params)
	require.NoError(p.T, err)
}

// Do runs actions of chromedp.
func (p *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.T.Helper()
	require.NoError(p.T, chromedp.Do(p, steps...))
}

// View is a screen size and colour scheme.
type View struct {
	Name          string
	Width, Height int64 // in pixels
	Dark          bool
}

// Views are the views that pages are tested in.
var Views = []View{
	{"desktop-light", 1280, 800, false},
	{"desktop-dark", 1280, 800, true},
	{"phone-light", 360, 740, false},
	{"phone-dark", 360, 740, true},
}

// As emulates a view.
func (p *Tab) As(v View) {
	p.T.Helper()
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	command(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: v.Width, Height: v.Height, DeviceScaleFactor: 1, Mobile: v.Width < 600,
	})
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // check final colours, not transitions
		},
	})
}

// InEachView opens a page at each width and checks it in both colour schemes. A scheme changes only
// styles, so the page need not be opened again.
func (p *Tab) InEachView(open func(), look func(View)) {
	p.T.Helper()
	for _, v := range Views {
		p.As(v)
		if !v.Dark {
			open()
		}
		look(v)
	}
}

// InZone puts the pages into a time zone, such as Asia/Kolkata.
func (p *Tab) InZone(name string) {
	p.T.Helper()
	command(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
}

// WithoutScripts disables the pages' own scripts from now on.
func (p *Tab) WithoutScripts() {
	p.T.Helper()
	command(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// BeforeScripts runs a script in each page from now on, before the page's own.
func (p *Tab) BeforeScripts(source string) {
	p.T.Helper()
	command(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source})
}

// TrustsEveryCertificate lets the tab open servers of tests with TLS.
func (p *Tab) TrustsEveryCertificate() {
	p.T.Helper()
	command(p, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
}

// Missing excludes pages whose address ends with a text from RequireClean: they do not exist, which
// the browser reports.
func (p *Tab) Missing(end string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing = end
}

// Open navigates to a page and waits until it is loaded.
func (p *Tab) Open(url string) {
	p.T.Helper()
	p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
}

// Click waits until an element can be clicked, and clicks it.
func (p *Tab) Click(selector string) {
	p.T.Helper()
	p.settle(selector)
	p.use(chromedp.Click(chromedp.CSS(selector)))
}

// settle waits until an element is visible, not moving and not covered: chromedp clicks where it saw the element last,
// and an animation may have moved it since.
func (p *Tab) settle(selector string) {
	p.T.Helper()
	place := fmt.Sprintf(`(() => {
		const element = document.querySelector(%q);
		if (!element) return "";
		element.scrollIntoView({block: "center", behavior: "instant"});
		const r = element.getBoundingClientRect();
		const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		return element.contains(top) ? [r.x, r.y, r.width, r.height].join() : "";
	})()`, selector)
	before := ""
	p.until(func() bool {
		now, err := chromedp.Run(p, chromedp.Evaluate[string](place))
		still := err == nil && now != "" && now == before
		before = now
		return still
	}, selector+" to be clicked")
}

// Type waits for an element and types a text into it; a return at the end submits the form.
func (p *Tab) Type(selector, text string) {
	p.T.Helper()
	p.use(chromedp.SendKeys(chromedp.CSS(selector), text))
	if !strings.HasSuffix(text, "\r") {
		p.WaitFor(fmt.Sprintf("document.querySelector(%q).value.endsWith(%q)", selector, text))
	}
}

// use runs an action on an element. It retries if the browser has just renumbered the page's elements: then the number
// that chromedp found is unknown, and nothing was done.
func (p *Tab) use(step chromedp.Action[chromedp.Void]) {
	p.T.Helper()
	var err error
	p.until(func() bool {
		err = chromedp.Do(p, step)
		return err == nil || !strings.Contains(err.Error(), "Could not find node with given id")
	}, "an element that stays")
	require.NoError(p.T, err)
}

// WaitFor waits until a JavaScript expression is true in a page that has been read to its end.
func (p *Tab) WaitFor(condition string) {
	p.T.Helper()
	p.until(func() bool {
		met, err := chromedp.Run(p, chromedp.Evaluate[bool](`document.readyState !== "loading" && Boolean(`+condition+")"))
		return err == nil && met
	}, condition)
}

// until waits for a condition, and fails with the page's text when it never holds.
func (p *Tab) until(met func() bool, what string) {
	p.T.Helper()
	for deadline := time.Now().Add(stepTimeout); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			page := p.Eval("document.body.innerText")
			p.mu.Lock()
			defer p.mu.Unlock()
			require.FailNow(p.T, "waited in vain for "+what, "the console: %q\nthe page:\n%s", p.problems, page)
		}
	}
}

// HoldAnswers makes the page's scripts wait for answers to calls whose address contains a text, until the page's
// release() is called. That function exists once such an answer has come.
func (p *Tab) HoldAnswers(part string) {
	p.T.Helper()
	p.Eval(fmt.Sprintf(`(() => {
		const ask = window.fetch;
		window.fetch = async (address, options) => {
			const answer = await ask(address, options);
			if (!String(address).includes(%q)) return answer;
			const body = await answer.json();
			const { ok, status, statusText, headers } = answer;
			return { ok, status, statusText, headers, json: () => new Promise((go) => { window.release = () => go(body); }) };
		};
		return "";
	})()`, part))
}

// ReleaseAnswers ends HoldAnswers for the answer that came last, and waits until the page has dealt with it.
func (p *Tab) ReleaseAnswers() {
	p.T.Helper()
	p.Eval(`(release(), setTimeout(() => { window.released = true; }), "")`)
	p.WaitFor(`window.released`)
}

// Eval returns the value of a JavaScript expression as a text.
func (p *Tab) Eval(expression string) string {
	p.T.Helper()
	text, err := chromedp.Run(p, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.T, err)
	return text
}

// RequireClean fails the test for every message in the console, and for every resource that was loaded
// from elsewhere than the bases.
func (p *Tab) RequireClean(bases ...string) {
	p.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.T, p.problems, "the console is not clean")
	for _, url := range p.asked {
		own := strings.HasPrefix(url, "data:") || url == "about:blank"
		for _, base := range bases {
			own = own || strings.HasPrefix(url, base+"/")
		}
		require.True(p.T, own, "%s was loaded from elsewhere", url)
	}
}
