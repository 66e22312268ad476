package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"regedge/handler"
)

// ServeHTTP sends the service's own paths to the Answerer, and any other path too
// unless it is one of the host's pages.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := s.config.Now()
	e := exchanges.Get().(*exchange)
	e.client = s.config.Proxies.client(peerOf(r), r.Header)
	s.dispatch(e, w, r)
	s.record(e, r, s.config.Now().Sub(started))
	e.reset()
	exchanges.Put(e)
}

// exchange is what the server knows of one request and its answer.
type exchange struct {
	request  Request
	response handler.Response
	client   string
	route    route
	status   int
	id       string
	cause    error // of an *Answered
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// maxKeptBytes bounds the body memory that is kept for the next request: the usual
// answer is a few kilobytes.
const maxKeptBytes = 64 << 10

func (e *exchange) reset() {
	clear(e.response.Headers)
	kept := handler.Response{Headers: e.response.Headers[:0]}
	if cap(e.response.Body) <= maxKeptBytes {
		kept.Body = e.response.Body[:0]
	}
	*e = exchange{response: kept}
}

func (s *Server) dispatch(e *exchange, w http.ResponseWriter, r *http.Request) {
	target := targetOf(r)
	e.route = routeOf(target)
	if len(target) > s.config.MaxTargetBytes {
		e.response = *s.uriTooLong()
		e.write(w)
		return
	}
	if e.route == routeOther {
		if page, params, _ := s.pages.Lookup(http.MethodGet, r.URL.Path); page != nil {
			e.route = routePage
			s.servePage(e, w, r, page, params)
			return
		}
	}
	if s.inFlight.Add(1) > int64(s.config.MaxInFlight) {
		s.inFlight.Add(-1)
		s.refuse(e, w, handler.Overloaded)
		return
	}
	defer s.inFlight.Add(-1)
	e.request = Request{
		Method: r.Method, Target: target, Authority: r.Host, Client: e.client, Header: r.Header,
	}
	// A request that has begun is finished even when its client has gone: what it was
	// charged for must not depend on who hung up first.
	if err := s.answer(context.WithoutCancel(r.Context()), e); err != nil {
		s.fail(e, w, err)
		return
	}
	e.write(w)
	if e.cause != nil {
		s.logFailure(e, "answered after a failure", e.cause)
	}
}

// targetOf is the path and query as sent. A proxy's request line names a scheme and a
// host too, which do not belong to it.
func targetOf(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") || r.RequestURI == "*" {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

// answer calls the Answerer; a panic of it is an error, with its stack.
func (s *Server) answer(ctx context.Context, e *exchange) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	err = s.config.Answerer.Answer(ctx, &e.request, &e.response)
	if answered, ok := errors.AsType[*Answered](err); ok {
		e.cause, err = answered.Cause, nil
	}
	if err != nil {
		return err
	}
	if e.response.Status < 200 || e.response.Status > 599 {
		return fmt.Errorf("the answer has status %d", e.response.Status)
	}
	return nil
}

// fail answers 500 and logs why.
func (s *Server) fail(e *exchange, w http.ResponseWriter, err error) {
	if errors.Is(err, ErrOverloaded) {
		s.refuse(e, w, handler.Overloaded)
		return
	}
	s.refuse(e, w, handler.InternalError)
	s.logFailure(e, "no answer", err)
}

// logFailure logs what the client is not told, under the id that it gets.
func (s *Server) logFailure(e *exchange, what string, err error) {
	s.config.Log.LogAttrs(context.Background(), slog.LevelError, what,
		slog.String("request_id", e.id), slog.Any("error", err))
}

// valuesOf lists the values of a field that the answer has more than once.
func (e *exchange) valuesOf(name string) (values []string) {
	for _, field := range e.response.Headers {
		if field.Name == name {
			values = append(values, field.Value)
		}
	}
	return values
}

// write sends the response. Header names go out as they are written in the answer:
// net/http would spell RateLimit-Limit in another way.
func (e *exchange) write(w http.ResponseWriter) {
	header := w.Header()
	values := make([]string, len(e.response.Headers)+1)
	for i, field := range e.response.Headers {
		if strings.EqualFold(field.Name, "Content-Length") {
			continue // the server counts for itself
		}
		if field.Name == handler.HeaderRequestID {
			e.id = field.Value
		}
		known := len(header)
		values[i] = field.Value
		header[field.Name] = values[i : i+1 : i+1]
		if len(header) == known {
			header[field.Name] = e.valuesOf(field.Name)
		}
	}
	if e.response.Status != http.StatusNoContent {
		last := values[len(values)-1:]
		last[0] = strconv.Itoa(len(e.response.Body))
		header["Content-Length"] = last
	}
	e.status = e.response.Status
	w.WriteHeader(e.status)
	w.Write(e.response.Body) // an error here is a client that has gone
}
