package dashboard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
	"regedge/web"
)

// Config configures a Dashboard. Writer, Ledger and OperatorToken are required.
type Config struct {
	// Writer applies the changes. It must be running.
	Writer *writer.Writer
	// Ledger is the writer's database, for reading.
	Ledger *sql.DB
	// OperatorToken authenticates the pages' calls of the writer's API.
	OperatorToken string
	// ReferenceURL is where an edge serves the API's reference; empty leaves out the links and the search.
	ReferenceURL string
	// Releases lists the releases of the registry's primary, the current one first. Nil
	// leaves them out.
	Releases func(context.Context) ([]push.Release, error)
	// URL is the base of invitation links. Empty takes the host that the page was requested
	// from.
	URL string
	// PrivateWebhooks allows webhooks over HTTP and at addresses that are not public, for development.
	PrivateWebhooks bool
	// Mail says that e-mail notices are available.
	Mail bool
	// Secure says that visitors use TLS, also when a proxy ends it.
	Secure bool
	// Client returns a request's client address; nil takes the connection's.
	Client func(*http.Request) string
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Random fills p with secure random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Logger discards when nil.
	Logger *slog.Logger
}

// Dashboard serves the pages. It is safe for concurrent use.
type Dashboard struct {
	config    Config
	lookups   string // origin of ReferenceURL
	client    *writer.Client
	passwords *passwords
	finished  finished
	turns     *writer.SumTurns
	entries   entries
	templates templates
	api       apiPages
	assets    map[string]web.Asset
	pages     router
}

// New parses the pages and the document of the API. An error is a mistake in one of them.
func New(config Config) (*Dashboard, error) {
	config = config.withDefaults()
	d := &Dashboard{
		config: config, lookups: originOf(config.ReferenceURL),
		client: writer.NewClient("http://writer.internal", config.OperatorToken,
			&http.Client{Transport: writer.InProcess(config.Writer.Handler())}),
		passwords: newPasswords(config.Random, standardCost),
		assets:    loadAssets(),
		turns:     config.Writer.SumTurns(),
	}
	var err error
	if d.templates, err = loadTemplates(); err != nil {
		return nil, fmt.Errorf("read pages of the dashboard: %w", err)
	}
	if d.api, err = makeAPIPages(); err != nil {
		return nil, fmt.Errorf("read the document of the API: %w", err)
	}
	d.pages = d.routes()
	return d, nil
}

// originOf returns scheme and host of an address, "" if it has none.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (c Config) withDefaults() Config {
	c.URL = strings.TrimSuffix(c.URL, "/")
	if c.Client == nil {
		c.Client = writer.Connection
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

func (d *Dashboard) now() time.Time { return d.config.Now().UTC() }
