package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"regedge/handler"
)

// exchange is one request with its response. Exchanges are pooled.
type exchange struct {
	request  handler.Request
	response handler.Response
	// client is the client's address without a port, as Proxies.client determines it.
	client string
	route  route
	id     string
	bill   Bill
	// ctx leads to the bill, and to the span if there is one. It never ends.
	ctx context.Context
	// base is ctx without a span.
	base context.Context
	// span is nil if the request is not traced.
	span trace.Span
	// written is called after a large body was written, or could not be. It is nil for others.
	written func()
}

var exchanges = sync.Pool{New: func() any {
	e := new(exchange)
	e.request.ClientAddr = func() string { return e.client }
	e.base = WithBill(context.Background(), &e.bill)
	e.ctx = e.base
	return e
}}

// maxReusedBytes bounds the capacity of a body buffer that is reused for the next request. Most
// answers have a few kilobytes.
const maxReusedBytes = 64 << 10

// reset prepares the exchange for the next request. It keeps capacity, but no data.
func (e *exchange) reset() {
	clear(e.response.Headers)
	clear(e.request.Headers)
	reused := handler.Response{Headers: e.response.Headers[:0]}
	if cap(e.response.Body) <= maxReusedBytes {
		reused.Body = e.response.Body[:0]
	}
	request := handler.Request{Headers: e.request.Headers[:0], ClientAddr: e.request.ClientAddr}
	*e = exchange{response: reused, request: request, ctx: e.base, base: e.base}
}

// originForm returns the path and query as sent, and the authority. The request target that a proxy
// gets has a scheme and a host too; this host then takes precedence over the field Host (RFC 9112,
// section 3.2.2).
func originForm(target, host string) (path, authority string) {
	if strings.HasPrefix(target, "/") || target == "*" {
		return target, host
	}
	if u, err := url.ParseRequestURI(target); err == nil && u.Host != "" {
		return u.RequestURI(), u.Host
	}
	return "/", host
}

// serve answers the request of a client, with a page or by the Answerer. After a panic in either, the
// answer is 500.
func (s *Server) serve(e *exchange, client string) {
	defer func() {
		if cause := recover(); cause != nil {
			s.fail(e, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
		e.id = valueOf(e.response.Headers, handler.HeaderRequestID)
		if e.span != nil {
			e.endTrace()
		}
	}()
	e.client = client
	e.route = routeOf(e.request.Target)
	switch {
	case len(e.request.Target) > s.config.MaxTargetBytes:
		s.refuse(e, handler.URITooLong)
	case e.route == routeOther && s.page(e):
	default:
		s.lookUp(e)
	}
}

func (s *Server) lookUp(e *exchange) {
	s.beginTrace(e)
	ticket, may := s.shares.enter(&e.request, e.client)
	defer s.shares.leave(ticket)
	if !may || s.refusing.Load() {
		s.refuse(e, handler.Overloaded)
		return
	}
	if s.screen(e, ticket) {
		return
	}
	// A request that has begun is finished even if its client disconnects: whether it is charged
	// must not depend on that.
	err := s.answer(e)
	s.shares.learn(ticket, e.response.Status)
	switch {
	case errors.Is(err, ErrOverloaded):
		s.refuse(e, handler.Overloaded)
	case err != nil:
		s.fail(e, err)
	case e.response.Cause != nil:
		s.logFailure(e, "answered after a failure", e.response.Cause)
	}
}

// screen refuses a request of a suspect without the Answerer, if it can.
func (s *Server) screen(e *exchange, t ticket) (refused bool) {
	if s.config.Screen == nil || !s.shares.suspect(t) {
		return false
	}
	if !s.config.Screen.Refuse(e.ctx, &e.request, &e.response) {
		s.shares.trust(t)
		return false
	}
	s.metrics.screened.Inc()
	s.shares.learn(t, e.response.Status)
	if e.response.Cause != nil {
		s.logFailure(e, "answered after a failure", e.response.Cause)
	}
	return true
}

// fail answers 500 and logs the error.
func (s *Server) fail(e *exchange, err error) {
	e.bill.Cost = 0 // an Answerer that fails voids the charge
	s.refuse(e, handler.InternalError)
	s.logFailure(e, "no answer", err)
}

// answer calls the Answerer and checks its status.
func (s *Server) answer(e *exchange) error {
	if err := s.config.Answerer.Answer(e.ctx, &e.request, &e.response); err != nil {
		return err
	}
	if e.response.Status < 200 || e.response.Status > 599 {
		return fmt.Errorf("the answer has status %d", e.response.Status)
	}
	return nil
}

// logFailure logs an error that is not sent to the client, with the request id that is.
func (s *Server) logFailure(e *exchange, message string, err error) {
	s.config.Log.LogAttrs(context.Background(), slog.LevelError, message,
		slog.String("request_id", valueOf(e.response.Headers, handler.HeaderRequestID)), slog.Any("error", err))
}

// valueOf returns the value of the first field of a name, or "".
func valueOf(list []handler.Header, name string) string {
	for _, field := range list {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// overloadedRetrySeconds is the Retry-After of an overloaded server. Lookups take milliseconds, so it
// is the shortest time that the field can express.
const overloadedRetrySeconds = 1

// pageMethods are the methods of the host's own pages. Lookups allow others.
const pageMethods = "GET, HEAD"

// refusePage answers a request for a page with another method.
func (s *Server) refusePage(e *exchange) {
	s.refuse(e, handler.MethodNotAllowed)
	for i := range e.response.Headers {
		if field := &e.response.Headers[i]; field.Name == "Allow" {
			field.Value = pageMethods
		}
	}
}

// refuse answers with a problem that the server itself found.
func (s *Server) refuse(e *exchange, code string) { s.refuseWith(e, code, "") }

// refuseWith is refuse with a detail of its own, unless that is empty.
func (s *Server) refuseWith(e *exchange, code, detail string) {
	p, ok := handler.FindProblem(code)
	if !ok {
		p, _ = handler.FindProblem(handler.InternalError)
	}
	p.Detail = cmp.Or(detail, p.Detail)
	var retryAfter int64
	if code == handler.Overloaded {
		retryAfter = overloadedRetrySeconds
	}
	e.response = *handler.NewProblem(s.config.DocsURL, p, s.config.NewRequestID(), retryAfter)
}
