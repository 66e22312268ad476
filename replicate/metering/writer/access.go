package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The access database is a projection of the ledger: plans, accounts and valid keys. A change
// is written to the ledger first and then here; after a crash between the two, reconcile
// repairs it at the next start.

const (
	putPlan = `INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET api_access = excluded.api_access, per_minute = excluded.per_minute,
		monthly_volume = excluded.monthly_volume, email = excluded.email, phone = excluded.phone`
	putAccount = `INSERT INTO account (id, plan, suspended) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET plan = excluded.plan, suspended = excluded.suspended`
	putKey = `INSERT INTO api_key (id, account, hash) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET account = excluded.account, hash = excluded.hash`
)

func (w *Writer) projectPlan(ctx context.Context, id string) error {
	p, err := scanPlan(w.config.Ledger.QueryRowContext(ctx, selectPlans+` WHERE id = ?`, id))
	if err == nil {
		_, err = w.config.Access.ExecContext(ctx, putPlan, p.ID, p.APIAccess, p.PerMinute, p.MonthlyVolume, p.Email, p.Phone)
	}
	if err != nil {
		return fmt.Errorf("project plan %s: %w", id, err)
	}
	return nil
}

func (w *Writer) projectAccount(ctx context.Context, id int64) error {
	var plan string
	var suspended bool
	err := w.config.Ledger.QueryRowContext(ctx, `SELECT plan, suspended FROM account WHERE id = ?`, id).Scan(&plan, &suspended)
	if err == nil {
		_, err = w.config.Access.ExecContext(ctx, putAccount, id, plan, suspended)
	}
	if err != nil {
		return fmt.Errorf("project account %d: %w", id, err)
	}
	return nil
}

func (w *Writer) projectKey(ctx context.Context, id int64) error {
	var account int64
	var hash []byte
	const query = `SELECT account, hash FROM api_key WHERE id = ? AND revoked_at IS NULL`
	err := w.config.Ledger.QueryRowContext(ctx, query, id).Scan(&account, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = w.config.Access.ExecContext(ctx, `DELETE FROM api_key WHERE id = ?`, id)
	case err == nil:
		_, err = w.config.Access.ExecContext(ctx, putKey, id, account, hash)
	}
	if err != nil {
		return fmt.Errorf("project key %d: %w", id, err)
	}
	return nil
}

// projected is one table of the projection, with the statements that read it on both sides and
// that put and drop a row. The first column is the id.
type projected struct {
	name, ledger, access, put, drop string
	columns                         int
}

// projection lists the tables in an order that satisfies foreign keys.
var projection = []projected{
	{
		name:   "plan",
		ledger: `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan ORDER BY id`,
		access: `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan ORDER BY id`,
		put:    putPlan, drop: `DELETE FROM plan WHERE id = ?`, columns: 6,
	},
	{
		name:   "account",
		ledger: `SELECT id, plan, suspended FROM account ORDER BY id`,
		access: `SELECT id, plan, suspended FROM account ORDER BY id`,
		put:    putAccount, drop: `DELETE FROM account WHERE id = ?`, columns: 3,
	},
	{
		name:   "api_key",
		ledger: `SELECT id, account, hex(hash) FROM api_key WHERE revoked_at IS NULL ORDER BY id`,
		access: `SELECT id, account, hex(hash) FROM api_key ORDER BY id`,
		put: `INSERT INTO api_key (id, account, hash) VALUES (?, ?, unhex(?))
			ON CONFLICT DO UPDATE SET account = excluded.account, hash = excluded.hash`,
		drop: `DELETE FROM api_key WHERE id = ?`, columns: 3,
	},
}

// reconcile makes the access database match the ledger. It writes only the differences.
func (w *Writer) reconcile(ctx context.Context) error {
	w.behind.Store(false)
	if err := w.reconcileAll(ctx); err != nil {
		w.behind.Store(true)
		return fmt.Errorf("bring access database up to date: %w", err)
	}
	return nil
}

func (w *Writer) reconcileAll(ctx context.Context) error {
	drops := make([][]any, len(projection))
	for i, t := range projection {
		want, err := readRows(ctx, w.config.Ledger, t.ledger, t.columns)
		if err != nil {
			return err
		}
		have, err := readRows(ctx, w.config.Access, t.access, t.columns)
		if err != nil {
			return err
		}
		for id, row := range want {
			if have[id] == row {
				continue
			}
			if _, err := w.config.Access.ExecContext(ctx, t.put, row.values()[:t.columns]...); err != nil {
				return fmt.Errorf("put %s %v: %w", t.name, id, err)
			}
		}
		for id := range have {
			if _, ok := want[id]; !ok {
				drops[i] = append(drops[i], id)
			}
		}
	}
	return w.dropRows(ctx, drops)
}

// dropRows removes rows that the ledger does not have: keys, then accounts, then plans.
func (w *Writer) dropRows(ctx context.Context, drops [][]any) error {
	for i := len(projection) - 1; i >= 0; i-- {
		for _, id := range drops[i] {
			if _, err := w.config.Access.ExecContext(ctx, projection[i].drop, id); err != nil {
				return fmt.Errorf("drop %s %v: %w", projection[i].name, id, err)
			}
		}
	}
	return nil
}

// row is a row of the projection. No table has more than six columns.
type row [6]any

func (r row) values() []any { return r[:] }

func readRows(ctx context.Context, db *sql.DB, query string, columns int) (map[any]row, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[any]row{}
	for rows.Next() {
		var r row
		into := make([]any, columns)
		for i := range into {
			into[i] = &r[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		found[r[0]] = r
	}
	return found, rows.Err()
}
