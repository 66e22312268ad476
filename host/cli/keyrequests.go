package cli

import (
	"context"
	"text/tabwriter"

	"regedge/replicate/metering/writer"
)

type keyRequests struct {
	listing
	Key     int64 `env:"-" placeholder:"ID" help:"Of this key only."`
	Account int64 `env:"-" placeholder:"ID" help:"Of the keys of this account only."`
}

// Run lists the last requests of keys, newest first. --search finds one by its request id.
func (c *keyRequests) Run(ctx context.Context, m *Main) error {
	of := writer.RequestQuery{Account: c.Account, Key: c.Key}
	return list(ctx, m, &c.listing, func(w *writer.Client) reading[writer.Request] {
		return func(ctx context.Context, q writer.ListQuery) (writer.Page[writer.Request], error) {
			page, err := w.RequestPage(ctx, of, q)
			if err == nil && len(page.Data) == 0 {
				err = checkKnown(ctx, w, c.Account, c.Key)
			}
			return page, err
		}
	}, func(table *tabwriter.Writer, requests []writer.Request) {
		row(table, "AT", "REQUEST", "ACCOUNT", "KEY", "NODE", "ENDPOINT", "STATUS", "CODE", "CREDITS")
		for _, r := range requests {
			row(table, r.At.UTC().Format("2006-01-02T15:04:05.000Z"), r.ID, r.Account, r.Key, r.Node, r.Endpoint, r.Status, r.Code, r.Credits)
		}
	})
}
