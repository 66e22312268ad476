package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

const (
	// maxKeys is the limit of active keys of an account (docs/contract.md, "Limits").
	maxKeys = 5
	// lookBack is how far back the last use of a key is searched.
	lookBack = 90 * 24 * time.Hour
)

// The queries of one account. Usage is found by account and hour, its first columns.
const (
	selectDays      = `SELECT hour / 24, outcome, sum(count) FROM usage WHERE account = ? AND hour >= ? GROUP BY 1, 2`
	selectLastHours = `SELECT key, max(hour) FROM usage WHERE account = ? AND hour >= ? AND count > 0 GROUP BY key`
	selectMissed    = `SELECT subject, spent FROM pool WHERE kind = ? AND time_window = ? AND subject IN (SELECT value FROM json_each(?))`
	// selectNewestKeys has the time as ?2. An account may have tens of thousands of keys, of which few are active.
	selectNewestKeys = `SELECT id FROM api_key WHERE account = ?1 AND revoked_at IS NULL AND coalesce(expires_at > ?2, 1)
		UNION SELECT id FROM (SELECT id FROM api_key WHERE account = ?1 ORDER BY id DESC LIMIT ?3) ORDER BY id DESC`
	selectKeyWords = `SELECT id, name, shown FROM api_key WHERE account = ? AND id IN (SELECT value FROM json_each(?))`
)

// accountView is an account as its owner and operators see it.
type accountView struct {
	Account    writer.Account
	Plan       writer.Plan
	Month      string // such as October 2026
	Used       int64  // charged calls of the month
	ActiveKeys int
	MaxKeys    int
	Chart      chart
}

// readAccount reads an account without its chart.
func (d *Dashboard) readAccount(ctx context.Context, id int64) (accountView, error) {
	a, err := d.client.Account(ctx, id)
	if err != nil {
		return accountView{}, err
	}
	plans, err := d.client.Plans(ctx)
	if err != nil {
		return accountView{}, err
	}
	now := d.now()
	view := accountView{Account: a, Month: now.Format("January 2006"), ActiveKeys: a.Keys, MaxKeys: maxKeys}
	for _, p := range plans {
		if p.ID == a.Plan {
			view.Plan = p
		}
	}
	const volume = `SELECT coalesce(sum(spent), 0) FROM pool WHERE kind = ? AND subject = ? AND time_window = ?`
	err = d.config.Ledger.QueryRowContext(ctx, volume, syncproto.Volume, id, syncproto.Month(now.UnixMilli())).Scan(&view.Used)
	return view, err
}

// readCharted reads an account and its usage of the last 30 days.
func (d *Dashboard) readCharted(ctx context.Context, id int64) (accountView, error) {
	view, err := d.readAccount(ctx, id)
	if err == nil {
		view.Chart, err = d.readChart(ctx, id, d.now())
	}
	return view, err
}

// Over reports whether the month's calls are used up.
func (v accountView) Over() bool { return v.Used >= v.Plan.MonthlyVolume }

// readChart reads the calls of the last days of an account.
func (d *Dashboard) readChart(ctx context.Context, id int64, now time.Time) (chart, error) {
	leave, err := d.turns.Enter(ctx, id)
	if err != nil {
		return chart{}, err
	}
	defer leave()
	today := syncproto.Day(now.UnixMilli())
	rows, err := d.config.Ledger.QueryContext(ctx, selectDays, id, (today-chartDays+1)*24)
	if err != nil {
		return chart{}, err
	}
	defer rows.Close()
	days := emptyDays(today)
	for rows.Next() {
		var when int32
		var outcome charge.Outcome
		var count int64
		if err := rows.Scan(&when, &outcome, &count); err != nil {
			return chart{}, err
		}
		if i := when - (today - chartDays + 1); i >= 0 && i < chartDays {
			days[i].add(outcome, count)
		}
	}
	return newChart(days), rows.Err()
}

// keyView is a key with its usage.
type keyView struct {
	writer.Key
	NotFound int64  // today's not-found lookups
	Cap      int64  // the daily cap on them
	Last     string // last use, in words
}

// Begins and BeginsOld are the stored beginnings of the secrets.
func (k keyView) Begins() string    { return ident.LivePrefix + k.Shown + "…" }
func (k keyView) BeginsOld() string { return ident.LivePrefix + k.OldShown + "…" }

