package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

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
			HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReadFrameSize: frameBytes, WriteByteTimeout: s.config.WriteTimeout, CountError: s.streamError},
			Protocols:                    passedOn(),
			DisableGeneralOptionsHandler: true,
			ConnContext:                  withPeer,
			ErrorLog:                     slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
		},
	}
}

// unreadHeaders is a factor of MaxHeaderBytes. A header longer than MaxHeaderBytes is refused. One longer than
// unreadHeaders times that is not read to its end; twice as much ends the connection.
const unreadHeaders = 4

// passedOn is the protocol for net/http to speak on a connection that is not a tls.Conn: HTTP/2; see streams.
func passedOn() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// streamError counts and logs a stream or a connection that net/http ended. what is one of net/http's
// fixed texts.
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
		if first, ok := errors.AsType[tls.RecordHeaderError](err); ok && first.Conn != nil && isClear(first.RecordHeader) {
			w.refuseClear(conn)
		}
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
		s := newStreams(secured, unreadHeaders*w.of.config.MaxHeaderBytes)
		s.patience = patienceOf(w.of.config.ReadHeaderTimeout)
		w.toHTTP2.give(s)
	}
}

// isClear reports whether a connection begins as HTTP does without TLS: with a method.
func isClear(first [5]byte) bool {
	return strings.Trim(string(first[:]), "ABCDEFGHIJKLMNOPQRSTUVWXYZ /*") == ""
}

// refuseClear answers a client that speaks HTTP without TLS. If it were only hung up on, it would think that nothing
// works at this address.
func (w *secure) refuseClear(conn net.Conn) {
	c := &connection{Conn: conn, peer: peerAt(conn), of: w.http1.connections}
	c.lingers.Store(true)
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(w.of.config.WriteTimeout))
	var answer fasthttp.Response
	answer.SetConnectionClose()
	w.of.refuseInvalid(c.peer, handler.InvalidRequest, "This address speaks HTTPS: call it as https://. Replace an API key that was sent without TLS, since others could read it.", &answer)
	_, _ = answer.WriteTo(c)
}

// suitesOfHTTP2 are the cipher suites of TLS 1.2 with which HTTP/2 is spoken (RFC 9113, section 9.2.2).
var suitesOfHTTP2 = []uint16{
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
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
	return w.http2.Shutdown(ctx)
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
