package main

import (
	"context"
	"text/tabwriter"

	"regedge/replicate/metering/writer"
)

type accountCommands struct {
	Add     accountAdd     `cmd:"" help:"Make an account, without credits."`
	List    accountList    `cmd:"" help:"List all accounts."`
	Change  accountChange  `cmd:"" help:"Change an account's name, e-mail address or plan."`
	Suspend accountSuspend `cmd:"" help:"Suspend an account: its keys get 403."`
	Resume  accountResume  `cmd:"" help:"Lift a suspension."`
	Invite  accountInvite  `cmd:"" help:"Make the link with which a person chooses a password for the dashboard."`
}

type accountAdd struct {
	operator
	Name  string `arg:"" help:"Name of the account."`
	Plan  string `env:"-" default:"starter" help:"Its plan (${default})."`
	Email string `env:"-" help:"E-mail address of its owner."`
}

// Run makes an account.
func (c *accountAdd) Run(ctx context.Context, m *Main) error {
	return show(m, &c.operator, func(w *writer.Client) (writer.Account, error) {
		return w.AddAccount(ctx, c.Name, c.Email, c.Plan)
	}, accountTable)
}

type accountList struct{ operator }

// Run lists the accounts.
func (c *accountList) Run(ctx context.Context, m *Main) error {
	return show(m, &c.operator, func(w *writer.Client) ([]writer.Account, error) {
		return w.Accounts(ctx)
	}, accountsTable)
}

type accountChange struct {
	operator
	ID    int64   `arg:"" help:"Id of the account."`
	Name  *string `env:"-" help:"New name."`
	Email *string `env:"-" help:"New e-mail address."`
	Plan  *string `env:"-" help:"New plan."`
}

// Run changes what was named.
func (c *accountChange) Run(ctx context.Context, m *Main) error {
	change := writer.AccountChange{Name: c.Name, Email: c.Email, Plan: c.Plan}
	return changeAccount(ctx, m, &c.operator, c.ID, change)
}

type accountSuspend struct {
	operator
	ID int64 `arg:"" help:"Id of the account."`
}

// Run suspends an account.
func (c *accountSuspend) Run(ctx context.Context, m *Main) error {
	suspended := true
	return changeAccount(ctx, m, &c.operator, c.ID, writer.AccountChange{Suspended: &suspended})
}

type accountResume struct {
	operator
	ID int64 `arg:"" help:"Id of the account."`
}

// Run lifts a suspension.
func (c *accountResume) Run(ctx context.Context, m *Main) error {
	suspended := false
	return changeAccount(ctx, m, &c.operator, c.ID, writer.AccountChange{Suspended: &suspended})
}

func changeAccount(ctx context.Context, m *Main, o *operator, id int64, change writer.AccountChange) error {
	return show(m, o, func(w *writer.Client) (writer.Account, error) {
		return w.ChangeAccount(ctx, id, change)
	}, accountTable)
}

func accountTable(table *tabwriter.Writer, a writer.Account) {
	accountsTable(table, []writer.Account{a})
}

func accountsTable(table *tabwriter.Writer, accounts []writer.Account) {
	row(table, "ID", "NAME", "E-MAIL", "PLAN", "STATE", "KEYS", "BALANCE", "SPENT")
	for _, a := range accounts {
		state := word(a.Suspended, "suspended", "active")
		row(table, a.ID, a.Name, a.Email, a.Plan, state, a.Keys, a.Balance, a.Spent)
	}
}
