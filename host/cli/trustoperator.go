package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// trustOperator manages the tokens of the writer's API.
type trustOperator struct {
	Add  operatorAdd  `cmd:"" help:"Make an operators' token and show it, once."`
	List operatorList `cmd:"" help:"List the operators' tokens, and those that ended within 90 days."`
	End  operatorEnd  `cmd:"" help:"End an operators' token at once."`
}

type operatorAdd struct {
	changing
	Name string        `arg:"" help:"Name of the token: who or what uses it."`
	Role string        `env:"-" enum:"read,accounts,nodes,all" default:"read" help:"What it may do: read (and scrape), accounts (and keys, credits, owners), nodes, or all (${default})."`
	Life time.Duration `env:"-" default:"2160h" placeholder:"DURATION" help:"How long it is good (${default}, 90 days; at most five years)."`
}

// Run makes a token.
func (c *operatorAdd) Run(ctx context.Context, m *Main) error {
	err := change(ctx, m, &c.changing, "trust operator list", func(ctx context.Context, w *writer.Client) (writer.NewOperatorToken, error) {
		return w.AddToken(ctx, c.Name, writer.Role(c.Role), c.Life)
	}, func(table *tabwriter.Writer, t writer.NewOperatorToken) {
		operatorsTable(table, []writer.OperatorToken{t.OperatorToken})
		fmt.Fprintf(table, "\nThe token is shown this once; commands take it as REGEDGE_TOKEN or --token-file:\n%s\n", t.Token)
	})
	if errors.Is(err, writer.ErrTaken) {
		return hint.With(err, "regedge trust operator end %s frees the name", c.Name)
	}
	return err
}

type operatorList struct{ operator }

// Run lists the tokens.
func (c *operatorList) Run(ctx context.Context, m *Main) error {
	return show(m, &c.operator, func(w *writer.Client) ([]writer.OperatorToken, error) {
		return w.Tokens(ctx)
	}, operatorsTable)
}

type operatorEnd struct {
	replacing
	Name string `arg:"" help:"Name of the token."`
}

// Run ends a token.
func (c *operatorEnd) Run(ctx context.Context, m *Main) error {
	if err := c.confirm(ctx, m, endQuestion(c.Name)); err != nil {
		return err
	}
	return change(ctx, m, &c.changing, "trust operator list", func(ctx context.Context, w *writer.Client) (writer.OperatorToken, error) {
		return w.EndToken(ctx, c.Name)
	}, func(table *tabwriter.Writer, t writer.OperatorToken) {
		operatorsTable(table, []writer.OperatorToken{t})
	})
}

func operatorsTable(table *tabwriter.Writer, tokens []writer.OperatorToken) {
	row(table, "TOKEN", "ROLE", "STATE", "CREATED", "ENDS")
	for _, t := range tokens {
		row(table, t.Name, string(t.Role), word(t.Ended, "ended", "valid"), t.Created.Format(time.RFC3339), t.Ends.Format(time.RFC3339))
	}
}
