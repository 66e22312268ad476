package writer

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"
)

// maxBody bounds the body of an operator's request, in bytes.
const maxBody = 1 << 16

// route is one kind of request, and who may make it.
type route struct {
	method, path string
	needs        Role
	serve        httprouter.Handle
	params       []string // of the query; others are refused
}

// The parameters of routes that have others than a page's.
var (
	usageParams = []string{"account", "from", "to", "format"}
	auditParams = append([]string{"account"}, pageParams...)

	ownRequestParams = append([]string{"key"}, pageParams...)
	requestParams    = append([]string{"account"}, ownRequestParams...)
)

// table lists all that the writer answers. A route without a role is refused to everybody.
func (w *Writer) table() []route {
	return append(w.ownTable(), []route{
		{"GET", "/healthz", anyone, serveAlive, nil},
		{"GET", "/readyz", anyone, w.serveReady, nil},
		{"GET", DocumentPath, anyone, serveDocument, nil},
		{"POST", SyncPath, edges, w.serveSync, nil},
		{"POST", ReportPath, edges, w.reports.put, nil},
		{"POST", RequestsPath, edges, w.requests.put, nil},

		{"GET", "/metrics", RoleRead, w.serveMetrics, nil},
		{"GET", ReportPath, RoleRead, w.answering(w.reports.list), nil},
		{"GET", "/v1/health", RoleRead, w.answering(w.health), nil},
		{"GET", "/v1/accounts", RoleRead, w.answering(w.listAccounts), pageParams},
		{"GET", "/v1/accounts/:id", RoleRead, w.answering(w.readAccount), nil},
		{"GET", "/v1/accounts/:id/keys", RoleRead, w.answering(w.listKeys), pageParams},
		{"GET", "/v1/keys/:id", RoleRead, w.answering(w.readKey), nil},
		{"GET", "/v1/accounts/:id/credits", RoleRead, w.answering(w.listCredits), nil},
		{"GET", "/v1/accounts/:id/tokens", RoleRead, w.answering(w.listOwnerTokens), nil},
		{"GET", "/v1/accounts/:id/usage", RoleRead, w.serveUsageSums, usageSumParams},
		{"GET", "/v1/plans", RoleRead, w.answering(w.listPlans), nil},
		{"GET", "/v1/nodes", RoleRead, w.answering(w.listNodes), pageParams},
		{"GET", RequestsPath, RoleRead, w.answering(w.listRequests), requestParams},
		{"GET", "/v1/usage", RoleRead, w.serveUsage, usageParams},
		{"GET", "/v1/audit", RoleRead, w.answering(w.listAudit), auditParams},
		{"GET", "/v1/unresolved", RoleRead, w.answering(w.listUnresolved), pageParams},

		{"POST", "/v1/accounts", RoleAccounts, w.answering(w.addAccount), nil},
		{"PATCH", "/v1/accounts/:id", RoleAccounts, w.answering(w.changeAccount), nil},
		{"POST", "/v1/accounts/:id/keys", RoleAccounts, w.answering(w.addKey), nil},
		{"PATCH", "/v1/keys/:id", RoleAccounts, w.answering(w.changeKey), nil},
		{"POST", "/v1/keys/:id/rotate", RoleAccounts, w.answering(w.rotateKey), nil},
		{"DELETE", "/v1/keys/:id", RoleAccounts, w.answering(w.revokeKey), nil},
		{"POST", "/v1/accounts/:id/tokens", RoleAccounts, w.answering(w.addOwnerToken), nil},
		{"DELETE", "/v1/owner-tokens/:id", RoleAccounts, w.answering(w.endOwnerToken), nil},
		{"POST", "/v1/accounts/:id/credits", RoleAccounts, w.answering(w.changeCredits), nil},
		{"POST", "/v1/invitations", RoleAccounts, w.answering(w.addInvitation), nil},
		{"POST", "/v1/unresolved/:name/credit", RoleAccounts, w.answering(w.creditUnresolved), nil},

		{"POST", "/v1/nodes", RoleNodes, w.answering(w.addNode), nil},
		{"POST", "/v1/nodes/:name/token", RoleNodes, w.answering(w.newNodeToken), nil},
		{"PUT", "/v1/nodes/:name/read-tokens", RoleNodes, w.answering(w.reports.putTokens), nil},
		{"POST", "/v1/nodes/:name/retire", RoleNodes, w.answering(w.retireNode), nil},

		{"PUT", "/v1/plans/:name", RoleAll, w.answering(w.setPlan), nil},
		{"PATCH", "/v1/plans/:name", RoleAll, w.answering(w.changePlan), nil},
		{"GET", "/v1/tokens", RoleAll, w.answering(w.listTokens), nil},
		{"POST", "/v1/tokens", RoleAll, w.answering(w.addToken), nil},
		{"DELETE", "/v1/tokens/:name", RoleAll, w.answering(w.endToken), nil},
	}...)
}

