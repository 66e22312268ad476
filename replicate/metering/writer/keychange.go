package writer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/handler/ident"
	"regedge/replicate/metering/ledger"
)

// MaxOverlap is the longest that an old secret stays valid beside a new one.
const MaxOverlap = 30 * 24 * time.Hour

// AddKeyWith is AddKey, for a key that has more than a name.
func (c *Client) AddKeyWith(ctx context.Context, account int64, settings KeySettings) (NewKey, error) {
	return changeOnce[NewKey](ctx, c, "add key", http.MethodPost, "/v1/accounts/"+decimal(account)+"/keys", settings)
}

// ChangeKey changes a key's name, end or limits. It returns ErrKeyEnded for a key
// that was revoked or has expired.
func (c *Client) ChangeKey(ctx context.Context, id int64, change KeyChange) (Key, error) {
	return changeOnce[Key](ctx, c, "change key", http.MethodPatch, "/v1/keys/"+decimal(id), change)
}

// RotateKey gives a key a new secret, which is only in this answer. The previous secret stays valid for the
// overlap, 0 to MaxOverlap in whole seconds; the one before that ends at once.
func (c *Client) RotateKey(ctx context.Context, id int64, overlap time.Duration) (NewKey, error) {
	body := map[string]int64{"overlap_seconds": int64(overlap / time.Second)}
	return changeOnce[NewKey](ctx, c, "rotate key", http.MethodPost, "/v1/keys/"+decimal(id)+"/rotate", body)
}

// endOf checks when a key shall end and returns it for its column, nil for never. Years have four digits in
// answers (RFC 3339, section 5.6).
func endOf(expires *time.Time, nowMillis int64) (any, error) {
	switch {
	case expires == nil:
		return nil, nil
	case expires.UTC().Year() > 9999:
		return nil, fmt.Errorf("%w: a key expires in the year 9999 (UTC) at the latest, or never", ErrMalformed)
	case expires.UnixMilli() <= nowMillis:
		return nil, fmt.Errorf("%w: a key expires in the future", ErrMalformed)
	}
	return expires.UnixMilli(), nil
}

// activeKey reads a key that is to be changed, and names its account in the audit log.
func activeKey(ctx context.Context, r *http.Request, tx *sql.Tx, nowMillis, id int64) (Key, error) {
	k, err := readKey(ctx, tx, nowMillis, id)
	if err != nil {
		return k, err
	}
	if err := checkOwn(r, k); err != nil {
		return k, err
	}
	setActAccount(r, k.Account)
	if !k.Active() {
		return k, ErrKeyEnded
	}
	return k, nil
}

// checkPerMinute refuses a key's rate that is beyond the plan's.
func checkPerMinute(ctx context.Context, tx *sql.Tx, plan string, perMinute int64) error {
	p, err := scanPlan(tx.QueryRowContext(ctx, selectPlans+` WHERE id = ?`, plan))
	switch {
	case err != nil:
		return err
	case perMinute < 0:
		return fmt.Errorf("%w: a key's requests a minute are 0, for as many as its plan allows, to %d", ErrMalformed, p.PerMinute)
	case perMinute > p.PerMinute:
		return fmt.Errorf("%w: a key has at most the requests a minute of its plan, %d", ErrMalformed, p.PerMinute)
	}
	return nil
}

// checkMonthlyCredits refuses an invalid limit of a key.
func checkMonthlyCredits(credits int64) error {
	if credits < 0 || credits > ledger.MaxKeyCredits {
		return fmt.Errorf("%w: a key's credits of a month are 0 to %d", ErrMalformed, int64(ledger.MaxKeyCredits))
	}
	return nil
}

// checkKeyChange checks the key-independent parts of a change, and returns the networks as they are
// stored, in hexadecimal, nil to leave them.
func checkKeyChange(c *KeyChange) (allowed any, err error) {
	if c.Expires != nil && c.NeverExpires {
		return nil, fmt.Errorf("%w: a key expires at a time or never", ErrMalformed)
	}
	if c.Name != nil {
		if err := checkName("a key's name", *c.Name, false); err != nil {
			return nil, err
		}
	}
	if c.Allowed != nil {
		if allowed, err = storedNetworks(*c.Allowed); err != nil {
			return nil, err
		}
	}
	if c.MonthlyCredits != nil {
		return allowed, checkMonthlyCredits(*c.MonthlyCredits)
	}
	return allowed, nil
}

// checkKeyRate refuses a new rate of a key beyond its plan's. Its present rate may exceed a plan that
// was changed since.
func checkKeyRate(ctx context.Context, tx *sql.Tx, nowMillis int64, k *Key, perMinute *int64) error {
	if perMinute == nil || *perMinute == k.PerMinute {
		return nil
	}
	a, err := readAccountRow(ctx, tx, nowMillis, k.Account)
	if err != nil {
		return err
	}
	return checkPerMinute(ctx, tx, a.Plan, *perMinute)
}

func (w *Writer) changeKey(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("key", p)
	if err != nil {
		return nil, err
	}
	var body KeyChange
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	allowed, err := checkKeyChange(&body)
	if err != nil {
		return nil, err
	}
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		k, err := activeKey(ctx, r, tx, now, id)
		if err != nil {
			return err
		}
		if err := checkKeyRate(ctx, tx, now, &k, body.PerMinute); err != nil {
			return err
		}
		expires, err := endOf(body.Expires, now)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE api_key SET name = coalesce(?1, name),
			expires_at = CASE WHEN ?3 THEN NULL ELSE coalesce(?2, expires_at) END, allowed = coalesce(unhex(?5), allowed),
			per_minute = coalesce(?6, per_minute), monthly_credits = coalesce(?7, monthly_credits) WHERE id = ?4`,
			body.Name, expires, body.NeverExpires, id, allowed, body.PerMinute, body.MonthlyCredits)
		if err != nil || body.MonthlyCredits == nil {
			return err
		}
		return l.LimitKey(ctx, tx, now, id, *body.MonthlyCredits)
	}
	return apply(w, r, keyEdit(id, change, body.Expires != nil || body.Allowed != nil))
}

func (w *Writer) rotateKey(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("key", p)
	if err != nil {
		return nil, err
	}
	var body struct {
		OverlapSeconds int64 `json:"overlap_seconds"`
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if body.OverlapSeconds < 0 || body.OverlapSeconds > int64(MaxOverlap/time.Second) {
		return nil, fmt.Errorf("%w: the overlap is 0 to %d seconds", ErrMalformed, MaxOverlap/time.Second)
	}
	answer := NewKey{Secret: ident.NewKey(w.config.Random)}
	hash := sha256.Sum256([]byte(answer.Secret))
	endsSecret := body.OverlapSeconds == 0
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		k, err := activeKey(ctx, r, tx, now, id)
		if err != nil {
			return err
		}
		endsSecret = endsSecret || k.OldEnds != nil // that of a rotation before
		_, err = tx.ExecContext(ctx, `UPDATE api_key SET old_hash = CASE WHEN ?3 > ?4 THEN hash END, old_shown = shown, old_ends_at = ?3,
			hash = ?1, shown = ?2 WHERE id = ?5`, hash[:], ident.KeyShown(answer.Secret), now+1000*body.OverlapSeconds, now, id)
		if err != nil {
			return err
		}
		answer.Key, err = readKey(ctx, tx, now, id)
		return err
	}
	row := func(k NewKey) changedRow {
		return changedRow{table: keyTable, id: k.ID, takes: endsSecret}
	}
	return apply(w, r, edit[NewKey]{change: change, answer: given(&answer), row: row})
}
