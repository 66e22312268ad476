package notice

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"regedge/handler/ident"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

const (
	// endsSoon is how long before the end of a key its owner is told.
	endsSoon = 7 * 24 * time.Hour
	// kept is how long a notice is kept: longer than a month, in which it is told once.
	kept = 40 * 24 * time.Hour
)

// The queries begin with the targets, which are few, and find everything else by an index. The last
// parameters say whether webhooks and mail are looked for.
const (
	// selectBalances finds only what there may be something to tell of: a libSQL server refuses to answer with the balances of
	// tens of thousands of targets. It has the month and the kind of its pool as ?1 and ?2.
	selectBalances = `SELECT t.id, t.account, t.low, t.low_told, a.bought + a.compensated - a.spent - a.lost, p.monthly_volume, coalesce(v.spent, 0)
		FROM notice_target t CROSS JOIN account a ON a.id = t.account JOIN plan p ON p.id = a.plan
		LEFT JOIN pool v ON v.kind = ?2 AND v.subject = t.account AND v.time_window = ?1
		WHERE (t.channel = ?3 OR t.channel = ?4) AND ((a.bought + a.compensated - a.spent - a.lost < t.low) <> t.low_told
			OR p.monthly_volume > 0 AND coalesce(v.spent, 0) >= p.monthly_volume - p.monthly_volume / 5)`
	// selectCapped has the day, the kind of its pool and the cap.
	selectCapped = `SELECT t.id, t.account, k.id, k.name, k.shown, p.spent FROM notice_target t CROSS JOIN api_key k ON k.account = t.account
		CROSS JOIN pool p ON p.kind = ?2 AND p.subject = k.id AND p.time_window = ?1
		WHERE p.spent >= ?3 AND k.revoked_at IS NULL AND (t.channel = ?4 OR t.channel = ?5)`
	// selectEnding has the time, and the one until which a key ends soon.
	selectEnding = `SELECT t.id, t.account, k.id, k.name, k.shown, k.expires_at FROM notice_target t CROSS JOIN api_key k ON k.account = t.account
		WHERE k.revoked_at IS NULL AND k.expires_at > ?1 AND k.expires_at <= ?2 AND (t.channel = ?3 OR t.channel = ?4)`
	// selectSpent has the time.
	selectSpent = `SELECT t.id, t.account, k.id, k.name, k.shown, k.monthly_credits, k.limited_until FROM notice_target t
		CROSS JOIN api_key k ON k.account = t.account
		WHERE k.limited_until > ?1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?1) AND (t.channel = ?2 OR t.channel = ?3)`
	// selectExpired has the time until which notices have expired.
	selectExpired = `SELECT 1 FROM notice_target t CROSS JOIN notice e ON e.target = t.id WHERE e.next_at IS NULL AND e.at <= ?1 LIMIT 1`
)

// finding looks for events to notify on the channels that this writer has.
type finding struct {
	channels [2]any // nil for one that it has not
	events   []event
	// again are the targets whose balance recovered, so that the next time is notified again.
	again []int64
	// expired says that there are notices to drop.
	expired bool
}

// find also finds events that were notified before, except for balances: news drops those.
func (f *finding) find(ctx context.Context, db querier, now int64) error {
	for _, look := range []func(context.Context, querier, int64) error{f.balances, f.capped, f.ending, f.spent} {
		if err := look(ctx, db, now); err != nil {
			return fmt.Errorf("look for what to tell: %w", err)
		}
	}
	return each(ctx, db, selectExpired, []any{now - kept.Milliseconds()}, func(*sql.Rows) error {
		f.expired = true
		return nil
	})
}

func (f *finding) balances(ctx context.Context, db querier, now int64) error {
	month := time.UnixMilli(now).UTC().Format("2006-01")
	args := append([]any{syncproto.Month(now), syncproto.Volume}, f.channels[:]...)
	return each(ctx, db, selectBalances, args, func(rows *sql.Rows) error {
		var target, account, low, balance, volume, used int64
		var told bool
		if err := rows.Scan(&target, &account, &low, &told, &balance, &volume, &used); err != nil {
			return err
		}
		switch {
		case balance < low && !told:
			f.events = append(f.events, event{target, account, LowBalance, fmt.Sprint(now), map[string]any{"balance": balance, "threshold": low}})
		case balance >= low && told:
			f.again = append(f.again, target)
		}
		if volume > 0 && used >= volume-volume/5 {
			f.events = append(f.events, event{target, account, VolumeUsed, month, map[string]any{"month": month, "used": used, "volume": volume}})
		}
		return nil
	})
}

