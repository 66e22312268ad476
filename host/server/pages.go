package server

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"regedge/handler"
	"regedge/web"
)

func (s *Server) newPages() *httprouter.Router {
	router := httprouter.New()
	router.GET("/healthz", s.health)
	router.GET("/readyz", s.readiness)
	if s.config.Pages != nil {
		s.config.Pages(router)
	}
	return router
}

// page answers a request for one of the host's pages. It returns false if there is no page at the path.
func (s *Server) page(e *exchange) bool {
	at, err := url.ParseRequestURI(e.request.Target)
	if err != nil {
		return false
	}
	page, params, _ := s.pages.Lookup(http.MethodGet, at.Path)
	if page == nil {
		return s.missingPage(e, at)
	}
	e.route = routePage
	if e.request.Method != http.MethodGet && e.request.Method != http.MethodHead {
		s.refusePage(e)
		return true
	}
	q := s.asPage(e, at)
	s.show(e, func(w http.ResponseWriter) { page(w, q, params) })
	if e.response.Status == http.StatusNotFound && !web.AcceptsHTML(q.Header) {
		e.response, e.route = handler.Response{}, routeOther
		return false // the answer to programs is a problem document
	}
	return true
}

// missingPage answers a browser's request for an unknown path with the not-found page, if there is
// one. It returns false otherwise: programs get the Answerer's problem document, and so does everyone
// below the API's path.
func (s *Server) missingPage(e *exchange, at *url.URL) bool {
	if s.pages.NotFound == nil || e.request.Method != http.MethodGet && e.request.Method != http.MethodHead ||
		at.Path == "/v1" || strings.HasPrefix(at.Path, "/v1/") {
		return false
	}
	q := s.asPage(e, at)
	if !web.AcceptsHTML(q.Header) {
		return false
	}
	s.show(e, func(w http.ResponseWriter) { s.pages.NotFound.ServeHTTP(w, q) })
	return true
}

// show makes the response that a page writes.
func (s *Server) show(e *exchange, page func(http.ResponseWriter)) {
	w := &pageWriter{to: &e.response, header: make(http.Header)}
	w.header.Set(handler.HeaderRequestID, s.config.NewRequestID())
	w.header.Set("X-Content-Type-Options", "nosniff")
	page(w)
	w.finish()
	if len(e.response.Body) > maxReusedBytes {
		s.limitLarge(e)
	}
}

// maxLarge bounds the number of large pages being sent at once. Each is in memory until its client has
// read it, and the largest has 0.2 MB.
const maxLarge = 32

// limitLarge counts a large page until it was sent, or refuses the request if there are too many.
func (s *Server) limitLarge(e *exchange) {
	if s.large.Add(1) > maxLarge {
		s.large.Add(-1)
		s.refuse(e, handler.Overloaded)
		return
	}
	e.written = func() { s.large.Add(-1) }
}

// asPage converts a request for the handlers of pages. HEAD becomes GET, so that the length of the body
// is known; the transport then leaves out the body.
func (s *Server) asPage(e *exchange, at *url.URL) *http.Request {
	q := &http.Request{
		Method: http.MethodGet, URL: at, RequestURI: e.request.Target, Host: e.request.Authority, RemoteAddr: net.JoinHostPort(e.client, "0"),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: http.NoBody,
	}
	if s.config.TLS != nil {
		q.TLS = new(tls.ConnectionState)
	}
	for _, field := range e.request.Headers {
		q.Header.Add(field.Name, field.Value)
	}
	return q
}

// pageWriter is an http.ResponseWriter that fills a response.
type pageWriter struct {
	to     *handler.Response
	header http.Header
}

func (w *pageWriter) Header() http.Header { return w.header }

func (w *pageWriter) WriteHeader(status int) {
	if w.to.Status == 0 {
		w.to.Status = status
	}
}

func (w *pageWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.to.Body = append(w.to.Body, p...)
	return len(p), nil
}

// finish copies the header into the response, sorted by name.
func (w *pageWriter) finish() {
	w.WriteHeader(http.StatusOK)
	for _, name := range slices.Sorted(maps.Keys(w.header)) {
		for _, value := range w.header[name] {
			w.to.Headers = append(w.to.Headers, handler.Header{Name: name, Value: value})
		}
	}
}

// health serves /healthz: the process answers at all.
func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	writeHealth(w, http.StatusOK, "ok", "")
}

// readiness serves /readyz: whether this server should get requests, and if not, why; also what is wrong
// beside that.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	if s.draining.Load() {
		writeHealth(w, http.StatusServiceUnavailable, "not ready", "the server is shutting down")
		return
	}
	if s.config.Ready != nil {
		if err := s.config.Ready(); err != nil {
			writeHealth(w, http.StatusServiceUnavailable, "not ready", err.Error())
			return
		}
	}
	remark := ""
	if s.config.Remark != nil {
		remark = s.config.Remark()
	}
	writeHealth(w, http.StatusOK, "ready", remark)
}

func writeHealth(w http.ResponseWriter, status int, word, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{word, reason})
}
