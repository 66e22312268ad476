package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"regedge/replicate/metering/writer"
)

type accountCommands struct {
	Add     accountAdd     `cmd:"" help:"Make an account, without credits."`
	Create  accountAdd     `cmd:"" hidden:"" help:"The same as add, which the dashboard calls create."`
	List    accountList    `cmd:"" help:"List accounts, or find them by name, number or e-mail address."`
	Change  accountChange  `cmd:"" help:"Change an account's name, e-mail address or plan."`
	Suspend accountSuspend `cmd:"" help:"Suspend an account: its keys get 403."`
	Resume  accountResume  `cmd:"" help:"Lift a suspension."`
	Invite  accountInvite  `cmd:"" help:"Make the link with which a person chooses a password for the dashboard."`
}

type accountAdd struct {
	changing
	Name  string `arg:"" help:"Name of the account."`
	Plan  string `env:"-" default:"${default_plan}" placeholder:"PLAN" help:"Its plan (${default})."`
	Email string `env:"-" placeholder:"EMAIL" help:"E-mail address of its owner."`
}

// Run makes an account.
func (c *accountAdd) Run(ctx context.Context, m *Main) error {
	return change(ctx, m, &c.changing, "account list", func(ctx context.Context, w *writer.Client) (writer.Account, error) {
		return w.AddAccount(ctx, c.Name, c.Email, c.Plan)
	}, accountTable)
}

type accountList struct{ listing }

// Run lists the accounts.
func (c *accountList) Run(ctx context.Context, m *Main) error {
	return list(ctx, m, &c.listing, func(w *writer.Client) reading[writer.Account] {
		return w.AccountPage
	}, accountsTable)
}

type accountChange struct {
	changing
	ID    int64   `arg:"" help:"Id of the account."`
	Name  *string `env:"-" help:"New name."`
	Email *string `env:"-" help:"New e-mail address."`
	Plan  *string `env:"-" help:"New plan."`
}

// Validate refuses a change of nothing.
func (c *accountChange) Validate() error {
	if c.Name == nil && c.Email == nil && c.Plan == nil {
		return errors.New("--name, --email or --plan says what changes")
	}
	return nil
}

// Run changes what was named.
func (c *accountChange) Run(ctx context.Context, m *Main) error {
	return changeAccount(ctx, m, &c.changing, c.ID, writer.AccountChange{Name: c.Name, Email: c.Email, Plan: c.Plan})
}

type accountSuspend struct {
	removing
	ID int64 `arg:"" help:"Id of the account."`
}

// Run suspends an account.
func (c *accountSuspend) Run(ctx context.Context, m *Main) error {
	if err := c.confirm(ctx, m, suspendQuestion(c.ID)); err != nil {
		return err
	}
	suspended := true
	return changeAccount(ctx, m, &c.changing, c.ID, writer.AccountChange{Suspended: &suspended})
}

type accountResume struct {
	changing
	ID int64 `arg:"" help:"Id of the account."`
}

// Run lifts a suspension.
func (c *accountResume) Run(ctx context.Context, m *Main) error {
	suspended := false
	return changeAccount(ctx, m, &c.changing, c.ID, writer.AccountChange{Suspended: &suspended})
}

func changeAccount(ctx context.Context, m *Main, c *changing, id int64, to writer.AccountChange) error {
	return change(ctx, m, c, "account list", func(ctx context.Context, w *writer.Client) (writer.Account, error) {
		return w.ChangeAccount(ctx, id, to)
	}, accountTable)
}

func accountTable(table *tabwriter.Writer, a writer.Account) {
	accountsTable(table, []writer.Account{a})
}

func accountsTable(table *tabwriter.Writer, accounts []writer.Account) {
	row(table, "ID", "NAME", "E-MAIL", "OWNERS", "PLAN", "STATE", "KEYS", "BALANCE", "SPENT")
	for _, a := range accounts {
		state := word(a.Suspended, "suspended", "active")
		row(table, a.ID, a.Name, a.Email, owners(a), a.Plan, state, a.Keys, a.Balance, a.Spent)
	}
}

// owners lists the people with a sign-in for an account, and those invited.
func owners(a writer.Account) string {
	list := slices.Clone(a.Owners)
	for _, email := range a.Invited {
		list = append(list, email+" (invited)")
	}
	return strings.Join(list, ", ")
}

type accountInvite struct {
	changing
	Email        string `arg:"" help:"E-mail address of the person, by which they sign in."`
	Account      int64  `env:"-" placeholder:"ID" help:"Id of the account that they own."`
	Operator     bool   `env:"-" help:"They run this service: they see and change every account."`
	DashboardURL string `name:"dashboard-url" placeholder:"URL" help:"Where people reach the dashboard. By default the address of the writer."`

	ResetTwoFactor bool `env:"-" help:"For a person who has lost app and recovery codes: the link also switches their two-factor authentication off."`
}

// Validate refuses contradicting flags.
func (c *accountInvite) Validate() error {
	if (c.Account == 0) != c.Operator {
		return errors.New("one of --account and --operator says what the person is invited to")
	}
	return checkPageURL("--dashboard-url", &c.DashboardURL)
}

// Run makes an invitation and prints its link. Nothing is sent: whoever runs this passes
// the link on.
func (c *accountInvite) Run(ctx context.Context, m *Main) error {
	base := c.DashboardURL
	if base == "" {
		base = c.Writer
	}
	return change(ctx, m, &c.changing, "audit --search "+forShell(c.Email), func(ctx context.Context, w *writer.Client) (writer.Invitation, error) {
		if c.ResetTwoFactor {
			return w.InviteAndReset(ctx, c.Email, c.Account)
		}
		return w.Invite(ctx, c.Email, c.Account)
	}, func(table *tabwriter.Writer, i writer.Invitation) {
		fmt.Fprintf(table, "Pass this link on to %s. It works once, until %s:\n%s%s%s\n", i.Email,
			i.Expires.Format(time.RFC3339), strings.TrimSuffix(base, "/"), writer.InvitationPath, i.Token)
	})
}
