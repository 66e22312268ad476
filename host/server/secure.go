package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"regedge/handler"
)

// secure is HTTP/1.1 and HTTP/2 over TLS. After the handshake, HTTP/1.1 goes the way of a
// connection without TLS, so that both listeners read a request alike; HTTP/2 goes to net/http.
type secure struct {
	listener net.Listener
	config   *tls.Config
	of       *Server
	http1    plain
	http2    *http.Server
	// toHTTP1 and toHTTP2 pass on connections after their handshakes.
	toHTTP1, toHTTP2 *handOver
}

func (s *Server) newSecure(listener net.Listener) transport {
	config := s.config.TLS.Clone()
	config.NextProtos = []string{protocolHTTP2, "http/1.1"}
	config.GetConfigForClient = s.newLane().enter
	toHTTP1, toHTTP2 := newHandOver(listener.Addr()), newHandOver(listener.Addr())
	return &secure{
		listener: listener, config: config, of: s, toHTTP1: toHTTP1, toHTTP2: toHTTP2,
		http1: s.newPlain(toHTTP1).(plain),
		http2: &http.Server{
			Handler:                      s,
			ReadHeaderTimeout:            s.config.ReadHeaderTimeout,
			ReadTimeout:                  s.config.ReadHeaderTimeout, // a body is not read
			WriteTimeout:                 s.config.WriteTimeout,
			IdleTimeout:                  s.config.IdleTimeout,
			MaxHeaderBytes:               unreadHeaders * s.config.MaxHeaderBytes,
			HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReadFrameSize: frameBytes, CountError: s.streamError},
			Protocols:                    passedOn(),
			DisableGeneralOptionsHandler: true,
			ConnContext:                  withPeer,
			ErrorLog:                     slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
		},
	}
}

// unreadHeaders is how many times MaxHeaderBytes is read of a header. What is longer than one is refused;
// what is longer than this is also left unread, and a connection ends with one of twice that.
const unreadHeaders = 4

// passedOn is HTTP/2 on a connection that is not of type tls.Conn, see streams.
func passedOn() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// streamError counts a stream or a connection that net/http ended, and logs it. what is one of a few
// words of net/http.
func (s *Server) streamError(what string) {
	s.metrics.streamErrors.Inc()
	s.config.Log.Info("a stream or a connection with HTTP/2 was ended", "error", what)
}

// maxStreams bounds the requests at once on a connection with HTTP/2. RFC 9113, section 6.5.2, advises
// against less than 100.
const maxStreams = 100

// protocolHTTP2 is the name of HTTP/2 in the handshake (RFC 9113, section 3.1).
const protocolHTTP2 = "h2"

func (w *secure) serve() error {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	defer w.toHTTP1.Close()
	defer w.toHTTP2.Close()
	running.Go(func() { _ = w.http1.serve() })
	running.Go(func() { _ = w.http2.Serve(w.toHTTP2) })
	for {
		conn, err := accept(w.listener, w.of.config.Log)
		if err != nil {
			return err
		}
		running.Go(func() { w.handshake(ctx, conn) })
	}
}

// handshake ends with ctx, after ReadHeaderTimeout, or by passing the connection on.
func (w *secure) handshake(ctx context.Context, conn net.Conn) {
	countedOf(conn).wait()
	ctx, cancel := context.WithTimeout(ctx, w.of.config.ReadHeaderTimeout)
	defer cancel()
	secured := tls.Server(conn, w.config)
	err := secured.HandshakeContext(ctx)
	countedOf(conn).leaveLane()
	if err != nil {
		w.of.config.Log.Debug("TLS handshake", "error", err)
		_ = conn.Close()
		return
	}
	state := secured.ConnectionState()
	switch {
	case state.NegotiatedProtocol != protocolHTTP2:
		w.toHTTP1.give(secured)
	case state.Version < tls.VersionTLS13 && !slices.Contains(suitesOfHTTP2, state.CipherSuite):
		w.of.streamError("inadequate_security")
		_ = secured.Close()
	default:
		w.toHTTP2.give(newStreams(secured, unreadHeaders*w.of.config.MaxHeaderBytes))
	}
}

// suitesOfHTTP2 are the cipher suites of TLS 1.2 with which HTTP/2 is spoken (RFC 9113, section 9.2.2).
var suitesOfHTTP2 = []uint16{
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
}

// lane bounds the handshakes that compute at once to half of the processors, so that a lookup waits for
// few of them: one takes as long as twenty lookups. Those of an address wait for one another first, so
// that a client waits for one handshake of each other address, not for the hundreds of a single one. A
// handshake that waits for its client is not in the lane, so that slow clients keep nobody out.
type lane struct {
	of      *Server
	compute chan struct{}
	turns   [laneTurns]chan struct{}
}

// laneTurns is how many addresses are told apart; two that share a turn wait for each other.
const laneTurns = 256

func (s *Server) newLane() *lane {
	l := &lane{of: s, compute: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	for i := range l.turns {
		l.turns[i] = make(chan struct{}, 1)
	}
	return l
}

// enter is called when the client's first message was read. The connection leaves the lane with the
// answer to it, see counted.Write, or when the handshake fails.
func (l *lane) enter(hello *tls.ClientHelloInfo) (unchanged *tls.Config, err error) {
	c := countedOf(hello.Conn)
	if c == nil || c.leave != nil { // the second message, after a request to retry
		return nil, nil
	}
	turn := make(chan struct{}, 1) // a trusted proxy's connections are of many clients
	if c.address != "" {
		turn = l.turns[l.of.shares.place(c.address)%laneTurns]
	}
	if err := waitFor(hello.Context(), turn); err != nil {
		return nil, err
	}
	if err := waitFor(hello.Context(), l.compute); err != nil {
		<-turn
		return nil, err
	}
	c.leave = func() { <-l.compute; <-turn }
	return nil, nil
}

// waitFor takes a place in a channel.
func waitFor(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *secure) close() error { return errors.Join(w.http1.close(), w.http2.Close()) }

// settleTime is how long requests that have arrived have to begin, and finished answers to leave
// the buffers of HTTP/2: net/http knows of neither.
const settleTime = 25 * time.Millisecond

// shutdown lets connections with HTTP/2 end after their next answer at first. net/http's own Shutdown
// then closes idle ones; it may close one that has just got a request, so none is charged by then.
func (w *secure) shutdown(ctx context.Context) error {
	_ = w.listener.Close()
	err := w.http1.shutdown(ctx)
	_ = w.toHTTP2.Close()
	err = errors.Join(err, w.of.settle(ctx))
	w.of.refusing.Store(true)
	if err = errors.Join(err, w.of.settle(ctx)); err != nil {
		return err
	}
	if err = w.http2.Shutdown(ctx); errors.Is(err, net.ErrClosed) {
		return nil // the listener
	}
	return err
}

// settle waits for settleTime, and until no lookup is in flight or ctx is done.
func (s *Server) settle(ctx context.Context) error {
	for wait := settleTime; wait > 0 || s.inFlight.Load() > 0; wait -= time.Millisecond {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

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

// refuseStream refuses a request that is none.
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
