package dashboard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
	"regedge/web"
)

// Config is what a Dashboard needs. Writer, Ledger and OperatorToken must be set.
type Config struct {
	// Writer takes the changes and answers with its API. It must run.
	Writer *writer.Writer
	// Ledger is the writer's database, for reading.
	Ledger *sql.DB
	// API is the writer's API as it is served, Writer.Handler() when nil.
	API http.Handler
	// OperatorToken is that of the writer's API, which the pages call.
	OperatorToken string
	// ReferenceURL is where the API's reference is served; empty leaves the links out.
	ReferenceURL string
	// Releases lists the releases of the registry's primary, the current one first. Nil
	// leaves them out.
	Releases func(context.Context) ([]push.Release, error)
	// URL is where people reach the pages; it begins the links of invitations. Empty
	// takes the host that a page was asked from.
	URL string
	// Secure says that people reach the pages over TLS, also when a proxy ends it.
	Secure bool
	// Client is the address that a request counts for, the connection's when nil.
	Client func(*http.Request) string
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Random fills p with secure random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Logger takes what an operator should know, nothing when nil.
	Logger *slog.Logger
}

// Dashboard is the pages, made once and served by many goroutines.
type Dashboard struct {
	config    Config
	client    *writer.Client
	passwords *passwords
	templates templates
	assets    map[string]web.Asset
	pages     http.Handler
}

// New prepares the pages. An error is a mistake in one of them.
func New(config Config) (*Dashboard, error) {
	config = config.withDefaults()
	d := &Dashboard{
		config: config,
		client: writer.NewClient("http://writer.internal", config.OperatorToken,
			&http.Client{Transport: writer.InProcess(config.API)}),
		passwords: newPasswords(config.Random, standardCost),
		assets:    loadAssets(),
	}
	var err error
	if d.templates, err = loadTemplates(); err != nil {
		return nil, fmt.Errorf("read pages of the dashboard: %w", err)
	}
	d.pages = d.routes()
	return d, nil
}

func (c Config) withDefaults() Config {
	c.URL = strings.TrimSuffix(c.URL, "/")
	if c.API == nil {
		c.API = c.Writer.Handler()
	}
	if c.Client == nil {
		c.Client = connection
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = func(p []byte) { rand.Read(p) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// connection is the address at the other end of a request's connection.
func connection(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (d *Dashboard) now() time.Time { return d.config.Now().UTC() }
