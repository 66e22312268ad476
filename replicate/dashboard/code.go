package dashboard

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"
)

const (
	// codeStep is how long a code of an authenticator app is shown (RFC 6238).
	codeStep = 30 * time.Second
	// codeDrift is how many steps the clock of the app may be off.
	codeDrift = 1
	// secretBytes is the length of its secret (RFC 4226, section 4).
	secretBytes = 20
	// recoveryCodes is the number of one-time codes for a person who has lost the app.
	recoveryCodes = 10
)

// errCode says that a code is wrong or used.
var errCode = errors.New("wrong code")

var base32Form = base32.StdEncoding.WithPadding(base32.NoPadding)

// newTwoFactorSecret makes a secret in the form that apps take.
func (d *Dashboard) newTwoFactorSecret() string {
	random := make([]byte, secretBytes)
	d.config.Random(random)
	return base32Form.EncodeToString(random)
}

// newRecoveryCodes derives codes of 80 bits from the secret of the session's cookie. They are random enough
// to be stored as plain hashes. The same form with the same secret of the app gives the same codes.
func newRecoveryCodes(v *visit, secret string) []string {
	codes := make([]string, recoveryCodes)
	for i := range codes {
		text := fmt.Sprintf("recovery code %d %s %s", i, v.field("token"), secret)
		text = strings.ToLower(base32Form.EncodeToString(macOf(v.secret, text))[:16])
		codes[i] = text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
	}
	return codes
}

// typed is a code without spaces and hyphens.
func typed(code string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(code))
}

// stepOf finds the step of an app's code, if it is later than the last used one; 0 for none. It always
// compares all steps, so that its time tells nothing.
func stepOf(secret, code string, used int64, now time.Time) (found int64, err error) {
	present := now.Unix() / int64(codeStep/time.Second)
	for step := present - codeDrift; step <= present+codeDrift; step++ {
		want, err := totp.GenerateCode(secret, time.Unix(step*int64(codeStep/time.Second), 0))
		if err != nil {
			return 0, err
		}
		if subtle.ConstantTimeCompare([]byte(code), []byte(want)) == 1 && step > used {
			found = step
		}
	}
	return found, nil
}

// useCode uses up a code of the app or a recovery code. For a wrong or used code it returns errCode and
// changes nothing.
func useCode(ctx context.Context, tx *sql.Tx, now, u int64, code string) error {
	code = typed(code)
	var secret string
	var used int64
	err := tx.QueryRowContext(ctx, `SELECT secret, used_step FROM two_factor WHERE user = ?`, u).Scan(&secret, &used)
	if errors.Is(err, sql.ErrNoRows) {
		return errCode // it was switched off meanwhile
	}
	if err != nil {
		return err
	}
	step, err := stepOf(secret, code, used, time.UnixMilli(now))
	if err != nil {
		return err
	}
	if step > 0 {
		_, err = tx.ExecContext(ctx, `UPDATE two_factor SET used_step = ? WHERE user = ?`, step, u)
		return err
	}
	result, err := tx.ExecContext(ctx, `DELETE FROM recovery_code WHERE hash = ? AND user = ?`, hashOf(code), u)
	if err != nil {
		return err
	}
	if gone, err := result.RowsAffected(); err != nil || gone != 1 {
		return errors.Join(err, errCode)
	}
	return nil
}

// putTwoFactor switches two-factor authentication of a user on.
func putTwoFactor(ctx context.Context, tx *sql.Tx, now, u int64, secret string, step int64, codes []string) error {
	if err := dropTwoFactor(ctx, tx, u); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO two_factor (user, secret, used_step, created_at) VALUES (?, ?, ?, ?)`, u, secret, step, now)
	for _, code := range codes {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO recovery_code (hash, user) VALUES (?, ?)`, hashOf(typed(code)), u)
		}
	}
	return err
}

// holdsCodes reports whether all these codes are a user's unused recovery codes.
func holdsCodes(ctx context.Context, db *sql.DB, u int64, codes []string) (bool, error) {
	for _, code := range codes {
		var held bool
		const query = `SELECT EXISTS (SELECT 1 FROM recovery_code WHERE hash = ? AND user = ?)`
		if err := db.QueryRowContext(ctx, query, hashOf(typed(code)), u).Scan(&held); err != nil || !held {
			return false, err
		}
	}
	return true, nil
}

// dropTwoFactor switches two-factor authentication of a user off.
func dropTwoFactor(ctx context.Context, tx *sql.Tx, u int64) error {
	_, codes := tx.ExecContext(ctx, `DELETE FROM recovery_code WHERE user = ?`, u)
	_, factor := tx.ExecContext(ctx, `DELETE FROM two_factor WHERE user = ?`, u)
	return errors.Join(codes, factor)
}

// hasTwoFactor reports whether a user also signs in with a code.
func hasTwoFactor(ctx context.Context, tx *sql.Tx, u int64) (on bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM two_factor WHERE user = ?)`, u).Scan(&on)
	return on, err
}
