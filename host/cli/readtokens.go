package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/pki"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
)

// readTokens are an edge's tokens for its replicas, by database. The writer hands out new ones.
type readTokens struct {
	byDatabase map[string]*libsql.Token
	now        func() time.Time
	log        *slog.Logger
}

func (c *edgeCommand) readTokens(now func() time.Time, log *slog.Logger) (*readTokens, error) {
	registry, err := readToken(c.RegistryToken, c.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	access, err := readToken(c.AccessToken, c.AccessTokenFile)
	return &readTokens{map[string]*libsql.Token{"registry": libsql.NewToken(registry), "access": libsql.NewToken(access)}, now, log}, err
}

// renew takes a token that ends later than the one in use.
func (t *readTokens) renew(database, token string) {
	current, known := t.byDatabase[database]
	if !known || current.String() == token {
		return
	}
	ends, has := pki.Ends(current.String())
	if next, ok := pki.Ends(token); ok && has && next.After(ends) {
		current.Set(token)
		t.log.Info("the token of a replica was renewed", "database", database, "ends", next)
	}
}

var readTokenDesc = prometheus.NewDesc("regedge_read_token_ends_seconds", "Until the edge's token for a replica ends; left out for one without an end.", []string{"database"}, nil)

// ends shows how long the tokens in use are good.
func (t *readTokens) ends() prometheus.Collector {
	return &ends{readTokenDesc, t.now, func() map[string]time.Time {
		at := map[string]time.Time{}
		for database, token := range t.byDatabase {
			if end, ok := pki.Ends(token.String()); ok {
				at[database] = end
			}
		}
		return at
	}}
}

// trustRenew makes new tokens for every edge.
type trustRenew struct {
	operator
	trustFlags
	Life time.Duration `env:"-" default:"720h" placeholder:"DURATION" help:"How long they are good (${default}, 30 days)."`
}

// Validate refuses tokens that never end, or have ended.
func (c *trustRenew) Validate() error {
	if c.Life <= 0 {
		return errors.New("--life must be positive: what an edge may read with ends")
	}
	return nil
}

// Help is the text below the usage.
func (c *trustRenew) Help() string {
	return `Makes read-only tokens for each node that is not retired and gives them to the writer, which
passes them on with its answer to the edge's next report. A timer runs it (deploy/systemd). It
needs an operators' token with the role nodes.`
}

// Run renews the tokens.
func (c *trustRenew) Run(ctx context.Context, m *Main) error {
	opened, err := openTrust(c.Trust, m)
	if err != nil {
		return err
	}
	return show(m, &c.operator, func(w *writer.Client) ([]writer.Node, error) {
		nodes, err := w.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		var renewed []writer.Node
		for _, n := range nodes {
			if n.Retired {
				continue
			}
			if err := c.renew(ctx, retrying(m, w), opened, n.Name); err != nil {
				return nil, err
			}
			renewed = append(renewed, n)
		}
		return renewed, nil
	}, func(table *tabwriter.Writer, nodes []writer.Node) {
		row(table, "NODE", "TOKENS END")
		for _, n := range nodes {
			row(table, n.Name, m.Now().Add(c.Life).UTC().Format(time.RFC3339))
		}
	})
}

func (c *trustRenew) renew(ctx context.Context, w *writer.Client, opened *pki.Trust, node string) error {
	tokens := map[string]string{}
	for _, database := range pki.Databases {
		var err error
		if tokens[database], err = newToken(opened, database, pki.ReadOnly, c.Life); err != nil {
			return err
		}
	}
	if err := w.PassReadTokens(ctx, node, tokens); err != nil {
		return fmt.Errorf("renew the tokens of %s: %w", node, err)
	}
	return nil
}
