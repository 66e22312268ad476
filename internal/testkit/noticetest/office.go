// Package noticetest is a ledger with accounts, and a sender of notices whose clock the test sets.
package noticetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/notice"
	"regedge/schema"
)

// Office has account 1, with key 5 and the users 1 and 2, and account 2, with user 3.
type Office struct {
	testing.TB
	DB     *sql.DB
	Sender *notice.Sender
	Now    time.Time
	config notice.Config
}

// New makes an office that delivers notices in these ways.
func New(t testing.TB, ways ...notice.Way) *Office {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	o := &Office{TB: t, DB: db, Now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
	o.config = notice.Config{Ledger: db, Commit: o.Commit, Now: func() time.Time { return o.Now }}
	o.Open(ways...)
	o.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at, bought) VALUES (1, 'Acme', '', 'starter', 0, 0, 100), (2, 'Other', '', 'starter', 0, 0, 0)`)
	o.Exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at) VALUES (5, 1, 'server', x'01', 'abcd', 0)`)
	o.Exec(`INSERT INTO user (id, email, password, account, operator, created_at)
		VALUES (1, 'ada@example.com', '', 1, 0, 0), (2, 'eve@example.com', '', 1, 0, 0), (3, 'bob@example.com', '', 2, 0, 0)`)
	return o
}

// Open starts another sender, as a restarted writer does.
func (o *Office) Open(ways ...notice.Way) {
	o.config.Ways = ways
	o.Sender = notice.New(o.config)
}

// Configure changes the configuration of senders that are opened from now on.
func (o *Office) Configure(change func(*notice.Config)) { change(&o.config) }

// Commit changes the ledger in a transaction.
func (o *Office) Commit(ctx context.Context, change func(ctx context.Context, tx *sql.Tx, now int64) error) error {
	tx, err := o.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := change(ctx, tx, o.Now.UnixMilli()); err != nil {
		return err
	}
	return tx.Commit()
}

// Exec runs a statement.
func (o *Office) Exec(statement string, args ...any) {
	o.Helper()
	_, err := o.DB.Exec(statement, args...)
	require.NoError(o, err)
}

// Count runs a query for one number.
func (o *Office) Count(query string, args ...any) (n int) {
	o.Helper()
	require.NoError(o, o.DB.QueryRow(query, args...).Scan(&n))
	return n
}

// SetWebhook sets the webhook of an account.
func (o *Office) SetWebhook(account int64, url string, low int64, secret string) {
	o.Helper()
	require.NoError(o, o.Commit(o.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
		_, err := notice.SetWebhook(ctx, tx, now, notice.Target{Account: account, URL: url, Low: low}, secret, false)
		return err
	}))
}

// SetMail switches a user's mail on.
func (o *Office) SetMail(user, low int64) {
	o.Helper()
	require.NoError(o, o.Commit(o.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
		return notice.SetMail(ctx, tx, now, user, low)
	}))
}

// Webhook is the target of an account's webhook.
func (o *Office) Webhook(account int64) notice.Target {
	o.Helper()
	target, err := notice.ReadWebhook(o.Context(), o.DB, account)
	require.NoError(o, err)
	require.NotNil(o, target)
	return *target
}

// Mail is the target of a user's mail.
func (o *Office) Mail(user int64) notice.Target {
	o.Helper()
	target, err := notice.ReadMail(o.Context(), o.DB, user)
	require.NoError(o, err)
	require.NotNil(o, target)
	return *target
}

// Test asks for a test.
func (o *Office) Test(target notice.Target) error {
	return o.Commit(o.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
		return notice.PutTest(ctx, tx, now, target, rand.Text())
	})
}

// Look finds notices, and returns the kinds of those pending for the target. They are not sent.
func (o *Office) Look(target notice.Target) (kinds []string) {
	o.Helper()
	require.NoError(o, o.Sender.Look(o.Context()))
	for _, d := range o.Deliveries(target) {
		if d.Next != nil {
			kinds = append(kinds, d.Kind)
		}
	}
	o.Exec(`UPDATE notice SET next_at = NULL WHERE target = ?`, target.ID)
	return kinds
}

// Send makes an attempt for each target of a channel that has a notice due.
func (o *Office) Send(channel notice.Channel) int {
	o.Helper()
	n, err := o.Sender.Send(o.Context(), channel)
	require.NoError(o, err)
	return n
}

// Deliveries lists the notices of a target, newest first.
func (o *Office) Deliveries(target notice.Target) []notice.Delivery {
	o.Helper()
	list, err := notice.Deliveries(o.Context(), o.DB, target.ID, 200)
	require.NoError(o, err)
	return list
}

// Last is the newest notice of a target.
func (o *Office) Last(target notice.Target) notice.Delivery {
	o.Helper()
	list := o.Deliveries(target)
	require.NotEmpty(o, list)
	return list[0]
}
