package cli

import (
	"context"
	"text/tabwriter"
	"time"

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
			return w.RequestPage(ctx, of, q)
		}
	}, func(table *tabwriter.Writer, requests []writer.Request) {
		row(table, "AT", "REQUEST", "ACCOUNT", "KEY", "NODE", "ENDPOINT", "STATUS", "CODE", "CREDITS")
		for _, r := range requests {
			row(table, r.At.Format(time.RFC3339Nano), r.ID, r.Account, r.Key, r.Node, r.Endpoint, r.Status, r.Code, r.Credits)
		}
	})
}
