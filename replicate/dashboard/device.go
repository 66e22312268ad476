package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"
)

// A browser in which somebody has signed in keeps a device cookie (OWASP, "Slow Down Online Guessing
// Attacks with Device Cookies"). Its sign-in attempts are counted separately, so that strangers, even
// behind the same address, can't lock it out. The cookie alone signs nobody in.
const (
	deviceLife = 365 * 24 * time.Hour
	// maxDevices is how many browsers of a user are known; the least recently used one is dropped.
	maxDevices = 20
)

func (d *Dashboard) deviceCookie(r *http.Request) string { return d.cookieName(r, "regedge-device") }

// deviceOf is the hash of the visitor's device cookie, empty for none.
func (d *Dashboard) deviceOf(v *visit) []byte {
	c, err := v.r.Cookie(d.deviceCookie(v.r))
	if err != nil || len(c.Value) != secretLength {
		return []byte{}
	}
	return hashOf(c.Value)
}

// knowsDevice reports whether a user with this e-mail address has signed in on a device.
func knowsDevice(ctx context.Context, from rowQuerier, device []byte, email string, now int64) (bool, error) {
	const query = `SELECT 1 FROM device d JOIN user u ON u.id = d.user WHERE d.hash = ? AND u.email = ? AND d.seen_at > ?`
	var one int
	err := from.QueryRowContext(ctx, query, device, email, now-deviceLife.Milliseconds()).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// noteDevice makes the visitor's browser a device of the user: by the cookie that it has, or a new one.
func (d *Dashboard) noteDevice(ctx context.Context, tx *sql.Tx, now, u int64, v *visit) error {
	v.device = ""
	result, err := tx.ExecContext(ctx, `UPDATE device SET seen_at = ? WHERE hash = ? AND user = ?`, now, d.deviceOf(v), u)
	if err != nil {
		return err
	}
	if known, err := result.RowsAffected(); err != nil || known > 0 {
		return err
	}
	secret, hash := d.newSecret()
	if _, err := tx.ExecContext(ctx, `INSERT INTO device (hash, user, seen_at) VALUES (?, ?, ?)`, hash, u, now); err != nil {
		return err
	}
	const old = `DELETE FROM device WHERE user = ?1 AND (seen_at <= ?2 OR hash NOT IN
		(SELECT hash FROM device WHERE user = ?1 ORDER BY seen_at DESC, hash = ?3 DESC LIMIT ?4))`
	if _, err := tx.ExecContext(ctx, old, u, now-deviceLife.Milliseconds(), hash, maxDevices); err != nil {
		return err
	}
	v.device = secret
	return nil
}

// forgetDevices drops all known browsers of a user.
func forgetDevices(ctx context.Context, tx *sql.Tx, u int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM device WHERE user = ?`, u)
	return err
}
