package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"regedge/handler"
)

// secure is HTTP/1.1 and HTTP/2 over TLS, on net/http.
type secure struct {
	*http.Server
	listener net.Listener
	of       *Server
}

func (s *Server) newSecure(listener net.Listener) transport {
	return secure{of: s, listener: listener, Server: &http.Server{
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

func (w secure) serve() error { return w.ServeTLS(w.listener, "", "") }
func (w secure) close() error { return w.Close() }

// settleTime is how long requests that have arrived have to begin, and finished answers to leave
// the buffers of HTTP/2: net/http knows of neither.
const settleTime = 25 * time.Millisecond

// shutdown lets connections end after their next answer at first. net/http's own Shutdown then
// closes idle ones; it may close one that has just got a request, so none is charged by then.
func (w secure) shutdown(ctx context.Context) error {
	_ = w.listener.Close()
	err := w.of.settle(ctx)
	w.of.refusing.Store(true)
	if err == nil {
		err = w.of.settle(ctx)
	}
	if err != nil {
		return err
	}
	if err = w.Shutdown(ctx); errors.Is(err, net.ErrClosed) {
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

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := s.config.Now()
	e := exchanges.Get().(*exchange)
	e.readHTTP(r)
	s.serve(e, s.config.Proxies.client(peerOf(r), &e.request))
	if s.draining.Load() {
		w.Header().Set("Connection", "close") // for HTTP/2, net/http sends GOAWAY
	}
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
			e.request.Headers = append(e.request.Headers, handler.Header{Name: name, Value: value})
		}
	}
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
	if e.response.Status != http.StatusNoContent {
		header["Content-Length"] = []string{strconv.Itoa(len(e.response.Body))}
	}
	w.WriteHeader(e.response.Status)
	w.Write(e.response.Body) // fails only if the client is gone
}

// certificateCheckInterval is the minimum time between checks of the files. A renewed certificate is
// used within a minute, without a restart.
const certificateCheckInterval = time.Minute

// NewTLS reads a certificate chain and its key, in PEM. The configuration reloads them when the
// certificate's file changes. If they cannot be read then, the earlier certificate stays in use.
func NewTLS(certFile, keyFile string, now func() time.Time) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, now: now}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("read TLS certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

type certificate struct {
	certFile, keyFile string
	now               func() time.Time

	mu       sync.Mutex
	current  *tls.Certificate
	modified time.Time // of the certificate's file
	checked  time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.checked) >= certificateCheckInterval {
		c.load() // on failure, keep the current one
	}
	return c.current, nil
}

// load reads the files if the certificate's has changed.
func (c *certificate) load() error {
	c.checked = c.now()
	info, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	if c.current != nil && info.ModTime().Equal(c.modified) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.modified = &pair, info.ModTime()
	return nil
}
