package writer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/handler/ident"
	"regedge/replicate/metering/ledger"
)

// maxKeys is the number of active keys of an account (docs/contract.md, "Limits").
const maxKeys = 5

// newKeysADay bounds the keys of an account that were made within 24 hours; beyond it its owners can't make another
// one, with a token or in the dashboard. Revoked keys count: they stay in the ledger, so that usage has their names,
// and each has a not-found cap of its own.
const newKeysADay = 100

// mayAddKey returns ErrTooMany for an account for which too many keys were made lately.
func mayAddKey(ctx context.Context, tx *sql.Tx, nowMillis, account int64) error {
	const day = 24 * time.Hour
	var made, oldest int64
	const query = `SELECT count(*), coalesce(min(created_at), 0) FROM api_key WHERE account = ? AND created_at > ?`
	if err := tx.QueryRowContext(ctx, query, account, nowMillis-day.Milliseconds()).Scan(&made, &oldest); err != nil {
		return err
	}
	if made < newKeysADay {
		return nil
	}
	wait := min(day-time.Duration(nowMillis-oldest)*time.Millisecond, day)
	return &throttledError{wait, fmt.Sprintf("the owners of an account may make %d keys a day", newKeysADay)}
}

const selectKeys = `SELECT id, account, name, shown, created_at, revoked_at, expires_at, old_shown, old_ends_at, allowed, per_minute,
	monthly_credits, limited_until FROM api_key`

func scanKey(row interface{ Scan(...any) error }, nowMillis int64) (Key, error) {
	var k Key
	var created, limited int64
	var revoked, expires, oldEnds sql.NullInt64
	var allowed []byte
	err := row.Scan(&k.ID, &k.Account, &k.Name, &k.Shown, &created, &revoked, &expires, &k.OldShown, &oldEnds, &allowed,
		&k.PerMinute, &k.MonthlyCredits, &limited)
	k.Allowed = networksOf(allowed)
	if limited > nowMillis {
		k.LimitedUntil = new(time.UnixMilli(limited).UTC())
	}
	k.Created = time.UnixMilli(created).UTC()
	k.Revoked, k.Expires, k.OldEnds = timeOf(revoked), timeOf(expires), timeOf(oldEnds)
	k.Expired = expires.Valid && expires.Int64 <= nowMillis
	if !k.Active() || oldEnds.Int64 <= nowMillis {
		k.OldShown, k.OldEnds = "", nil
	}
	return k, err
}

// timeOf is the time of a column, nil for NULL.
func timeOf(column sql.NullInt64) *time.Time {
	if !column.Valid {
		return nil
	}
	at := time.UnixMilli(column.Int64).UTC()
	return &at
}

func readKey(ctx context.Context, db querier, nowMillis, id int64) (Key, error) {
	k, err := scanKey(db.QueryRowContext(ctx, selectKeys+` WHERE id = ?`, id), nowMillis)
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, notFound("key", id)
	}
	return k, err
}

func (w *Writer) readKey(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("key", p)
	if err != nil {
		return nil, err
	}
	k, err := readKey(r.Context(), w.config.Ledger, w.now(), id)
	if err != nil {
		return nil, err
	}
	return k, checkOwn(r, k)
}

// keysPage selects an account's keys by name or by the characters that are shown.
const keysPage = ` WHERE account = ?1 AND id > ?2 AND (?3 = '%%' OR name LIKE ?3 ESCAPE '\' OR shown LIKE ?3 ESCAPE '\')
	ORDER BY id LIMIT ?4`

func (w *Writer) listKeys(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	if _, err := readAccountRow(r.Context(), w.config.Ledger, w.now(), id); err != nil {
		return nil, err
	}
	q, err := readListQuery(r)
	if err != nil {
		return nil, err
	}
	after, err := q.number(0)
	if err != nil {
		return nil, err
	}
	now := w.now()
	keys, err := collect(r.Context(), w.config.Ledger, selectKeys+keysPage, []any{id, after, q.pattern(), q.more()},
		func(rows *sql.Rows) (Key, error) { return scanKey(rows, now) })
	return pageOf(q, keys, func(k Key) string { return decimal(k.ID) }), err
}

// checkKeySettings checks the account-independent parts of a new key, and returns the stored networks.
func checkKeySettings(k *KeySettings) (allowed string, err error) {
	if err := checkName("a key's name", k.Name, false); err != nil {
		return "", err
	}
	if allowed, err = storedNetworks(k.Allowed); err != nil {
		return "", err
	}
	return allowed, checkMonthlyCredits(k.MonthlyCredits)
}

// checkNewKey refuses another key of an account that has too many, or one with a rate beyond its plan's.
func checkNewKey(ctx context.Context, r *http.Request, tx *sql.Tx, nowMillis int64, a *Account, perMinute int64) error {
	if a.Keys >= maxKeys {
		return ErrTooManyKeys
	}
	if byOwner(r) {
		if err := mayAddKey(ctx, tx, nowMillis, a.ID); err != nil {
			return err
		}
	}
	return checkPerMinute(ctx, tx, a.Plan, perMinute)
}

func (w *Writer) addKey(r *http.Request, p httprouter.Params) (any, error) {
	account, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	var body KeySettings
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	allowed, err := checkKeySettings(&body)
	if err != nil {
		return nil, err
	}
	answer := NewKey{Secret: ident.NewKey(w.config.Random)}
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		a, err := readAccountRow(ctx, tx, now, account)
		if err != nil {
			return err
		}
		if err := checkNewKey(ctx, r, tx, now, &a, body.PerMinute); err != nil {
			return err
		}
		expires, err := endOf(body.Expires, now)
		if err != nil {
			return err
		}
		hash := sha256.Sum256([]byte(answer.Secret))
		result, err := tx.ExecContext(ctx, `INSERT INTO api_key (account, name, hash, shown, created_at, expires_at, allowed, per_minute, monthly_credits)
			VALUES (?, ?, ?, ?, ?, ?, unhex(?), ?, ?)`,
			account, body.Name, hash[:], ident.KeyShown(answer.Secret), now, expires, allowed, body.PerMinute,
			body.MonthlyCredits)
		if err != nil {
			return err
		}
		id, err := result.LastInsertId()
		if err != nil {
			return err
		}
		l.AddKey(id, account)
		if answer.Key, err = readKey(ctx, tx, now, id); err != nil || body.MonthlyCredits == 0 {
			return err
		}
		return l.LimitKey(ctx, tx, now, id, body.MonthlyCredits)
	}
	row := func(k NewKey) changedRow { return changedRow{table: keyTable, id: k.ID} }
	return apply(w, r, edit[NewKey]{change: change, answer: given(&answer), row: row})
}

func (w *Writer) revokeKey(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("key", p)
	if err != nil {
		return nil, err
	}
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		k, err := readKey(ctx, tx, now, id)
		if err != nil {
			return err
		}
		if err := checkOwn(r, k); err != nil {
			return err
		}
		setActAccount(r, k.Account)
		_, err = tx.ExecContext(ctx, `UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, now, id)
		return err
	}
	return apply(w, r, keyEdit(id, change, true))
}

// keyEdit is a change of a key. takes says that it takes access away.
func keyEdit(id int64, change changeFunc, takes bool) edit[Key] {
	answer := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) (Key, error) {
		return readKey(ctx, tx, now, id)
	}
	row := func(k Key) changedRow { return changedRow{table: keyTable, id: k.ID, takes: takes} }
	return edit[Key]{change: change, answer: answer, row: row}
}
