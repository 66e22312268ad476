package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"regedge/web"
	"regedge/web/apidoc"
)

//go:embed pages
var pageFiles embed.FS

//go:embed assets
var scripts embed.FS

func loadAssets() map[string]web.Asset {
	assets := web.Common()
	for _, name := range []string{"dashboard.js", "search.js"} {
		script, err := scripts.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		assets[name] = web.NewAsset("text/javascript; charset=utf-8", script)
	}
	assets["reference.css"] = web.NewAsset("text/css; charset=utf-8", apidoc.Style)
	assets["reference.js"] = web.NewAsset("text/javascript; charset=utf-8", apidoc.Script)
	return assets
}

// templates are the parsed pages by name.
type templates map[string]*template.Template

// shown is the data of every template.
type shown struct {
	Title     string
	Path      string // of the page, for the current link of the head
	User      *user
	Token     func() string // makes the token of a form
	Done      string        // message about what was just done
	Error     string        // message about the form
	Reference string
	Lookups   string // origin of an edge to try searches at, or empty
	Data      any
}

func loadTemplates() (templates, error) {
	frame, err := template.New("frame.html").Funcs(template.FuncMap{
		"number": number, "date": day, "day": dayHere, "minute": minuteHere, "browser": browserName, "maker": makerName, "link": newLink, "keysTable": newKeysTable, "rows": operatorRows,
	}).ParseFS(pageFiles, "pages/frame.html", "pages/parts.html")
	if err != nil {
		return nil, err
	}
	paths, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		return nil, err
	}
	parsed := templates{}
	for _, path := range paths {
		clone, err := frame.Clone()
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "pages/"), ".html")
		if parsed[name], err = clone.ParseFS(pageFiles, path); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// done holds the messages by the value of the query parameter done.
var done = map[string]string{
	"signed-out":  "You are signed out.",
	"everywhere":  "You are signed out in every browser.",
	"password":    "The password is changed, and every other browser is signed out.",
	"late":        "That took too long, or the password was changed. Sign in once more.",
	"chosen":      "The password is set. Sign in with it and a code of your authenticator app.",
	"one-factor":  "Two-factor authentication is off.",
	"welcome":     "Welcome. From now on, sign in with your e-mail address and password.",
	"revoked":     "The key is revoked. It stops working everywhere within two seconds.",
	"renamed":     "The key is renamed.",
	"end":         "The end of the key is changed.",
	"limits":      "The limits of the key are changed.",
	"addresses":   "The allowed addresses of the key are changed.",
	"plan":        "The plan is changed.",
	"added":       "The credits are added.",
	"taken":       "The credits are taken. What edges hold of them is taken as soon as they return it.",
	"suspended":   "The account is suspended. Its keys are refused within two seconds.",
	"resumed":     "The account is active again.",
	"removed":     "This person can no longer sign in.",
	"webhook":     "The webhook is saved.",
	"tested":      "A test is on its way. Load this page again in some seconds.",
	"unhooked":    "The webhook is removed, and what waited to be delivered with it.",
	"mail":        "E-mail notices are on.",
	"mail-off":    "E-mail notices are off, and what waited to be sent is dropped.",
	"token-ended": "The token has ended.",
	"account":     "The account was created. Invite its owner below.",
	pendingWords:  "The change is stored, but the edges do not know of it yet: until the access database can be reached, they go on as before. It will be brought to them without further action.",
}

// pendingWords is the message for a change that edges do not know of yet.
const pendingWords = "pending"

// orPending is the message for a change: done, or pending until edges know of it.
func orPending(change interface{ IsPending() bool }, done string) string {
	if change.IsPending() {
		return pendingWords
	}
	return done
}

// write sends an answer. A page is rendered completely before the first byte goes out.
func (d *Dashboard) write(v *visit, a answer) {
	switch {
	case a.to != "":
		http.Redirect(v.w, v.r, a.to, http.StatusSeeOther)
		return
	case a.page == "": // the handler wrote it
		return
	}
	s := shown{
		Title: a.title, Path: v.r.URL.Path, User: v.user, Token: func() string { return d.formToken(v.secret) },
		Done: done[v.r.URL.Query().Get("done")], Error: a.error, Reference: d.config.ReferenceURL, Data: a.data,
	}
	if a.searches && d.lookups != "" {
		s.Lookups = d.lookups
		v.w.Header().Set("Content-Security-Policy", policy+"; connect-src "+d.lookups)
	}
	var body bytes.Buffer
	if err := d.templates[a.page].ExecuteTemplate(&body, "frame.html", s); err != nil {
		d.config.Logger.Error("page can't be shown", "page", a.page, "error", err)
		http.Error(v.w, "this page cannot be shown", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if a.status == 0 {
		a.status = http.StatusOK
	}
	content := body.Bytes()
	if a.packed && web.AcceptsGzip(v.r.Header) {
		v.w.Header().Set("Content-Encoding", "gzip")
		v.w.Header().Add("Vary", "Accept-Encoding")
		content = web.Gzip(content, gzip.DefaultCompression)
	}
	v.w.WriteHeader(a.status)
	v.w.Write(content)
}

type refusalData struct {
	Words string
	Page  string // path of the page with the form that is refused, empty for none
}

func (d *Dashboard) refuse(v *visit, why *refusal) {
	switch {
	case why.status == http.StatusServiceUnavailable, why == errTooMany:
		v.w.Header().Set("Retry-After", "5")
	case why == errPaced:
		v.w.Header().Set("Retry-After", "60")
	}
	data := refusalData{Words: why.words}
	if v.r.Method == http.MethodPost && why != errMissing {
		data.Page = d.pages.pageOf(v.r.URL.Path)
	}
	d.write(v, answer{status: why.status, page: "refusal", title: why.title, data: data})
}

// link is a link of the navigation; it is current on its page and on those below it.
type link struct {
	To, Words string
	Current   bool
}

func newLink(to, words, path string) link {
	return link{to, words, path == to || to != "/" && strings.HasPrefix(path, to+"/")}
}

// keysTable is a list of keys, with or without the way to revoke one.
type keysTable struct {
	Keys   []keyView
	Revoke bool
}

func newKeysTable(keys []keyView, revoke bool) keysTable { return keysTable{keys, revoke} }

func operatorRows(rows []activity) activityData { return activityData{Rows: rows, Operator: true} }

// number formats a count with thousands separators.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

func day(t time.Time) string { return t.Format("2 Jan 2006") }

// dayHere and minuteHere show a moment: in UTC, or with scripts in the reader's zone, with UTC as the
// tooltip.
func dayHere(t time.Time) template.HTML    { return moment(t, "day", day(t)) }
func minuteHere(t time.Time) template.HTML { return moment(t, "minute", t.Format("2 Jan 2006, 15:04")) }

func moment(t time.Time, precision, words string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-precision="%s" title="%s">%s</time>`,
		t.UTC().Format(time.RFC3339), precision, t.UTC().Format("2 Jan 2006, 15:04 UTC"), words))
}

// plural formats a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", number(n), noun)
}
