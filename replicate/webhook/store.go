package webhook

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Hook is where the owner of an account wants to be told.
type Hook struct {
	Account int64
	URL     string
	Low     int64 // the balance, in credits, below which it is low; 0 for never
	Created time.Time
}

// SecretPrefix begins a secret, as Standard Webhooks write it; 24 random bytes in base64 follow.
const SecretPrefix = "whsec_"

// NewSecret makes a secret for signatures.
func NewSecret() string {
	var random [24]byte
	rand.Read(random[:])
	return SecretPrefix + base64.StdEncoding.EncodeToString(random[:])
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Read returns the hook of an account, nil for none.
func Read(ctx context.Context, db querier, account int64) (*Hook, error) {
	h := Hook{Account: account}
	var created int64
	err := db.QueryRowContext(ctx, `SELECT url, low, created_at FROM webhook WHERE account = ?`, account).Scan(&h.URL, &h.Low, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	h.Created = time.UnixMilli(created).UTC()
	return &h, err
}

// Set sets an account's hook in a transaction. A new hook has this secret; with renew it also
// replaces the one of an old hook. Set reports whether the secret holds from now on.
func Set(ctx context.Context, tx *sql.Tx, now int64, h Hook, secret string, renew bool) (taken bool, err error) {
	const statement = `INSERT INTO webhook (account, url, secret, low, low_told, created_at) VALUES (?1, ?2, ?3, ?4, 0, ?5)
		ON CONFLICT (account) DO UPDATE SET url = ?2, secret = CASE WHEN ?6 THEN ?3 ELSE secret END,
			low_told = CASE WHEN low = ?4 THEN low_told ELSE 0 END, low = ?4`
	if _, err = tx.ExecContext(ctx, statement, h.Account, h.URL, secret, h.Low, now, renew); err != nil {
		return false, err
	}
	err = tx.QueryRowContext(ctx, `SELECT secret = ?2 FROM webhook WHERE account = ?1`, h.Account, secret).Scan(&taken)
	return taken, err
}

// Remove removes an account's hook in a transaction, with its events, delivered or not.
func Remove(ctx context.Context, tx *sql.Tx, account int64) error {
	for _, statement := range []string{`DELETE FROM webhook_event WHERE account = ?`, `DELETE FROM webhook WHERE account = ?`} {
		if _, err := tx.ExecContext(ctx, statement, account); err != nil {
			return err
		}
	}
	return nil
}

// The kinds of events.
const (
	LowBalance  = "balance.low"
	VolumeUsed  = "volume.used_80_percent"
	NotFoundCap = "key.not_found_cap"
	KeyEnding   = "key.ending"
	Test        = "test"
)

// maxWaiting bounds the events of an account that wait to be delivered: what comes then is not told.
const maxWaiting = 100

// ErrFull is returned for a test that would have to wait behind too many events.
var ErrFull = errors.New("too many events wait to be delivered")

// event is something to tell.
type event struct {
	account int64
	kind    string
	about   string // by which it is told once
	data    map[string]any
}

// put stores an event, due at once, and reports whether it is new and there was room.
func (e event) put(ctx context.Context, tx *sql.Tx, now int64) (stored bool, err error) {
	id := "evt_" + rand.Text()
	body, err := json.Marshal(map[string]any{
		"id": id, "type": e.kind, "timestamp": time.UnixMilli(now).UTC().Format(time.RFC3339), "account": e.account, "data": e.data,
	})
	if err != nil {
		return false, err
	}
	const statement = `INSERT INTO webhook_event (id, account, kind, about, at, body, next_at)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?5 WHERE (SELECT count(*) FROM webhook_event WHERE account = ?2 AND next_at IS NOT NULL) < ?7
		ON CONFLICT DO NOTHING`
	result, err := tx.ExecContext(ctx, statement, id, e.account, e.kind, e.about, now, string(body), maxWaiting)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// PutTest asks for a test, in a transaction. It returns ErrFull when too many events wait.
func PutTest(ctx context.Context, tx *sql.Tx, now, account int64) error {
	stored, err := event{account, Test, rand.Text(), map[string]any{"message": "This is a test."}}.put(ctx, tx, now)
	if err == nil && !stored {
		err = ErrFull
	}
	return err
}

// Delivery is an event and how its delivery goes.
type Delivery struct {
	ID, Kind  string
	At        time.Time
	Attempts  int
	Last      string     // result of the last attempt: a status such as 204, or why there was none
	Delivered *time.Time // nil while it was not
	Next      *time.Time // the next attempt, nil for none
}

// Deliveries lists an account's newest events, newest first.
func Deliveries(ctx context.Context, db querier, account int64, limit int) ([]Delivery, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, kind, at, attempts, last, delivered_at, next_at FROM webhook_event
		WHERE account = ? ORDER BY at DESC, id LIMIT ?`, account, limit)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	defer rows.Close()
	var list []Delivery
	for rows.Next() {
		var d Delivery
		var at int64
		var delivered, next sql.NullInt64
		if err := rows.Scan(&d.ID, &d.Kind, &at, &d.Attempts, &d.Last, &delivered, &next); err != nil {
			return nil, err
		}
		d.At, d.Delivered, d.Next = time.UnixMilli(at).UTC(), timeOf(delivered), timeOf(next)
		list = append(list, d)
	}
	return list, rows.Err()
}

func timeOf(column sql.NullInt64) *time.Time {
	if !column.Valid {
		return nil
	}
	at := time.UnixMilli(column.Int64).UTC()
	return &at
}
