package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"regedge/replicate/metering/writer"
)

// codeWait is how long a person may take for the code after the password.
const codeWait = 5 * time.Minute

// wantsCode is the error of a sign-in with the right password by a user with two-factor authentication. Its
// secret goes into the form for the code, which continues the sign-in.
type wantsCode struct{ secret string }

func (*wantsCode) Error() string { return "a code is wanted" }

type codeData struct{ Secret string }

func codeForm(secret, words string, status int) answer {
	return answer{status: status, page: "code", title: "Sign in", error: words, data: codeData{secret}}
}

// awaitCode stores that a user has entered the right password.
func (d *Dashboard) awaitCode(ctx context.Context, tx *sql.Tx, now, u int64) (*wantsCode, error) {
	if _, err := tx.ExecContext(ctx, `DELETE FROM sign_in WHERE created_at <= ? OR created_at > ?`, now-codeWait.Milliseconds(), latest(now)); err != nil {
		return nil, err
	}
	secret, hash := d.newSecret()
	_, err := tx.ExecContext(ctx, `INSERT INTO sign_in (hash, user, created_at) VALUES (?, ?, ?)`, hash, u, now)
	return &wantsCode{secret}, err
}

// findSignIn finds the user of a sign-in that waits for the code; it returns errMissing when there is none.
func findSignIn(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, secret string, now time.Time) (*user, error) {
	const query = `SELECT u.id, u.email, coalesce(u.account, 0), u.operator FROM sign_in s JOIN user u ON u.id = s.user
		WHERE s.hash = ? AND s.created_at > ? AND s.created_at <= ?`
	var u user
	err := db.QueryRowContext(ctx, query, hashOf(secret), now.Add(-codeWait).UnixMilli(), latest(now.UnixMilli())).Scan(&u.ID, &u.Email, &u.Account, &u.Operator)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errMissing
	}
	return &u, err
}

// enterCode completes a sign-in with a code.
func (d *Dashboard) enterCode(v *visit) (answer, error) {
	pending := v.field("pending")
	secret, err := d.checkCode(v, pending)
	var throttled *throttledError
	switch {
	case errors.Is(err, errMissing):
		return see("/sign-in", "late"), nil
	case errors.Is(err, errCode):
		return codeForm(pending, "This code is wrong, or it was used already.", http.StatusUnprocessableEntity), nil
	case errors.As(err, &throttled):
		return codeForm(pending, throttled.tell(v), http.StatusTooManyRequests), nil
	case err != nil:
		return answer{}, err
	}
	d.enterSession(v, secret)
	return see("/", ""), nil
}

// checkCode starts the session of a sign-in that waits for a code, and returns the secret of its cookie.
func (d *Dashboard) checkCode(v *visit, pending string) (string, error) {
	ctx := v.r.Context()
	u, err := findSignIn(ctx, d.config.Ledger, pending, d.now())
	if err != nil {
		return "", err
	}
	if err := d.countAttempt(v, u.Email, true); err != nil {
		return "", err
	}
	secret, hash := d.newSecret()
	act := writer.Act{Actor: u.Email, Account: u.Account, Address: v.address, Name: signInAct, Detail: v.agent()}
	err = d.config.Writer.Commit(ctx, act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		if _, err := findSignIn(ctx, tx, pending, time.UnixMilli(now)); err != nil {
			return err // it was completed, or the password changed, meanwhile
		}
		if err := useCode(ctx, tx, now, u.ID, v.field("code")); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM sign_in WHERE hash = ?`, hashOf(pending)); err != nil {
			return err
		}
		return d.enter(ctx, tx, now, u, hash, v)
	})
	if errors.Is(err, errCode) {
		wrong := writer.Act{Account: u.Account, Address: v.address, Name: "enter wrong code", Detail: u.Email}
		err = errors.Join(err, d.config.Writer.Commit(ctx, wrong, func(context.Context, *sql.Tx, int64) error { return nil }))
	}
	return secret, err
}
