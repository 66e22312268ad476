package notice

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The kinds of notices.
const (
	LowBalance      = "balance.low"
	VolumeUsed      = "volume.used_80_percent"
	NotFoundCap     = "key.not_found_cap"
	KeyCreditsSpent = "key.credits_spent"
	KeyEnding       = "key.ending"
	Test            = "test"
)

const (
	// maxWaiting bounds the undelivered notices of a target, and maxStored all of them: further events are
	// dropped. An owner's program could give a key another end every minute, each of them soon.
	maxWaiting = 100
	maxStored  = 1000
	// testsKept is how many tests of a target are kept beside queued ones: more than Way.PerDay counts.
	testsKept = 100
)

var (
	// ErrFull is returned for a test when too many notices are queued.
	ErrFull = errors.New("too many notices wait to be delivered")
	// ErrRepeated is returned for a test that was queued before.
	ErrRepeated = errors.New("the test was queued before")
)

// event is something to tell a target.
type event struct {
	target, account int64
	kind            string
	about           string // the key against repeats
	data            map[string]any
}

// put stores a notice, due at once, and reports whether it is new and there was room. A target that was
// removed meanwhile gets nothing, nor does another account that has its number now.
func (e event) put(ctx context.Context, tx *sql.Tx, now int64) (stored bool, err error) {
	id := "evt_" + rand.Text()
	body, err := json.Marshal(map[string]any{
		"id": id, "type": e.kind, "timestamp": time.UnixMilli(now).UTC().Format(time.RFC3339), "account": e.account, "data": e.data,
	})
	if err != nil {
		return false, err
	}
	const statement = `INSERT INTO notice (id, target, kind, about, at, body, next_at)
		SELECT ?1, id, ?3, ?4, ?5, ?6, ?5 FROM notice_target
		WHERE id = ?2 AND account = ?8 AND (SELECT count(*) FROM notice WHERE target = ?2 AND next_at IS NOT NULL) < ?7
			AND (SELECT count(*) FROM notice WHERE target = ?2) < ?9
		ON CONFLICT DO NOTHING`
	result, err := tx.ExecContext(ctx, statement, id, e.target, e.kind, e.about, now, string(body), maxWaiting, e.account, maxStored)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// PutTest queues a test, in a transaction. request identifies the form that asked for it, which may be sent twice.
func PutTest(ctx context.Context, tx *sql.Tx, now int64, t Target, request string) error {
	var before bool
	const query = `SELECT EXISTS (SELECT 1 FROM notice WHERE target = ? AND kind = ? AND about = ?)`
	if err := tx.QueryRowContext(ctx, query, t.ID, Test, request).Scan(&before); err != nil {
		return err
	}
	if before {
		return ErrRepeated
	}
	const drop = `DELETE FROM notice WHERE id IN (SELECT id FROM notice
		WHERE target = ? AND kind = ? AND next_at IS NULL ORDER BY at DESC, id LIMIT -1 OFFSET ?)`
	if _, err := tx.ExecContext(ctx, drop, t.ID, Test, testsKept-1); err != nil {
		return err
	}
	stored, err := event{t.ID, t.Account, Test, request, map[string]any{"message": "This is a test."}}.put(ctx, tx, now)
	if err == nil && !stored {
		err = ErrFull
	}
	return err
}

// Delivery is a notice with the state of its delivery.
type Delivery struct {
	ID, Kind  string
	At        time.Time
	Attempts  int
	Last      string     // result of the last attempt, in the words of the carrier
	Delivered *time.Time // nil while it was not
	Next      *time.Time // the next attempt, nil for none
}

// Deliveries lists a target's newest notices, newest first.
func Deliveries(ctx context.Context, db querier, target int64, limit int) ([]Delivery, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, kind, at, attempts, last, delivered_at, next_at FROM notice
		WHERE target = ? ORDER BY at DESC, id LIMIT ?`, target, limit)
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
