package dashboard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"regedge/replicate/metering/writer"
)

// wrongSignIn is the message for an unknown e-mail address and for a wrong password.
const wrongSignIn = "The e-mail address or the password is wrong."

// errSignIn is returned for a wrong e-mail address or password.
var errSignIn = errors.New("wrong e-mail address or password")

type signInData struct{ Email string }

func (d *Dashboard) start(v *visit) (answer, error) {
	if v.user.Operator {
		return see("/accounts", ""), nil
	}
	return d.overviewPage(v)
}

func (d *Dashboard) signInPage(v *visit) (answer, error) {
	if v.user != nil {
		return see("/", ""), nil
	}
	return answer{page: "sign-in", title: "Sign in", data: signInData{}}, nil
}

func (d *Dashboard) signIn(v *visit) (answer, error) {
	email := writer.CanonicalEmail(v.line("email"))
	secret, err := d.checkSignIn(v, email, v.field("password"))
	var throttled *throttledError
	var wanted *wantsCode
	switch {
	case errors.Is(err, errSignIn):
		return signInAgain(http.StatusUnprocessableEntity, email, wrongSignIn), nil
	case errors.As(err, &throttled):
		return signInAgain(http.StatusTooManyRequests, email, throttled.tell(v)), nil
	case errors.As(err, &wanted):
		return codeForm(wanted.secret, "", http.StatusOK), nil
	case err != nil:
		return answer{}, err
	}
	d.enterSession(v, secret)
	return see("/", ""), nil
}

func signInAgain(status int, email, words string) answer {
	return answer{status: status, page: "sign-in", title: "Sign in", error: words, data: signInData{email}}
}

// enterSession sets the cookies of a new session and of a new device, and deletes the guest cookie.
func (d *Dashboard) enterSession(v *visit, secret string) {
	v.moved, v.began = true, secret
	d.setCookie(v.w, v.r, d.sessionCookie(v.r), secret)
	d.setCookie(v.w, v.r, d.guestCookie(v.r), "")
	if v.device != "" {
		device := d.cookie(v.r, d.deviceCookie(v.r), v.device)
		device.MaxAge = int(deviceLife / time.Second)
		http.SetCookie(v.w, device)
	}
}

// leaveSession deletes the cookie of a session that has ended.
func (d *Dashboard) leaveSession(v *visit) {
	v.moved, v.left = true, true
	d.setCookie(v.w, v.r, d.sessionCookie(v.r), "")
}

// checkSignIn starts a session for an e-mail address and its password, and returns the
// secret of its cookie. It returns errSignIn when one of them is wrong, a *throttledError
// after too many attempts, errBusy when too many try at once, and *wantsCode when the user
// has two-factor authentication. It takes the same time whether or not the address is known.
func (d *Dashboard) checkSignIn(v *visit, email, password string) (string, error) {
	ctx := v.r.Context()
	if len(password) > maxForm || email == "" {
		password = ""
	}
	if err := d.checkAttempts(v, email); err != nil { // before it takes a place
		return "", err
	}
	turn, err := d.passwords.enter()
	if err != nil {
		return "", err
	}
	defer turn.leave()
	if err := d.countAttempt(v, email, false); err != nil {
		return "", err
	}
	u, stored, err := d.findUser(ctx, email)
	if err != nil {
		return "", err
	}
	good, err := turn.matches(ctx, stored, password)
	switch {
	case err != nil:
		return "", err
	case !good || u == nil:
		return "", d.logFailure(v, u)
	}
	renewed := stored
	if d.passwords.outdated(stored) {
		if renewed, err = turn.hash(ctx, password); err != nil {
			return "", err
		}
	}
	return d.beginSession(v, u, stored, renewed)
}

// findUser finds a user and the stored password. For an unknown address the user is nil and
// the password is the decoy.
func (d *Dashboard) findUser(ctx context.Context, email string) (*user, string, error) {
	var u user
	var stored string
	const query = `SELECT id, email, coalesce(account, 0), operator, password, EXISTS (SELECT 1 FROM two_factor t WHERE t.user = u.id)
		FROM user u WHERE email = ?`
	err := d.config.Ledger.QueryRowContext(ctx, query, email).Scan(&u.ID, &u.Email, &u.Account, &u.Operator, &stored, &u.TwoFactor)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, d.passwords.decoy, nil
	}
	return &u, stored, err
}

// logFailure writes a failed attempt to the audit log and returns errSignIn. An unknown
// address takes a transaction as well.
func (d *Dashboard) logFailure(v *visit, u *user) error {
	act := writer.Act{Address: v.address, Name: "fail to sign in"}
	if u != nil {
		act.Account, act.Detail = u.Account, u.Email
	}
	err := d.config.Writer.Commit(v.r.Context(), act, func(context.Context, *sql.Tx, int64) error { return nil })
	return errors.Join(err, errSignIn)
}

// beginSession replaces the browser's session by a new one, unless the password was changed
// since it was read. With two-factor authentication it returns *wantsCode instead.
func (d *Dashboard) beginSession(v *visit, u *user, stored, renewed string) (string, error) {
	secret, hash := d.newSecret()
	act := v.act(signInAct, u.Account, v.agent())
	act.Actor = u.Email
	if u.TwoFactor {
		act.Name = passwordAct
	}
	var wanted *wantsCode
	err := d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		const put = `UPDATE user SET password = ?1 WHERE id = ?2 AND password = ?3
			AND ?4 = EXISTS (SELECT 1 FROM two_factor WHERE user = ?2)`
		result, err := tx.ExecContext(ctx, put, renewed, u.ID, stored, u.TwoFactor)
		if err != nil {
			return err
		}
		if changed, err := result.RowsAffected(); err != nil || changed != 1 {
			return errors.Join(err, errSignIn)
		}
		if u.TwoFactor {
			if wanted, err = d.awaitCode(ctx, tx, now, u.ID); err != nil {
				return err
			}
			return d.uncountPassword(ctx, tx, now, v, u.Email)
		}
		return d.enter(ctx, tx, now, u, hash, v)
	})
	if err == nil && wanted != nil {
		err = wanted
	}
	return secret, err
}

// enter starts the session of a user who has proved who they are.
func (d *Dashboard) enter(ctx context.Context, tx *sql.Tx, now int64, u *user, hash []byte, v *visit) error {
	if err := d.forgetAttempts(ctx, tx, now, v, u.Email); err != nil {
		return err
	}
	d.entries.note(cmp.Or(v.entry, u.Email), d.now())
	return d.begin(ctx, tx, now, u.ID, hash, v)
}

// sessionOf is the hash of a visitor's session, empty for none.
func sessionOf(v *visit) []byte {
	if v.user == nil {
		return []byte{}
	}
	return v.session.Hash
}

func (d *Dashboard) signOut(v *visit) (answer, error) {
	err := d.config.Writer.Commit(v.r.Context(), v.act("sign out", v.user.Account, ""), func(ctx context.Context, tx *sql.Tx, _ int64) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM session WHERE hash = ?`, v.session.Hash)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	d.leaveSession(v)
	return see("/sign-in", "signed-out"), nil
}
