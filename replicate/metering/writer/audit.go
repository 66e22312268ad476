package writer

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// maxDetail bounds what the audit log keeps of one act, in bytes.
const maxDetail = 2000

// operatorActor is how the audit log names the bearer of the operators' token.
const operatorActor = "operators' token"

// Act is a row of the audit log: who does what to which account.
type Act struct {
	Actor   string // e-mail address, empty for a stranger
	Account int64  // whom it concerns, 0 for none
	Address string // of the client
	Name    string // such as "revoke key"
	Detail  string
}

type actKey struct{}

// WithAct has the change that a request with this context makes entered into the audit
// log, in the change's own transaction. Without it, changes through the operators' API
// are entered as what was asked.
func WithAct(ctx context.Context, act Act) context.Context {
	return context.WithValue(ctx, actKey{}, &act)
}

// Commit makes a change of tables that the ledger in memory does not hold, in a
// transaction of the one writer, and enters it into the audit log unless the act has no
// name. An error of change is returned as it is, and nothing was changed. It returns
// ErrFenced when another writer took the ledger, and ErrUnavailable, wrapped, when the
// outcome is unknown.
func (w *Writer) Commit(ctx context.Context, act Act, change func(ctx context.Context, tx *sql.Tx, nowMillis int64) error) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	return w.submit(ctx, &operation{change: func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) error {
		if err := change(ctx, tx, now); err != nil {
			return err
		}
		return enter(ctx, tx, now, act)
	}})
}

// concern says within a change which account the request's act is about, when its path
// does not.
func concern(r *http.Request, account int64) {
	if act, ok := r.Context().Value(actKey{}).(*Act); ok {
		act.Account = account
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
		return enter(ctx, tx, now, *act)
	}
}

// changeFunc changes the database and the ledger.
type changeFunc = func(context.Context, *sql.Tx, int64, *ledger.Ledger) error

func enter(ctx context.Context, tx *sql.Tx, now int64, act Act) error {
	if act.Name == "" {
		return nil
	}
	const statement = `INSERT INTO audit (at, actor, account, address, act, detail) VALUES (?, ?, nullif(?, 0), ?, ?, ?)`
	_, err := tx.ExecContext(ctx, statement, now, act.Actor, act.Account, act.Address, act.Name, bounded(act.Detail))
	return err
}

func bounded(detail string) string {
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
	}
	return strings.ToValidUTF8(detail, "")
}

// asked gives a request that changes something through the API the act to be entered,
// unless it comes with one. What the body says is its detail: no body of this API
// carries a secret.
func asked(r *http.Request, p httprouter.Params) (*http.Request, error) {
	if _, ok := r.Context().Value(actKey{}).(*Act); ok || r.Method == http.MethodGet {
		return r, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	act := Act{Actor: operatorActor, Name: r.Method + " " + r.URL.Path}
	if act.Address, _, err = net.SplitHostPort(r.RemoteAddr); err != nil {
		act.Address = r.RemoteAddr
	}
	if strings.HasPrefix(r.URL.Path, "/v1/accounts/") {
		act.Account, _ = strconv.ParseInt(p.ByName("id"), 10, 64)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		act.Detail = compact.String()
	}
	r = r.WithContext(WithAct(r.Context(), act))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}
