package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"regedge/host/hint"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/replicate/dashboard"
	"regedge/replicate/heartbeat"
	"regedge/replicate/metering/bearer"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
)

type writerCommand struct {
	Listen string `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Address of the API and the dashboard (${default})."`
	ledgerFlags
	accessFlags
	heartbeatFlags
	Backup   string `type:"path" placeholder:"FILE" help:"The ledger's last backup, whose age is a metric."`
	TakeOver bool   `env:"-" help:"Take the ledger from a writer that still runs, which then ends. Without it, this one ends with code 3 when the other is heard within 3 s."`
	Pprof    bool   `help:"Serve Go's profiles at /debug/pprof/, to whoever has this writer's own token."`
	Restored bool   `env:"-" help:"The ledger came back from a backup: grant nothing until every node has reported."`
	tokenFlags
	tlsFlags
	dashboardFlags
	smtpFlags
	traceFlags
}

// Validate refuses to serve tokens to the network in the clear. It also refuses the ledger itself as the backup to
// watch, since that would never be old.
func (c *writerCommand) Validate() error {
	backup, ofBackup := os.Stat(c.Backup)
	if ledger, err := os.Stat(c.Database); err == nil && ofBackup == nil && os.SameFile(backup, ledger) {
		return errors.New("--backup is the ledger itself: name the file to which it is copied")
	}
	return errors.Join(c.tlsFlags.check(c.Listen), c.heartbeatFlags.check(), c.dashboardFlags.check(), c.smtpFlags.check(c.DashboardURL), c.traceFlags.check())
}

// Run serves the writer's API and the dashboard until ctx is done.
func (c *writerCommand) Run(ctx context.Context, m *Main) (err error) {
	log := m.logLines()
	var closers service.Closers
	defer func() { err = errors.Join(err, closers.Close()) }()
	if err := refuseSigningKeys(c.TLSCert, c.TLSKey, c.TokenFile, c.DatabaseTokenFile, c.RegistryTokenFile, c.AccessTokenFile, c.smtpFlags.PasswordFile); err != nil {
		return err
	}
	config, tracing, err := c.config(ctx, m, log, &closers)
	if err != nil {
		return err
	}
	var listener net.Listener
	listen := func() (err error) {
		if listener, err = c.tlsFlags.listen(m, "writer", c.Listen, config.Metrics, config.Logger); err == nil {
			closers.Add(service.IgnoreClosed(listener))
		}
		return err
	}
	if c.TakeOver { // checked before the other writer ends for one that can't serve
		if err := listen(); err != nil {
			return err
		}
	}
	centre, err := c.open(ctx, config)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped during its start, in order
	}
	if err != nil {
		return err
	}
	closers.Add(centre.Close)
	listReleases, err := c.releases(&closers)
	if err != nil {
		return err
	}
	notices, err := c.notices(centre, config, &c.smtpFlags)
	if err != nil {
		return err
	}
	pages, err := c.dashboard(centre, config, c.smtpFlags.Host != "", c.TLSCert != "" || c.BehindTLS, listReleases)
	if err != nil {
		return err
	}
	if listener == nil {
		if err := listen(); err != nil {
			return err
		}
	}
	heartbeats, err := c.heartbeats(&c.accessFlags, config.Access, m, centre, log, &closers)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	services := append(tracing, service.Service{Name: "writer", Run: centre.Run}, notices)
	services = append(services, heartbeats...)
	return service.Run(ctx, append(services, service.HTTP("api", listener, c.withProfiles(pages.Handler(), config.OperatorToken), log))...)
}

