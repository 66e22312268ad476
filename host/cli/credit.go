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

type creditCommands struct {
	Add     creditAdd     `cmd:"" help:"Add credits to an account."`
	Take    creditTake    `cmd:"" help:"Take credits from an account; never below zero."`
	List    creditList    `cmd:"" help:"List the credit journal of an account."`
	Doubts  creditDoubts  `cmd:"" help:"List charges whose answer may not have reached its client."`
	Resolve creditResolve `cmd:"" help:"Give the credit of such a charge back, once."`
}

type creditAdd struct {
	changing
	Account    int64  `arg:"" help:"Id of the account."`
	Amount     int64  `arg:"" help:"Credits, at least 1."`
	Compensate bool   `env:"-" help:"Book them as compensation, not as bought."`
	Note       string `env:"-" placeholder:"TEXT" help:"Why, for the journal."`
}

// Validate refuses an amount that adds nothing.
func (c *creditAdd) Validate() error { return positive(c.Amount) }

// Run adds credits.
func (c *creditAdd) Run(ctx context.Context, m *Main) error {
	kind := word(c.Compensate, writer.Compensated, writer.Bought)
	return changeCredits(ctx, m, &c.changing, c.Account, writer.CreditChange{Amount: c.Amount, Kind: kind, Note: c.Note})
}

type creditTake struct {
	removing
	Account int64  `arg:"" help:"Id of the account."`
	Amount  int64  `arg:"" help:"Credits, at least 1."`
	AtMost  bool   `env:"-" help:"Take what there is when the account has fewer. Without it that is an error."`
	Note    string `env:"-" placeholder:"TEXT" help:"Why, for the journal."`
}

// Validate refuses an amount that takes nothing.
func (c *creditTake) Validate() error { return positive(c.Amount) }

// Run takes credits. Credits leased to edges are taken as the edges return them.
func (c *creditTake) Run(ctx context.Context, m *Main) error {
	err := c.confirm(ctx, m, takeQuestion(c.Account, c.Amount, c.AtMost))
	if err == nil {
		by := writer.CreditChange{Amount: -c.Amount, Kind: writer.Bought, Note: c.Note, AtMost: c.AtMost}
		err = changeCredits(ctx, m, &c.changing, c.Account, by)
	}
	if errors.Is(err, writer.ErrBeyondBalance) {
		return hint.With(err, "--at-most takes what there is")
	}
	return err
}

func positive(amount int64) error {
	if amount < 1 {
		return errors.New("the amount is at least 1")
	}
	return nil
}

func changeCredits(ctx context.Context, m *Main, c *changing, account int64, by writer.CreditChange) error {
	look := fmt.Sprintf("credit list %d", account)
	return change(ctx, m, c, look, func(ctx context.Context, w *writer.Client) (writer.Account, error) {
		return w.ChangeCredits(ctx, account, by)
	}, func(table *tabwriter.Writer, a writer.Account) {
		accountTable(table, a)
		if a.Deducting > 0 {
			fmt.Fprintf(table, "\n%d more are taken when the edges return them.\n", a.Deducting)
		}
	})
}

type creditList struct {
	operator
	Account int64 `arg:"" help:"Id of the account."`
}

// Run lists the journal, oldest first.
func (c *creditList) Run(ctx context.Context, m *Main) error {
	return show(m, &c.operator, func(w *writer.Client) ([]writer.CreditEntry, error) {
		return w.Credits(ctx, c.Account)
	}, func(table *tabwriter.Writer, entries []writer.CreditEntry) {
		row(table, "ID", "AT", "KIND", "AMOUNT", "NOTE")
		for _, e := range entries {
			row(table, e.ID, e.At.UTC().Format(time.RFC3339), e.Kind, e.Amount, e.Note)
		}
	})
}

type creditDoubts struct{ listing }

// Run lists charges in doubt, newest first.
func (c *creditDoubts) Run(ctx context.Context, m *Main) error {
	return list(ctx, m, &c.listing, func(w *writer.Client) reading[writer.Unresolved] {
		return w.UnresolvedPage
	}, doubtsTable)
}

type creditResolve struct {
	changing
	Request string `arg:"" help:"Request id of the charge."`
}

// Run gives one credit back.
func (c *creditResolve) Run(ctx context.Context, m *Main) error {
	return change(ctx, m, &c.changing, "credit doubts", func(ctx context.Context, w *writer.Client) (writer.Unresolved, error) {
		return w.CreditUnresolved(ctx, c.Request)
	}, func(table *tabwriter.Writer, u writer.Unresolved) { doubtsTable(table, []writer.Unresolved{u}) })
}

func doubtsTable(table *tabwriter.Writer, doubts []writer.Unresolved) {
	row(table, "REQUEST", "ACCOUNT", "KEY", "EDGE", "AT", "STATE")
	for _, u := range doubts {
		row(table, u.ID, u.Account, u.Key, u.Edge, u.At.UTC().Format(time.RFC3339), word(u.Credited, "credited", "open"))
	}
}
