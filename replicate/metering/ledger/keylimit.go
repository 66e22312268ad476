package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// MaxKeyCredits bounds the credits that a key may be limited to in a month.
const MaxKeyCredits = maxCredits

// keptMonths is how many months of a key are counted: those nearest to the writer's clock. Edges report this
// month and the last one. Other months come from wrong clocks, and must not displace these.
const keptMonths = 6

// keyLimit bounds the credits that a key spends in a UTC month. It is soft: nothing is leased for it.
// Reported charges are counted; at the limit, edges learn from the access database that the key is limited
// until the month ends.
type keyLimit struct {
	credits int64
	spent   map[int32]int64 // by month
	month   int32           // whose credits count, 0 before any were spent
	until   int64           // Unix milliseconds until which edges refuse the key, 0 if they do not
}

// keyMonth is a month of a key with a limit.
type keyMonth struct {
	key   int64
	month int32
}

// LoadKeyLimits reads the keys with a limit, and what they spent. now is by the writer's clock.
func (l *Ledger) LoadKeyLimits(ctx context.Context, db Queryer, now int64) error {
	const limited = `SELECT id, monthly_credits, limited_until FROM api_key WHERE monthly_credits > 0 AND revoked_at IS NULL AND id > ? ORDER BY id`
	err := each(ctx, db, limited, func(rows *sql.Rows) error {
		var key int64
		k := &keyLimit{spent: map[int32]int64{}}
		err := rows.Scan(&key, &k.credits, &k.until)
		l.keyLimits[key] = k
		return err
	}, lowest)
	if err != nil {
		return fmt.Errorf("load limits of keys: %w", err)
	}
	err = each(ctx, db, `SELECT key, month, spent FROM key_month WHERE (key, month) > (?, ?) ORDER BY key, month`, func(rows *sql.Rows) error {
		var of keyMonth
		var spent int64
		err := rows.Scan(&of.key, &of.month, &spent)
		if k := l.keyLimits[of.key]; k != nil {
			//mutant:months-of-a-key-not-loaded
			k.spent[of.month] = spent
		}
		return err
	}, lowest, lowest)
	if err != nil {
		return fmt.Errorf("load what keys spent: %w", err)
	}
	for _, k := range l.keyLimits {
		k.month = k.newest(syncproto.Month(now))
	}
	return nil
}

// newest is the last month, up to a given one, in which the key spent credits; 0 for none.
func (k *keyLimit) newest(upTo int32) (newest int32) {
	for month := range k.spent {
		if month <= upTo {
			newest = max(newest, month)
		}
	}
	return newest
}

