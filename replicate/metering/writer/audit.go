package writer

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/julienschmidt/httprouter"
)

// AuditEntry is a row of the audit log.
type AuditEntry struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	// Actor is an e-mail address, "operators' token", "token NAME", or empty for somebody who had not
	// signed in.
	Actor   string `json:"actor"`
	Account int64  `json:"account"` // the account concerned, 0 for none
	Address string `json:"address"` // of the client
	Act     string `json:"act"`
	Detail  string `json:"detail"`
}

// Both read in descending order from an id, by the primary key or by the index of the account.
const (
	selectAudit = `SELECT id, at, actor, coalesce(account, 0), address, act, detail FROM audit
	WHERE id < ?1 AND (?2 = '%%' OR actor LIKE ?2 ESCAPE '\' OR act LIKE ?2 ESCAPE '\' OR detail LIKE ?2 ESCAPE '\')`
	selectAuditOf = selectAudit + ` AND account = ?4`
	newestFirst   = ` ORDER BY id DESC LIMIT ?3`
)

// AuditPage reads the audit log, newest first: of an account, or of all for account 0. The search looks into
// actor, act and detail.
func (c *Client) AuditPage(ctx context.Context, account int64, q ListQuery) (Page[AuditEntry], error) {
	others := url.Values{}
	if account != 0 {
		others.Set("account", decimal(account))
	}
	return call[Page[AuditEntry]](ctx, c, "list audit log", http.MethodGet, q.encode("/v1/audit", others), nil)
}

func (w *Writer) listAudit(r *http.Request, _ httprouter.Params) (any, error) {
	q, err := readListQuery(r)
	if err != nil {
		return nil, err
	}
	before, err := q.number(math.MaxInt64)
	if err != nil {
		return nil, err
	}
	query, args := selectAudit+newestFirst, []any{before, q.pattern(), q.more()}
	if asked := r.URL.Query().Get("account"); asked != "" {
		account, err := strconv.ParseInt(asked, 10, 64)
		if err != nil || account < 1 {
			return nil, fmt.Errorf("%w: account is a number from 1", ErrMalformed)
		}
		query, args = selectAuditOf+newestFirst, append(args, account)
	}
	rows, err := collect(r.Context(), w.config.Ledger, query, args, scanAudit)
	return pageOf(q, rows, func(e AuditEntry) string { return decimal(e.ID) }), err
}

func scanAudit(rows *sql.Rows) (AuditEntry, error) {
	var e AuditEntry
	var at int64
	err := rows.Scan(&e.ID, &at, &e.Actor, &e.Account, &e.Address, &e.Act, &e.Detail)
	e.At = time.UnixMilli(at).UTC()
	return e, err
}
