// Package edge is the edge node: it answers lookups from local databases, charges them at
// its meter, follows the replicas of its databases, and reports its state to the writer.
package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
	"regedge/host/engine"
	"regedge/host/hint"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/replicate/disk"
	"regedge/replicate/metering/meter"
)

// Config says what a node serves. Lookups, Access, Registry, Meter, Log and Metrics must
// be set.
type Config struct {
	// Engine is Wazero, which runs the component, or Native, which runs the same request
	// logic without Wasm.
	Engine string
	// DocsURL begins the type of every error and the links of the pages, such as
	// https://registry.example.
	DocsURL string
	// Pages adds the pages for people: start page, reference, guides and problems.
	Pages func(*httprouter.Router)
	// Proxies are the trusted proxies, whose headers name the client's address.
	Proxies server.Proxies
	// MaxInFlight is the most requests that are answered at once; more get 503. Zero means the server's default.
	MaxInFlight int
	// MaxConnections and MaxConnectionsPerAddress bound the connections; zero means the server's default.
	MaxConnections, MaxConnectionsPerAddress int
	// Lookups is the listener of the lookups, MetricsListener that of the metrics or nil.
	Lookups, MetricsListener net.Listener
	// Profiles serves Go's profiles beside the metrics.
	Profiles         bool
	TLS              *tls.Config // nil for plain HTTP
	Access, Registry Database
	Meter            *meter.Meter
	Log              *slog.Logger
	Metrics          *prometheus.Registry
	// Tracer, if not nil, traces lookups.
	Tracer server.Tracer
}

// The engines of Config.
const (
	Wazero = "wazero"
	Native = "native"
)

// Node is an edge node.
type Node struct {
	config      Config
	web         *server.Server
	closeEngine func(context.Context) error
	refused     atomic.Bool // the writer refuses this node's token
	requests    requestLog
}

// servingGCPercent is GOGC while serving. Most of the live heap is the meter's request ids,
// which hold no pointers, so that a collection costs little; half the usual garbage is a
// third less memory.
const servingGCPercent = 50

// New prepares a node: it starts the engine and registers the metrics. The caller opens
// and closes what Config names.
func New(ctx context.Context, config Config) (*Node, error) {
	if os.Getenv("GOGC") == "" { // the operator's choice wins
		debug.SetGCPercent(servingGCPercent)
	}
	if config.MaxInFlight <= 0 {
		config.MaxInFlight = server.DefaultMaxInFlight
	}
	n := &Node{config: config}
	answerer, err := n.startEngine(ctx)
	if err != nil {
		return nil, err
	}
	if config.Tracer != nil {
		answerer = tracedAnswerer{answerer, spanOf(config.Engine)}
	}
	n.web, err = server.New(server.Config{
		Answerer: answerer, Screen: engine.NewScreen(n.traced(n.parts()), config.Meter), Ready: n.Ready, Remark: n.remark, DocsURL: config.DocsURL, Pages: config.Pages,
		Proxies: config.Proxies, TLS: config.TLS, MaxInFlight: config.MaxInFlight,
		Waiting: config.Meter.Waiting, MaxWaiting: meter.MaxWaiting,
		MaxConnections: config.MaxConnections, MaxConnectionsPerAddress: config.MaxConnectionsPerAddress,
		Log: config.Log, Metrics: config.Metrics, Tracer: config.Tracer, Served: n.requests.note,
		NewRequestID: func() string { return handler.NewRequestID(engine.Clock{}, engine.Random{}) },
	})
	if err == nil {
		err = errors.Join(n.registerReplicas(), config.Metrics.Register(disk.NewBounded(releaseMetric{n})))
	}
	if err != nil {
		return nil, errors.Join(err, n.closeEngine(ctx))
	}
	return n, nil
}

func (n *Node) parts() engine.Parts {
	return engine.Parts{
		Access: n.config.Access, Registry: n.config.Registry, Meter: n.config.Meter,
		Clock: engine.Clock{}, Random: engine.Random{}, DocsURL: n.config.DocsURL,
	}
}

// startEngine starts the chosen engine and sets closeEngine.
func (n *Node) startEngine(ctx context.Context) (server.Answerer, error) {
	parts := n.traced(n.parts())
	if n.config.Engine == Native {
		n.closeEngine = func(context.Context) error { return nil }
		return engine.NewNative(parts), nil
	}
	component, err := engine.NewComponent(ctx, parts, engine.Limits{Instances: n.config.MaxInFlight + meter.MaxWaiting})
	if err != nil {
		return nil, hint.With(err, "--engine native answers without the component")
	}
	n.closeEngine = component.Close
	if err := component.Register(n.config.Metrics); err != nil {
		return nil, errors.Join(err, component.Close(ctx))
	}
	return component, nil
}

// Services returns the services of a node, in the order in which they start: the watch on
// the database files, the metrics, and the lookups.
func (n *Node) Services() []service.Service {
	services := []service.Service{n.watchDatabases()}
	if n.config.MetricsListener != nil {
		services = append(services, service.Metrics(n.config.MetricsListener, n.config.Metrics, n.config.Profiles, n.config.Log))
	}
	return append(services, service.Service{Name: "lookups", Run: func(ctx context.Context) error {
		return errors.Join(n.web.Run(ctx, n.config.Lookups), n.closeEngine(context.WithoutCancel(ctx)))
	}})
}

// readyTimeout bounds the statements of a readiness check.
const readyTimeout = 2 * time.Second

// releaseStatement finds the current release.
const releaseStatement = "SELECT id FROM release ORDER BY seq DESC LIMIT 1"

// Ready returns nil if everything that a lookup needs works, else an error that names the failure.
func (n *Node) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	var result handler.Result
	if err := n.config.Access.Query(ctx, "SELECT count(*) FROM plan", nil, &result); err != nil {
		return fmt.Errorf("access database: %w", err)
	}
	if err := n.config.Registry.Query(ctx, releaseStatement, nil, &result); err != nil {
		return fmt.Errorf("registry database: %w", err)
	}
	if result.Rows() == 0 {
		return errors.New("registry database: it has no release yet")
	}
	if err := n.replicasReady(); err != nil {
		return err
	}
	return n.meterReady()
}

// watchInterval is how often the database files are checked for a replacement.
const watchInterval = time.Second

// watchDatabases is the service that reopens a database file after it was replaced. It logs an error once until another
// one or a success.
func (n *Node) watchDatabases() service.Service {
	return service.Service{Name: "databases", Run: func(ctx context.Context) error {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for said := ""; ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			switch err := errors.Join(n.config.Access.Refresh(), n.config.Registry.Refresh()); {
			case err == nil:
				said = ""
			case err.Error() != said:
				said = err.Error()
				n.config.Log.Error("databases", "error", err)
			}
		}
	}}
}
