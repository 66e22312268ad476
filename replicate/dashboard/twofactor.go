package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"
)

// issuer is the name of the service in an authenticator app.
const issuer = "regedge"

// twoFactorView is the state of two-factor sign-in on the settings page.
type twoFactorView struct {
	On    bool
	Since time.Time
	Left  int // recovery codes
}

func (d *Dashboard) readTwoFactor(ctx context.Context, u int64) (twoFactorView, error) {
	var view twoFactorView
	var since int64
	const query = `SELECT created_at, (SELECT count(*) FROM recovery_code r WHERE r.user = t.user) FROM two_factor t WHERE user = ?`
	err := d.config.Ledger.QueryRowContext(ctx, query, u).Scan(&since, &view.Left)
	if errors.Is(err, sql.ErrNoRows) {
		return view, nil
	}
	view.On, view.Since = err == nil, time.UnixMilli(since).UTC()
	return view, err
}

type enrolmentData struct {
	Email  string
	Secret string
	Groups string // the secret as people type it
	QR     qrCode
}

// twoFactorPage shows a new secret. Nothing is stored before a code has confirmed it.
func (d *Dashboard) twoFactorPage(v *visit) (answer, error) {
	view, err := d.readTwoFactor(v.r.Context(), v.user.ID)
	if err != nil || view.On {
		return see("/settings", ""), err
	}
	return d.enrolment(v, d.newTwoFactorSecret(), "")
}

func (d *Dashboard) enrolment(v *visit, secret, words string) (answer, error) {
	raw, err := base32Form.DecodeString(secret)
	if err != nil || len(raw) != secretBytes {
		return answer{}, errFormBroken
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: v.user.Email, Secret: raw})
	if err != nil {
		return answer{}, fmt.Errorf("make key of the app: %w", err)
	}
	code, err := newQRCode(key.URL())
	if err != nil {
		return answer{}, err
	}
	data := enrolmentData{Email: v.user.Email, Secret: secret, QR: code}
	for i := 0; i < len(secret); i += 4 {
		data.Groups += secret[i:min(i+4, len(secret))] + " "
	}
	data.Groups = strings.TrimSpace(data.Groups)
	a := answer{page: "two-factor", title: "Two-factor authentication", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

// switchOnTwoFactor requires the password, so that an unattended browser is not enough, and a code, so that
// nobody locks themselves out by an app that does not work.
func (d *Dashboard) switchOnTwoFactor(v *visit) (answer, error) {
	secret := v.field("secret")
	if raw, err := base32Form.DecodeString(secret); err != nil || len(raw) != secretBytes {
		return answer{}, errFormBroken
	}
	turn, err := d.passwords.enter()
	if err != nil {
		return answer{}, err
	}
	defer turn.leave()
	if _, words, err := d.checkCurrent(v, turn, false); words != "" || err != nil {
		return d.enrolmentOr(v, secret, words, err)
	}
	codes := newRecoveryCodes(v, secret)
	shown := answer{page: "recovery-codes", title: "Recovery codes", data: codes}
	// A form that is sent twice, as by two clicks, shows its codes again: nothing else shows them.
	if done, err := holdsCodes(v.r.Context(), d.config.Ledger, v.user.ID, codes); done || err != nil {
		return shown, err
	}
	step, err := stepOf(secret, typed(v.field("code")), 0, d.now())
	if err != nil || step == 0 {
		return d.enrolmentOr(v, secret, "The code is wrong. Is the clock of the device right?", err)
	}
	act := v.act("switch on two-factor authentication", v.user.Account, "")
	err = d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		if on, err := hasTwoFactor(ctx, tx, v.user.ID); err != nil {
			return err
		} else if on {
			return errOldForm
		}
		if err := putTwoFactor(ctx, tx, now, v.user.ID, secret, step, codes); err != nil {
			return err
		}
		const others = `DELETE FROM session WHERE user = ? AND hash <> ?`
		if _, err := tx.ExecContext(ctx, others, v.user.ID, v.session.Hash); err != nil {
			return err
		}
		return d.forgetAttempts(ctx, tx, now, v, v.user.Email)
	})
	if errors.Is(err, errOldForm) { // of two simultaneous forms, the other one was faster
		if done, err := holdsCodes(v.r.Context(), d.config.Ledger, v.user.ID, codes); done || err != nil {
			return shown, err
		}
	}
	return shown, err
}

func (d *Dashboard) enrolmentOr(v *visit, secret, words string, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return d.enrolment(v, secret, words)
}

// switchOffTwoFactor requires the password and a code.
func (d *Dashboard) switchOffTwoFactor(v *visit) (answer, error) {
	turn, err := d.passwords.enter()
	if err != nil {
		return answer{}, err
	}
	defer turn.leave()
	if _, words, err := d.checkCurrent(v, turn, true); err != nil {
		return answer{}, err
	} else if words != "" {
		return d.settings(v, words)
	}
	act := v.act("switch off two-factor authentication", v.user.Account, "")
	err = d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		if err := useCode(ctx, tx, now, v.user.ID, v.field("code")); err != nil {
			return err
		}
		return errors.Join(dropTwoFactor(ctx, tx, v.user.ID), d.forgetAttempts(ctx, tx, now, v, v.user.Email))
	})
	if errors.Is(err, errCode) {
		if view, err := d.readTwoFactor(v.r.Context(), v.user.ID); err != nil || !view.On {
			return see("/settings", "one-factor"), err // the form was sent twice
		}
		return d.settings(v, "This code is wrong, or it was used already.")
	}
	return see("/settings", "one-factor"), err
}
