package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"regedge/host/hint"
	"regedge/host/pki"
	"regedge/replicate/metering/writer"
)

type nodeCommands struct {
	Add    nodeAdd    `cmd:"" help:"Make an edge node and show its token, once."`
	List   nodeList   `cmd:"" help:"List the nodes, retired ones too."`
	Token  nodeToken  `cmd:"" help:"Replace the token of a node; the old one ends at once."`
	Retire nodeRetire `cmd:"" help:"Fence a node for ever and compensate what it still held."`
}

type nodeAdd struct {
	changing
	Name  string `arg:"" help:"Name of the node."`
	Trust string `type:"path" placeholder:"DIR" help:"Directory of regedge trust: prints the tokens of its replicas as well, and makes its certificate."`
}

// Run makes a node.
func (c *nodeAdd) Run(ctx context.Context, m *Main) error {
	var opened *pki.Trust
	if c.Trust != "" { // checked before the name is used up
		var err error
		if opened, err = openTrust(c.Trust, m); err != nil {
			return err
		}
	}
	var unmade error // the node exists and its token is shown, even if the rest failed
	err := change(ctx, m, &c.changing, "node list", func(ctx context.Context, w *writer.Client) (made newEdge, err error) {
		if made.NewNode, err = w.AddNode(ctx, c.Name); err == nil && opened != nil {
			made.edgeSecrets, unmade = newEdgeSecrets(opened, c.Name)
		}
		return made, err
	}, newEdgeTable)
	if errors.Is(err, writer.ErrTaken) {
		return hint.With(err, "regedge node token %s gives it another token, regedge trust token and regedge trust machine edge-%[1]s the rest; if it is retired (regedge node list), take another name", c.Name)
	}
	return errors.Join(err, unmade)
}

// newEdge is a new node, with what its edge needs beside its token if the trust directory is given.
type newEdge struct {
	writer.NewNode
	*edgeSecrets
}

func newEdgeTable(table *tabwriter.Writer, e newEdge) {
	newNodeTable(table, e.NewNode)
	if e.edgeSecrets != nil {
		e.edgeSecrets.write(table)
	}
}

type nodeList struct{ listing }

// Run lists the nodes.
func (c *nodeList) Run(ctx context.Context, m *Main) error {
	return list(ctx, m, &c.listing, func(w *writer.Client) reading[writer.Node] {
		return w.NodePage
	}, nodesTable)
}

type nodeToken struct {
	replacing
	Name string `arg:"" help:"Name of the node."`
}

// Run makes a new token. At a terminal it asks first if the node has used the old one.
func (c *nodeToken) Run(ctx context.Context, m *Main) error {
	if err := c.confirm(ctx, m, tokenQuestion(c.Name)); err != nil {
		return err
	}
	return change(ctx, m, &c.changing, "node list", func(ctx context.Context, w *writer.Client) (writer.NewNode, error) {
		return w.NewNodeToken(ctx, c.Name)
	}, newNodeTable)
}

type nodeRetire struct {
	removing
	Name      string `arg:"" help:"Name of the node."`
	OldEpochs bool   `env:"-" help:"Keep the node: write off only what is still leased under its earlier epochs. After a lost disk, start the edge with an empty state directory first: until it has a new epoch this writes off nothing."`
}

// Run retires a node.
func (c *nodeRetire) Run(ctx context.Context, m *Main) error {
	if err := c.confirm(ctx, m, retireQuestion(c.Name, c.OldEpochs)); err != nil {
		return err
	}
	return change(ctx, m, &c.changing, "node list", func(ctx context.Context, w *writer.Client) (writer.Node, error) {
		return w.RetireNode(ctx, c.Name, c.OldEpochs)
	}, func(table *tabwriter.Writer, n writer.Node) { nodesTable(table, []writer.Node{n}) })
}

func newNodeTable(table *tabwriter.Writer, n writer.NewNode) {
	nodesTable(table, []writer.Node{n.Node})
	fmt.Fprintf(table, "\nThe token is shown this once; the node's edge takes it as REGEDGE_TOKEN or --token-file:\n%s\n", n.Token)
}

func nodesTable(table *tabwriter.Writer, nodes []writer.Node) {
	row(table, "NODE", "STATE", "EPOCH", "APPLIED", "LEASED", "STALE", "SEEN")
	for _, n := range nodes {
		row(table, n.Name, nodeState(n), n.Epoch, n.Applied, n.Leased, n.Stale, seen(n))
	}
}

func nodeState(n writer.Node) string {
	switch {
	case n.Retired:
		return "retired"
	case n.Fenced:
		return "fenced"
	}
	return word(n.Live, "live", "away")
}

// seen is when the writer last had a message from a node, since the writer's own start.
func seen(n writer.Node) string {
	switch {
	case !n.Seen.IsZero():
		return n.Seen.UTC().Format(time.RFC3339)
	case n.Epoch > 0:
		return "before the writer's start"
	}
	return "never"
}
