package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regedge/handler/ident"
	"regedge/replicate/metering/writer"
)

// moment is a time on the command line: a date, a time, or a duration from now.
type moment struct {
	at    time.Time
	from  time.Duration
	given bool
}

// UnmarshalText reads a moment.
func (m *moment) UnmarshalText(text []byte) (err error) {
	m.given = true
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if m.at, err = time.Parse(form, string(text)); err == nil {
			return nil
		}
	}
	if m.from, err = time.ParseDuration(string(text)); err != nil || m.from <= 0 {
		return fmt.Errorf("%q is no date (2027-01-31), time (2027-01-31T12:00:00Z) or time from now (720h)%s", text, inHours(string(text)))
	}
	return nil
}

// checkRepeated refuses a time relative to now together with --idempotency-key: the repeat would name another time, and
// so be another change.
func (m *moment) checkRepeated(c *changing, flag string, now time.Time) error {
	if c.IdempotencyKey == "" || m.from == 0 {
		return nil
	}
	return fmt.Errorf("with --idempotency-key, %s is a date or a time, since the command must say the same again: such as %s %s", flag, flag,
		m.after(now).UTC().Format(time.RFC3339))
}

// set reports whether a moment was given. It can't be told from the zero time, which is a valid value on the command
// line.
func (m *moment) set() bool { return m.given }

// pin resolves the moment now. A relative time becomes a fixed one in whole seconds, and is noted as the flag to give
// when the command is run again.
func (m *moment) pin(c *changing, flag string) *time.Time {
	at := m.after(time.Now())
	if m.from != 0 {
		at = at.UTC().Truncate(time.Second)
		c.again = " and " + flag + " " + at.Format(time.RFC3339)
	}
	return &at
}

// after resolves the moment as of now.
func (m *moment) after(now time.Time) time.Time {
	if m.from != 0 {
		return now.Add(m.from)
	}
	return m.at
}

type keyRename struct {
	changing
	ID   int64  `arg:"" help:"Id of the key, not the key itself."`
	Name string `arg:"" help:"Its new name."`
}

// Run renames a key.
func (c *keyRename) Run(ctx context.Context, m *Main) error {
	return changeKey(ctx, m, &c.changing, c.ID, writer.KeyChange{Name: &c.Name})
}

type keyExpire struct {
	changing
	ID    int64  `arg:"" help:"Id of the key, not the key itself."`
	At    moment `env:"-" placeholder:"WHEN" help:"When it ends: a date, a time, or from now, such as 24h."`
	Never bool   `env:"-" help:"It does not end by itself."`
}

// Validate refuses contradicting flags.
func (c *keyExpire) Validate() error {
	if c.At.set() == c.Never {
		return errors.New("one of --at and --never says when the key ends")
	}
	return c.At.checkRepeated(&c.changing, "--at", time.Now())
}

// Run changes when a key ends. Edges refuse it from then on by their own clocks.
func (c *keyExpire) Run(ctx context.Context, m *Main) error {
	change := writer.KeyChange{NeverExpires: c.Never}
	if c.At.set() {
		change.Expires = c.At.pin(&c.changing, "--at")
	}
	return changeKey(ctx, m, &c.changing, c.ID, change)
}

type keyAllow struct {
	changing
	ID       int64    `arg:"" help:"Id of the key, not the key itself."`
	Networks []string `arg:"" optional:"" name:"network" help:"Networks (192.0.2.0/24, 2001:db8::/32) and addresses from which it may be used from now on, up to 16."`
	Anywhere bool     `env:"-" help:"It may be used from everywhere."`
}

// Validate refuses contradicting arguments.
func (c *keyAllow) Validate() error {
	if (len(c.Networks) > 0) == c.Anywhere {
		return errors.New("networks, or --anywhere, say from where the key may be used")
	}
	return nil
}

// Run changes from where a key may be used. Calls from elsewhere are refused with 403.
func (c *keyAllow) Run(ctx context.Context, m *Main) error {
	networks := append([]string{}, c.Networks...) // empty, and not null, for everywhere
	return changeKey(ctx, m, &c.changing, c.ID, writer.KeyChange{Allowed: &networks})
}

type keyLimit struct {
	changing
	ID             int64  `arg:"" help:"Id of the key, not the key itself."`
	MonthlyCredits *int64 `env:"-" placeholder:"N" help:"Credits that it may spend in a UTC month, this one included; 0 for any number."`
	PerMinute      *int64 `env:"-" placeholder:"N" help:"Requests a minute, at most the plan's; 0 for as many as that allows."`
}

// Validate refuses a command that changes nothing.
func (c *keyLimit) Validate() error {
	if c.PerMinute == nil && c.MonthlyCredits == nil {
		return errors.New("--per-minute or --monthly-credits says what the key is limited to")
	}
	return nil
}

// Run limits a key. More requests are refused with 429.
func (c *keyLimit) Run(ctx context.Context, m *Main) error {
	return changeKey(ctx, m, &c.changing, c.ID, writer.KeyChange{PerMinute: c.PerMinute, MonthlyCredits: c.MonthlyCredits})
}

func changeKey(ctx context.Context, m *Main, c *changing, id int64, to writer.KeyChange) error {
	return change(ctx, m, c, "key list ACCOUNT", func(ctx context.Context, w *writer.Client) (writer.Key, error) {
		return w.ChangeKey(ctx, id, to)
	}, keyTable)
}

type keyRotate struct {
	removing
	ID      int64         `arg:"" help:"Id of the key, not the key itself."`
	Overlap time.Duration `env:"-" default:"24h" help:"How long the old secret stays valid, 0s to 720h (${default}). The one before it ends at once."`
}

// Validate refuses an overlap that the writer would refuse.
func (c *keyRotate) Validate() error {
	if c.Overlap < 0 || c.Overlap > writer.MaxOverlap {
		return fmt.Errorf("--overlap is 0s to %v", writer.MaxOverlap)
	}
	return nil
}

// Run gives a key a new secret. Without an overlap it asks first, since the old secret stops working at once. At a
// terminal it also asks while the secret before the old one still works, since that one stops in any case.
func (c *keyRotate) Run(ctx context.Context, m *Main) error {
	asks, question := c.confirm, rotateQuestion(c.ID)
	if c.Overlap > 0 {
		again := replacing{c.changing, c.Yes}
		asks, question = again.confirm, rotateAgainQuestion(c.ID)
	}
	if err := asks(ctx, m, question); err != nil {
		return err
	}
	return change(ctx, m, &c.changing, "key list ACCOUNT", func(ctx context.Context, w *writer.Client) (writer.NewKey, error) {
		return w.RotateKey(ctx, c.ID, c.Overlap)
	}, newKeyTable)
}

// rotateQuestion says what rotating a key without an overlap does.
func rotateQuestion(id int64) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		k, err := w.Key(ctx, id)
		return fmt.Sprintf("Replace the secret of key %d%s? Calls with the old one get 401 within seconds.", id, named(k.Name)), err
	}
}

// rotateAgainQuestion says what rotating a key once more does while two of its secrets work.
func rotateAgainQuestion(id int64) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		k, err := w.Key(ctx, id)
		if err != nil || k.OldEnds == nil {
			return "", err
		}
		return fmt.Sprintf("Rotate key %d%s again? The secret before the last rotation, %s%s…, would work until %s: calls with it get 401 within seconds.",
			id, named(k.Name), ident.LivePrefix, k.OldShown, k.OldEnds.Format(time.RFC3339)), nil
	}
}
