package writer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

const (
	// maxTokenLife bounds the life of an operators' token: nobody remembers an older one.
	maxTokenLife = 5 * 365 * 24 * time.Hour
	// endedTokenKept is how long a token that has ended is listed.
	endedTokenKept = 90 * 24 * time.Hour
)

// OperatorToken is a token of the operators' API, without its secret.
type OperatorToken struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends"`
	Ended   bool      `json:"ended"`
}

// NewOperatorToken is a new token with its secret, which is shown only once.
type NewOperatorToken struct {
	OperatorToken
	Token string `json:"token"`
}

// AddToken makes an operators' token that ends after life. The name of a token that has ended can be
// used again.
func (c *Client) AddToken(ctx context.Context, name string, role Role, life time.Duration) (NewOperatorToken, error) {
	body := map[string]any{"name": name, "role": role, "life_seconds": int64(life / time.Second)}
	return changeOnce[NewOperatorToken](ctx, c, "add token", http.MethodPost, "/v1/tokens", body)
}

// Tokens lists the operators' tokens by name, and those that ended within 90 days.
func (c *Client) Tokens(ctx context.Context) ([]OperatorToken, error) {
	return call[[]OperatorToken](ctx, c, "list tokens", http.MethodGet, "/v1/tokens", nil)
}

// EndToken ends an operators' token at once. It is idempotent.
func (c *Client) EndToken(ctx context.Context, name string) (OperatorToken, error) {
	return changeOnce[OperatorToken](ctx, c, "end token", http.MethodDelete, "/v1/tokens/"+url.PathEscape(name), nil)
}

const selectTokens = `SELECT name, role, created_at, ends_at FROM operator_token`

// endNow ends a token at ?1. In its row and in memory the end is then the negative of that time: even if the clock is
// set back, the token is not let in again.
const endNow = ` SET ends_at = -min(ends_at, ?1) WHERE ends_at > 0 AND `

// endOfToken is when a token ends or was ended.
func endOfToken(millis int64) time.Time { return time.UnixMilli(max(millis, -millis)).UTC() }

func scanToken(row interface{ Scan(...any) error }, now int64) (OperatorToken, error) {
	var t OperatorToken
	var created, ends int64
	err := row.Scan(&t.Name, &t.Role, &created, &ends)
	t.Created, t.Ends, t.Ended = time.UnixMilli(created).UTC(), endOfToken(ends), ends <= now
	return t, err
}

func readOperatorToken(ctx context.Context, db querier, now int64, name string) (OperatorToken, error) {
	t, err := scanToken(db.QueryRowContext(ctx, selectTokens+` WHERE name = ?`, name), now)
	if errors.Is(err, sql.ErrNoRows) {
		return t, notFound("token", name)
	}
	return t, err
}

func (w *Writer) listTokens(r *http.Request, _ httprouter.Params) (any, error) {
	now := w.now()
	return collect(r.Context(), w.config.Ledger, selectTokens+` WHERE abs(ends_at) > ? ORDER BY name`,
		[]any{now - endedTokenKept.Milliseconds()}, func(rows *sql.Rows) (OperatorToken, error) { return scanToken(rows, now) })
}

func (w *Writer) addToken(r *http.Request, _ httprouter.Params) (any, error) {
	var body struct {
		Name        string
		Role        Role
		LifeSeconds int64 `json:"life_seconds"`
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	switch {
	case !nodeName.MatchString(body.Name):
		return nil, fmt.Errorf("%w: a token's name has 1 to 63 characters of a-z, 0-9, '.' and '-'", ErrMalformed)
	case !slices.Contains(Roles(), body.Role):
		return nil, fmt.Errorf("%w: the roles are %v", ErrMalformed, Roles())
	case body.LifeSeconds < 1 || body.LifeSeconds > int64(maxTokenLife/time.Second):
		return nil, fmt.Errorf("%w: a token lives for a second to five years", ErrMalformed)
	}
	answer := NewOperatorToken{Token: w.newOperatorSecret()}
	hash := sha256.Sum256([]byte(answer.Token))
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		ends := now + body.LifeSeconds*1000
		const statement = `INSERT INTO operator_token (name, hash, role, created_at, ends_at) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT (name) DO UPDATE SET hash = ?2, role = ?3, created_at = ?4, ends_at = ?5 WHERE ends_at <= ?4`
		result, err := tx.ExecContext(ctx, statement, body.Name, hash[:], string(body.Role), now, ends)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, &detailed{ErrTaken, fmt.Sprintf("there is a token %s already", body.Name)})
		}
		answer.OperatorToken, err = readOperatorToken(ctx, tx, now, body.Name)
		return err
	}
	committed := func(t NewOperatorToken) {
		w.setOperator(operatorToken{t.Name, hash, t.Role, t.Ends.UnixMilli()})
	}
	return apply(w, r, edit[NewOperatorToken]{change: change, answer: given(&answer), committed: committed})
}

func (w *Writer) newOperatorSecret() string {
	var random [24]byte
	w.config.Random(random[:])
	return "reg_operator_" + hex.EncodeToString(random[:])
}

// endToken ends a token: requests with it are refused from then on.
func (w *Writer) endToken(r *http.Request, p httprouter.Params) (any, error) {
	var answer OperatorToken
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		_, err := tx.ExecContext(ctx, `UPDATE operator_token`+endNow+`name = ?2`, now, p.ByName("name"))
		if err == nil {
			answer, err = readOperatorToken(ctx, tx, now, p.ByName("name"))
		}
		return err
	}
	return apply(w, r, edit[OperatorToken]{change: change, answer: given(&answer), committed: w.endOperator})
}

// setOperator lets a token in that has been committed.
func (w *Writer) setOperator(t operatorToken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operators = append(slices.DeleteFunc(w.operators, func(o operatorToken) bool { return o.name == t.name }), t)
}

func (w *Writer) endOperator(ended OperatorToken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range w.operators {
		if t.name == ended.Name {
			w.operators[i].ends = -ended.Ends.UnixMilli()
		}
	}
}
