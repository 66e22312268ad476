package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"

	"regedge/handler"
)

// secure serves HTTP/1.1 and HTTP/2 over TLS.
type secure struct {
	*http.Server
	listener net.Listener
}

func (s *Server) newSecure(listener net.Listener) transport {
	return secure{listener: listener, Server: &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            s.config.ReadHeaderTimeout,
		ReadTimeout:                  s.config.ReadHeaderTimeout, // a body is not read
		WriteTimeout:                 s.config.WriteTimeout,
		IdleTimeout:                  s.config.IdleTimeout,
		MaxHeaderBytes:               s.config.MaxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ConnContext:                  withPeer,
		ErrorLog:                     slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
		TLSConfig:                    s.config.TLS,
	}}
}

func (w secure) serve() error                       { return w.ServeTLS(w.listener, "", "") }
func (w secure) shutdown(ctx context.Context) error { return w.Shutdown(ctx) }
func (w secure) close() error                       { return w.Close() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := s.config.Now()
	e := exchanges.Get().(*exchange)
	e.readHTTP(r)
	s.serve(e, s.config.Proxies.client(peerOf(r), &e.request))
	e.writeHTTP(w)
	if e.written != nil {
		e.written()
	}
	s.record(e, s.config.Now().Sub(started))
	e.reset()
	exchanges.Put(e)
}

func (e *exchange) readHTTP(r *http.Request) {
	e.request.Method = r.Method
	e.request.Target, e.request.Authority = originForm(r.RequestURI, r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			e.request.Header = append(e.request.Header, handler.Header{Name: name, Value: value})
		}
	}
}

// writeHTTP sends the response. Field names go out as they are written in the answer: net/http
// would spell RateLimit-Limit in another way.
func (e *exchange) writeHTTP(w http.ResponseWriter) {
	header := w.Header()
	for _, field := range e.response.Headers {
		if !strings.EqualFold(field.Name, "Content-Length") { // the server counts for itself
			header[field.Name] = append(header[field.Name], field.Value)
		}
	}
	if e.response.Status != http.StatusNoContent {
		header["Content-Length"] = []string{strconv.Itoa(len(e.response.Body))}
	}
	w.WriteHeader(e.response.Status)
	w.Write(e.response.Body) // an error here is a client that has gone
}
