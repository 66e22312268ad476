package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"regedge/handler"
)

// plain serves HTTP/1.1 without TLS, in about half of the processor time that net/http takes
// (docs/performance.md).
type plain struct {
	*fasthttp.Server
	connections *connections
}

func (s *Server) newPlain(listener net.Listener) transport {
	return plain{connections: newConnections(listener, s.config.Log), Server: &fasthttp.Server{
		Handler:         s.answerPlain,
		ErrorHandler:    s.refusePlain,
		HeaderReceived:  withoutBody,
		ReadTimeout:     s.config.ReadHeaderTimeout, // a body is not read
		WriteTimeout:    s.config.WriteTimeout,
		IdleTimeout:     s.config.IdleTimeout,
		ReadBufferSize:  s.config.MaxHeaderBytes,
		CloseOnShutdown: true,
		// A connection gives its memory back between two requests, among it that of a large
		// page, and no answer waits for that to the next request.
		ReduceMemoryUsage: true,

		DisableHeaderNamesNormalizing: true,
		NoDefaultContentType:          true,
		NoDefaultServerHeader:         true,
		LazyRequestTime:               true,
		Logger:                        quiet{s.config.Log},
	}}
}

func (p plain) serve() error { return p.Serve(p.connections) }

func (p plain) shutdown(ctx context.Context) error {
	err := p.ShutdownWithContext(ctx)
	p.connections.Close() // which was not done if serve has not begun
	if err == nil {
		err = p.connections.wait(ctx)
	}
	return err
}

func (p plain) close() error { return p.connections.closeAll() }

// quiet logs what fasthttp says of a connection without what the client has sent on it.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, _ ...any) { q.log.Debug("a connection", "event", format) }

// withoutBody has a request answered before its body has come, which nobody reads: the
// connection ends with the answer, so that no body is taken for a request.
func withoutBody(header *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	const chunked = -1
	if length := header.ContentLength(); length > 0 || length == chunked {
		header.SetContentLength(0)
		header.Del("Expect")
		header.SetConnectionClose()
	}
	return unchanged
}

// answerPlain answers one request.
func (s *Server) answerPlain(ctx *fasthttp.RequestCtx) {
	started := s.config.Now()
	if ctx.Request.Header.ConnectionClose() {
		ctx.Conn().(*connection).lingers.Store(true)
	}
	defer func() { // fasthttp does not
		if cause := recover(); cause != nil {
			s.config.Log.Error("no answer", "error", fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
			ctx.Error(http.StatusText(http.StatusInternalServerError)+"\n", http.StatusInternalServerError)
		}
	}()
	e := exchanges.Get().(*exchange)
	if err := e.readPlain(&ctx.Request.Header); err != nil {
		s.refusePlain(ctx, err)
		ctx.SetConnectionClose()
	} else {
		s.serve(e, s.config.Proxies.client(ctx.Conn().(*connection).peer, &e.request))
		e.writePlain(&ctx.Response)
		s.record(e, s.config.Now().Sub(started))
	}
	e.reset()
	exchanges.Put(e)
}

var (
	errNoHost = errors.New("the request names no host")        // RFC 9112, section 3.2
	errName   = errors.New("a field's name has a space in it") // RFC 9110, section 5.1
)

// readPlain copies a request out of memory that the next one will take.
func (e *exchange) readPlain(from *fasthttp.RequestHeader) error {
	target, host := from.RequestURI(), from.Host()
	size := len(target) + len(host)
	for name, value := range from.All() {
		size += len(name) + len(value)
	}
	var text strings.Builder
	text.Grow(size)
	take := func(part []byte) string { // all parts are of one string
		begin := text.Len()
		text.Write(part)
		return text.String()[begin:]
	}
	e.request.Method = methodOf(from.Method())
	e.request.Target, e.request.Authority = originForm(take(target), take(host))
	if e.request.Authority == "" && from.IsHTTP11() {
		return errNoHost
	}
	for name, value := range from.All() {
		if bytes.IndexByte(name, ' ') >= 0 {
			return errName
		}
		if !strings.EqualFold(string(name), "Host") {
			e.request.Headers = append(e.request.Headers, handler.Header{Name: take(name), Value: take(value)})
		}
	}
	return nil
}

// methodOf makes no new string for the usual methods.
func methodOf(method []byte) string {
	switch string(method) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	}
	return string(method)
}

// writePlain sends the response. Field names go out as they are written in the answer.
func (e *exchange) writePlain(to *fasthttp.Response) {
	to.SetStatusCode(e.response.Status)
	for _, field := range e.response.Headers {
		if !strings.EqualFold(field.Name, "Content-Length") { // the server counts for itself
			to.Header.Add(field.Name, field.Value)
		}
	}
	if e.written == nil {
		to.SetBody(e.response.Body)
		return
	}
	to.SetBodyStream(&largeBody{Reader: bytes.NewReader(e.response.Body), written: e.written}, len(e.response.Body))
}

// largeBody is one whose memory the exchange does not keep, and fasthttp should not.
type largeBody struct {
	*bytes.Reader
	written func()
}

// Close is called when the body was written, or can't be.
func (b *largeBody) Close() error {
	b.written()
	return nil
}

// refusePlain answers what is not a request, and has no route that it could be logged under.
func (s *Server) refusePlain(ctx *fasthttp.RequestCtx, cause error) {
	ctx.Conn().(*connection).lingers.Store(true)
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(s.config.WriteTimeout)) // that of the last answer may be over
	status := http.StatusBadRequest
	if _, long := errors.AsType[*fasthttp.ErrSmallBuffer](cause); long {
		status = http.StatusRequestHeaderFieldsTooLarge
	} else if slow, ok := errors.AsType[net.Error](cause); ok && slow.Timeout() {
		status = http.StatusRequestTimeout
	}
	ctx.Error(http.StatusText(status)+"\n", status)
}
