package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Queryer is a database, a connection or a transaction to read from.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Load reads the ledger from its database.
func Load(ctx context.Context, db Queryer) (*Ledger, error) {
	l := New(0)
	var restoring bool
	row := db.QueryRowContext(ctx, `SELECT generation, restoring FROM writer`)
	if err := row.Scan(&l.Generation, &restoring); err != nil {
		return nil, fmt.Errorf("load generation: %w", err)
	}
	l.Restoring = restoring
	for _, part := range []struct {
		name string
		load func(context.Context, Queryer) error
	}{
		{"plans", l.loadPlans}, {"accounts", l.loadAccounts}, {"keys", l.loadKeys}, {"pools", l.loadPools},
		{"nodes", l.loadEdges}, {"epochs", l.loadEpochs}, {"leases", l.loadLeases},
	} {
		if err := part.load(ctx, db); err != nil {
			return nil, fmt.Errorf("load %s: %w", part.name, err)
		}
	}
	l.changes = newChanges()
	return l, nil
}

// rowsAtOnce is how many rows are read at once: a libSQL server refuses an answer of more than 10 MB, some 30,000
// accounts.
const rowsAtOnce = 5000

// lowest is below every number that the ledger stores.
const lowest int64 = math.MinInt64

// each calls scan for each row of a table. The query reads rows beyond a key, in its order, and the key's columns are
// the first. after is below all keys: lowest for a number, "" for a text.
func each(ctx context.Context, db Queryer, query string, scan func(rows *sql.Rows) error, after ...any) error {
	for {
		n, err := eachOfPart(ctx, db, query, scan, after)
		if n < rowsAtOnce || err != nil {
			return err
		}
	}
}

// eachOfPart reads up to rowsAtOnce rows beyond after, and replaces it by the last one's key.
func eachOfPart(ctx context.Context, db Queryer, query string, scan func(rows *sql.Rows) error, after []any) (n int, err error) {
	rows, err := db.QueryContext(ctx, query+` LIMIT ?`, append(slices.Clone(after), rowsAtOnce)...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	row := make([]any, len(columns))
	for i := range row {
		row[i] = new(any)
		if i < len(after) {
			row[i] = &after[i]
		}
	}
	for ; rows.Next(); n++ {
		if err := scan(rows); err != nil {
			return 0, err
		}
		if n == rowsAtOnce-1 {
			if err := rows.Scan(row...); err != nil {
				return 0, err
			}
		}
	}
	return n, rows.Err()
}

func (l *Ledger) loadPlans(ctx context.Context, db Queryer) error {
	const query = `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan WHERE id > ? ORDER BY id`
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var p Plan
		err := rows.Scan(&p.ID, &p.APIAccess, &p.PerMinute, &p.MonthlyVolume, &p.Email, &p.Phone)
		l.plans[p.ID] = p
		return err
	}, "")
}

func (l *Ledger) loadAccounts(ctx context.Context, db Queryer) error {
	const query = `SELECT id, plan, suspended, bought, compensated, spent, lost, deducting, posted, posted_hour FROM account
		WHERE id > ? ORDER BY id`
	return each(ctx, db, query, func(rows *sql.Rows) error {
		a, p := &Account{}, &Pool{}
		err := rows.Scan(&a.ID, &a.Plan, &a.Suspended, &p.Limit, &p.Compensated, &p.Spent, &p.Lost,
			&p.Deducting, &a.posted, &a.postedHour)
		p.ID = syncproto.Pool{Kind: syncproto.Credits, Subject: a.ID}
		a.credits = p
		l.putAccount(a)
		return err
	}, lowest)
}

func (l *Ledger) loadKeys(ctx context.Context, db Queryer) error {
	return each(ctx, db, `SELECT id, account FROM api_key WHERE id > ? ORDER BY id`, func(rows *sql.Rows) error {
		var id, account int64
		err := rows.Scan(&id, &account)
		l.AddKey(id, account)
		return err
	}, lowest)
}

func (l *Ledger) loadPools(ctx context.Context, db Queryer) error {
	const query = `SELECT kind, subject, time_window, compensated, spent, lost FROM pool
		WHERE (kind, subject, time_window) > (?, ?, ?) ORDER BY kind, subject, time_window`
	return each(ctx, db, query, func(rows *sql.Rows) error {
		p := &Pool{}
		err := rows.Scan(&p.ID.Kind, &p.ID.Subject, &p.ID.Window, &p.Compensated, &p.Spent, &p.Lost)
		if p.ID.Kind == syncproto.NotFound {
			p.Limit = NotFoundCap
		} else if a := l.accounts[p.ID.Subject]; a != nil {
			p.Limit = l.plans[a.Plan].MonthlyVolume
		}
		l.keepPool(p)
		return err
	}, lowest, lowest, lowest)
}

func (l *Ledger) loadEdges(ctx context.Context, db Queryer) error {
	return each(ctx, db, `SELECT name, retired, epoch, declared FROM node WHERE name > ? ORDER BY name`, func(rows *sql.Rows) error {
		e := &Edge{epochs: map[uint64]*Epoch{}, listed: map[int64]bool{}}
		err := rows.Scan(&e.Name, &e.Retired, &e.Epoch, &e.Declared)
		l.edges[e.Name] = e
		return err
	}, "")
}

func (l *Ledger) loadEpochs(ctx context.Context, db Queryer) error {
	const query = `SELECT node, epoch, boot, applied, granted, forked, ended FROM node_epoch
		WHERE (node, epoch) > (?, ?) ORDER BY node, epoch`
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var name string
		var boot int64
		epoch := &Epoch{leases: map[syncproto.Pool]*Lease{}}
		err := rows.Scan(&name, &epoch.Number, &boot, &epoch.Applied, &epoch.Granted, &epoch.Forked, &epoch.Ended)
		if err != nil {
			return err
		}
		epoch.Boot = uint64(boot)
		e := l.edges[name]
		if e == nil {
			return fmt.Errorf("epoch %d of unknown node %q", epoch.Number, name)
		}
		e.epochs[epoch.Number] = epoch
		return nil
	}, "", lowest)
}

// loadLeases reads the leases in the order of their key, so that two loads of one database behave the same.
func (l *Ledger) loadLeases(ctx context.Context, db Queryer) error {
	const query = `SELECT node, epoch, kind, subject, time_window, granted, spent, returned, beyond, ends_at, lost
		FROM lease WHERE (node, epoch, kind, subject, time_window) > (?, ?, ?, ?, ?) ORDER BY node, epoch, kind, subject, time_window`
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var name string
		var number uint64
		var id syncproto.Pool
		h := &Lease{}
		err := rows.Scan(&name, &number, &id.Kind, &id.Subject, &id.Window, &h.Granted, &h.Spent, &h.Returned, &h.Beyond,
			&h.Until, &h.Lost)
		if err != nil {
			return err
		}
		e, p := l.edges[name], l.pools[id]
		if e == nil || e.epochs[number] == nil || p == nil {
			return fmt.Errorf("lease %+v of node %q, epoch %d, has no node, epoch or pool", id, name, number)
		}
		h.edge, h.epoch, h.pool = e, e.epochs[number], p
		h.epoch.leases[id] = h
		p.leases = append(p.leases, h)
		if !h.Lost {
			p.Leased += h.Outstanding()
		}
		return nil
	}, "", lowest, lowest, lowest, lowest)
}
