package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the small servers. An edge's sync request is held open for longer than any of
// the writer's other answers takes, so writing has no limit here: the writer bounds it.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 5 * time.Second
	headerBytes   = 16 << 10
)

// HTTP returns the service of an API or a page server on a listener, which it closes. When
// it stops, requests in flight have 5 s to end.
func HTTP(name string, listener net.Listener, handler http.Handler, log *slog.Logger) Service {
	return Service{name, func(ctx context.Context) error {
		web := &http.Server{
			Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
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
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		err := web.Shutdown(drain)
		if err != nil {
			err = errors.Join(err, web.Close())
		}
		<-served
		return err
	}}
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
