package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"

	"regedge/handler"
)

// exchange is what the server knows of one request and its answer.
type exchange struct {
	request  handler.Request
	response handler.Response
	// client is the address of the client, without a port, as the server vouches for it.
	client string
	route  route
	id     string
	// written is called once a large body was written, or can't be; nil for others.
	written func()
}

var exchanges = sync.Pool{New: func() any {
	e := new(exchange)
	e.request.ClientAddr = func() string { return e.client }
	return e
}}

// maxKeptBytes bounds the body memory that is kept for the next request: the usual
// answer is a few kilobytes.
const maxKeptBytes = 64 << 10

func (e *exchange) reset() {
	clear(e.response.Headers)
	clear(e.request.Headers)
	kept := handler.Response{Headers: e.response.Headers[:0]}
	if cap(e.response.Body) <= maxKeptBytes {
		kept.Body = e.response.Body[:0]
	}
	request := handler.Request{Headers: e.request.Headers[:0], ClientAddr: e.request.ClientAddr}
	*e = exchange{response: kept, request: request}
}

// originForm is the path and query as sent, and the host that is asked for. A proxy's request
// line names a scheme and a host too, which do not belong to the path, and the host is that one
// (RFC 9112, section 3.2.2).
func originForm(target, host string) (path, authority string) {
	if strings.HasPrefix(target, "/") || target == "*" {
		return target, host
	}
	if u, err := url.ParseRequestURI(target); err == nil && u.Host != "" {
		return u.RequestURI(), u.Host
	}
	return "/", host
}

// serve answers the request of a client. Paths that are none of the host's pages go to the
// Answerer. After a panic, of the one or the other, the answer is 500.
func (s *Server) serve(e *exchange, client string) {
	defer func() {
		if cause := recover(); cause != nil {
			s.fail(e, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
		e.id = valueOf(e.response.Headers, handler.HeaderRequestID)
	}()
	e.client = client
	e.route = routeOf(e.request.Target)
	switch {
	case len(e.request.Target) > s.config.MaxTargetBytes:
		s.refuseTarget(e)
	case e.route == routeOther && s.page(e):
	default:
		s.lookUp(e)
	}
}

func (s *Server) lookUp(e *exchange) {
	if s.inFlight.Add(1) > int64(s.config.MaxInFlight) {
		s.inFlight.Add(-1)
		s.refuse(e, handler.Overloaded)
		return
	}
	defer s.inFlight.Add(-1)
	// A request that has begun is finished even when its client has gone: what it was
	// charged for must not depend on who hung up first.
	err := s.answer(context.Background(), e)
	switch {
	case errors.Is(err, ErrOverloaded):
		s.refuse(e, handler.Overloaded)
	case err != nil:
		s.fail(e, err)
	case e.response.Cause != nil:
		s.logFailure(e, "answered after a failure", e.response.Cause)
	}
}

// fail answers 500 and logs why.
func (s *Server) fail(e *exchange, err error) {
	s.refuse(e, handler.InternalError)
	s.logFailure(e, "no answer", err)
}

// answer calls the Answerer, and checks what it says.
func (s *Server) answer(ctx context.Context, e *exchange) error {
	if err := s.config.Answerer.Answer(ctx, &e.request, &e.response); err != nil {
		return err
	}
	if e.response.Status < 200 || e.response.Status > 599 {
		return fmt.Errorf("the answer has status %d", e.response.Status)
	}
	return nil
}

// logFailure logs what the client is not told, under the id that it gets.
func (s *Server) logFailure(e *exchange, what string, err error) {
	s.config.Log.LogAttrs(context.Background(), slog.LevelError, what,
		slog.String("request_id", valueOf(e.response.Headers, handler.HeaderRequestID)), slog.Any("error", err))
}

// valueOf is the value of a field of the answer that it has once, or empty.
func valueOf(list []handler.Header, name string) string {
	for _, field := range list {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// overloadedRetrySeconds is how long a client should stay away from a server that is
// full: lookups take milliseconds, so the shortest wait that Retry-After can say.
const overloadedRetrySeconds = 1

// pageMethods are those of the host's own pages; a lookup allows others.
const pageMethods = "GET, HEAD"

// refusePage answers a method that a page does not have.
func (s *Server) refusePage(e *exchange) {
	s.refuse(e, handler.MethodNotAllowed)
	for i := range e.response.Headers {
		if field := &e.response.Headers[i]; field.Name == "Allow" {
			field.Value = pageMethods
		}
	}
}

// refuse answers with a problem that the server itself found.
func (s *Server) refuse(e *exchange, code string) {
	p, _ := handler.FindProblem(code)
	var retryAfter int64
	if code == handler.Overloaded {
		retryAfter = overloadedRetrySeconds
	}
	e.response = *handler.NewProblem(s.config.DocsURL, p, s.config.NewRequestID(), retryAfter)
}

// refuseTarget answers a path and query that are too long. It is the one answer whose status
// (RFC 9110, section 15.5.15) has no code of its own: it is an invalid_query, since only a
// query can be that long.
func (s *Server) refuseTarget(e *exchange) {
	p, _ := handler.FindProblem(handler.InvalidQuery)
	p.Status = http.StatusRequestURITooLong
	p.Detail = "The path and query are longer than this server reads. Shorten the name."
	e.response = *handler.NewProblem(s.config.DocsURL, p, s.config.NewRequestID(), 0)
}