// config is the writer's configuration, with its databases open, and the services that send its traces.
func (c *writerCommand) config(ctx context.Context, m *Main, log *slog.Logger, closers *service.Closers) (config writer.Config, tracing []service.Service, err error) {
	config = writer.Config{Restored: c.Restored, TakeOver: c.TakeOver, Client: c.client(), Now: m.Now, Logger: log, Metrics: newMetrics(), Backup: c.Backup}
	if config.OperatorToken, err = c.bearerToken("make one, such as by openssl rand -hex 24; commands then use it"); err != nil {
		return config, nil, err
	}
	for token, file := range map[*string]*string{
		&c.DatabaseToken: &c.DatabaseTokenFile, &c.AccessToken: &c.AccessTokenFile, &c.RegistryToken: &c.RegistryTokenFile,
	} {
		if err := takeToken(token, file); err != nil {
			return config, nil, err
		}
	}
	tokens, err := c.tokenEnds(m.Now)
	if err != nil {
		return config, nil, err
	}
	config.Metrics.MustRegister(tokens)
	tracer, tracing, err := c.tracer(ctx, "writer", log, config.Metrics)
	if err != nil {
		return config, nil, err
	}
	if tracer != nil {
		config.Tracer = tracer
	}
	err = c.openDatabases(&config, closers)
	return config, tracing, err
}

// open opens the writer, and logs when that takes long.
func (c *writerCommand) open(ctx context.Context, config writer.Config) (*writer.Writer, error) {
	slow := time.AfterFunc(firstAnswer, func() {
		config.Logger.Warn("the ledger has not been opened yet: does its server answer, or has another program locked it?", "ledger", c.Database, "seconds", firstAnswer.Seconds())
	})
	defer slow.Stop()
	centre, err := writer.Open(ctx, config)
	if errors.Is(err, writer.ErrHeld) {
		return nil, hint.With(err, "stop that one, or start this one with --take-over, which ends it")
	}
	if errors.Is(err, writer.ErrDamaged) {
		return nil, hint.With(err, "no row of it was changed: copy the backup again, or take an earlier one")
	}
	if errors.Is(err, writer.ErrNothingRestored) {
		return nil, hint.With(err, "bring the backup to %s first; if it is empty itself, take an earlier one: the file of a running ledger that was copied without its log (-wal) may hold nothing", c.Database)
	}
	return centre, err
}

// withProfiles also serves Go's profiles, if enabled, to requests with the token.
func (c *writerCommand) withProfiles(pages http.Handler, token string) http.Handler {
	if !c.Pprof {
		return pages
	}
	allowed, profiles := bearer.New(token), service.Profiles()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, service.ProfilesPath):
			pages.ServeHTTP(w, r)
		case allowed.In(r):
			profiles.ServeHTTP(w, r)
		default:
			http.Error(w, "the writer's own token is needed", http.StatusUnauthorized)
		}
	})
}

func (c *writerCommand) openDatabases(config *writer.Config, closers *service.Closers) (err error) {
	if config.Ledger, err = openWritable(c.Database, c.DatabaseToken, c.DatabaseTokenFile); err != nil {
		return err
	}
	closers.Add(config.Ledger.Close)
	if config.Access, err = openWritable(c.Access, c.AccessToken, c.AccessTokenFile); err != nil {
		return err
	}
	closers.Add(config.Access.Close)
	return nil
}

// heartbeatFlags are the writer's flags for the registry, which it does not own.
type heartbeatFlags struct {
	Registry          string `placeholder:"URL" help:"The registry's primary, to write a heartbeat there, by which edges tell how old their copy is, and to show its releases."`
	RegistryToken     string `placeholder:"TOKEN" help:"Token of the registry's primary, that may write."`
	RegistryTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the registry; it wins over the token itself."`
}

// check refuses a file: it has no replicas.
func (f *heartbeatFlags) check() error {
	if f.Registry != "" && !isRemote(f.Registry) {
		return errors.New("--registry is the URL of the primary here: a file needs no heartbeat")
	}
	return nil
}

