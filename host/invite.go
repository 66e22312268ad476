package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"regedge/replicate/metering/writer"
)

type accountInvite struct {
	operator
	Email        string `arg:"" help:"E-mail address of the person, by which they sign in."`
	Account      int64  `env:"-" placeholder:"ID" help:"Id of the account that they own."`
	Operator     bool   `env:"-" help:"They run this service: they see and change every account."`
	DashboardURL string `name:"dashboard-url" placeholder:"URL" help:"Where people reach the dashboard. By default the address of the writer."`
}

// Validate finds what contradicts itself.
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
	return show(m, &c.operator, func(w *writer.Client) (writer.Invitation, error) {
		return w.Invite(ctx, c.Email, c.Account)
	}, func(table *tabwriter.Writer, i writer.Invitation) {
		fmt.Fprintf(table, "Pass this link on to %s. It works once, until %s:\n%s%s%s\n", i.Email,
			i.Expires.Format(time.RFC3339), strings.TrimSuffix(base, "/"), writer.InvitationPath, i.Token)
	})
}
