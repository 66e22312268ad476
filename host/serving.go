package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
	"regedge/host/answer"
	"regedge/host/server"
	"regedge/replicate/metering/meter"
)

// serving are the flags of the commands that serve lookups.
type serving struct {
	Listen       string   `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address of the lookups (${default})."`
	Engine       string   `enum:"wazero,native" default:"wazero" help:"wazero runs the component, native the same logic without Wasm (${default})."`
	TLSCert      string   `type:"path" placeholder:"FILE" help:"Certificate chain, PEM. It is read again when it changes."`
	TLSKey       string   `type:"path" placeholder:"FILE" help:"Key of the certificate, PEM."`
	TrustedProxy []string `placeholder:"CIDR" help:"Networks whose hosts are believed about the client's address."`
	DocsURL      string   `name:"docs-url" placeholder:"URL" help:"Where clients reach this host's pages; begins the type of every error. By default the address of the lookups."`
	DashboardURL string   `name:"dashboard-url" placeholder:"URL" help:"Where account owners sign in; linked from this host's pages."`
	Metrics      string   `placeholder:"ADDR" help:"Address of the Prometheus metrics; none by default."`
	MaxInFlight  int      `default:"256" help:"Most requests answered at once; more get 503 (${default})."`
	Log          string   `enum:"all,errors" default:"all" help:"all writes one line a request, errors only what went wrong (${default})."`
}

// Validate finds what contradicts itself.
func (s *serving) Validate() error {
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if s.MaxInFlight < 1 {
		return errors.New("--max-in-flight is at least 1")
	}
	_, err := server.ParseProxies(s.TrustedProxy)
	return errors.Join(err, checkPageURL("--docs-url", &s.DocsURL), checkPageURL("--dashboard-url", &s.DashboardURL))
}

// logFlush is how long a log line may be held back.
const logFlush = 100 * time.Millisecond

// logger makes a logger of lines in JSON, or in text for people, and the service that
// writes them. What is said before that runs, or after, is written at the close.
func (s *serving) logger(m *Main, text bool, closers *closing) (*slog.Logger, service) {
	buffer := server.NewLogBuffer(m.Stderr)
	closers.add(buffer.Flush)
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if s.Log == "errors" {
		options.Level = slog.LevelError
	}
	var lines slog.Handler = slog.NewJSONHandler(buffer, options)
	if text {
		lines = slog.NewTextHandler(buffer, options)
	}
	return slog.New(lines), service{"log", func(ctx context.Context) error {
		buffer.Run(ctx, logFlush)
		return nil
	}}
}

// lookups are the parts of a node that serves lookups.
type lookups struct {
	access, registry reading
	meter            *meter.Meter
	log              *slog.Logger
	metrics          *prometheus.Registry
}

// collectAt is at how many percent of what lives the garbage is collected. What lives is
// mostly request ids without a pointer, so that a collection costs little, and half the
// usual garbage is a third less memory.
const collectAt = 50

// limitGarbage sets when the garbage is collected, unless the operator has chosen (GOGC).
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}

// serve makes the services of the lookups: the watch on the files, the metrics, and the
// server, in this order.
func (s *serving) serve(ctx context.Context, f front, l lookups) ([]service, error) {
	limitGarbage()
	answerer, end, err := s.answerer(ctx, f.lookups.Addr(), l)
	if err != nil {
		return nil, err
	}
	web, err := s.server(f, answerer, l)
	if err != nil {
		return nil, err
	}
	if err := l.registerReplicas(); err != nil {
		return nil, err
	}
	services := []service{l.watch()}
	if f.metrics != nil {
		services = append(services, serveMetrics(f.metrics, l.metrics, l.log))
	}
	services = append(services, service{"lookups", func(ctx context.Context) error {
		return errors.Join(web.Run(ctx, f.lookups), end(context.WithoutCancel(ctx)))
	}})
	return services, nil
}

// answerer makes the engine that was asked for, and says how to end it.
func (s *serving) answerer(ctx context.Context, addr net.Addr, l lookups) (server.Answerer, func(context.Context) error, error) {
	parts := answer.Parts{
		Access: l.access, Registry: l.registry, Meter: l.meter,
		Clock: answer.Clock{}, Random: answer.Random{}, DocsURL: s.docsURL(addr),
	}
	if s.Engine == "native" {
		return answer.NewNative(parts), func(context.Context) error { return nil }, nil
	}
	component, err := answer.NewComponent(ctx, parts, answer.Limits{Instances: s.MaxInFlight})
	if err != nil {
		return nil, nil, withHint(err, "--engine native answers without the component")
	}
	return component, component.Close, component.Register(l.metrics)
}

func (s *serving) server(f front, answerer server.Answerer, l lookups) (*server.Server, error) {
	proxies, err := server.ParseProxies(s.TrustedProxy)
	if err != nil {
		return nil, err
	}
	site, err := s.pages()
	if err != nil {
		return nil, err
	}
	return server.New(server.Config{
		Answerer: answerer, Ready: l.ready, DocsURL: s.docsURL(f.lookups.Addr()), Pages: site.Routes,
		Proxies: proxies, TLS: f.tls,
		MaxInFlight: s.MaxInFlight, Log: l.log, Metrics: l.metrics,
		NewRequestID: func() string { return handler.NewRequestID(answer.Clock{}, answer.Random{}) },
	})
}

// readyTimeout bounds the questions that /readyz asks.
const readyTimeout = 2 * time.Second

// releaseStatement finds the current release.
const releaseStatement = "SELECT id FROM release ORDER BY seq DESC LIMIT 1"

// ready asks every part that a lookup needs.
func (l *lookups) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	var result handler.Result
	if err := l.access.Query(ctx, "SELECT count(*) FROM plan", nil, &result); err != nil {
		return fmt.Errorf("access database: %w", err)
	}
	if err := l.registry.Query(ctx, releaseStatement, nil, &result); err != nil {
		return fmt.Errorf("registry database: %w", err)
	}
	if result.Rows() == 0 {
		return errors.New("registry database: it has no release yet")
	}
	if err := l.following(); err != nil {
		return err
	}
	return l.meter.Ready()
}

// watchInterval is how often the database files are looked at.
const watchInterval = time.Second

// watch is the service that notices a database file that was replaced.
func (l *lookups) watch() service {
	return service{"databases", func(ctx context.Context) error {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if err := errors.Join(l.access.Refresh(), l.registry.Refresh()); err != nil {
				l.log.Error("databases", "error", err)
			}
		}
	}}
}

// newToken makes a secret that nobody can guess.
func newToken() string { return rand.Text() + rand.Text() }