// heartbeats are the services that write heartbeats into the replicated databases. They report to the writer's
// readiness when none is written.
func (f *heartbeatFlags) heartbeats(access *accessFlags, db *sql.DB, m *Main, centre *writer.Writer, log *slog.Logger, closers *service.Closers) (list []service.Service, err error) {
	if isRemote(access.Access) {
		beats := &heartbeat.Heartbeats{DB: db, Lost: centre.AccessLost, Filled: centre.AccessFilled}
		list = append(list, heartbeatService("access", beats, m, centre, log))
	}
	if f.Registry == "" {
		return list, nil
	}
	registry, err := openRemote(f.Registry, f.RegistryToken, f.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	closers.Add(registry.Close)
	return append(list, heartbeatService("registry", &heartbeat.Heartbeats{DB: registry}, m, centre, log)), nil
}

func heartbeatService(database string, beats *heartbeat.Heartbeats, m *Main, centre *writer.Writer, log *slog.Logger) service.Service {
	beats.Now, beats.Agrees, beats.Log = m.Now, centre.ClockAgrees, log.With("database", database)
	centre.Remark(func() string {
		if why := beats.Failure(); why != "" {
			return database + " database: " + why
		}
		return ""
	})
	return service.Service{Name: database + " heartbeat", Run: func(ctx context.Context) error {
		beats.Run(ctx)
		return nil
	}}
}

// dashboardFlags are the flags of the pages that the writer serves to people.
type dashboardFlags struct {
	DashboardURL    string   `name:"dashboard-url" placeholder:"URL" help:"Where people reach the dashboard; begins the links of invitations. By default the host that a page was asked from."`
	ReferenceURL    string   `name:"reference-url" placeholder:"URL" help:"Where the API's reference is served; linked from the dashboard."`
	PrivateWebhooks bool     `name:"private-webhooks" help:"For development: call owners' webhooks over HTTP and at addresses that are not public, too."`
	TrustedProxy    []string `placeholder:"CIDR" help:"Networks whose hosts are believed about the client's address."`
}

func (f *dashboardFlags) check() error {
	_, err := server.ParseProxies(f.TrustedProxy)
	return errors.Join(err, checkPageURL("--dashboard-url", &f.DashboardURL), checkPageURL("--reference-url", &f.ReferenceURL))
}

// client returns the client's address of a request, behind trusted proxies too. The flags were checked.
func (f *dashboardFlags) client() func(*http.Request) string {
	proxies, _ := server.ParseProxies(f.TrustedProxy)
	return proxies.Client
}

// listReleases lists the releases of a registry, the current one first.
type listReleases func(context.Context) ([]push.Release, error)

// dashboard makes the pages of a writer that was opened with config. mails says that there is a mail server,
// secure that people reach the pages over TLS; list may be nil.
func (f *dashboardFlags) dashboard(centre *writer.Writer, config writer.Config, mails, secure bool, list listReleases) (*dashboard.Dashboard, error) {
	of := f.config(config, mails, secure)
	of.Writer, of.Releases = centre, list
	pages, err := dashboard.New(of)
	if err != nil {
		return nil, fmt.Errorf("make dashboard: %w", err)
	}
	return pages, nil
}

func (f *dashboardFlags) config(config writer.Config, mails, secure bool) dashboard.Config {
	return dashboard.Config{
		Ledger: config.Ledger, OperatorToken: config.OperatorToken,
		URL: f.DashboardURL, ReferenceURL: f.ReferenceURL, Secure: secure,
		PrivateWebhooks: f.PrivateWebhooks, Mail: mails,
		Client: config.Client, Now: config.Now, Logger: config.Logger,
	}
}

// releases lists the releases of the registry's primary; it is nil without one.
func (f *heartbeatFlags) releases(closers *service.Closers) (listReleases, error) {
	if f.Registry == "" {
		return nil, nil
	}
	registry, err := openRemote(f.Registry, f.RegistryToken, f.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	closers.Add(registry.Close)
	return func(ctx context.Context) ([]push.Release, error) { return push.Releases(ctx, registry) }, nil
}
