package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/doctor"
	"regedge/host/edge"
	"regedge/host/reference"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/replicate/metering/meter"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

type edgeCommand struct {
	edgeFlags
	registryFlags
	accessFlags
	replicaFlags
	meterFlags
}

// Validate refuses contradicting flags.
func (c *edgeCommand) Validate() error {
	return errors.Join(c.edgeFlags.Validate(), c.replicaFlags.check(c.Registry, c.Access))
}

// Run serves lookups until ctx is done.
func (c *edgeCommand) Run(ctx context.Context, m *Main) (err error) {
	var closers service.Closers
	defer func() { err = errors.Join(err, closers.Close()) }()
	log, logging := c.logger(m, false, &closers)

	if err := refuseSigningKeys(c.TLSCert, c.TLSKey, c.TokenFile, c.RegistryTokenFile, c.AccessTokenFile); err != nil {
		return err
	}
	listening, err := c.open(m, log, &closers)
	if err != nil {
		return err
	}
	config, err := c.config(listening, log)
	if err != nil {
		return err
	}
	tokens, err := c.loadReadTokens(m.Now, log)
	if err != nil {
		return err
	}
	config.Metrics.MustRegister(tokens.ends())
	tracer, tracing, err := c.tracer(ctx, "edge", log, config.Metrics)
	if err != nil {
		return err
	}
	metering := meter.Config{Now: m.Now, Logger: log}
	if tracer != nil {
		config.Tracer, metering.Tracer = tracer, tracer
	}
	token, err := c.bearerToken(nodeTokenFrom)
	if err != nil {
		return err
	}
	if err := c.openDatabases(ctx, m, &config, tokens, &closers); err != nil {
		return err
	}
	if config.Meter, err = c.openMeter(config.Metrics, token, metering); err != nil {
		return err
	}
	closers.Add(config.Meter.Close)
	node, err := edge.New(ctx, config)
	if err != nil {
		return err
	}
	addr := listening.lookups.Addr()
	if c.needsDocsURL(addr) {
		log.Warn(needDocsURL)
	}
	log.Info("serving", "address", addr.String(), "engine", c.Engine)
	report := node.Report(edge.Reporter{
		Client: edge.NewClient(c.Writer, token), Renew: tokens.renew, Address: edge.Address(addr),
		Version: thisBuild().Version, Commit: thisBuild().Commit, Component: thisBuild().Component,
	})
	first := append([]service.Service{logging}, tracing...)
	first = append(first, service.Service{Name: "meter", Run: config.Meter.Run}, report)
	return service.Run(ctx, append(first, node.Services()...)...)
}

func (c *edgeCommand) openDatabases(ctx context.Context, m *Main, config *edge.Config, tokens *readTokens, closers *service.Closers) (err error) {
	registry := edge.ReplicaConfig{Database: schema.Registry, Dir: c.RegistryReplica, Now: m.Now, Log: config.Log}
	if config.Registry, err = c.openDatabase(ctx, c.Registry, tokens, registry); err != nil {
		return err
	}
	closers.Add(config.Registry.Close)
	access := edge.ReplicaConfig{Database: schema.Access, Dir: c.AccessReplica, MaxAge: c.AccessMaxAge, Now: m.Now, Log: config.Log}
	if config.Access, err = c.openDatabase(ctx, c.Access, tokens, access); err != nil {
		return err
	}
	closers.Add(config.Access.Close)
	return nil
}

// edgeFlags are the flags of the commands that serve lookups.
type edgeFlags struct {
	Listen       string   `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address of the lookups (${default})."`
	Engine       string   `enum:"wazero,native" default:"wazero" help:"wazero runs the component, native the same logic without Wasm (${default})."`
	TLSCert      string   `type:"path" placeholder:"FILE" help:"Certificate chain, PEM. It is read again when it changes."`
	TLSKey       string   `type:"path" placeholder:"FILE" help:"Key of the certificate, PEM."`
	TrustedProxy []string `placeholder:"CIDR" help:"Networks whose hosts are believed about the client's address."`
	DocsURL      string   `name:"docs-url" placeholder:"URL" help:"Where clients reach this host's pages; begins the type of every error. By default the address of the lookups."`
	DashboardURL string   `name:"dashboard-url" placeholder:"URL" help:"Where account owners sign in; linked from this host's pages."`
	metricsFlags
	traceFlags
	MaxInFlight              int    `default:"256" help:"Most requests answered at once; more get 503 (${default})."`
	MaxConnections           int    `default:"8192" help:"Most connections at once, or fewer where the process may open few files; more are closed (${default})."`
	MaxConnectionsPerAddress int    `default:"512" help:"Most connections of one client address at once; trusted proxies have no limit (${default})."`
	Log                      string `enum:"all,errors" default:"all" help:"all writes one line a request, errors only what went wrong, or may soon (${default})."`
}

