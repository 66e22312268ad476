package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the small servers.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	// writeTimeout bounds a request from its header to the end of its answer. It has room for a sync request, which the
	// writer holds open for half a minute, and for the largest file on a slow line.
	writeTimeout = 5 * time.Minute
	idleTimeout  = 2 * time.Minute
	drainTimeout = 5 * time.Second
	headerBytes  = 16 << 10
)

// HTTP returns the service of an API or a page server on a listener, which it closes. When
// it stops, requests in flight have 5 s to end, and connections without a whole header are closed.
func HTTP(name string, listener net.Listener, handler http.Handler, log *slog.Logger) Service {
	return Service{name, func(ctx context.Context) error {
		web := &http.Server{
			Handler: logged(name, handler, log), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
			ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			BaseContext: func(net.Listener) context.Context { return ctx },
		}
		unused := watchUnused(web)
		served := make(chan error, 1)
		go func() { served <- web.Serve(listener) }()
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
		}
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		unused.close()
		err := web.Shutdown(drain)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			log.Warn("requests were cut off at the end", "server", name, "after", drainTimeout.String())
			err = web.Close()
		case err != nil:
			err = errors.Join(err, web.Close())
		}
		<-served
		return err
	}}
}

// logged logs a panic of a handler. net/http would log it among the errors of clients, which nobody reads. Either way
// the connection is closed.
func logged(name string, handler http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause != http.ErrAbortHandler {
				log.Error("no answer", "server", name, "error", fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		handler.ServeHTTP(w, r)
	})
}

// unusedConns are a server's connections without a request: none yet, or none since the last answer. Browsers and Go's
// client open some in advance, and Shutdown would wait 5 s for each. It would also wait 5 s for each client with TLS
// that reads nothing, one after the other, to take leave of it.
type unusedConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

func watchUnused(web *http.Server) *unusedConns {
	u := &unusedConns{conns: map[net.Conn]struct{}{}}
	web.ConnState = func(conn net.Conn, state http.ConnState) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if state != http.StateNew && state != http.StateIdle {
			delete(u.conns, conn)
		} else if u.conns[conn] = struct{}{}; u.ended {
			hangUp(conn)
		}
	}
	return u
}

func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for conn := range u.conns {
		hangUp(conn)
	}
}

// hangUp closes a connection at once, without TLS's farewell. An idle one must have HTTP/1.1: net/http calls a connection of HTTP/2
// idle before its last answer is sent.
func hangUp(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	conn.Close()
}

// NewMetrics returns a Prometheus registry that already has the metrics of Go and of the
// process.
func NewMetrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Metrics returns the service that answers GET /metrics on an address of its own, and with profiles
// those of Profiles.
func Metrics(listener net.Listener, registry *prometheus.Registry, profiles bool, log *slog.Logger) Service {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if profiles {
		mux.Handle(ProfilesPath, Profiles())
	}
	return HTTP("metrics", listener, mux, log)
}
