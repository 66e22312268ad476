package writer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

const (
	// invitationLife is how long an invitation can be accepted: over a weekend.
	invitationLife = 72 * time.Hour
	// longestInvitation is how long an open one can be left: one that lasts longer was made while the clock was ahead, and
	// is not accepted.
	longestInvitation = invitationLife + 15*time.Minute
	// maxEmail is the longest e-mail address that mail can carry, in bytes (RFC 5321).
	maxEmail = 254
)

// InvitationPath is the path of the page on which an invitation is accepted, up to the token.
const InvitationPath = "/invitations/"

// Invitation lets its holder set the password of an e-mail address, once, and sign in to the
// dashboard: for Account, or as an operator.
type Invitation struct {
	Email    string    `json:"email"`
	Account  int64     `json:"account"` // 0 for an operator
	Operator bool      `json:"operator"`
	Expires  time.Time `json:"expires"`
	Resets   bool      `json:"reset_two_factor"` // its acceptance switches two-factor authentication off
	Token    string    `json:"token"`            // shown only once; its hash is stored
}

// Invite makes an invitation for an account, or with account 0 for an operator. It replaces an
// earlier one of the same address. An address that signs in already gets a new password by
// it. ErrTaken says that the address signs in for another account or in another role.
func (c *Client) Invite(ctx context.Context, email string, account int64) (Invitation, error) {
	return c.invite(ctx, email, account, false)
}

// InviteAndReset is Invite for a person who has lost their authenticator: accepting the invitation also
// switches two-factor authentication off.
func (c *Client) InviteAndReset(ctx context.Context, email string, account int64) (Invitation, error) {
	return c.invite(ctx, email, account, true)
}

func (c *Client) invite(ctx context.Context, email string, account int64, reset bool) (Invitation, error) {
	body := map[string]any{"email": email, "account": account, "operator": account == 0, "reset_two_factor": reset}
	return changeOnce[Invitation](ctx, c, "invite", http.MethodPost, "/v1/invitations", body)
}

// CanonicalEmail returns the form in which e-mail addresses are compared: trimmed, in lower
// case. It is empty for anything that is not an address.
func CanonicalEmail(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || len(text) > maxEmail {
		return ""
	}
	return text
}

func (w *Writer) addInvitation(r *http.Request, _ httprouter.Params) (any, error) {
	var body struct {
		Email    string
		Account  int64
		Operator bool
		Resets   bool `json:"reset_two_factor"`
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	answer := Invitation{Email: CanonicalEmail(body.Email), Account: body.Account, Operator: body.Operator, Resets: body.Resets}
	if err := checkEmail(body.Email); err != nil {
		return nil, err
	}
	if answer.Email == "" || (answer.Account == 0) != answer.Operator {
		return nil, fmt.Errorf("%w: an invitation is for an e-mail address and an account, or an operator", ErrMalformed)
	}
	if answer.Operator {
		if err := checkRole(r, RoleAll); err != nil {
			return nil, err
		}
	}
	var hash [32]byte
	answer.Token, hash = w.newInvitationToken()
	change := func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		setActAccount(r, body.Account)
		expires := now + invitationLife.Milliseconds()
		answer.Expires = time.UnixMilli(expires).UTC()
		if err := mayInvite(ctx, tx, now, answer); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM invitation WHERE email = ?1 OR expires_at <= ?2`, answer.Email, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO invitation (hash, email, account, operator, resets, expires_at)
			VALUES (?, ?, nullif(?, 0), ?, ?, ?)`, hash[:], answer.Email, answer.Account, answer.Operator, answer.Resets, expires)
		return err
	}
	return apply(w, r, edit[Invitation]{change: change, answer: given(&answer)})
}

func (w *Writer) newInvitationToken() (string, [32]byte) {
	var random [32]byte
	w.config.Random(random[:])
	token := base64.RawURLEncoding.EncodeToString(random[:])
	return token, sha256.Sum256([]byte(token))
}

// mayInvite checks an invitation: an address signs in for one account only.
func mayInvite(ctx context.Context, tx *sql.Tx, nowMillis int64, i Invitation) error {
	if !i.Operator {
		if _, err := readAccountRow(ctx, tx, nowMillis, i.Account); err != nil {
			return err
		}
	}
	var account sql.NullInt64
	err := tx.QueryRowContext(ctx, `SELECT account FROM user WHERE email = ?`, i.Email).Scan(&account)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case account.Int64 != i.Account:
		return fmt.Errorf("%w: %s signs in for another account or in another role", ErrTaken, i.Email)
	}
	return nil
}
