package writer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regedge/replicate/metering/bearer"

	"github.com/julienschmidt/httprouter"
)

// maxBody bounds the body of an operator's request, in bytes.
const maxBody = 1 << 16

// routes maps paths to handlers.
func (w *Writer) routes() http.Handler {
	r := httprouter.New()
	r.NotFound = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, ErrNotFound) })
	r.POST(SyncPath, w.serveSync)
	r.GET("/healthz", func(rw http.ResponseWriter, _ *http.Request, _ httprouter.Params) { io.WriteString(rw, "ok\n") })
	r.GET("/readyz", w.serveReady)
	metrics := w.metrics.handler()
	r.GET("/metrics", w.operator(func(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) { metrics.ServeHTTP(rw, r) }))
	r.GET("/v1/health", w.operator(w.answering(w.health)))
	r.GET("/v1/accounts", w.operator(w.answering(w.listAccounts)))
	r.POST("/v1/accounts", w.operator(w.answering(w.addAccount)))
	r.GET("/v1/accounts/:id", w.operator(w.answering(w.readAccount)))
	r.PATCH("/v1/accounts/:id", w.operator(w.answering(w.changeAccount)))
	r.GET("/v1/accounts/:id/keys", w.operator(w.answering(w.listKeys)))
	r.POST("/v1/accounts/:id/keys", w.operator(w.answering(w.addKey)))
	r.DELETE("/v1/keys/:id", w.operator(w.answering(w.revokeKey)))
	r.GET("/v1/accounts/:id/credits", w.operator(w.answering(w.listCredits)))
	r.POST("/v1/accounts/:id/credits", w.operator(w.answering(w.changeCredits)))
	r.GET("/v1/plans", w.operator(w.answering(w.listPlans)))
	r.PUT("/v1/plans/:name", w.operator(w.answering(w.setPlan)))
	r.GET("/v1/nodes", w.operator(w.answering(w.listNodes)))
	r.POST("/v1/nodes", w.operator(w.answering(w.addNode)))
	r.POST("/v1/nodes/:name/token", w.operator(w.answering(w.newNodeToken)))
	r.POST("/v1/nodes/:name/retire", w.operator(w.answering(w.retireNode)))
	r.GET("/v1/usage", w.operator(w.serveUsage))
	r.POST("/v1/invitations", w.operator(w.answering(w.addInvitation)))
	r.GET("/v1/unresolved", w.operator(w.answering(w.listUnresolved)))
	r.POST("/v1/unresolved/:name/credit", w.operator(w.answering(w.creditUnresolved)))
	return r
}

// operator lets only requests with the operators' token through. What they change is
// audited.
func (w *Writer) operator(next httprouter.Handle) httprouter.Handle {
	token := bearer.New(w.config.OperatorToken)
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		if !token.In(r) {
			w.fail(rw, r, ErrUnauthorized)
			return
		}
		r, err := withRequestAct(r, p)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		next(rw, r, p)
	}
}

// answering makes a handler that answers the result of f in JSON, with 202 for a change that edges do
// not know of yet.
func (w *Writer) answering(f func(r *http.Request, p httprouter.Params) (any, error)) httprouter.Handle {
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		result, err := f(r, p)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Cache-Control", "no-store")
		if p, ok := result.(interface{ IsPending() bool }); ok && p.IsPending() {
			rw.WriteHeader(http.StatusAccepted)
		}
		json.NewEncoder(rw).Encode(result)
	}
}

// fail answers an error by the table of errors. The text of an internal error goes only to
// the log, and not even there when the request was cancelled: its client has gone, or the
// server is shutting down.
func (w *Writer) fail(rw http.ResponseWriter, r *http.Request, err error) {
	row := tableRow(err)
	detail := err.Error()
	if errors.Is(row.err, ErrInternal) || errors.Is(row.err, ErrUnavailable) {
		if r.Context().Err() == nil {
			w.config.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		detail = row.err.Error()
	}
	rw.Header().Set("Content-Type", "application/problem+json")
	rw.WriteHeader(row.status)
	json.NewEncoder(rw).Encode(problem{row.code, detail})
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// collect runs a query and returns its rows, never nil.
func collect[T any](ctx context.Context, db querier, query string, args []any, scan func(*sql.Rows) (T, error)) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []T{}
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}
