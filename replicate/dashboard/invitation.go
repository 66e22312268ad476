package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"regedge/replicate/metering/writer"
)

// invitationLife is how long the writer makes an invitation last. One that lasts longer was made while the clock was ahead.
const invitationLife = 72 * time.Hour

// errInvitation is the same for unknown, used and expired invitations.
var errInvitation = &refusal{http.StatusNotFound, "This invitation can't be used",
	"It was already used, it is older than three days, or a newer one replaced it. Ask for a new one."}

// invitation is an open invitation.
type invitation struct {
	hash     []byte
	Email    string
	Account  int64
	Operator bool
	Name     string // of the account
	Resets   bool   // switches two-factor authentication off
}

type invitationData struct {
	Invitation *invitation
	Minimum    int
}

const selectInvitation = `SELECT i.email, coalesce(i.account, 0), i.operator, coalesce(a.name, ''), i.resets FROM invitation i
	LEFT JOIN account a ON a.id = i.account WHERE i.hash = ? AND i.expires_at > ? AND i.expires_at <= ?`

// findInvitation returns errInvitation when there is no open one with this token.
func (d *Dashboard) findInvitation(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, token string) (*invitation, error) {
	i := &invitation{hash: hashOf(token)}
	now := d.now()
	err := db.QueryRowContext(ctx, selectInvitation, i.hash, now.UnixMilli(), latest(now.Add(invitationLife).UnixMilli())).Scan(&i.Email, &i.Account, &i.Operator, &i.Name, &i.Resets)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errInvitation
	}
	return i, err
}

// invitationPage asks for a password. A GET does not use up the invitation: mail programs follow links
// too.
func (d *Dashboard) invitationPage(v *visit) (answer, error) {
	i, err := d.findInvitation(v.r.Context(), d.config.Ledger, v.params.ByName("token"))
	if err != nil {
		return answer{}, err
	}
	return invitationForm(i, ""), nil
}

func invitationForm(i *invitation, words string) answer {
	a := answer{page: "invitation", title: "Choose a password", error: words, data: invitationData{i, minPassword}}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a
}

func (d *Dashboard) acceptInvitation(v *visit) (answer, error) {
	token, password := v.params.ByName("token"), v.field("password")
	i, err := d.findInvitation(v.r.Context(), d.config.Ledger, token)
	if err != nil {
		return answer{}, err
	}
	if words := fitPassword(password, i.Email, i.Name); words != "" {
		return invitationForm(i, words), nil
	}
	secret, err := d.accept(v, token, password)
	if err != nil {
		return answer{}, err
	}
	if secret == "" {
		v.moved = true
		return see("/sign-in", "chosen"), nil
	}
	d.enterSession(v, secret)
	return see("/", "welcome"), nil
}

// accept uses up an invitation: it creates the user, or sets the existing one's password and ends their
// sessions, and starts a session. A user with two-factor authentication, unless the invitation resets
// it, gets no session and an empty secret: they sign in with a code.
func (d *Dashboard) accept(v *visit, token, password string) (string, error) {
	turn, err := d.passwords.enter()
	if err != nil {
		return "", err
	}
	defer turn.leave()
	stored, err := turn.hash(v.r.Context(), password)
	if err != nil {
		return "", err
	}
	i, err := d.findInvitation(v.r.Context(), d.config.Ledger, token)
	if err != nil {
		return "", err
	}
	secret, hash := d.newSecret()
	act := v.act("accept invitation", i.Account, "")
	if i.Resets {
		act.Detail = "resets two-factor authentication"
	}
	act.Actor = i.Email
	err = d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		i, err := d.findInvitation(ctx, tx, token) // another may have accepted it meanwhile
		if err != nil {
			return err
		}
		id, err := putUser(ctx, tx, now, i, stored)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM invitation WHERE hash = ?`, i.hash); err != nil {
			return err
		}
		if err := errors.Join(endSessions(ctx, tx, id), forgetDevices(ctx, tx, id)); err != nil {
			return err
		}
		if i.Resets {
			if err := dropTwoFactor(ctx, tx, id); err != nil {
				return err
			}
		}
		if on, err := hasTwoFactor(ctx, tx, id); err != nil || on {
			secret = ""
			return err
		}
		return d.begin(ctx, tx, now, id, hash, v)
	})
	return secret, err
}

// putUser creates the user of an invitation, or changes their password. It refuses an
// e-mail address that has become the user of another account.
func putUser(ctx context.Context, tx *sql.Tx, now int64, i *invitation, stored string) (int64, error) {
	const put = `INSERT INTO user (email, password, account, operator, created_at) VALUES (?, ?, nullif(?, 0), ?, ?)
		ON CONFLICT (email) DO UPDATE SET password = excluded.password
		WHERE account IS excluded.account AND operator = excluded.operator RETURNING id`
	rows, err := tx.QueryContext(ctx, put, i.Email, stored, i.Account, i.Operator, now)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var id int64
	for rows.Next() { // to the end: an unfinished statement is never checkpointed
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	if id == 0 {
		return 0, errInvitation
	}
	return id, nil
}

// Accept accepts an invitation without a browser, and leaves no session and no device.
func (d *Dashboard) Accept(ctx context.Context, token, password string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, writer.InvitationPath, nil)
	if err != nil {
		return fmt.Errorf("accept invitation: %w", err)
	}
	v := &visit{r: r}
	secret, err := d.accept(v, token, password)
	if err != nil {
		return fmt.Errorf("accept invitation: %w", err)
	}
	err = d.config.Writer.Commit(ctx, writer.Act{}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
		_, session := tx.ExecContext(ctx, `DELETE FROM session WHERE hash = ?`, hashOf(secret))
		_, device := tx.ExecContext(ctx, `DELETE FROM device WHERE hash = ?`, hashOf(v.device))
		return errors.Join(session, device)
	})
	if err != nil {
		return fmt.Errorf("accept invitation: %w", err)
	}
	return nil
}
