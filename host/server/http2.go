package server

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"regedge/handler"
)

// ServeHTTP answers one request over HTTP/2.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := s.config.Now()
	e := exchanges.Get().(*exchange)
	from := peerOf(r)
	client := s.config.Proxies.client(from, r.Header)
	if early := s.early(from); early > 0 {
		from.conn.hold(early)
		from.conn.streams.Lock()
		defer from.conn.streams.Unlock()
	}
	refusal := r.Header.Get(refusalField)
	size := e.readHTTP(r)
	switch {
	case refusal != "":
		s.refuseStream(e, client, refusal)
	case size > s.config.MaxHeaderBytes:
		s.refuseStream(e, client, handler.HeaderTooLarge)
	case !wellFormed(r):
		s.refuseStream(e, client, handler.InvalidRequest)
	default:
		s.serve(e, client)
	}
	if s.draining.Load() {
		w.Header().Set("Connection", "close") // net/http sends GOAWAY
	}
	took := s.config.Now().Sub(started)
	s.pace(e, from)
	from.conn.stream(r.Context(), s.config.WriteTimeout-took-settleTime)
	e.writeHTTP(w)
	if e.written != nil {
		e.written()
	}
	s.record(e, took)
	e.reset()
	exchanges.Put(e)
}

// refuseStream refuses a malformed request.
func (s *Server) refuseStream(e *exchange, client, code string) {
	e.client, e.route = client, routeInvalid
	s.refuse(e, code)
	e.id = valueOf(e.response.Headers, handler.HeaderRequestID)
}

// wellFormed checks what net/http lets pass and the parser of HTTP/1.1 does not: a method that is no
// token, spaces and control characters in the target, no host, or two (RFC 9113, section 8.3.1).
func wellFormed(r *http.Request) bool {
	for _, host := range r.Header["Host"] {
		if host != r.Host {
			return false
		}
	}
	spaced := strings.ContainsFunc(r.RequestURI, func(c rune) bool { return c <= ' ' || c == 0x7f })
	return isHost(r.Host) && !spaced && httpguts.ValidHeaderFieldName(r.Method) // a token too
}

// readHTTP reads a request and returns its size in bytes.
func (e *exchange) readHTTP(r *http.Request) (size int) {
	if target := r.Header[targetField]; target != nil {
		r.RequestURI = target[0]
		delete(r.Header, targetField)
	}
	size = len(r.Method) + len(r.RequestURI) + len(r.Host)
	e.request.Method = r.Method
	e.request.Target, e.request.Authority = originForm(r.RequestURI, r.Host)
	for name, values := range r.Header {
		if name == "Host" {
			continue
		}
		for _, value := range values {
			size += len(name) + len(value)
			e.request.Headers = append(e.request.Headers, handler.Header{Name: name, Value: value})
		}
	}
	return size
}

// writeHTTP sends the response, with the names of fields as the answer spells them: Header.Set would
// change RateLimit-Limit.
func (e *exchange) writeHTTP(w http.ResponseWriter) {
	header := w.Header()
	for _, field := range e.response.Headers {
		if !strings.EqualFold(field.Name, "Content-Length") { // the server sets its own
			header[field.Name] = append(header[field.Name], field.Value)
		}
	}
	if e.response.Status != http.StatusNoContent && e.response.Status != http.StatusNotModified {
		header["Content-Length"] = []string{strconv.Itoa(len(e.response.Body))}
	}
	w.WriteHeader(e.response.Status)
	w.Write(e.response.Body) // fails only if the client is gone
}