// LimitKey sets how many credits a key may spend in a month, up to MaxKeyCredits; 0 takes the limit away.
// What the key spent in this month and the last one counts: it is read from the transaction.
func (l *Ledger) LimitKey(ctx context.Context, tx *sql.Tx, now, key, credits int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM key_month WHERE key = ?`, key); err != nil {
		return fmt.Errorf("forget what key %d spent: %w", key, err)
	}
	k := &keyLimit{credits: credits, spent: map[int32]int64{}}
	l.changes.keys[key] = 0 // marks a change, and replaces what was said of the limit before
	if credits == 0 {
		delete(l.keyLimits, key)
		return nil
	}
	if err := k.sum(ctx, tx, now, key); err != nil {
		return fmt.Errorf("sum what key %d spent: %w", key, err)
	}
	for month, spent := range k.spent {
		l.changes.keyMonths[keyMonth{key, month}] = spent
	}
	k.month = k.newest(syncproto.Month(now))
	l.keyLimits[key] = k
	l.settleKeyLimit(key, k)
	return nil
}

const (
	// selectLastHour has the key as ?1, and the writer's hour as ?2. A clock that is ahead, an edge's or the
	// writer's, must not hide the months before.
	selectLastHour = `SELECT min(coalesce((SELECT max(hour) FROM usage WHERE account = k.account), ?2), ?2) FROM api_key k WHERE k.id = ?1`
	selectKeySpent = `SELECT u.hour, sum(u.count) FROM api_key k CROSS JOIN usage u ON u.account = k.account AND u.hour >= ?2 AND u.key = k.id
		WHERE k.id = ?1 AND u.outcome = ?3 GROUP BY u.hour`
)

// sum adds up a key's usage since the month before the last one in which its account had any.
func (k *keyLimit) sum(ctx context.Context, tx *sql.Tx, now, key int64) error {
	var last int32
	if err := tx.QueryRowContext(ctx, selectLastHour, key, syncproto.Hour(now)).Scan(&last); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, selectKeySpent, key, firstHour(syncproto.MonthOfHour(last)-1), charge.Found)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var hour int32
		var count int64
		if err := rows.Scan(&hour, &count); err != nil {
			return err
		}
		k.count(syncproto.MonthOfHour(hour), count)
	}
	return rows.Err()
}

// firstHour is the first hour of a month.
func firstHour(month int32) int32 { return syncproto.Hour(syncproto.EndOfMonth(month - 1)) }

// maxSpent bounds the count of a month: a broken edge may report ever more, or take it back.
const maxSpent = 1 << 60

func (k *keyLimit) count(month int32, credits int64) {
	k.spent[month] = max(min(k.spent[month]+credits, maxSpent), -maxSpent)
}

// countKey counts reported usage of a key with a limit.
func (l *Ledger) countKey(now int64, u *syncproto.Usage) {
	k := l.keyLimits[u.Key]
	if k == nil || u.Outcome != charge.Found {
		return
	}
	month, current := syncproto.MonthOfHour(u.Hour), syncproto.Month(now)
	//mutant:limited-key-not-counted
	k.count(month, u.Count)
	// Another month begins when the clocks of both an edge and the writer say so. One wrong clock alone does
	// not give a key another month's credits.
	if month <= current && (month > k.month || k.month > current) {
		k.month = month
	}
	of := keyMonth{u.Key, month}
	l.changes.keyMonths[of] = k.spent[month]
	delete(l.changes.pastMonths, of)
	if len(k.spent) > keptMonths {
		l.forgetMonth(keyMonth{u.Key, k.farthest(current)})
	}
	l.settleKeyLimit(u.Key, k)
}

// farthest is the key's month that is farthest from the given one.
func (k *keyLimit) farthest(from int32) int32 {
	return slices.MaxFunc(sortedKeys(k.spent), func(a, b int32) int { return cmp.Compare(max(a-from, from-a), max(b-from, from-b)) })
}

func (l *Ledger) forgetMonth(of keyMonth) {
	delete(l.keyLimits[of.key].spent, of.month)
	delete(l.changes.keyMonths, of)
	l.changes.pastMonths[of] = true
}

// reviewKeyLimits moves limits of a future month back to a month in which edges report: the writer's clock
// was ahead.
func (l *Ledger) reviewKeyLimits(current int32) {
	for key, k := range l.keyLimits {
		if k.month > current {
			k.month = k.newest(current)
		}
		l.settleKeyLimit(key, k)
	}
}

// settleKeyLimit notes when edges need a new limit of a key.
func (l *Ledger) settleKeyLimit(key int64, k *keyLimit) {
	until := int64(0)
	if k.spent[k.month] >= k.credits {
		until = syncproto.EndOfMonth(k.month)
	}
	if k.until != until {
		k.until = until
		l.changes.keys[key] = until
	}
}

// ChangedKeys lists the keys whose limits edges must learn once the changes are committed.
func (l *Ledger) ChangedKeys() []int64 { return sortedKeys(l.changes.keys) }

func keyRows(c *Changes) table {
	t := newTable("keys", writeKeys, 2, len(c.keys))
	for _, id := range sortedKeys(c.keys) {
		t.put(id, c.keys[id])
	}
	return t
}

func keyMonthRows(c *Changes) table {
	t := newTable("months of keys", writeKeyMonths, 3, len(c.keyMonths))
	for _, of := range sortedMonths(c.keyMonths) {
		t.put(of.key, of.month, c.keyMonths[of])
	}
	return t
}

func pastMonthRows(c *Changes) table {
	t := newTable("past months of keys", deleteKeyMonths, 2, len(c.pastMonths))
	for _, of := range sortedMonths(c.pastMonths) {
		t.put(of.key, of.month)
	}
	return t
}

func sortedMonths[V any](months map[keyMonth]V) []keyMonth {
	sorted := keysOf(months)
	slices.SortFunc(sorted, func(a, b keyMonth) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.month, b.month)) })
	return sorted
}

const (
	writeKeys = `WITH r (id, until) AS (VALUES %s)
	UPDATE api_key SET limited_until = r.until FROM r WHERE api_key.id = r.id`
	writeKeyMonths  = `INSERT INTO key_month (key, month, spent) VALUES %s ON CONFLICT DO UPDATE SET spent = excluded.spent`
	deleteKeyMonths = `DELETE FROM key_month WHERE (key, month) IN (VALUES %s)`
)
