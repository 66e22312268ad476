package notice

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Channel is a way to tell.
type Channel string

// The channels.
const (
	Webhook Channel = "webhook"
	Mail    Channel = "mail"
)

// Target is where notices of an account go.
type Target struct {
	ID, Account int64
	URL         string // of a webhook
	Low         int64  // the balance, in credits, below which it is low; 0 for never
	Created     time.Time
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const selectTarget = `SELECT id, account, url, low, created_at FROM notice_target WHERE `

// ReadWebhook returns the webhook of an account, nil for none.
func ReadWebhook(ctx context.Context, db querier, account int64) (*Target, error) {
	return readTarget(db.QueryRowContext(ctx, selectTarget+`channel = 'webhook' AND account = ?`, account))
}

// ReadMail returns the target of a person's mail, nil for one who wants none.
func ReadMail(ctx context.Context, db querier, user int64) (*Target, error) {
	return readTarget(db.QueryRowContext(ctx, selectTarget+`channel = 'mail' AND user = ?`, user))
}

func readTarget(row *sql.Row) (*Target, error) {
	var t Target
	var created int64
	err := row.Scan(&t.ID, &t.Account, &t.URL, &t.Low, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.Created = time.UnixMilli(created).UTC()
	return &t, nil
}

// SetWebhook sets an account's webhook in a transaction. A new one has this secret; with renew it also
// replaces that of an old one. SetWebhook reports whether the secret holds from now on.
func SetWebhook(ctx context.Context, tx *sql.Tx, now int64, t Target, secret string, renew bool) (taken bool, err error) {
	const statement = `INSERT INTO notice_target (account, channel, url, secret, low, low_told, created_at) VALUES (?1, 'webhook', ?2, ?3, ?4, 0, ?5)
		ON CONFLICT (account) WHERE channel = 'webhook' DO UPDATE SET url = ?2, secret = CASE WHEN ?6 THEN ?3 ELSE secret END,
			low_told = CASE WHEN low = ?4 THEN low_told ELSE 0 END, low = ?4`
	if _, err = tx.ExecContext(ctx, statement, t.Account, t.URL, secret, t.Low, now, renew); err != nil {
		return false, err
	}
	err = tx.QueryRowContext(ctx, `SELECT secret = ?2 FROM notice_target WHERE channel = 'webhook' AND account = ?1`, t.Account, secret).Scan(&taken)
	return taken, err
}

// SetMail has an owner of an account told by mail, in a transaction. low is as in Target.
func SetMail(ctx context.Context, tx *sql.Tx, now, user, low int64) error {
	const statement = `INSERT INTO notice_target (account, channel, user, low, low_told, created_at)
		SELECT account, 'mail', id, ?2, 0, ?3 FROM user WHERE id = ?1 AND account IS NOT NULL
		ON CONFLICT (user) WHERE channel = 'mail' DO UPDATE SET low_told = CASE WHEN low = ?2 THEN low_told ELSE 0 END, low = ?2`
	_, err := tx.ExecContext(ctx, statement, user, low, now)
	return err
}

// RemoveWebhook removes an account's webhook in a transaction, with its notices, delivered or not.
func RemoveWebhook(ctx context.Context, tx *sql.Tx, account int64) error {
	return remove(ctx, tx, `channel = 'webhook' AND account = ?`, account)
}

// RemoveMail ends mail to a person in a transaction, and drops its notices, delivered or not.
func RemoveMail(ctx context.Context, tx *sql.Tx, user int64) error {
	return remove(ctx, tx, `channel = 'mail' AND user = ?`, user)
}

func remove(ctx context.Context, tx *sql.Tx, which string, id int64) error {
	for _, statement := range []string{
		`DELETE FROM notice WHERE target = (SELECT id FROM notice_target WHERE ` + which + `)`, `DELETE FROM notice_target WHERE ` + which,
	} {
		if _, err := tx.ExecContext(ctx, statement, id); err != nil {
			return err
		}
	}
	return nil
}
