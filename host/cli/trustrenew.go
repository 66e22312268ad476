package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Run renews the tokens. If it fails for one node it goes on with the others, whose tokens would expire.
func (c *trustRenew) Run(ctx context.Context, m *Main) error {
	opened, err := openTrust(c.Trust, m)
	if err != nil {
		return err
	}
	var failed error // for some nodes, while others were renewed
	err = show(m, &c.operator, func(w *writer.Client) ([]writer.Node, error) {
		nodes, err := w.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		renewed, err := c.renewAll(ctx, retrying(m, w), w, opened, slices.DeleteFunc(nodes, func(n writer.Node) bool { return n.Retired }))
		if len(renewed) == 0 {
			return renewed, err
		}
		failed = err
		return renewed, nil
	}, func(table *tabwriter.Writer, nodes []writer.Node) {
		row(table, "NODE", "TOKENS END")
		for _, n := range nodes {
			row(table, n.Name, m.Now().Add(c.Life).UTC().Format(time.RFC3339))
		}
	})
	return errors.Join(err, c.explain(failed))
}

// renewAll renews the tokens of each node and returns the nodes for which that worked. The error names the others.
// patient repeats a call for a while; once it has done so in vain, w calls only once for each remaining node.
func (c *trustRenew) renewAll(ctx context.Context, patient, w *writer.Client, opened *pki.Trust, nodes []writer.Node) ([]writer.Node, error) {
	renewed := []writer.Node{}
	var failed []error
	for _, n := range nodes {
		tokens, err := c.newTokens(opened)
		if err != nil {
			return renewed, err
		}
		switch err := patient.PassReadTokens(ctx, n.Name, tokens); {
		case err == nil:
			renewed = append(renewed, n)
		case errors.Is(err, writer.ErrRetired): // it was retired meanwhile
		default:
			failed = append(failed, fmt.Errorf("renew the tokens of %s: %w", n.Name, err))
			if errors.Is(err, writer.ErrUncertain) {
				patient = w // the writer was given time enough
			}
		}
	}
	if len(failed) < 2 {
		return renewed, errors.Join(failed...)
	}
	return renewed, fmt.Errorf("%d of %d nodes have no new tokens:\n%w", len(failed), len(nodes), errors.Join(failed...))
}

// newTokens makes tokens for the replicas of one edge, by database.
func (c *trustRenew) newTokens(opened *pki.Trust) (map[string]string, error) {
	tokens := map[string]string{}
	for _, database := range pki.Databases {
		var err error
		if tokens[database], err = newToken(opened, database, pki.ReadOnly, c.Life); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}
