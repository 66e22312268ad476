package cli

import (
	"context"
	"text/tabwriter"
	"time"

	"regedge/replicate/metering/writer"
)

type auditCommand struct {
	listing
	Account int64 `env:"-" placeholder:"ID" help:"Of this account only."`
}

// Run lists what was done, newest first.
func (c *auditCommand) Run(ctx context.Context, m *Main) error {
	return list(ctx, m, &c.listing, func(w *writer.Client) reading[writer.AuditEntry] {
		return func(ctx context.Context, q writer.ListQuery) (writer.Page[writer.AuditEntry], error) {
			page, err := w.AuditPage(ctx, c.Account, q)
			if err == nil && len(page.Data) == 0 {
				err = checkKnown(ctx, w, c.Account, 0)
			}
			return page, err
		}
	}, func(table *tabwriter.Writer, entries []writer.AuditEntry) {
		row(table, "ID", "AT", "WHO", "FROM", "ACCOUNT", "ACT", "DETAIL")
		for _, e := range entries {
			row(table, e.ID, e.At.UTC().Format(time.RFC3339), e.Actor, e.Address, e.Account, e.Act, e.Detail)
		}
	})
}
