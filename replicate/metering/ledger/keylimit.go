package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// MaxKeyCredits bounds the credits that a key may be limited to in a month.
const MaxKeyCredits = maxCredits

// keyLimit bounds the credits that a key spends in a UTC month. It is soft: nothing is leased for it. What edges
// report is counted, and when it reaches the limit they are told, through the access database, that the key is
// limited until the month ends. What was spent is not stored: it is the sum of the key's usage.
type keyLimit struct {
	credits int64
	month   int32
	spent   int64 // in month
	until   int64 // Unix milliseconds until which edges refuse the key, 0 if they do not
}

// LoadKeyLimits reads the keys with a limit, and what they spent in the month of now.
func (l *Ledger) LoadKeyLimits(ctx context.Context, db Queryer, now int64) error {
	month := syncproto.Month(now)
	rows, err := db.QueryContext(ctx, selectKeyLimits, hourOf(month), hourOf(month+1), charge.Found, now)
	if err != nil {
		return fmt.Errorf("load limits of keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key int64
		k := keyLimit{month: month}
		if err := rows.Scan(&key, &k.credits, &k.until, &k.spent); err != nil {
			return fmt.Errorf("load limits of keys: %w", err)
		}
		l.keyLimits[key] = &k
		l.settleKeyLimit(key, &k)
	}
	return rows.Err()
}

const (
	keySpent        = `SELECT coalesce(sum(count), 0) FROM usage u WHERE u.account = k.account AND u.hour >= ?1 AND u.hour < ?2 AND u.key = k.id AND u.outcome = ?3`
	selectKeyLimits = `SELECT k.id, k.monthly_credits, k.limited_until, (` + keySpent + `) FROM api_key k WHERE k.monthly_credits > 0 AND k.revoked_at IS NULL
		AND (k.expires_at IS NULL OR k.expires_at > ?4)`
	selectKeySpent = `SELECT (` + keySpent + `) FROM api_key k WHERE k.id = ?4`
)

func hourOf(month int32) int32 { return syncproto.Hour(syncproto.EndOfMonth(month - 1)) }

// LimitKey sets how many credits a key may spend in a month, up to MaxKeyCredits; 0 takes the limit away. It reads
// what the key spent in the month of now from the transaction.
func (l *Ledger) LimitKey(ctx context.Context, tx *sql.Tx, now, key, credits int64) error {
	k := &keyLimit{credits: credits, month: syncproto.Month(now)}
	row := tx.QueryRowContext(ctx, selectKeySpent, hourOf(k.month), hourOf(k.month+1), charge.Found, key)
	if err := row.Scan(&k.spent); err != nil {
		return fmt.Errorf("sum what key %d spent: %w", key, err)
	}
	if credits == 0 {
		delete(l.keyLimits, key)
	} else {
		l.keyLimits[key] = k
	}
	l.changes.keys[key] = 0 // so that the change is known to be one, and replaces what was said of the limit before
	l.settleKeyLimit(key, k)
	return nil
}

// countKey counts reported usage of a key with a limit. Usage of a month before has its own limit, which is past; that
// of a month to come is of an edge whose clock is wrong.
func (l *Ledger) countKey(now int64, u *syncproto.Usage) {
	k := l.keyLimits[u.Key]
	if k == nil || u.Outcome != charge.Found {
		return
	}
	month := syncproto.MonthOfHour(u.Hour)
	// Another month begins when both clocks say so, and never ends again: else a clock that is wrong for a while
	// would give a key its credits anew.
	if month > k.month && month <= syncproto.Month(now) {
		k.month, k.spent = month, 0
	}
	if month == k.month {
		k.spent = min(k.spent+u.Count, 1<<60)
	}
	l.settleKeyLimit(u.Key, k)
}

// settleKeyLimit notes when edges have to be told something else of a key.
func (l *Ledger) settleKeyLimit(key int64, k *keyLimit) {
	until := int64(0)
	if k.credits > 0 && k.spent >= k.credits {
		until = syncproto.EndOfMonth(k.month)
	}
	if k.until != until {
		k.until = until
		l.changes.keys[key] = until
	}
}

// ChangedKeys lists the keys of which edges have to be told something else, once the changes are committed.
func (l *Ledger) ChangedKeys() []int64 { return sortedKeys(l.changes.keys) }

func keyRows(c *Changes) table {
	t := newTable("keys", writeKeys, 2, len(c.keys))
	for _, id := range sortedKeys(c.keys) {
		t.put(id, c.keys[id])
	}
	return t
}

const writeKeys = `WITH r (id, until) AS (VALUES %s)
	UPDATE api_key SET limited_until = r.until FROM r WHERE api_key.id = r.id`
