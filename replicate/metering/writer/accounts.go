package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

const selectAccounts = `SELECT a.id, a.name, a.email, a.plan, a.suspended, a.created_at, a.bought, a.compensated,
	a.spent, a.lost, a.leased, a.deducting,
	(SELECT count(*) FROM api_key k WHERE k.account = a.id AND k.revoked_at IS NULL) FROM account a`

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func scanAccount(row interface{ Scan(...any) error }) (Account, error) {
	var a Account
	var created int64
	err := row.Scan(&a.ID, &a.Name, &a.Email, &a.Plan, &a.Suspended, &created, &a.Bought, &a.Compensated,
		&a.Spent, &a.Lost, &a.Leased, &a.Deducting, &a.Keys)
	a.Created = time.UnixMilli(created).UTC()
	a.Left = a.Bought + a.Compensated - a.Spent - a.Lost - a.Leased
	a.Balance = a.Left + a.Leased
	return a, err
}

func readAccountFrom(ctx context.Context, db querier, id int64) (Account, error) {
	a, err := scanAccount(db.QueryRowContext(ctx, selectAccounts+` WHERE a.id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Account{}, notFound("account", id)
	}
	return a, err
}

func (w *Writer) listAccounts(r *http.Request, _ httprouter.Params) (any, error) {
	return collect(r.Context(), w.config.Ledger, selectAccounts+` ORDER BY a.id`, nil,
		func(rows *sql.Rows) (Account, error) { return scanAccount(rows) })
}

func (w *Writer) readAccount(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	return readAccountFrom(r.Context(), w.config.Ledger, id)
}

func (w *Writer) addAccount(r *http.Request, _ httprouter.Params) (any, error) {
	var body struct{ Name, Email, Plan string }
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	body.Name = strings.TrimSpace(body.Name)
	if err := checkAccount(&body.Name, &body.Email); err != nil {
		return nil, err
	}
	var id int64
	err := w.change(r, func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		if _, ok := l.Plan(body.Plan); !ok {
			return noPlan(body.Plan)
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO account (name, email, plan, suspended, created_at) VALUES (?, ?, ?, 0, ?)`,
			body.Name, body.Email, body.Plan, now)
		if err != nil {
			return err
		}
		if id, err = result.LastInsertId(); err != nil {
			return err
		}
		return l.AddAccount(id, body.Plan)
	}, func(ctx context.Context) error { return w.projectAccount(ctx, id) })
	if err != nil {
		return nil, err
	}
	return readAccountFrom(r.Context(), w.config.Ledger, id)
}

func (w *Writer) changeAccount(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	var body AccountChange
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if err := checkAccount(body.Name, body.Email); err != nil {
		return nil, err
	}
	err = w.change(r, func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		a, err := readAccountFrom(ctx, tx, id)
		if err != nil {
			return err
		}
		setIf(&a.Name, body.Name)
		setIf(&a.Email, body.Email)
		setIf(&a.Plan, body.Plan)
		if _, ok := l.Plan(a.Plan); !ok {
			return noPlan(a.Plan)
		}
		setIf(&a.Suspended, body.Suspended)
		if _, err := tx.ExecContext(ctx, `UPDATE account SET name = ?, email = ? WHERE id = ?`, a.Name, a.Email, id); err != nil {
			return err
		}
		return l.ChangeAccount(now, id, a.Plan, a.Suspended)
	}, func(ctx context.Context) error { return w.projectAccount(ctx, id) })
	if err != nil {
		return nil, err
	}
	return readAccountFrom(r.Context(), w.config.Ledger, id)
}

// checkAccount checks what people write of an account; nil is not checked.
func checkAccount(name, email *string) error {
	if name != nil {
		if err := checkName("an account's name", *name, true); err != nil {
			return err
		}
	}
	if email != nil {
		return checkEmail(*email)
	}
	return nil
}

func noPlan(id string) error {
	return &detailed{ErrUnknownPlan, fmt.Sprintf("there is no plan %q", id)}
}

func setIf[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// change commits an operator's change and then brings the access database up to date.
// When the latter fails the change stands, and the writer tries again every second.
func (w *Writer) change(r *http.Request, change func(context.Context, *sql.Tx, int64, *ledger.Ledger) error,
	project func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), syncLimit)
	defer cancel()
	if err := w.submit(ctx, &operation{change: audited(r.Context(), change)}); err != nil {
		return apiErrorOf(err)
	}
	if project == nil {
		return nil
	}
	if err := project(ctx); err != nil {
		w.behind.Store(true)
		w.config.Logger.Error("the access database misses a change", "error", err)
	}
	return nil
}

// apiErrorOf gives the ledger's errors the API's names.
func apiErrorOf(err error) error {
	for _, pair := range []struct{ from, to error }{
		{ledger.ErrNoAccount, ErrNotFound}, {ledger.ErrNoEdge, ErrNotFound}, {ledger.ErrNoPlan, ErrUnknownPlan},
		{ledger.ErrTaken, ErrTaken}, {ledger.ErrRetired, ErrRetired}, {ledger.ErrAmount, ErrMalformed},
		{ledger.ErrFenced, ErrFenced},
	} {
		if errors.Is(err, pair.from) {
			return &detailed{pair.to, err.Error()}
		}
	}
	return err
}

// collect runs a query and gathers its rows; no rows are an empty list.
func collect[T any](ctx context.Context, db querier, query string, args []any, scan func(*sql.Rows) (T, error)) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []T{}
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}
