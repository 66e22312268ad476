package reference

import (
	"bytes"
	"compress/gzip"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"github.com/julienschmidt/httprouter"

	"regedge/handler"
	"regedge/web"
	"regedge/web/apidoc"
)

//go:embed pages guides
var pageFiles embed.FS

// policy allows a page this host's own files and lookups, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// pages are the parsed templates by name.
type pages map[string]*template.Template

// page is the data of every template.
type page struct {
	Title     string
	Section   string // current link of the navigation
	Base      string // base URL of the samples
	BaseURL   string // the configured base URL, or empty
	Dashboard string
	Guides    []guide
	Data      any
}

func loadPages() (pages, error) {
	frame, err := template.New("frame.html").Funcs(template.FuncMap{
		"samples": samplesOf, "programs": Programs, "json": apidoc.Highlight,
	}).ParseFS(pageFiles, "pages/frame.html", "pages/parts.html")
	if err != nil {
		return nil, err
	}
	paths, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		return nil, err
	}
	parsed := pages{}
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "pages/"), ".html")
		if parsed[name], err = parseOver(frame, path); err != nil {
			return nil, err
		}
	}
	for _, g := range guides {
		if parsed[g.page()], err = parseOver(frame, "pages/guide.html", "guides/"+g.Name+".html"); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

func parseOver(frame *template.Template, files ...string) (*template.Template, error) {
	clone, err := frame.Clone()
	if err != nil {
		return nil, err
	}
	return clone.ParseFS(pageFiles, files...)
}

// show shows a page, which is complete before the first byte goes out. Pages are kept by their rendering, whose base
// and encoding show takes from the request; data must depend on nothing else.
func (s *Site) show(w http.ResponseWriter, r *http.Request, status int, which rendering, data func() page) {
	which.base, which.zipped = s.base(r), web.AcceptsGzip(r.Header)
	content, err := s.renderer.page(which, func() ([]byte, error) { return s.render(which, data()) })
	if err != nil {
		http.Error(w, "this page cannot be shown", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept, Accept-Encoding")
	if which.zipped { // there are no secrets in these pages
		header.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(status)
	w.Write(content)
}

func (s *Site) render(which rendering, p page) ([]byte, error) {
	p.Base, p.BaseURL = which.base, s.config.BaseURL
	p.Dashboard, p.Guides = s.config.DashboardURL, guides
	var body bytes.Buffer
	if err := s.pages[which.name].ExecuteTemplate(&body, "frame.html", p); err != nil {
		return nil, err
	}
	content := table.ReplaceAllFunc(body.Bytes(), breakCodes)
	if which.zipped {
		content = web.Gzip(content, gzip.BestSpeed)
	}
	return content, nil
}

// Codes and paths in tables may break at their joints: on a phone they are wider than their column.
var (
	table = regexp.MustCompile(`(?s)<tbody>.*?</tbody>`)
	code  = regexp.MustCompile(`<code>[^<]*</code>`)
	joint = regexp.MustCompile(`\w[_/]`)
)

func breakCodes(rows []byte) []byte {
	return code.ReplaceAllFunc(rows, func(c []byte) []byte { return joint.ReplaceAll(c, []byte("$0<wbr>")) })
}

// hostForm is a host with an optional port: names, IPv4 and IPv6 in brackets.
var hostForm = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// base is the base URL of the samples: as configured, else the host that the page was
// requested from, if that is a valid host.
func (s *Site) base(r *http.Request) string {
	if s.config.BaseURL != "" {
		return s.config.BaseURL
	}
	if len(r.Host) > 255 || !hostForm.MatchString(r.Host) {
		return "http://localhost"
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// missing redirects a browser from a mistyped path to the page that is meant, or says that there is none.
func (s *Site) missing(w http.ResponseWriter, r *http.Request) {
	if page := s.meant(r.URL.Path); page != "" && web.AcceptsHTML(r.Header) {
		w.Header().Set("Vary", "Accept")
		web.Redirect(w, r, page)
		return
	}
	s.show(w, r, http.StatusNotFound, rendering{name: "missing"}, func() page { return page{Title: "No such page"} })
}

func (s *Site) start(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	s.show(w, r, http.StatusOK, rendering{name: "start"}, func() page {
		return page{Title: "Registry lookups of Indian companies", Data: startData()}
	})
}

func (s *Site) reference(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	s.show(w, r, http.StatusOK, rendering{name: "reference"}, func() page {
		return page{
			Title: "API reference", Section: "reference",
			Data: template.HTML(strings.ReplaceAll(s.calls, apidoc.Base, template.HTMLEscapeString(s.base(r)))),
		}
	})
}

// samplesOf returns a call in every language.
func samplesOf(base, path string) []Sample { return Samples(base + path) }

// endpoint is a line of the table of endpoints.
type endpoint struct {
	Path, Answers, Operation string
}

// startPage is the data of the start page.
type startPage struct {
	Endpoints []endpoint
	Queries   []string // names to try
	Path      string   // the call that is shown before a search
	Example   string   // its answer
}

func startData() startPage {
	return startPage{
		Endpoints: []endpoint{
			{"/v1/search/companies?name=…", "Companies and LLPs by name, best first", "searchCompanies"},
			{"/v1/search/llps?llpin=…", "The LLP with exactly this LLPIN", "searchLLPs"},
			{"/v1/companies/{cin}", "A company, with up to 50 directors", "getCompany"},
			{"/v1/directors/{din}", "A director, with up to 10 linked companies", "getDirector"},
			{"/v1/llps/{llpin}", "An LLP, with up to 50 partners", "getLLP"},
		},
		Queries: []string{"sandbox", "sandbox tr", "sandbox every field"},
		Path:    "/v1/search/companies?name=sandbox+every+field",
		Example: startExample,
	}
}

const startExample = `{
  "data": [
    {
      "value": "ZZZ-0001",
      "label": "SANDBOX EVERY FIELD (MADE-UP) LLP",
      "type": "llp"
    },
    {
      "value": "U72900ZZ2015PTC000001",
      "label": "SANDBOX EVERY FIELD (MADE-UP) PRIVATE LIMITED",
      "type": "company"
    }
  ],
  "meta": {
    "request_id": "01KADN4XQ0V8R5T2M7C3B9HZ6E",
    "credits_remaining": null,
    "sandbox": true
  }
}`

// guide is a text on one subject. Its body is guides/NAME.html.
type guide struct {
	Name    string
	Title   string
	Summary string
}

func (g guide) page() string { return "guide:" + g.Name }

// guides are in the order in which a newcomer reads them.
var guides = []guide{
	{"first-call", "First call in a minute", "From nothing to a company as JSON, without an account."},
	{"authentication", "Authentication", "Keys, where they go, and how to keep and replace them."},
	{"sandbox", "Sandbox", "What the public key can do, and what it hides."},
	{"search", "Search well", "How names match, in which order they come, and what to do when none does."},
	{"errors", "Errors and retries", "All codes, which to retry, and for how long."},
	{"credits-and-limits", "Limits and credits", "What is charged and what is not, every limit, every header."},
	{"production", "From sandbox to production", "What changes with a live key, and what to prepare."},
	{"testing", "Testing without network", "The sandbox's answers in a file, for tests."},
	{"moving", "Moving from another provider", "Which field is which, and how to compare before you switch."},
	{"changelog", "Changelog", "What each version brought."},
}

// guidePage is the data of a guide.
type guidePage struct {
	guide
	Previous, Next *guide
	Problems       []handler.Problem
}

// guidesPage lists all guides.
func (s *Site) guidesPage(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	s.show(w, r, http.StatusOK, rendering{name: "guides"}, func() page { return page{Title: "Guides", Section: "guides"} })
}

func (s *Site) guide(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	for i, g := range guides {
		if g.Name != params.ByName("name") {
			continue
		}
		s.show(w, r, http.StatusOK, rendering{name: g.page()}, func() page { return page{Title: g.Title, Section: "guides", Data: guideData(i)} })
		return
	}
	s.missing(w, r)
}

// guideData is the data of the guide at a place of the list.
func guideData(i int) guidePage {
	data := guidePage{guide: guides[i], Problems: handler.Problems()}
	if i > 0 {
		data.Previous = &guides[i-1]
	}
	if i+1 < len(guides) {
		data.Next = &guides[i+1]
	}
	return data
}
