package reference

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"github.com/julienschmidt/httprouter"
)

//go:embed pages guides
var pageFiles embed.FS

// policy lets a page use this host's own files and lookups, and nothing else. The try-it
// component draws its icons from data: addresses in its style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// pages are the parsed templates by name.
type pages map[string]*template.Template

// page is what every template is shown with.
type page struct {
	Title     string
	Section   string // which link of the head is current
	Base      string // where samples call the service
	BaseURL   string // the same as far as it is configured
	Dashboard string
	Guides    []guide
	Data      any
}

func loadPages() (pages, error) {
	frame, err := template.New("frame.html").Funcs(template.FuncMap{
		"samples": samplesOf, "json": highlight,
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

// show renders a page. It is rendered whole before the first byte goes out.
func (s *Site) show(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Base, p.BaseURL = s.base(r), s.config.BaseURL
	p.Dashboard, p.Guides = s.config.DashboardURL, guides
	var body bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&body, "frame.html", p); err != nil {
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
	w.WriteHeader(status)
	w.Write(body.Bytes())
}

// hostForm is a host with an optional port: names, IPv4 and IPv6 in brackets.
var hostForm = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// base is where samples call the service: as configured, else the host that the page was
// asked from, as far as that is a host.
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

func (s *Site) missing(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusNotFound, "missing", page{Title: "No such page"})
}

func (s *Site) start(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	s.show(w, r, http.StatusOK, "start", page{Title: "Registry lookups of Indian companies", Data: startData()})
}

func (s *Site) reference(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	s.show(w, r, http.StatusOK, "reference", page{Title: "API reference", Section: "reference"})
}

// sampleGroup is a call in every language, for the part that shows one.
type sampleGroup struct {
	Path    string
	Samples []Sample
}

func samplesOf(base, path string) sampleGroup {
	return sampleGroup{Path: path, Samples: Samples(base + path)}
}

// token finds the parts of JSON that have a colour: names, texts, and other scalars.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b`)

// highlight marks up JSON for the style sheet. Everything of it is escaped.
func highlight(text string) template.HTML {
	var b strings.Builder
	rest := 0
	for _, at := range token.FindAllStringSubmatchIndex(text, -1) {
		class, end := "n", at[1]
		switch {
		case at[2] >= 0:
			class, end = "k", at[2]
		case text[at[0]] == '"':
			class = "s"
		}
		b.WriteString(template.HTMLEscapeString(text[rest:at[0]]))
		fmt.Fprintf(&b, `<span class="%s">%s</span>`, class, template.HTMLEscapeString(text[at[0]:end]))
		rest = end
	}
	b.WriteString(template.HTMLEscapeString(text[rest:]))
	return template.HTML(b.String())
}
