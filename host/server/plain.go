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

// plain is HTTP/1.1 on fasthttp, without TLS or after its handshake. It takes less than half of the processor
// time of net/http (RATIONALE.md, "Why two HTTP servers, fasthttp for HTTP/1.1 and net/http for HTTP/2?").
type plain struct {
	*fasthttp.Server
	connections *connections
}

func (s *Server) newPlain(listener net.Listener) transport {
	return plain{connections: newConnections(listener, s.config.Log), Server: &fasthttp.Server{
		Handler:        s.answerPlain,
		ErrorHandler:   s.refusePlain,
		HeaderReceived: withoutBody,
		ReadTimeout:    s.config.ReadHeaderTimeout, // no body is read
		WriteTimeout:   s.config.WriteTimeout,
		IdleTimeout:    s.config.IdleTimeout,
		ReadBufferSize: s.config.MaxHeaderBytes,
		ConnState:      awaitRequest,
		// A connection releases its buffers, such as that of a large page, after each request
		// rather than with the next one.
		ReduceMemoryUsage: true,

		DisableHeaderNamesNormalizing: true,
		NoDefaultContentType:          true,
		NoDefaultServerHeader:         true,
		LazyRequestTime:               true,
		Logger:                        quiet{s.config.Log},
	}}
}

func (p plain) serve() error { return p.Serve(p.connections) }

// shutdown does not use fasthttp's own, which closes a connection that has just received a request: the request would
// be charged, and its answer could not be sent.
func (p plain) shutdown(ctx context.Context) error {
	p.connections.drain()
	return p.connections.wait(ctx)
}

func awaitRequest(c net.Conn, state fasthttp.ConnState) {
	if state == fasthttp.StateIdle {
		c.(*connection).await()
	}
}

func (p plain) close() error { return p.connections.closeAll() }

// quiet logs fasthttp's messages without their arguments, which may be data of a client.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, _ ...any) { q.log.Debug("a connection", "event", format) }

// withoutBody makes fasthttp answer a request without reading its body. The connection is closed after
// the answer, so that the body is not parsed as the next request.
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
	if !ctx.Conn().(*connection).begin() {
		ctx.SetConnectionClose()
		_ = ctx.Conn().Close() // else fasthttp would answer 200
		return
	}
	if ctx.Request.Header.ConnectionClose() {
		ctx.Conn().(*connection).lingers.Store(true)
	}
	defer func() { // fasthttp does not recover
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
		from := ctx.Conn().(*connection).peer
		s.serve(e, s.config.Proxies.client(from, &e.request))
		e.writePlain(&ctx.Response)
		s.record(e, s.config.Now().Sub(started))
		s.pace(e, from)
	}
	if s.draining.Load() {
		ctx.SetConnectionClose()
		ctx.Conn().(*connection).lingers.Store(true)
	}
	e.reset()
	exchanges.Put(e)
}

var (
	errHost     = errors.New("the host is not valid")                // RFC 9112, section 3.2
	errName     = errors.New("the name of a field contains a space") // RFC 9110, section 5.1
	errProtocol = errors.New("the protocol is neither HTTP/1.1 nor HTTP/1.0")
)

// readPlain copies a request out of fasthttp's buffers, which the next request overwrites.
func (e *exchange) readPlain(from *fasthttp.RequestHeader) error {
	if !from.IsHTTP11() && string(from.Protocol()) != "HTTP/1.0" {
		return errProtocol
	}
	target, host := from.RequestURI(), from.Host()
	size := len(target) + len(host)
	for name, value := range from.All() {
		size += len(name) + len(value)
	}
	var text strings.Builder
	text.Grow(size)
	take := func(part []byte) string { // all parts share one allocation
		begin := text.Len()
		text.Write(part)
		return text.String()[begin:]
	}
	e.request.Method = methodOf(from.Method())
	e.request.Target, e.request.Authority = originForm(take(target), take(host))
	sent := text.String()[:len(target)]
	if !strings.HasPrefix(sent, "/") && strings.Contains(sent, "://") && !isAbsolute(sent) || namesTwoHosts(sent) {
		return errHost
	}
	if len(host) > 0 && !isHost(text.String()[len(target):len(target)+len(host)]) {
		return errHost
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

// methodOf converts a method, without an allocation for the usual ones.
func methodOf(method []byte) string {
	switch string(method) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	}
	return string(method)
}

// writePlain sends the response, with the names of fields as the answer spells them.
func (e *exchange) writePlain(to *fasthttp.Response) {
	to.SetStatusCode(e.response.Status)
	for _, field := range e.response.Headers {
		if !strings.EqualFold(field.Name, "Content-Length") { // the server sets its own
			to.Header.Add(field.Name, field.Value)
		}
	}
	if e.written == nil {
		to.SetBody(e.response.Body)
		return
	}
	to.SetBodyStream(&largeBody{Reader: bytes.NewReader(e.response.Body), written: e.written}, len(e.response.Body))
}

// largeBody is a body that is streamed, so that neither the exchange nor fasthttp keeps its memory.
type largeBody struct {
	*bytes.Reader
	written func()
}

// Close is called after the body was written, or could not be.
func (b *largeBody) Close() error {
	b.written()
	return nil
}

// refusePlain answers data that is not a request, with its own route in log and metrics. The cause
// is not logged: it may hold what the client sent.
func (s *Server) refusePlain(ctx *fasthttp.RequestCtx, cause error) {
	conn := ctx.Conn().(*connection)
	conn.lingers.Store(true)
	_ = conn.SetWriteDeadline(time.Now().Add(s.config.WriteTimeout)) // the one of the last answer may have passed
	code := handler.InvalidRequest
	if _, long := errors.AsType[*fasthttp.ErrSmallBuffer](cause); long {
		code = handler.HeaderTooLarge
	} else if slow, ok := errors.AsType[net.Error](cause); ok && slow.Timeout() {
		code = handler.RequestTimeout
	}
	ctx.Response.Reset()
	s.refuseInvalid(conn.peer, code, "", &ctx.Response)
}

// refuseInvalid fills in the answer to data that is not a request, and counts it. An empty detail stands for that of the code.
func (s *Server) refuseInvalid(from *peer, code, detail string, to *fasthttp.Response) {
	e := &exchange{client: from.text, route: routeInvalid}
	s.refuseWith(e, code, detail)
	e.id = valueOf(e.response.Headers, handler.HeaderRequestID)
	e.writePlain(to)
	s.record(e, 0)
	s.pace(e, from)
}
