package writer

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// look reads the ledger in memory, and the database as of the same commit.
func (w *Writer) look(r *http.Request, read changeFunc) error {
	ctx, cancel := context.WithTimeout(r.Context(), changeLimit)
	defer cancel()
	return apiErrorOf(w.submit(ctx, &operation{change: read, readOnly: true}))
}

// Commit changes tables that the ledger in memory does not hold, in a transaction of the
// writer, and enters the act into the audit log unless it has no name. An error of change
// is returned unchanged, and nothing was written. Commit returns ErrFenced when another
// writer took the ledger, and ErrUnavailable, wrapped, when the outcome is unknown.
func (w *Writer) Commit(ctx context.Context, act Act, change func(ctx context.Context, tx *sql.Tx, nowMillis int64) error) error {
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	return w.submit(ctx, &operation{change: func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		if err := change(ctx, tx, now); err != nil {
			return err
		}
		return insertAct(ctx, tx, now, act)
	}})
}

// maxDetail bounds what the audit log keeps of one act, in bytes: enough for the longest note in \u escapes. A request
// with a longer body is refused, since what would be cut off might matter.
const maxDetail = 8000

// operatorActor is the actor in the audit log of requests with the first operators' token.
const operatorActor = "operators' token"

// Act is a row of the audit log: somebody does something to an account.
type Act struct {
	Actor   string // e-mail address, empty when not signed in
	Account int64  // the account that is changed, 0 for none
	Address string // of the client
	Name    string // such as "revoke key"
	Detail  string
	Owner   bool // an owner of the account does it, in the dashboard

	// none is set when nothing was changed, which is not entered.
	none bool
}

type actKey struct{}

// WithAct returns a context for a request that makes one change. The act is entered into
// the audit log, in the change's own transaction. Requests without an act that come through
// the operators' API are entered by method, path and body.
func WithAct(ctx context.Context, act Act) context.Context {
	return context.WithValue(ctx, actKey{}, &act)
}

// byOwner reports whether an owner makes a request, with a token or in the dashboard.
func byOwner(r *http.Request) bool {
	_, token := ownerOf(r)
	act, ok := r.Context().Value(actKey{}).(*Act)
	return token || ok && act.Owner
}

// setActAccount names the account of the request's act, from a change whose path lacks it.
func setActAccount(r *http.Request, account int64) {
	if act, ok := r.Context().Value(actKey{}).(*Act); ok {
		act.Account = account
	}
}

// setActDetail replaces the detail of the request's act, where the body holds a secret.
func setActDetail(r *http.Request, detail string) {
	if act, ok := r.Context().Value(actKey{}).(*Act); ok {
		act.Detail = detail
	}
}

// setActTaken makes the detail of the request's act say how many credits were taken, if the body asks for at most an
// amount. A change may run twice, with another balance.
func setActTaken(r *http.Request, body CreditChange, amount int64) {
	if act, ok := r.Context().Value(actKey{}).(*Act); ok && body.AtMost && body.Amount < 0 {
		body.Amount = amount
		detail, _ := json.Marshal(body) // a struct of numbers and strings always has a form
		act.Detail, act.none = string(detail), amount == 0
	}
}

// audited adds the act of ctx, if there is one, to a change.
func audited(ctx context.Context, change changeFunc) changeFunc {
	act, ok := ctx.Value(actKey{}).(*Act)
	if !ok {
		return change
	}
	return func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		if err := change(ctx, tx, now, l); err != nil {
			return err
		}
		return insertAct(ctx, tx, now, *act)
	}
}

func insertAct(ctx context.Context, tx *sql.Tx, now int64, act Act) error {
	if act.Name == "" || act.none {
		return nil
	}
	const statement = `INSERT INTO audit (at, actor, account, address, act, detail) VALUES (?, ?, nullif(?, 0), ?, ?, ?)`
	_, err := tx.ExecContext(ctx, statement, now, act.Actor, act.Account, act.Address, act.Name, truncateDetail(act.Detail))
	return err
}

// printable replaces what can't be printed by the replacement character.
func printable(detail string) string {
	return strings.Map(func(c rune) rune {
		if unprintable(c) {
			return unicode.ReplacementChar
		}
		return c
	}, detail)
}

// truncateDetail keeps at most maxDetail bytes of what printable returns.
func truncateDetail(detail string) string {
	detail = printable(detail)
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
	}
	return strings.ToValidUTF8(detail, "")
}

// withRequestAct adds an act to a request that changes something and has none. Its detail is the body,
// and its actor the token's owner. Only one body of this API carries a secret, and its handler hides
// it.
func (w *Writer) withRequestAct(r *http.Request, p httprouter.Params, actor string, body []byte) *http.Request {
	if _, ok := r.Context().Value(actKey{}).(*Act); ok || r.Method == http.MethodGet {
		return r
	}
	act := Act{Actor: actor, Name: r.Method + " " + r.URL.Path, Address: w.config.Client(r)}
	if token, ok := ownerOf(r); ok {
		act.Account = token.account
	} else if strings.HasPrefix(r.URL.Path, "/v1/accounts/") {
		act.Account, _ = strconv.ParseInt(p.ByName("id"), 10, 64)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		act.Detail = printable(compact.String()) // as it is stored: its length is checked
	}
	return r.WithContext(WithAct(r.Context(), act))
}

// checkAct refuses a request that the audit log could not keep whole.
func checkAct(ctx context.Context) error {
	if act, ok := ctx.Value(actKey{}).(*Act); ok && len(act.Detail) > maxDetail {
		return fmt.Errorf("%w: the body has more than %d bytes without its blanks, which the audit log can't keep", ErrMalformed, maxDetail)
	}
	return nil
}

// actorOf names the caller who makes the request's change.
func actorOf(r *http.Request) string {
	if act, ok := r.Context().Value(actKey{}).(*Act); ok {
		return act.Actor
	}
	return ""
}

// Connection is the address at the other end of a request's connection.
func Connection(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
