package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
)

type settingsData struct {
	Email    string
	Sessions []shownSession
	Minimum  int
	Mail     bool // notices by e-mail can be had

	TwoFactor twoFactorView
}

type shownSession struct {
	session
	Here bool
}

func (d *Dashboard) settingsPage(v *visit) (answer, error) { return d.settings(v, "") }

func (d *Dashboard) settings(v *visit, words string) (answer, error) {
	data := settingsData{Email: v.user.Email, Minimum: minPassword, Mail: d.config.Mail}
	rows, err := d.config.Ledger.QueryContext(v.r.Context(),
		`SELECT hash, created_at, seen_at, address, agent FROM session WHERE user = ? ORDER BY seen_at DESC, created_at DESC`, v.user.ID)
	if err != nil {
		return answer{}, err
	}
	defer rows.Close()
	for rows.Next() {
		s, err := scanSession(rows)
		if err != nil {
			return answer{}, err
		}
		if s.lasts(d.now(), v.user.Operator) {
			data.Sessions = append(data.Sessions, shownSession{s, string(s.Hash) == string(v.session.Hash)})
		}
	}
	if data.TwoFactor, err = d.readTwoFactor(v.r.Context(), v.user.ID); err != nil {
		return answer{}, err
	}
	a := answer{page: "settings", title: "Settings", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, rows.Err()
}

func (d *Dashboard) signOutEverywhere(v *visit) (answer, error) {
	act := v.act("sign out everywhere", v.user.Account, "")
	err := d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, _ int64) error {
		return endSessions(ctx, tx, v.user.ID)
	})
	if err != nil {
		return answer{}, err
	}
	d.leaveSession(v)
	return see("/sign-in", "everywhere"), nil
}

// changePassword requires the current password, so that an unattended browser is not
// enough; wrong ones count as failed sign-ins.
func (d *Dashboard) changePassword(v *visit) (answer, error) {
	ctx := v.r.Context()
	next := v.field("password")
	account, err := d.accountName(v)
	if err != nil {
		return answer{}, err
	}
	if words := fitPassword(next, v.user.Email, account); words != "" {
		return d.settings(v, words)
	}
	turn, err := d.passwords.enter()
	if err != nil {
		return answer{}, err
	}
	defer turn.leave()
	stored, words, err := d.checkCurrent(v, turn, false)
	if err != nil {
		return answer{}, err
	}
	if words != "" {
		return d.settings(v, words)
	}
	renewed, err := turn.hash(ctx, next)
	if err != nil {
		return answer{}, err
	}
	return d.putPassword(v, stored, renewed)
}

// checkCurrent checks the re-entered password, and returns its stored form, or a message. It counts as an
// attempt to sign in, and to enter a code if code is set.
func (d *Dashboard) checkCurrent(v *visit, turn *turn, code bool) (stored, words string, err error) {
	err = d.countAttempt(v, v.user.Email, code)
	var throttled *throttledError
	if errors.As(err, &throttled) {
		return "", "There were too many attempts. Try again in a few minutes.", nil
	}
	if err != nil {
		return "", "", err
	}
	if _, stored, err = d.findUser(v.r.Context(), v.user.Email); err != nil {
		return "", "", err
	}
	good, err := turn.matches(v.r.Context(), stored, v.field("current"))
	if err == nil && !good {
		words = "The current password is wrong."
	}
	return stored, words, err
}

// accountName is the name of the visitor's account, empty for an operator.
func (d *Dashboard) accountName(v *visit) (string, error) {
	if v.user.Operator {
		return "", nil
	}
	a, err := d.client.Account(v.r.Context(), v.user.Account)
	return a.Name, err
}

// putPassword replaces the password that was checked, ends all sessions, and starts a new
// one in this browser.
func (d *Dashboard) putPassword(v *visit, stored, renewed string) (answer, error) {
	secret, hash := d.newSecret()
	act := v.act("change password", v.user.Account, "")
	err := d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		result, err := tx.ExecContext(ctx, `UPDATE user SET password = ? WHERE id = ? AND password = ?`, renewed, v.user.ID, stored)
		if err != nil {
			return err
		}
		if changed, err := result.RowsAffected(); err != nil || changed != 1 {
			return errors.Join(err, errOldForm)
		}
		if err := d.uncountPassword(ctx, tx, now, v, v.user.Email); err != nil {
			return err
		}
		if err := endSessions(ctx, tx, v.user.ID); err != nil {
			return err
		}
		return d.begin(ctx, tx, now, v.user.ID, hash, v)
	})
	if err != nil {
		return answer{}, err
	}
	d.enterSession(v, secret)
	return see("/settings", "password"), nil
}
