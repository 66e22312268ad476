package dashboard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"net/netip"
	"time"

	"regedge/replicate/metering/writer"
)

// Sign-in attempts are limited by e-mail address, against guessing one password, and by
// client address, against trying one password on many accounts. An unknown e-mail address
// counts like a known one.
const (
	attemptWindow      = 15 * time.Minute
	attemptsPerEmail   = 10
	attemptsPerAddress = 30
)

// throttledError says that there were too many attempts.
type throttledError struct{ wait time.Duration }

func (e *throttledError) Error() string { return "too many attempts to sign in" }

// emailSubject is the key that attempts of an e-mail address count under. People type
// passwords into that field too, so only a hash is stored.
func emailSubject(email string) string {
	sum := sha256.Sum256([]byte(email))
	return "email:" + hex.EncodeToString(sum[:16])
}

// addressSubject is the key that attempts of a client address count under: IPv6 by /64,
// since one person usually has all of it.
func addressSubject(address string) string {
	addr, err := netip.ParseAddr(address)
	if err == nil && addr.Is6() && !addr.Is4In6() {
		prefix, _ := addr.WithZone("").Prefix(64)
		return "address:" + prefix.String()
	}
	return "address:" + address
}

// countAttempt counts an attempt before it is made, so that concurrent attempts can't pass
// the limit. It returns a *throttledError, and counts nothing, when there were too many.
func (d *Dashboard) countAttempt(ctx context.Context, email, address string) error {
	return d.config.Writer.Commit(ctx, writer.Act{}, func(ctx context.Context, tx *sql.Tx, now int64) error {
		begin := now - attemptWindow.Milliseconds()
		if _, err := tx.ExecContext(ctx, `DELETE FROM attempt WHERE since <= ?`, begin); err != nil {
			return err
		}
		for _, s := range []struct {
			subject string
			limit   int64
		}{{emailSubject(email), attemptsPerEmail}, {addressSubject(address), attemptsPerAddress}} {
			var since, count int64
			err := tx.QueryRowContext(ctx, `SELECT since, count FROM attempt WHERE subject = ?`, s.subject).Scan(&since, &count)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if count >= s.limit {
				return &throttledError{time.Duration(since-begin) * time.Millisecond}
			}
			const put = `INSERT INTO attempt (subject, since, count) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1`
			if _, err := tx.ExecContext(ctx, put, s.subject, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// forgetAttempts uncounts the attempt that succeeded, and all earlier ones of the e-mail
// address.
func forgetAttempts(ctx context.Context, tx *sql.Tx, email, address string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM attempt WHERE subject = ?`, emailSubject(email)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE attempt SET count = count - 1 WHERE subject = ? AND count > 0`, addressSubject(address))
	return err
}
