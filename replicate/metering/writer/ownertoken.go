package writer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

const (
	// ownerPrefix begins an owner's token.
	ownerPrefix = "reg_owner_"
	// MaxOwnerTokens is how many active tokens an account has at most.
	MaxOwnerTokens = 10
	// MaxOwnerTokenLife bounds the life of an owner's token: nobody remembers an older one.
	MaxOwnerTokenLife = 2 * 365 * 24 * time.Hour
)

// OwnerToken is a token for an owner's programs, without its secret. It opens the API of its own account,
// the paths from /v1/account on: with RoleRead to read, with RoleAll also to change keys.
type OwnerToken struct {
	ID      int64     `json:"id"`
	Account int64     `json:"account"`
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	MadeBy  string    `json:"made_by"` // an owner's e-mail address, or as the audit log names others
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends"`
	Ended   bool      `json:"ended"`
}

// NewOwnerToken is a new token with its secret, which is shown only once.
type NewOwnerToken struct {
	OwnerToken
	Token string `json:"token"`
}

// AddOwnerToken makes a token of an account that ends after life. It returns ErrTooManyTokens for an
// account that has 10 active ones.
func (c *Client) AddOwnerToken(ctx context.Context, account int64, name string, role Role, life time.Duration) (NewOwnerToken, error) {
	body := map[string]any{"name": name, "role": role, "life_seconds": int64(life / time.Second)}
	return changeOnce[NewOwnerToken](ctx, c, "add owner's token", http.MethodPost, "/v1/accounts/"+decimal(account)+"/tokens", body)
}

// OwnerTokens lists the tokens of an account by number, and those that ended within 90 days.
func (c *Client) OwnerTokens(ctx context.Context, account int64) ([]OwnerToken, error) {
	return call[[]OwnerToken](ctx, c, "list owner's tokens", http.MethodGet, "/v1/accounts/"+decimal(account)+"/tokens", nil)
}

// EndOwnerToken ends an owner's token at once. It is idempotent.
func (c *Client) EndOwnerToken(ctx context.Context, id int64) (OwnerToken, error) {
	return changeOnce[OwnerToken](ctx, c, "end owner's token", http.MethodDelete, "/v1/owner-tokens/"+decimal(id), nil)
}

// EndOwnerTokensOf ends the tokens that a person made, in a transaction in which that person loses access.
func EndOwnerTokensOf(ctx context.Context, tx *sql.Tx, now int64, email string) error {
	_, err := tx.ExecContext(ctx, `UPDATE owner_token`+endNow+`made_by = ?2`, now, email)
	return err
}

const selectOwnerTokens = `SELECT id, account, name, role, made_by, created_at, ends_at FROM owner_token`

func scanOwnerToken(row interface{ Scan(...any) error }, now int64) (OwnerToken, error) {
	var t OwnerToken
	var created, ends int64
	err := row.Scan(&t.ID, &t.Account, &t.Name, &t.Role, &t.MadeBy, &created, &ends)
	t.Created, t.Ends, t.Ended = time.UnixMilli(created).UTC(), endOfToken(ends), ends <= now
	return t, err
}

func readOwnerToken(ctx context.Context, db querier, now, id int64) (OwnerToken, error) {
	t, err := scanOwnerToken(db.QueryRowContext(ctx, selectOwnerTokens+` WHERE id = ?`, id), now)
	if errors.Is(err, sql.ErrNoRows) {
		return t, notFound("owner's token", id)
	}
	return t, err
}

func (w *Writer) listOwnerTokens(r *http.Request, p httprouter.Params) (any, error) {
	account, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	now := w.now()
	if _, err := readAccountRow(r.Context(), w.config.Ledger, now, account); err != nil {
		return nil, err
	}
	return collect(r.Context(), w.config.Ledger, selectOwnerTokens+` WHERE account = ? AND abs(ends_at) > ? ORDER BY id`,
		[]any{account, now - endedTokenKept.Milliseconds()}, func(rows *sql.Rows) (OwnerToken, error) { return scanOwnerToken(rows, now) })
}

func (w *Writer) addOwnerToken(r *http.Request, p httprouter.Params) (any, error) {
	account, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	var body struct {
		Name        string
		Role        Role
		LifeSeconds int64 `json:"life_seconds"`
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if err := checkName("a token's name", body.Name, true); err != nil {
		return nil, err
	}
	switch {
	case body.Role != RoleRead && body.Role != RoleAll:
		return nil, fmt.Errorf("%w: the roles of an owner's token are %s and %s", ErrMalformed, RoleRead, RoleAll)
	case body.LifeSeconds < 1 || body.LifeSeconds > int64(MaxOwnerTokenLife/time.Second):
		return nil, fmt.Errorf("%w: an owner's token lives for a second to two years", ErrMalformed)
	}
	var random [24]byte
	w.config.Random(random[:])
	answer := NewOwnerToken{Token: ownerPrefix + hex.EncodeToString(random[:])}
	hash := sha256.Sum256([]byte(answer.Token))
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		if _, err := readAccountRow(ctx, tx, now, account); err != nil {
			return err
		}
		var active int
		const count = `SELECT count(*) FROM owner_token WHERE account = ? AND ends_at > ?`
		if err := tx.QueryRowContext(ctx, count, account, now).Scan(&active); err != nil {
			return err
		}
		if active >= MaxOwnerTokens {
			return ErrTooManyTokens
		}
		const put = `INSERT INTO owner_token (account, name, hash, role, made_by, created_at, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?)`
		result, err := tx.ExecContext(ctx, put, account, body.Name, hash[:], string(body.Role), actorOf(r), now, now+1000*body.LifeSeconds)
		if err != nil {
			return err
		}
		id, err := result.LastInsertId()
		if err == nil {
			answer.OwnerToken, err = readOwnerToken(ctx, tx, now, id)
		}
		return err
	}
	return apply(w, r, edit[NewOwnerToken]{change: change, answer: given(&answer)})
}

// endOwnerToken ends a token: requests with it are refused from then on.
func (w *Writer) endOwnerToken(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("owner's token", p)
	if err != nil {
		return nil, err
	}
	var answer OwnerToken
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		_, err := tx.ExecContext(ctx, `UPDATE owner_token`+endNow+`id = ?2`, now, id)
		if err == nil {
			answer, err = readOwnerToken(ctx, tx, now, id)
		}
		setActAccount(r, answer.Account)
		return err
	}
	return apply(w, r, edit[OwnerToken]{change: change, answer: given(&answer)})
}
