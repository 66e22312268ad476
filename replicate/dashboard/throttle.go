package dashboard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"regedge/replicate/metering/writer"
)

// Attempts to sign in are counted in windows. Those from a known browser of the user count for that browser
// alone. All others count three times: for the client address and e-mail address together, so that a
// stranger locks nobody else out; for the client address, against trying one password on many users; and,
// with a far higher limit, for the e-mail address, against guessing from many client addresses. An unknown
// e-mail address counts like a known one.
const (
	attemptWindow        = 15 * time.Minute
	attemptsPerDevice    = 10
	attemptsPerPair      = 10
	attemptsPerAddress   = 30
	attemptsPerEmail     = 100
	attemptsPerCode      = 10 // of strangers for one user: a code has only six digits
	attemptSubjectLength = 16 // bytes of a hash
)

// throttledError says that there were too many attempts.
type throttledError struct{ wait time.Duration }

// tell tells the visitor when to try again, in words and in the header.
func (e *throttledError) tell(v *visit) string {
	seconds := int64(e.wait/time.Second) + 1
	v.w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	return "There were too many attempts to sign in. Try again in " + plural((seconds+59)/60, "minute") + "."
}

func (e *throttledError) Error() string { return "too many attempts to sign in" }

// counter is a key under which attempts are counted.
type counter struct {
	subject string
	limit   int64
}

// counters returns the counters of an attempt, with a code or without; the first ends with a success.
func counters(v *visit, email string, device []byte, known, code bool) []counter {
	if known {
		return []counter{{"device:" + hex.EncodeToString(device), attemptsPerDevice}}
	}
	address := writer.Network(v.address)
	list := []counter{
		{hashed("pair:", email+" "+address), attemptsPerPair},
		{"address:" + address, attemptsPerAddress},
		{hashed("email:", email), attemptsPerEmail},
	}
	if code {
		list = append(list, counter{hashed("code:", email), attemptsPerCode})
	}
	return list
}

// hashed is a subject that hides the e-mail address: people type passwords into that field, too.
func hashed(kind, text string) string {
	sum := sha256.Sum256([]byte(text))
	return kind + hex.EncodeToString(sum[:attemptSubjectLength])
}

// countAttempt counts an attempt before it is made, so that concurrent attempts can't pass
// the limit. It returns a *throttledError, and counts nothing, when there were too many.
func (d *Dashboard) countAttempt(v *visit, email string, code bool) error {
	return d.config.Writer.Commit(v.r.Context(), writer.Act{}, func(ctx context.Context, tx *sql.Tx, now int64) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM attempt WHERE since <= ? OR since > ?`, windowBegin(now), latest(now)); err != nil {
			return err
		}
		device := d.deviceOf(v)
		known, err := knowsDevice(ctx, tx, device, email, now)
		if err != nil {
			return err
		}
		for _, c := range counters(v, email, device, known, code) {
			if err := c.count(ctx, tx, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkAttempts returns a *throttledError when there were too many attempts already. It counts nothing.
func (d *Dashboard) checkAttempts(v *visit, email string) error {
	ctx, now := v.r.Context(), d.now().UnixMilli()
	device := d.deviceOf(v)
	known, err := knowsDevice(ctx, d.config.Ledger, device, email, now)
	if err != nil {
		return err
	}
	list := counters(v, email, device, known, false)
	if known {
		v.entry = list[0].subject
	}
	if err := d.entries.check(cmp.Or(v.entry, email), d.now()); err != nil {
		return err
	}
	for _, c := range list {
		if err := c.check(ctx, d.config.Ledger, now); err != nil {
			return err
		}
	}
	return nil
}

// rowQuerier is a *sql.DB or a *sql.Tx.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// windowBegin is the time since which attempts count.
func windowBegin(now int64) int64 { return now - attemptWindow.Milliseconds() }

func (c counter) check(ctx context.Context, from rowQuerier, now int64) error {
	var since, count int64
	const query = `SELECT since, count FROM attempt WHERE subject = ? AND since > ? AND since <= ?`
	err := from.QueryRowContext(ctx, query, c.subject, windowBegin(now), latest(now)).Scan(&since, &count)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if count >= c.limit {
		return &throttledError{time.Duration(since-windowBegin(now)) * time.Millisecond}
	}
	return nil
}

func (c counter) count(ctx context.Context, tx *sql.Tx, now int64) error {
	if err := c.check(ctx, tx, now); err != nil {
		return err
	}
	const put = `INSERT INTO attempt (subject, since, count) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1`
	_, err := tx.ExecContext(ctx, put, c.subject, now)
	return err
}

// forgetAttempts uncounts the attempt that succeeded, and forgets the earlier ones of the same browser, or
// of the same pair of addresses. Call it before noteDevice.
func (d *Dashboard) forgetAttempts(ctx context.Context, tx *sql.Tx, now int64, v *visit, email string) error {
	device := d.deviceOf(v)
	known, err := knowsDevice(ctx, tx, device, email, now)
	if err != nil {
		return err
	}
	all := counters(v, email, device, known, true)
	if _, err := tx.ExecContext(ctx, `DELETE FROM attempt WHERE subject = ?`, all[0].subject); err != nil {
		return err
	}
	return uncount(ctx, tx, all[1:])
}

// uncountPassword uncounts an attempt with the right password that waits for a code or changes the password.
// The counts of this browser, or of this pair of addresses, stay: otherwise somebody with the password could
// guess codes for ever, each time from a count of zero.
func (d *Dashboard) uncountPassword(ctx context.Context, tx *sql.Tx, now int64, v *visit, email string) error {
	device := d.deviceOf(v)
	known, err := knowsDevice(ctx, tx, device, email, now)
	if err != nil {
		return err
	}
	return uncount(ctx, tx, counters(v, email, device, known, false)[1:])
}

func uncount(ctx context.Context, tx *sql.Tx, list []counter) error {
	for _, c := range list {
		if _, err := tx.ExecContext(ctx, `UPDATE attempt SET count = count - 1 WHERE subject = ? AND count > 0`, c.subject); err != nil {
			return err
		}
	}
	return nil
}