// newestKeys lists the active keys of an account and its newest others, the newest first.
func (d *Dashboard) newestKeys(ctx context.Context, account int64, others int) ([]int64, error) {
	rows, err := d.config.Ledger.QueryContext(ctx, selectNewestKeys, account, d.now().UnixMilli(), maxKeys+others)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// readKeys reads the active keys of an account and the newest of the others, the newest first.
func (d *Dashboard) readKeys(ctx context.Context, account int64) (active, revoked []keyView, err error) {
	ids, err := d.newestKeys(ctx, account, maxRevoked)
	if err != nil {
		return nil, nil, err
	}
	keys := make([]writer.Key, len(ids))
	for i, id := range ids {
		if keys[i], err = d.client.Key(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	views, err := d.viewKeys(ctx, account, keys...)
	for _, k := range views {
		if k.Active() {
			active = append(active, k)
		} else {
			revoked = append(revoked, k)
		}
	}
	return active, revoked[:min(len(revoked), maxRevoked)], err
}

// viewKeys adds the usage of keys of an account. When their last use isn't read in time, they are shown without.
func (d *Dashboard) viewKeys(ctx context.Context, account int64, keys ...writer.Key) ([]keyView, error) {
	now, ids := d.now(), make([]int64, len(keys))
	for i, k := range keys {
		ids[i] = k.ID
	}
	missed, err := d.countsByKey(ctx, selectMissed, syncproto.NotFound, syncproto.Day(now.UnixMilli()), listed(ids))
	if err != nil {
		return nil, err
	}
	views := make([]keyView, len(keys))
	for i, k := range keys {
		views[i] = keyView{Key: k, NotFound: missed[k.ID], Cap: ledger.NotFoundCap, Last: "not known at the moment"}
	}
	leave, err := d.turns.Enter(ctx, account)
	if errors.Is(err, writer.ErrTooMany) { // a key that leaked can be revoked while sums of its account run
		return views, nil
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	lastHours, err := d.countsByKey(ctx, selectLastHours, account, syncproto.Hour(now.Add(-lookBack).UnixMilli()))
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		views[i].Last = lastUse(lastHours[k.ID], k, now)
	}
	return views, nil
}

// listed writes numbers as a JSON array, for json_each.
func listed(ids []int64) string {
	list, err := json.Marshal(ids)
	if err != nil {
		panic(err) // numbers can be written
	}
	return string(list)
}

// readKeyWords names keys of an account. Those of other accounts are left out.
func (d *Dashboard) readKeyWords(ctx context.Context, account int64, ids []int64) (map[int64]string, error) {
	rows, err := d.config.Ledger.QueryContext(ctx, selectKeyWords, account, listed(ids))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	words := map[int64]string{}
	for rows.Next() {
		var id int64
		var name, shown string
		if err := rows.Scan(&id, &name, &shown); err != nil {
			return nil, err
		}
		words[id] = keyWords(id, name, shown)
	}
	return words, rows.Err()
}

// countsByKey runs a query that returns a number for each key.
func (d *Dashboard) countsByKey(ctx context.Context, query string, args ...any) (map[int64]int64, error) {
	rows, err := d.config.Ledger.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[int64]int64{}
	for rows.Next() {
		var key, count int64
		if err := rows.Scan(&key, &count); err != nil {
			return nil, err
		}
		counts[key] = count
	}
	return counts, rows.Err()
}

// lastUse formats when a key was last used. Usage is kept by the hour.
func lastUse(hour int64, k writer.Key, now time.Time) string {
	current := int64(syncproto.Hour(now.UnixMilli()))
	switch {
	case hour == 0 && now.Sub(k.Created) < lookBack:
		return "never"
	case hour == 0:
		return "not in the last 90 days"
	case hour >= current:
		return "within this hour"
	case hour == current-1:
		return "within the last two hours"
	}
	t := time.Unix(hour*3600, 0).UTC()
	if current-hour < 24 {
		return plural(current-hour, "hour") + " ago"
	}
	return day(t)
}

// person is a user and the name of their account.
type person struct {
	user
	Created time.Time
	Name    string // of the account
}

// selectPerson selects what scanPerson reads.
const selectPerson = `SELECT u.id, u.email, coalesce(u.account, 0), u.operator, u.created_at, coalesce(a.name, '') FROM user u
	LEFT JOIN account a ON a.id = u.account`

// readPeople lists the users of an account.
func (d *Dashboard) readPeople(ctx context.Context, account int64) ([]person, error) {
	return d.queryPeople(ctx, selectPerson+` WHERE u.account = ? ORDER BY u.email LIMIT 500`, account)
}

func (d *Dashboard) queryPeople(ctx context.Context, query string, args ...any) ([]person, error) {
	rows, err := d.config.Ledger.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var people []person
	for rows.Next() {
		p, err := scanPerson(rows)
		if err != nil {
			return nil, err
		}
		people = append(people, p)
	}
	return people, rows.Err()
}

func scanPerson(rows interface{ Scan(...any) error }) (person, error) {
	var p person
	var created int64
	err := rows.Scan(&p.ID, &p.Email, &p.Account, &p.Operator, &created, &p.Name)
	p.Created = time.UnixMilli(created).UTC()
	return p, err
}