// Validate refuses contradicting flags.
func (f *edgeFlags) Validate() error {
	if err := checkAddress("--listen", f.Listen); err != nil {
		return err
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if f.MaxInFlight < 1 {
		return errors.New("--max-in-flight is at least 1")
	}
	if f.MaxConnections < 1 || f.MaxConnectionsPerAddress < 1 {
		return errors.New("--max-connections and --max-connections-per-address are at least 1")
	}
	_, err := server.ParseProxies(f.TrustedProxy)
	return errors.Join(err, f.metricsFlags.check(), f.traceFlags.check(), checkPageURL("--docs-url", &f.DocsURL), checkPageURL("--dashboard-url", &f.DashboardURL))
}

// logFlush is how long a log line may be buffered.
const logFlush = 100 * time.Millisecond

// logger makes a logger of JSON lines, or of text for people, and the service that flushes
// its buffer. Lines from outside the service's life are flushed by closers.
func (f *edgeFlags) logger(m *Main, text bool, closers *service.Closers) (*slog.Logger, service.Service) {
	outliveReader()
	buffer := server.NewLogBuffer(m.Stderr)
	closers.Add(flushed(buffer))
	level := slog.LevelInfo
	if f.Log == "errors" {
		level = slog.LevelWarn
	}
	log := newLog(buffer, level, text)
	tellLost(buffer, log)
	return log, service.Service{Name: "log", Run: func(ctx context.Context) error {
		buffer.Run(ctx, logFlush)
		return nil
	}}
}

// brokenPipes takes the signals of writes to pipes whose readers have ended.
var brokenPipes = make(chan os.Signal, 1)

// outliveReader keeps this process alive when the reader of its log ends. By default the signal of the next
// write would end it (os/signal, "SIGPIPE"), as is right for other commands. The write fails all the same.
func outliveReader() { signal.Notify(brokenPipes, syscall.SIGPIPE) }

// flushed returns a function that writes what is left of a log.
func flushed(buffer *server.LogBuffer) func() error {
	return func() error {
		err := buffer.Flush()
		if err == server.ErrLogHangs || errors.Is(err, syscall.EPIPE) { // nobody can be told, and waiting would not help
			return nil
		}
		return err
	}
}

// tellLost logs how many lines of a log were dropped.
func tellLost(buffer *server.LogBuffer, log *slog.Logger) {
	buffer.Lost = func(n int64) { log.Warn("lines of this log were dropped, since nobody took them", "lines", n) }
}

// logLines is the log of a service that logs little. It never waits for a reader that hangs.
func (m *Main) logLines() *slog.Logger {
	outliveReader()
	buffer := server.NewLogLines(m.Stderr)
	log := newLog(buffer, slog.LevelInfo, false)
	tellLost(buffer, log)
	return log
}

// passedOn takes the output of a program that this process runs; that program would hang if nobody read it.
func (m *Main) passedOn(closers *service.Closers) io.Writer {
	outliveReader()
	buffer := server.NewLogLines(m.Stderr)
	closers.Add(flushed(buffer))
	buffer.Lost = func(n int64) {
		fmt.Fprintf(buffer, "regedge: %d lines of this log were dropped, since nobody took them\n", n)
	}
	return buffer
}

// listeners are the open addresses of a node.
type listeners struct {
	lookups net.Listener
	metrics net.Listener // nil without --metrics
	tls     *tls.Config  // nil for plain HTTP
}

// open opens the addresses and reads the certificate. A command does this first, so that
// it fails before it has changed anything.
func (f *edgeFlags) open(m *Main, log *slog.Logger, closers *service.Closers) (l listeners, err error) {
	if f.TLSCert != "" {
		if l.tls, err = readTLS(f.TLSCert, f.TLSKey, log); err != nil {
			return l, err
		}
	}
	if l.lookups, err = m.listen("lookups", "--listen", f.Listen); err != nil {
		return l, err
	}
	closers.Add(service.IgnoreClosed(l.lookups))
	l.metrics, err = m.listenForMetrics(f.Metrics, closers)
	return l, err
}

// config is the node's configuration without databases and meter.
func (f *edgeFlags) config(l listeners, log *slog.Logger) (config edge.Config, err error) {
	config = edge.Config{
		Engine: f.Engine, DocsURL: f.docsURL(l.lookups.Addr()), MaxInFlight: f.MaxInFlight,
		MaxConnections: f.MaxConnections, MaxConnectionsPerAddress: f.MaxConnectionsPerAddress,
		Lookups: l.lookups, MetricsListener: l.metrics, Profiles: f.Pprof, TLS: l.tls, Log: log, Metrics: newMetrics(),
	}
	if l.tls != nil {
		config.Metrics.MustRegister(servedEnds(l.tls, f.TLSCert, time.Now))
	}
	if config.Proxies, err = server.ParseProxies(f.TrustedProxy); err != nil {
		return config, err
	}
	// Without --docs-url the pages' examples name the host that the page was requested from.
	site, err := reference.New(reference.Config{BaseURL: f.DocsURL, DashboardURL: f.DashboardURL})
	if err != nil {
		return config, fmt.Errorf("make pages: %w", err)
	}
	config.Pages = site.Routes
	return config, nil
}

// needDocsURL warns that clients elsewhere can't reach the pages that errors link to.
const needDocsURL = "clients on other machines can't follow the links in errors: --docs-url says where they reach this node"

func (f *edgeFlags) needsDocsURL(addr net.Addr) bool { return f.DocsURL == "" && isUnspecified(addr) }

func (f *edgeFlags) docsURL(addr net.Addr) string {
	if f.DocsURL != "" {
		return f.DocsURL
	}
	return f.url(addr)
}

// url is the address of the lookups as a client on this machine would write it.
func (f *edgeFlags) url(addr net.Addr) string {
	return word(f.TLSCert == "", "http", "https") + "://" + doctor.Dialable(addr.String())
}

// replicaFlags are the flags of an edge whose databases are libSQL replicas.
type replicaFlags struct {
	RegistryReplica string        `type:"path" placeholder:"DIR" help:"With a URL as --registry: the directory of that sqld replica on this machine, whose file is then read."`
	AccessReplica   string        `type:"path" placeholder:"DIR" help:"With a URL as --access: the directory of that sqld replica on this machine, whose file is then read."`
	AccessMaxAge    time.Duration `default:"10m" help:"Live keys get 503 while the access replica is older (${default})."`
	MaxLag          time.Duration `default:"10m" help:"This node is not ready while a replica is older (${default})."`
}

// check refuses a replica's directory without the URL of its endpoint, which keeps the
// replica awake.
func (f *replicaFlags) check(registry, access string) error {
	if f.RegistryReplica != "" && !isRemote(registry) {
		return errors.New("--registry-replica needs the URL of that replica as --registry")
	}
	if f.AccessReplica != "" && !isRemote(access) {
		return errors.New("--access-replica needs the URL of that replica as --access")
	}
	if f.AccessMaxAge <= 0 || f.MaxLag <= 0 {
		return errors.New("--access-max-age and --max-lag must be positive")
	}
	return nil
}

// openDatabase opens a database for lookups: the file of a name, or the libSQL server and, if there is one, the
// replica's file in config.Dir.
func (f *replicaFlags) openDatabase(ctx context.Context, name string, tokens *readTokens, config edge.ReplicaConfig) (_ edge.Database, err error) {
	if !isRemote(name) {
		return edge.OpenFile(ctx, config.Database, name)
	}
	if config.Endpoint, err = libsql.OpenRenewed(name, tokens.byDatabase[string(config.Database)]); err != nil {
		return nil, err
	}
	config.MaxLag = f.MaxLag
	return edge.OpenReplica(config)
}

// nodeTokenFrom says where the token of an edge or a meter is from.
const nodeTokenFrom = "regedge node add NAME, at the centre, printed it, and regedge node token NAME makes another"

// meterFlags are the flags of a meter.
type meterFlags struct {
	State  string `required:"" type:"path" placeholder:"DIR" help:"State directory of this node: its journal. One process owns it."`
	Writer string `required:"" placeholder:"URL" help:"Address of the writer."`
	tokenFlags
	JournalSync time.Duration `default:"10ms" help:"How often a sync of the journal starts. A power cut can lose the charges since the start of the last completed one: about this time plus the duration of a sync (${default})."`
}

// openMeter opens the meter. Its token is the node's: regedge node add shows it.
func (f *meterFlags) openMeter(metrics prometheus.Registerer, token string, config meter.Config) (*meter.Meter, error) {
	if err := checkWriterURL(f.Writer); err != nil {
		return nil, err
	}
	config.State, config.JournalSync = f.State, f.JournalSync
	config.Writer = meter.OverHTTP(f.Writer, token, &http.Client{Transport: edge.ToWriter})
	return edge.OpenMeter(metrics, config)
}
