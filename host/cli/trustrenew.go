package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"regedge/host/pki"
	"regedge/replicate/metering/writer"
)

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
		renewed := []writer.Node{}
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
