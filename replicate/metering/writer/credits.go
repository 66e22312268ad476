package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

func (w *Writer) listCredits(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	if _, err := readAccountRow(r.Context(), w.config.Ledger, w.now(), id); err != nil {
		return nil, err
	}
	const query = `SELECT id, account, at, kind, amount, note FROM credit_entry WHERE account = ? ORDER BY id`
	return collect(r.Context(), w.config.Ledger, query, []any{id}, func(rows *sql.Rows) (CreditEntry, error) {
		var e CreditEntry
		var at int64
		err := rows.Scan(&e.ID, &e.Account, &at, &e.Kind, &e.Amount, &e.Note)
		e.At = time.UnixMilli(at).UTC()
		return e, err
	})
}

func (w *Writer) changeCredits(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	var body CreditChange
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if err := checkLine("a note", body.Note, maxNote); err != nil {
		return nil, err
	}
	if body.Kind == "" {
		body.Kind = Bought
	}
	switch {
	case body.Kind != Bought && body.Kind != Compensated:
		return nil, fmt.Errorf("%w: kind is %s or %s", ErrMalformed, Bought, Compensated)
	case body.Kind == Compensated && body.Amount < 0:
		return nil, fmt.Errorf("%w: only credits of the kind %s are taken away", ErrMalformed, Bought)
	}
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		if _, err := readAccountRow(ctx, tx, now, id); err != nil {
			return err
		}
		amount := body.Amount
		if has := l.Balance(id); amount < 0 && has < -amount {
			if !body.AtMost {
				return &detailed{ErrBeyondBalance, fmt.Sprintf("account %d has %d credits, which is less than %d", id, has, -amount)}
			}
			amount = -max(has, 0) // what is bought later is not taken
		}
		setActTaken(r, body, amount)
		if amount == 0 && body.Amount < 0 {
			return nil
		}
		return l.ChangeCredits(now, id, amount, body.Kind, body.Note)
	}
	answer := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) (Account, error) {
		return readAccountFrom(ctx, tx, now, id)
	}
	return apply(w, r, edit[Account]{change: change, answer: answer})
}

const selectUnresolved = `SELECT id, account, key, node, at, credited FROM unresolved`

func scanUnresolved(row interface{ Scan(...any) error }) (Unresolved, error) {
	var u Unresolved
	var at int64
	err := row.Scan(&u.ID, &u.Account, &u.Key, &u.Edge, &at, &u.Credited)
	u.At = time.UnixMilli(at).UTC()
	if errors.Is(err, sql.ErrNoRows) {
		return u, &detailed{ErrNotFound, "there is no such charge in doubt"}
	}
	return u, err
}

// unresolvedPage selects charges by request id or edge, the newest first. The cursor is a request id.
const unresolvedPage = ` WHERE (?1 = '' OR (-at, id) > (SELECT -at, id FROM unresolved WHERE id = ?1))
	AND (?2 = '%%' OR id LIKE ?2 ESCAPE '\' OR node LIKE ?2 ESCAPE '\') ORDER BY -at, id LIMIT ?3`

func (w *Writer) listUnresolved(r *http.Request, _ httprouter.Params) (any, error) {
	q, err := readListQuery(r)
	if err != nil {
		return nil, err
	}
	if q.Cursor != "" {
		var known bool
		err := w.config.Ledger.QueryRowContext(r.Context(), `SELECT EXISTS (SELECT 1 FROM unresolved WHERE id = ?)`, q.Cursor).Scan(&known)
		if err == nil && !known {
			err = fmt.Errorf("%w: that is no cursor of this list", ErrMalformed)
		}
		if err != nil {
			return nil, err
		}
	}
	list, err := collect(r.Context(), w.config.Ledger, selectUnresolved+unresolvedPage, []any{q.Cursor, q.pattern(), q.more()},
		func(rows *sql.Rows) (Unresolved, error) { return scanUnresolved(rows) })
	return pageOf(q, list, func(u Unresolved) string { return u.ID }), err
}

func (w *Writer) creditUnresolved(r *http.Request, p httprouter.Params) (any, error) {
	id := p.ByName("name")
	var answer Unresolved
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		var err error
		answer, err = scanUnresolved(tx.QueryRowContext(ctx, selectUnresolved+` WHERE id = ?`, id))
		setActAccount(r, answer.Account)
		if err != nil || answer.Credited {
			return err
		}
		answer.Credited = true
		if _, err := tx.ExecContext(ctx, `UPDATE unresolved SET credited = 1 WHERE id = ?`, id); err != nil {
			return err
		}
		return l.ChangeCredits(now, answer.Account, 1, Compensated, "unresolved charge "+id)
	}
	return apply(w, r, edit[Unresolved]{change: change, answer: given(&answer)})
}
