package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"regedge/handler/ident"
	"regedge/replicate/metering/writer"
)

type keyCommands struct {
	Add    keyAdd    `cmd:"" help:"Make a key and show it, once."`
	List   keyList   `cmd:"" help:"List the keys of an account, revoked ones too."`
	Revoke keyRevoke `cmd:"" help:"Revoke a key for ever."`
}

type keyAdd struct {
	changing
	Account int64  `arg:"" help:"Id of the account."`
	Name    string `env:"-" help:"What the key is for."`
}

// Run makes a key. An account has at most 5 active ones.
func (c *keyAdd) Run(ctx context.Context, m *Main) error {
	look := fmt.Sprintf("key list %d", c.Account)
	return change(ctx, m, &c.changing, look, func(ctx context.Context, w *writer.Client) (writer.NewKey, error) {
		return w.AddKey(ctx, c.Account, c.Name)
	}, func(table *tabwriter.Writer, k writer.NewKey) {
		keysTable(table, []writer.Key{k.Key})
		fmt.Fprintf(table, "\nThe key is shown this once and stored nowhere:\n%s\n", k.Secret)
	})
}

type keyList struct {
	listing
	Account int64 `arg:"" help:"Id of the account."`
}

// Run lists keys.
func (c *keyList) Run(ctx context.Context, m *Main) error {
	return list(ctx, m, &c.listing, func(w *writer.Client) reading[writer.Key] {
		return func(ctx context.Context, q writer.ListQuery) (writer.Page[writer.Key], error) {
			return w.KeyPage(ctx, c.Account, q)
		}
	}, keysTable)
}

type keyRevoke struct {
	removing
	ID int64 `arg:"" help:"Id of the key, not the key itself."`
}

// Run revokes a key.
func (c *keyRevoke) Run(ctx context.Context, m *Main) error {
	if err := c.confirm(ctx, m, revokeQuestion(c.ID)); err != nil {
		return err
	}
	return change(ctx, m, &c.changing, "key list ACCOUNT", func(ctx context.Context, w *writer.Client) (writer.Key, error) {
		return w.RevokeKey(ctx, c.ID)
	}, func(table *tabwriter.Writer, k writer.Key) { keysTable(table, []writer.Key{k}) })
}

func keysTable(table *tabwriter.Writer, keys []writer.Key) {
	row(table, "ID", "ACCOUNT", "NAME", "KEY", "CREATED", "STATE")
	for _, k := range keys {
		state := "active"
		if k.Revoked != nil {
			state = "revoked " + day(*k.Revoked)
		}
		row(table, k.ID, k.Account, k.Name, ident.LivePrefix+k.Shown+"…", day(k.Created), state)
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
