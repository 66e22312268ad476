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

// Screen answers requests that are refused whatever the registry has, at less cost than an Answerer
// and with the same bytes. Refuse returns false, and leaves the response alone, if it is not one
// of them.
type Screen interface {
	Refuse(ctx context.Context, request *handler.Request, response *handler.Response) (refused bool)
}

// ErrOverloaded is returned by an Answerer that cannot take on the request.
var ErrOverloaded = errors.New("too many requests are being answered")

// The defaults of a Config. A lookup takes microseconds, or a second if it waits for the writer, so
// the timeouts allow for slow networks rather than slow work.
const (
	DefaultReadHeaderTimeout = 5 * time.Second
	DefaultWriteTimeout      = 15 * time.Second
	DefaultIdleTimeout       = 2 * time.Minute
	DefaultDrainTimeout      = 10 * time.Second
	DefaultMaxInFlight       = 256
	// DefaultMaxConnections take about 100 MB when all are idle.
	DefaultMaxConnections = 8192
	// DefaultMaxConnectionsPerAddress leaves room for a large office behind one address.
	DefaultMaxConnectionsPerAddress = 512
	// DefaultMaxHeaderBytes bounds the request line and all header fields together.
	DefaultMaxHeaderBytes = 16 << 10
	// DefaultMaxTargetBytes is three times the size of a name of 200 characters of 4 bytes,
	// with each byte percent-encoded.
	DefaultMaxTargetBytes = 8 << 10
)

// Config describes what to serve, and the limits. A limit of zero means its default.
type Config struct {
	Answerer Answerer
	// Screen, if not nil, is asked first about addresses and keys that were just refused.
	Screen Screen
	// Ready returns why the server should not get requests now, or nil if it should.
	Ready func() error
	// Remark returns what an operator should know of a server that is ready, "" if there is nothing; may be nil.
	Remark func() string
	// DocsURL is the URL of the host's pages, without a slash at its end. It is empty if unknown.
	DocsURL string
	// Pages, if not nil, adds the host's pages to the router, including /problems/{code}. They
	// answer GET and HEAD; the server adds the request id. What they answer with 404, and the router's
	// NotFound, is for browsers: programs get the Answerer's answer.
	Pages func(*httprouter.Router)
	// Proxies are the trusted proxies.
	Proxies Proxies
	// TLS is nil for plain HTTP.
	TLS *tls.Config

	ReadHeaderTimeout, WriteTimeout, IdleTimeout, DrainTimeout time.Duration
	MaxHeaderBytes, MaxTargetBytes                             int
	// MaxInFlight bounds the lookups at once. Clients share them, see shares.
	MaxInFlight int
	// Waiting, if not nil, tells how many of the lookups in flight wait for a lease: at most MaxWaiting,
	// which may be in flight beside the MaxInFlight others.
	Waiting    func() int
	MaxWaiting int
	// MaxConnections bounds the connections, MaxConnectionsPerAddress those of one client address,
	// which is an IPv4 address or an IPv6 network of 64 bits. A trusted proxy has no bound of its own.
	MaxConnections, MaxConnectionsPerAddress int

	// Log gets one line for each request, and the errors.
	Log *slog.Logger
	// Metrics is the registry for the server's metrics.
	Metrics prometheus.Registerer
	// NewRequestID makes the request id of answers that do not come from the Answerer.
	NewRequestID func() string
	// Tracer, if not nil, traces lookups.
	Tracer Tracer
	// Served, if not nil, receives each lookup with a live key. It is called on the way of each
	// answer, so it has to be quick.
	Served func(Served)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	setDefault(&c.ReadHeaderTimeout, DefaultReadHeaderTimeout)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.IdleTimeout, DefaultIdleTimeout)
	setDefault(&c.DrainTimeout, DefaultDrainTimeout)
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.MaxConnections, DefaultMaxConnections)
	setDefault(&c.MaxConnectionsPerAddress, DefaultMaxConnectionsPerAddress)
	setDefault(&c.MaxHeaderBytes, DefaultMaxHeaderBytes)
	setDefault(&c.MaxTargetBytes, DefaultMaxTargetBytes)
	if c.Waiting == nil {
		c.Waiting = func() int { return 0 }
	}
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
	shares   *shares
	large    atomic.Int64 // large pages being sent, see maxLarge
	paces    *paces
	draining atomic.Bool
	stopping chan struct{} // closed when draining is set
	refusing atomic.Bool   // lookups, since their connections are being closed
}

// New checks the configuration and registers the metrics.
func New(config Config) (*Server, error) {
	config = config.withDefaults()
	s := &Server{config: config, paces: newPaces(), stopping: make(chan struct{})}
	s.shares = newShares(config, &s.inFlight)
	var err error
	if s.metrics, err = newMetrics(config.Metrics, &s.inFlight); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.pages = s.newPages()
	return s, nil
}

// Run serves the listener until ctx is done. Then it accepts no more connections, finishes the requests
// in flight and returns nil. It returns an error if serving failed, or if requests were still in flight
// after DrainTimeout and were cut off. The listener is closed.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	web := s.newPlain
	if s.config.TLS != nil {
		web = s.newSecure
	}
	bounded, err := s.newBounded(listener)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	transport := web(bounded)
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
	close(s.stopping)
	err = s.drain(transport)
	<-served
	return err
}

// transport reads requests from the connections of a listener and writes the responses.
type transport interface {
	// serve returns when the transport is shut down, or fails.
	serve() error
	// shutdown accepts no more connections, and waits for the requests in flight until ctx is done.
	shutdown(context.Context) error
	// close closes the remaining connections.
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