// routes maps paths to handlers.
func (w *Writer) routes() http.Handler {
	r := httprouter.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, errNoRoute) })
	r.MethodNotAllowed = WithoutOptions(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, ErrMethod) }))
	for _, route := range w.table() {
		r.Handle(route.method, route.path, w.metrics.timed(route, named(route.path, w.traced(route, w.guarded(route)))))
	}
	return identified(r)
}

// WithoutOptions removes OPTIONS from Allow, where the router puts it unasked: OPTIONS is refused as well.
func WithoutOptions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		allowed := strings.Split(rw.Header().Get("Allow"), ", ")
		allowed = slices.DeleteFunc(allowed, func(method string) bool { return method == http.MethodOptions })
		rw.Header().Set("Allow", strings.Join(allowed, ", "))
		next.ServeHTTP(rw, r)
	})
}

// RequestIDHeader names the id of a request, on every answer and in the writer's log.
const RequestIDHeader = "X-Request-Id"

// identified gives each request an id.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set(RequestIDHeader, rand.Text())
		next.ServeHTTP(rw, r)
	})
}

// named puts a route's path into its requests. The log has it in place of the path that was sent.
func named(path string, serve httprouter.Handle) httprouter.Handle {
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		r.Pattern = path
		serve(rw, r, p)
	}
}

// guarded lets only requests through whose token has the role that the route needs. What is changed is
// audited, and made once for each Idempotency-Key. The routes of edges check the edge's token themselves.
func (w *Writer) guarded(route route) httprouter.Handle {
	switch route.needs {
	case anyone:
		return route.serve
	case edges:
		return w.ofEdge(route.serve)
	}
	identify := w.asOperator
	if route.needs == owners {
		identify = w.asOwner
	}
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		r, actor, err := identify(r, route.needs)
		if err == nil {
			err = checkQuery(r, route.params)
		}
		var body []byte
		if err == nil {
			body, err = readChange(r)
		}
		if err == nil {
			r = w.withRequestAct(r, p, actor, body)
			r, err = withIdempotency(r, actorOf(r), body)
		}
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		route.serve(rw, r, p)
	}
}

// asOperator finds the operators' token of a request and who that is, for the audit log.
func (w *Writer) asOperator(r *http.Request, needs Role) (*http.Request, string, error) {
	token, err := w.operatorOf(r)
	if err == nil {
		err = token.check(needs)
	}
	return withOperator(r, token), token.actor(), err
}

func serveAlive(rw http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	io.WriteString(rw, "ok\n")
}

func (w *Writer) serveMetrics(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	w.metrics.handler().ServeHTTP(rw, r)
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
		if i := idempotencyOf(r.Context()); i != nil && i.replayed {
			rw.Header().Set(ReplayedHeader, "true")
		}
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
	id := rw.Header().Get(RequestIDHeader)
	if errors.Is(row.err, ErrInternal) || errors.Is(row.err, ErrUnavailable) {
		switch {
		case r.Context().Err() != nil:
		case r.URL.Path == SyncPath && errors.Is(row.err, ErrUnavailable): // every edge asks about twice a second
			w.refusals.note(func(count int) {
				w.config.Logger.Error("messages of edges are refused: they serve on their leases", "refused", count, "error", err)
			})
		default:
			w.config.Logger.Error("request failed", "method", r.Method, "route", r.Pattern, "request", id, "error", err)
		}
		detail = row.err.Error()
	}
	var throttled *throttledError
	if errors.As(err, &throttled) {
		rw.Header().Set("Retry-After", throttled.seconds())
	}
	rw.Header().Set("Content-Type", "application/problem+json")
	rw.WriteHeader(row.status)
	json.NewEncoder(rw).Encode(problem{
		Type: "about:blank", Title: http.StatusText(row.status), Status: row.status, Detail: detail, Code: row.code, RequestID: id,
	})
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
