package reference

import (
	"embed"
	_ "embed"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/julienschmidt/httprouter"

	"regedge/handler/ident"
	"regedge/web"
	"regedge/web/apidoc"
)

// document describes the API of the lookups.
//
//go:embed openapi.yaml
var document []byte

// recording has answers of the sandbox, for clients' tests. A test records it: see recording_test.go.
//
//go:embed sandbox.json
var recording []byte

// Config says how the pages refer to the service around them.
type Config struct {
	// Document is the OpenAPI document, in YAML; nil stands for the service's own.
	Document []byte
	// BaseURL is where clients reach the lookups, without a trailing slash; samples use it.
	// When it is empty they use the host that the page was requested from.
	BaseURL string
	// DashboardURL is where account owners sign in; empty omits the link.
	DashboardURL string
}

// Site serves the pages. It is safe for concurrent use.
type Site struct {
	config    Config
	pages     pages
	renderer  *renderer
	documents map[string]web.Asset // by path
	paths     map[string]bool      // of pages and documents
	assets    map[string]web.Asset // by file name
	calls     string               // the reference, with apidoc.Base in it
}

// New parses the document and the pages. An error is a mistake in one of them.
func New(config Config) (*Site, error) {
	config.BaseURL = strings.TrimSuffix(config.BaseURL, "/")
	if config.Document == nil {
		config.Document = document
	}
	asJSON, err := apidoc.JSON(config.Document)
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	s := &Site{
		config: config, renderer: newRenderer(),
		documents: map[string]web.Asset{
			"/openapi.yaml": web.NewAsset("application/yaml", config.Document),
			"/openapi.json": web.NewAsset("application/json", asJSON),
			"/sandbox.json": web.NewAsset("application/json", recording),
		},
	}
	calls, err := apidoc.Render(apidoc.Config{
		Document: config.Document, Path: "/openapi.yaml", Samples: librarySamples, Token: ident.SandboxKey, Try: true,
		ProblemPages: "/problems/", ErrorsPage: "/guides/errors",
	})
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	s.calls, s.paths = string(calls), s.allPaths()
	if s.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("read files of the pages: %w", err)
	}
	if s.pages, err = loadPages(); err != nil {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	return s, nil
}

// Routes adds the pages to a router, and the not-found page.
func (s *Site) Routes(router *httprouter.Router) {
	router.GET("/", s.start)
	router.GET("/reference", s.reference)
	router.GET("/guides", s.guidesPage)
	router.GET("/guides/:name", s.guide)
	router.GET("/problems", s.problemsPage)
	router.GET("/problems/:code", s.problem)
	router.NotFound = http.HandlerFunc(s.missing)
	for path := range s.documents {
		router.GET(path, s.document)
	}
	router.GET("/assets/:file", s.asset)
}

func (s *Site) document(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	s.documents[r.URL.Path].Serve(w, r)
}

func (s *Site) asset(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	found, ok := s.assets[params.ByName("file")]
	if !ok {
		s.missing(w, r)
		return
	}
	found.Serve(w, r)
}

//go:embed assets
var assetFiles embed.FS

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
}

// loadAssets loads the files of the pages, and those shared with the dashboard.
func loadAssets() (map[string]web.Asset, error) {
	assets := web.Common()
	assets["reference.css"] = web.NewAsset(contentTypes[".css"], apidoc.Style)
	assets["reference.js"] = web.NewAsset(contentTypes[".js"], apidoc.Script)
	assets["samples.json"] = web.NewAsset("application/json", samplesJSON())
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		contentType, ok := contentTypes[path.Ext(entry.Name())]
		if !ok {
			return nil, fmt.Errorf("%s has no known content type", entry.Name())
		}
		body, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, err
		}
		assets[entry.Name()] = web.NewAsset(contentType, body)
	}
	return assets, nil
}
