package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"regedge/handler/ident"
	"regedge/replicate/metering/writer"
)

type keyCommands struct {
	Add    keyAdd    `cmd:"" help:"Make a key and show it, once."`
	Create keyAdd    `cmd:"" hidden:"" help:"The same as add, which the dashboard calls create."`
	List   keyList   `cmd:"" help:"List the keys of an account, revoked and expired ones too."`
	Rename keyRename `cmd:"" help:"Give a key another name."`
	Expire keyExpire `cmd:"" help:"Set or take away the time at which a key ends by itself."`
	Rotate keyRotate `cmd:"" help:"Give a key a new secret; the old one stays valid for a time."`
	Allow  keyAllow  `cmd:"" help:"Say from which networks a key may be used."`
	Limit  keyLimit  `cmd:"" help:"Limit what a key may ask for."`

	Requests keyRequests `cmd:"" help:"List the last requests of keys, refused ones too; --search finds one by its request id."`
	Revoke   keyRevoke   `cmd:"" help:"Revoke a key for ever."`
}

type keyAdd struct {
	changing
	Account int64    `arg:"" help:"Id of the account."`
	Name    string   `env:"-" placeholder:"NAME" help:"What the key is for."`
	Expires moment   `env:"-" placeholder:"WHEN" help:"When the key ends by itself: a date (its beginning, UTC), a time such as 2027-01-31T12:00:00Z, or from now, such as 720h. By default never."`
	Allow   []string `env:"-" placeholder:"NETWORK" help:"A network (192.0.2.0/24, 2001:db8::/32) or address from which it may be used; up to 16, by default all."`

	PerMinute      int64 `env:"-" placeholder:"N" help:"Requests a minute, at most the plan's; by default these."`
	MonthlyCredits int64 `env:"-" placeholder:"N" help:"Credits that it may spend in a UTC month; by default any number."`
}

// Validate refuses an expiry that would move when the command is repeated.
func (c *keyAdd) Validate() error {
	return c.Expires.checkRepeated(&c.changing, "--expires", time.Now())
}

// Run makes a key. An account has at most 5 active ones.
func (c *keyAdd) Run(ctx context.Context, m *Main) error {
	look := fmt.Sprintf("key list %d", c.Account)
	settings := writer.KeySettings{Name: c.Name, Allowed: c.Allow, PerMinute: c.PerMinute, MonthlyCredits: c.MonthlyCredits}
	if c.Expires.set() {
		settings.Expires = c.Expires.pin(&c.changing, "--expires")
	}
	return change(ctx, m, &c.changing, look, func(ctx context.Context, w *writer.Client) (writer.NewKey, error) {
		return w.AddKeyWith(ctx, c.Account, settings)
	}, newKeyTable)
}

func newKeyTable(table *tabwriter.Writer, k writer.NewKey) {
	keysTable(table, []writer.Key{k.Key})
	fmt.Fprintf(table, "\nThe key is shown this once and stored nowhere:\n%s\n", k.Secret)
	if k.OldEnds != nil {
		fmt.Fprintf(table, "\nThe one before, %s%s…, is valid until %s.\n", ident.LivePrefix, k.OldShown, k.OldEnds.Format(time.RFC3339))
	}
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
	}, keyTable)
}

func keyTable(table *tabwriter.Writer, k writer.Key) { keysTable(table, []writer.Key{k}) }

func keysTable(table *tabwriter.Writer, keys []writer.Key) {
	row(table, "ID", "ACCOUNT", "NAME", "KEY", "CREATED", "STATE", "ENDS", "LIMITS")
	for _, k := range keys {
		ends := "never"
		if k.Expires != nil {
			ends = k.Expires.Format(time.RFC3339)
		}
		row(table, k.ID, k.Account, k.Name, ident.LivePrefix+k.Shown+"…", day(k.Created), keyState(k), ends, keyLimits(k))
	}
}

func keyState(k writer.Key) string {
	switch {
	case k.Revoked != nil:
		return "revoked " + day(*k.Revoked)
	case k.Expired:
		return "expired"
	}
	return "active"
}

// keyLimits lists the key's own limits, beside those of its account.
func keyLimits(k writer.Key) string {
	var limits []string
	if k.PerMinute > 0 {
		limits = append(limits, fmt.Sprintf("%d a minute", k.PerMinute))
	}
	if k.MonthlyCredits > 0 {
		spent := ""
		if k.LimitedUntil != nil {
			spent = " (spent)"
		}
		limits = append(limits, fmt.Sprintf("%d credits a month%s", k.MonthlyCredits, spent))
	}
	if len(k.Allowed) > 0 {
		limits = append(limits, "from "+strings.Join(k.Allowed, " "))
	}
	if len(limits) == 0 {
		return "none"
	}
	return strings.Join(limits, ", ")
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
