package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
)

const (
	// sessionLife and operatorLife are the maximal life of a session.
	sessionLife  = 7 * 24 * time.Hour
	operatorLife = 12 * time.Hour
	// sessionIdle is how long a session lasts without a request.
	sessionIdle = 8 * time.Hour
	// seenEvery is how often the time of a session's last request is stored.
	seenEvery = 5 * time.Minute
	// maxAgent is how many characters of a User-Agent are stored.
	maxAgent = 200
	// clockSlack is how far the clock may be set back, as when it is adjusted. What was stored with a time later
	// than that was stored while the clock was ahead. It counts as ended, since it would otherwise last too long.
	clockSlack = 15 * time.Minute
)

// latest is the latest time, in milliseconds, that counts as stored by a right clock.
func latest(now int64) int64 { return now + clockSlack.Milliseconds() }

// user is a person with a sign-in: the owner of Account, or an operator.
type user struct {
	ID       int64
	Email    string
	Account  int64 // 0 for an operator
	Operator bool

	TwoFactor bool // signs in with a code as well; only findUser fills it
}

// session is a user's sign-in in one browser.
type session struct {
	Hash          []byte
	Created, Seen time.Time
	Address       string
	Agent         string
}

// newSecret makes the value of a cookie, and the hash by which it is found.
func (d *Dashboard) newSecret() (string, []byte) {
	var random [32]byte
	d.config.Random(random[:])
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	return secret, hashOf(secret)
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// formToken makes the token of one form, with its own number. It derives from the cookie's secret, against
// forgery. It also identifies the change, so that a form that is sent twice makes it once.
func (d *Dashboard) formToken(secret string) string {
	var random [16]byte
	d.config.Random(random[:])
	number := base64.RawURLEncoding.EncodeToString(random[:])
	return number + "." + formMAC(secret, number)
}

// validFormToken reports whether a form token was made with this secret.
func validFormToken(secret, token string) bool {
	number, mac, _ := strings.Cut(token, ".")
	return secret != "" && hmac.Equal([]byte(mac), []byte(formMAC(secret, number)))
}

func formMAC(secret, number string) string {
	return base64.RawURLEncoding.EncodeToString(macOf(secret, "form "+number))
}

// macOf derives 32 bytes from the cookie's secret and a text that names their purpose.
func macOf(secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// The cookies of a session, of a browser that is not signed in, for its forms, and of a device.
func (d *Dashboard) sessionCookie(r *http.Request) string { return d.cookieName(r, "regedge") }
func (d *Dashboard) guestCookie(r *http.Request) string   { return d.cookieName(r, "regedge-guest") }

// cookieName adds the __Host- prefix over TLS, so that browsers refuse a cookie set by
// another host of the domain or by a page without TLS.
func (d *Dashboard) cookieName(r *http.Request, name string) string {
	if d.secure(r) {
		return "__Host-" + name
	}
	return name
}

func (d *Dashboard) secure(r *http.Request) bool { return d.config.Secure || r.TLS != nil }

// setCookie sets a session cookie of the browser; an empty value deletes it.
func (d *Dashboard) setCookie(w http.ResponseWriter, r *http.Request, name, value string) {
	c := d.cookie(r, name, value)
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func (d *Dashboard) cookie(r *http.Request, name, value string) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: d.secure(r), SameSite: http.SameSiteLaxMode,
	}
}

const selectSession = `SELECT u.id, u.email, coalesce(u.account, 0), u.operator, s.hash, s.created_at, s.seen_at, s.address, s.agent
	FROM session s JOIN user u ON u.id = s.user WHERE s.hash = ?`

// findSession finds the session with a secret; the user is nil when there is none.
func (d *Dashboard) findSession(ctx context.Context, secret string) (*user, session, error) {
	if secret == "" {
		return nil, session{}, nil
	}
	var u user
	s, err := scanSession(d.config.Ledger.QueryRowContext(ctx, selectSession, hashOf(secret)), &u.ID, &u.Email, &u.Account, &u.Operator)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, session{}, nil
	case err != nil:
		return nil, session{}, err
	}
	now := d.now()
	if !s.lasts(now, u.Operator) {
		return nil, session{}, nil
	}
	if now.Sub(s.Seen) > seenEvery {
		s.Seen = now
		d.noteSeen(ctx, s.Hash)
	}
	return &u, s, nil
}

// noteSeen stores the time of a session's last request. A failure is only logged: at worst
// the session ends early.
func (d *Dashboard) noteSeen(ctx context.Context, hash []byte) {
	err := d.config.Writer.Commit(ctx, writer.Act{}, func(ctx context.Context, tx *sql.Tx, now int64) error {
		_, err := tx.ExecContext(ctx, `UPDATE session SET seen_at = ? WHERE hash = ?`, now, hash)
		return err
	})
	if err != nil {
		d.config.Logger.Warn("can't store a session's last request", "error", err)
	}
}

// scanSession scans the columns of a session, after those of before.
func scanSession(row interface{ Scan(...any) error }, before ...any) (session, error) {
	var s session
	var created, seen int64
	err := row.Scan(append(before, &s.Hash, &created, &seen, &s.Address, &s.Agent)...)
	s.Created, s.Seen = time.UnixMilli(created).UTC(), time.UnixMilli(seen).UTC()
	return s, err
}

func (s *session) lasts(now time.Time, operator bool) bool {
	life := sessionLife
	if operator {
		life = operatorLife
	}
	since, idle := now.Sub(s.Created), now.Sub(s.Seen)
	return since < life && idle < sessionIdle && since >= -clockSlack && idle >= -clockSlack
}

// begin stores a new session within a transaction, and deletes expired ones. Its browser becomes known.
func (d *Dashboard) begin(ctx context.Context, tx *sql.Tx, now int64, u int64, hash []byte, v *visit) error {
	const ended = `DELETE FROM session WHERE created_at <= ?1 OR seen_at <= ?2 OR created_at > ?3 OR seen_at > ?3`
	if _, err := tx.ExecContext(ctx, ended, now-sessionLife.Milliseconds(), now-sessionIdle.Milliseconds(), latest(now)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM session WHERE hash = ?`, sessionOf(v)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO session (hash, user, created_at, seen_at, address, agent) VALUES (?1, ?2, ?3, ?3, ?4, ?5)`,
		hash, u, now, v.address, v.agent())
	if err != nil {
		return err
	}
	return d.noteDevice(ctx, tx, now, u, v)
}

// endSessions ends all sessions of a user, and the sign-ins that wait for a code.
func endSessions(ctx context.Context, tx *sql.Tx, u int64) error {
	_, sessions := tx.ExecContext(ctx, `DELETE FROM session WHERE user = ?`, u)
	_, waiting := tx.ExecContext(ctx, `DELETE FROM sign_in WHERE user = ?`, u)
	return errors.Join(sessions, waiting)
}