func (f *finding) capped(ctx context.Context, db querier, now int64) error {
	day := time.UnixMilli(now).UTC().Format(time.DateOnly)
	args := append([]any{syncproto.Day(now), syncproto.NotFound, ledger.NotFoundCap}, f.channels[:]...)
	return each(ctx, db, selectCapped, args, func(rows *sql.Rows) error {
		var k keyRow
		var count int64
		err := rows.Scan(&k.target, &k.account, &k.id, &k.name, &k.shown, &count)
		f.events = append(f.events, event{k.target, k.account, NotFoundCap, fmt.Sprintf("%d on %s", k.id, day),
			k.data(map[string]any{"day": day, "cap": ledger.NotFoundCap})})
		return err
	})
}

func (f *finding) ending(ctx context.Context, db querier, now int64) error {
	args := append([]any{now, now + endsSoon.Milliseconds()}, f.channels[:]...)
	return each(ctx, db, selectEnding, args, func(rows *sql.Rows) error {
		var k keyRow
		var ends int64
		err := rows.Scan(&k.target, &k.account, &k.id, &k.name, &k.shown, &ends)
		at := time.UnixMilli(ends).UTC().Format(time.RFC3339)
		f.events = append(f.events, event{k.target, k.account, KeyEnding, fmt.Sprintf("%d at %d", k.id, ends), k.data(map[string]any{"expires": at})})
		return err
	})
}

// spent finds the keys that have spent their month's credits; the month ends when they may be used again.
func (f *finding) spent(ctx context.Context, db querier, now int64) error {
	args := append([]any{now}, f.channels[:]...)
	return each(ctx, db, selectSpent, args, func(rows *sql.Rows) error {
		var k keyRow
		var credits, until int64
		err := rows.Scan(&k.target, &k.account, &k.id, &k.name, &k.shown, &credits, &until)
		month := time.UnixMilli(until - 1).UTC().Format("2006-01")
		f.events = append(f.events, event{k.target, k.account, KeyCreditsSpent, fmt.Sprintf("%d in %s", k.id, month),
			k.data(map[string]any{"month": month, "credits": credits, "until": time.UnixMilli(until).UTC().Format(time.RFC3339)})})
		return err
	})
}

type keyRow struct {
	target, account, id int64
	name, shown         string
}

// data adds the key to an event's data. Its secret is not stored, so it can't be in there.
func (k keyRow) data(more map[string]any) map[string]any {
	more["key"], more["name"], more["begins"] = k.id, k.name, ident.LivePrefix+k.shown
	return more
}

// each calls f with each row of a query.
func each(ctx context.Context, db querier, query string, args []any, f func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// news drops events that were notified before.
func (f *finding) news(ctx context.Context, db querier) error {
	var news []event
	for _, e := range f.events {
		var n int
		const query = `SELECT count(*) FROM notice WHERE target = ? AND kind = ? AND about = ?`
		if err := db.QueryRowContext(ctx, query, e.target, e.kind, e.about).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			news = append(news, e)
		}
	}
	f.events = news
	return nil
}

// store stores the events, and drops expired notices, in a transaction.
func (f *finding) store(ctx context.Context, tx *sql.Tx, now int64) error {
	for _, e := range f.events {
		stored, err := e.put(ctx, tx, now)
		if err == nil && stored && e.kind == LowBalance {
			err = noteLow(ctx, tx, e.target, true)
		}
		if err != nil {
			return err
		}
	}
	for _, target := range f.again {
		if err := noteLow(ctx, tx, target, false); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM notice WHERE next_at IS NULL AND at <= ?`, now-kept.Milliseconds())
	return err
}

// noteLow notes whether a target was notified of the balance that is low now.
func noteLow(ctx context.Context, tx *sql.Tx, target int64, told bool) error {
	_, err := tx.ExecContext(ctx, `UPDATE notice_target SET low_told = ? WHERE id = ?`, told, target)
	return err
}
