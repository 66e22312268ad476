package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
)

// Answerer answers lookups: the component in its engine, or the handler itself.
//
// Answer fills response: it sets Status, appends to Headers and Body, which are empty but may
// have capacity from an earlier request, and may set Cause, which the server logs. The server
// reuses their memory for the next request, so the Answerer must not keep it, nor the request.
// An error means that there is no answer: the client gets 503 overloaded for ErrOverloaded
// and 500 internal_error for any other, whose text goes to the log. Answer is called
// concurrently.
type Answerer interface {
	Answer(ctx context.Context, request *handler.Request, response *handler.Response) error
}

// ErrOverloaded is returned by an Answerer that has no room for the request.
var ErrOverloaded = errors.New("no room for the request")

// The defaults of a Config. A lookup takes microseconds, or a second when it waits for
// the writer, so the times are those of slow networks, not of slow work.
const (
	DefaultReadHeaderTimeout = 5 * time.Second
	DefaultWriteTimeout      = 15 * time.Second
	DefaultIdleTimeout       = 2 * time.Minute
	DefaultDrainTimeout      = 10 * time.Second
	DefaultMaxInFlight       = 256
	// DefaultMaxHeaderBytes bounds the request line and all fields together.
	DefaultMaxHeaderBytes = 16 << 10
	// DefaultMaxTargetBytes holds a name of 200 characters of 4 bytes, each byte
	// percent-encoded, three times over.
	DefaultMaxTargetBytes = 8 << 10
)

// Config says what to serve and within which limits. A zero limit is its default.
type Config struct {
	Answerer Answerer
	// Ready tells why the server should get no requests now; nil when it should.
	Ready func() error
	// DocsURL is the address under which the host's pages are reached, without a slash
	// at its end; empty when it is not known.
	DocsURL string
	// Pages, when set, adds the host's pages to its router, among them /problems/{code}.
	// They answer GET and HEAD; the server adds the request id.
	Pages func(*httprouter.Router)
	// Proxies may say for whom they ask.
	Proxies Proxies
	// TLS is nil for plain HTTP.
	TLS *tls.Config

	ReadHeaderTimeout, WriteTimeout, IdleTimeout, DrainTimeout time.Duration
	MaxInFlight, MaxHeaderBytes, MaxTargetBytes                int

	// Log gets one line a request, and what went wrong.
	Log *slog.Logger
	// Metrics is where the server's metrics are registered.
	Metrics prometheus.Registerer
	// NewRequestID makes the id of an answer that does not come from the Answerer.
	NewRequestID func() string
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	setDefault(&c.ReadHeaderTimeout, DefaultReadHeaderTimeout)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.IdleTimeout, DefaultIdleTimeout)
	setDefault(&c.DrainTimeout, DefaultDrainTimeout)
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.MaxHeaderBytes, DefaultMaxHeaderBytes)
	setDefault(&c.MaxTargetBytes, DefaultMaxTargetBytes)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func setDefault[N int | time.Duration](n *N, value N) {
	if *n <= 0 {
		*n = value
	}
}

// Server serves one listener.
type Server struct {
	config   Config
	pages    *httprouter.Router
	metrics  *metrics
	inFlight atomic.Int64
	large    atomic.Int64 // pages, see maxLarge
	draining atomic.Bool
}

// New checks the configuration and registers the metrics.
func New(config Config) (*Server, error) {
	config = config.withDefaults()
	s := &Server{config: config}
	var err error
	if s.metrics, err = newMetrics(config.Metrics, &s.inFlight); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.pages = s.newPages()
	return s, nil
}

// Run serves the listener until ctx is done, then takes no more connections, finishes
// what is in flight and returns nil; an error when serving failed, or when something
// was still in flight after DrainTimeout and was cut off. The listener is closed.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	web := s.newPlain
	if s.config.TLS != nil {
		web = s.newSecure
	}
	transport := web(listener)
	served := make(chan error, 1)
	go func() { served <- transport.serve() }()
	select {
	case err := <-served:
		if err == nil {
			err = net.ErrClosed
		}
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	err := s.drain(transport)
	<-served
	return err
}

// transport takes requests from the connections of a listener.
type transport interface {
	// serve serves until the transport is shut down, or can't.
	serve() error
	// shutdown takes no more connections, and waits for requests in flight until ctx is done.
	shutdown(context.Context) error
	// close cuts off what is left.
	close() error
}

func (s *Server) drain(web transport) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	if err := web.shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("finish requests in flight: %w", err), web.close())
	}
	return nil
}
