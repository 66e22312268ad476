package writer

import (
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/syncproto"
)

// ownPath is where the API of owners begins.
const ownPath = "/v1/account"

// OwnAccount is an account as its owner's token sees it. Bought + Compensated = Balance + Spent + Lost, all
// in credits.
type OwnAccount struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Suspended   bool      `json:"suspended"`
	Created     time.Time `json:"created"`
	Balance     int64     `json:"balance"` // what can still be spent
	Bought      int64     `json:"bought"`
	Compensated int64     `json:"compensated"`
	Spent       int64     `json:"spent"`
	Lost        int64     `json:"lost"`
	Keys        int       `json:"keys"` // active ones
	Plan        Plan      `json:"plan"`
	Month       string    `json:"month"` // the current one, UTC, such as 2026-01
	MonthUsed   int64     `json:"month_used"`
}

// ownTable lists what an owner's token opens. No path has the account's number: it is the token's.
func (w *Writer) ownTable() []route {
	own := func(f func(*http.Request, httprouter.Params) (any, error)) httprouter.Handle {
		return w.answering(func(r *http.Request, _ httprouter.Params) (any, error) {
			t, _ := ownerOf(r)
			return f(r, httprouter.Params{{Key: "id", Value: decimal(t.account)}})
		})
	}
	const keys, key = ownPath + "/keys", ownPath + "/keys/:id"
	return []route{
		{"GET", ownPath, owners, w.answering(w.readOwnAccount), nil},
		{"GET", keys, owners, own(w.listKeys), pageParams},
		{"POST", keys, owners, own(w.addKey), nil},
		{"GET", key, owners, w.answering(w.readKey), nil},
		{"PATCH", key, owners, w.answering(w.changeKey), nil},
		{"DELETE", key, owners, w.answering(w.revokeKey), nil},
		{"POST", key + "/rotate", owners, w.answering(w.rotateKey), nil},
		{"GET", ownPath + "/requests", owners, w.answering(w.listRequests), ownRequestParams},
		{"GET", ownPath + "/usage", owners, w.serveOwnUsage, usageSumParams},
	}
}

func (w *Writer) readOwnAccount(r *http.Request, _ httprouter.Params) (any, error) {
	t, _ := ownerOf(r)
	ctx, now := r.Context(), w.now()
	a, err := readAccountRow(ctx, w.config.Ledger, now, t.account)
	if err != nil {
		return nil, err
	}
	own := OwnAccount{
		ID: a.ID, Name: a.Name, Suspended: a.Suspended, Created: a.Created, Balance: a.Balance, Bought: a.Bought,
		Compensated: a.Compensated, Spent: a.Spent, Lost: a.Lost, Keys: a.Keys, Month: time.UnixMilli(now).UTC().Format("2006-01"),
	}
	if own.Plan, err = scanPlan(w.config.Ledger.QueryRowContext(ctx, selectPlans+` WHERE id = ?`, a.Plan)); err != nil {
		return nil, err
	}
	const volume = `SELECT coalesce(sum(spent), 0) FROM pool WHERE kind = ? AND subject = ? AND time_window = ?`
	err = w.config.Ledger.QueryRowContext(ctx, volume, syncproto.Volume, a.ID, syncproto.Month(now)).Scan(&own.MonthUsed)
	return own, err
}

func (w *Writer) serveOwnUsage(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	t, _ := ownerOf(r)
	if err := w.answerUsageSums(rw, r, t.account); err != nil {
		w.fail(rw, r, err)
	}
}
