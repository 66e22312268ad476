package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// listen takes the address that a flag gave for a service, and tells whoever waits for it.
func (m *Main) listen(name, flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, withHint(fmt.Errorf("the address %s of the %s is in use", address, name),
			"is regedge running already? Else %s takes another address", flag)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the %s: %w", name, err)
	}
	if m.Listening != nil {
		m.Listening(name, listener.Addr())
	}
	return listener, nil
}

// The limits of the small servers: APIs and metrics. An edge's sync with the writer is
// held open for longer than any of its answers takes, so writing has no limit here; the
// writer bounds it itself.
const (
	apiHeaderTimeout = 5 * time.Second
	apiReadTimeout   = 30 * time.Second
	apiIdleTimeout   = 2 * time.Minute
	apiHeaderBytes   = 16 << 10
	apiDrainTimeout  = 5 * time.Second
)

// serveAPI is the service of a plain HTTP handler on a listener.
func serveAPI(name string, listener net.Listener, handler http.Handler, log *slog.Logger) service {
	return service{name, func(ctx context.Context) error {
		web := &http.Server{
			Handler: handler, ReadHeaderTimeout: apiHeaderTimeout, ReadTimeout: apiReadTimeout,
			IdleTimeout: apiIdleTimeout, MaxHeaderBytes: apiHeaderBytes,
			ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			BaseContext: func(net.Listener) context.Context { return ctx },
		}
		served := make(chan error, 1)
		go func() { served <- web.Serve(listener) }()
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
		}
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiDrainTimeout)
		defer cancel()
		err := web.Shutdown(patience)
		if err != nil {
			err = errors.Join(err, web.Close())
		}
		<-served
		return err
	}}
}

// newMetrics makes a registry with what Go and the system say of this process.
func newMetrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// listenForMetrics takes the address of the metrics; without one it is nil.
func (m *Main) listenForMetrics(address string, closers *closing) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := m.listen("metrics", "--metrics", address)
	if err == nil {
		closers.add(ignoreClosed(listener))
	}
	return listener, err
}

// serveMetrics is the service of the metrics, on an address of their own.
func serveMetrics(listener net.Listener, registry *prometheus.Registry, log *slog.Logger) service {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return serveAPI("metrics", listener, mux, log)
}
