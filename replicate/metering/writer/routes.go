package writer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"
)

// maxBody bounds the body of an operator's request, in bytes.
const maxBody = 1 << 16

// routes joins paths and handlers.
func (w *Writer) routes() http.Handler {
	r := httprouter.New()
	r.NotFound = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, ErrNotFound) })
	r.POST(SyncPath, w.serveSync)
	r.GET("/healthz", func(rw http.ResponseWriter, _ *http.Request, _ httprouter.Params) { io.WriteString(rw, "ok\n") })
	r.GET("/readyz", w.serveReady)
	r.GET("/metrics", w.operator(w.serveMetrics))
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

// operator lets requests with the operators' token through. What they change is audited.
func (w *Writer) operator(next httprouter.Handle) httprouter.Handle {
	want := sha256.Sum256([]byte("Bearer " + w.config.OperatorToken))
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.fail(rw, r, ErrUnauthorized)
			return
		}
		r, err := asked(r, p)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		next(rw, r, p)
	}
}

// answering makes a handler of a function whose result is answered in JSON.
func (w *Writer) answering(f func(r *http.Request, p httprouter.Params) (any, error)) httprouter.Handle {
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		result, err := f(r, p)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Cache-Control", "no-store")
		json.NewEncoder(rw).Encode(result)
	}
}

// fail answers an error by the table. What is outside it goes to the log only, unless the
// request ended before its answer: its client has gone, or the server is shutting down.
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

// readBody reads an operator's JSON. Unknown fields are refused: a misspelt change must
// not look done.
func readBody(r *http.Request, into any) error {
	d := json.NewDecoder(io.LimitReader(r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// readID is the id of a path, which is that of an account or a key.
func readID(what string, p httprouter.Params) (int64, error) {
	id, err := strconv.ParseInt(p.ByName("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, notFound(what, strconv.Quote(p.ByName("id")))
	}
	return id, nil
}
