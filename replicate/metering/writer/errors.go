package writer

import (
	"errors"
	"fmt"
	"net/http"
	"regedge/replicate/metering/ledger"
)

// The errors of the operators' API. Each has a code and a status: the server answers with
// them, and the client turns the code into the error again.
var (
	ErrMalformed    = errors.New("the request is malformed")
	ErrUnauthorized = errors.New("the token is missing or unknown")
	ErrTokenEnded   = errors.New("the token has ended")
	ErrForbidden    = errors.New("the token may not do this")
	ErrNotFound     = errors.New("there is no such thing")
	ErrMethod       = errors.New("this path does not take that method")
	ErrTaken        = errors.New("the name is taken")
	ErrTooManyKeys  = errors.New("an account has at most 5 active keys: revoke one first")
	// ErrSuspended is returned for changes of a suspended account with an owner's token.
	ErrSuspended     = errors.New("the account is suspended: it can be read, not changed")
	ErrTooMany       = errors.New("too many requests")
	ErrTooManyTokens = errors.New("an account has at most 10 active tokens: end one first")
	ErrKeyEnded      = errors.New("the key was revoked or has expired, and stays so: make another one")
	ErrUnknownPlan   = errors.New("there is no such plan")
	ErrRetired       = errors.New("the node is retired, for ever")
	// ErrBeyondBalance is returned for credits to take that the account does not have.
	ErrBeyondBalance = errors.New("the account has fewer credits")
	ErrNodeFenced    = errors.New("the node is fenced: see the writer's log for why, then give it a new token")
	ErrKeyReused     = errors.New("the Idempotency-Key belongs to another change, which was made: send a new key with this one")
	ErrVersion       = errors.New("the edge speaks another version of the sync protocol: upgrade the older of the two")
	ErrFenced        = errors.New("another writer holds the ledger")
	ErrUnavailable   = errors.New("the writer can't reach its ledger")
	ErrInternal      = errors.New("internal error of the writer")
	// ErrStranger is returned for a response that no writer gives: another server listens there.
	ErrStranger = errors.New("what answers is not a writer")
)

// ErrTooLong is returned for an answer that is longer than the client reads. It is an ErrStranger.
var ErrTooLong = &detailed{ErrStranger, "the answer is longer than a client reads"}

// apiError is one row of the table of errors.
type apiError struct {
	err    error
	code   string
	status int
}

var apiErrors = []apiError{
	{ErrMalformed, "malformed", http.StatusBadRequest},
	{ErrUnknownPlan, "unknown_plan", http.StatusUnprocessableEntity},
	{ErrRetired, "retired", http.StatusConflict},
	{ErrBeyondBalance, "beyond_balance", http.StatusConflict},
	{ErrKeyReused, "idempotency_key_reused", http.StatusUnprocessableEntity},
	{ErrUnauthorized, "unauthorized", http.StatusUnauthorized},
	{ErrTokenEnded, "token_ended", http.StatusUnauthorized},
	{ErrForbidden, "forbidden", http.StatusForbidden},
	{ErrNodeFenced, "node_fenced", http.StatusForbidden},
	{ErrNotFound, "not_found", http.StatusNotFound},
	{ErrMethod, "method_not_allowed", http.StatusMethodNotAllowed},
	{ErrTaken, "taken", http.StatusConflict},
	{ErrTooManyKeys, "too_many_keys", http.StatusConflict},
	{ErrTooManyTokens, "too_many_tokens", http.StatusConflict},
	{ErrSuspended, "account_suspended", http.StatusForbidden},
	{ErrTooMany, "too_many_requests", http.StatusTooManyRequests},
	{ErrKeyEnded, "key_ended", http.StatusConflict},
	{ErrVersion, "sync_version", http.StatusUpgradeRequired},
	{ErrFenced, "fenced", http.StatusServiceUnavailable},
	{ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
	{ErrInternal, "internal", http.StatusInternalServerError},
}

// detailed is an error of the table with its own text.
type detailed struct {
	err  error
	text string
}

func (e *detailed) Error() string { return e.text }
func (e *detailed) Unwrap() error { return e.err }

// notFound is ErrNotFound with the name of what is missing.
func notFound(what string, id any) error {
	return &detailed{ErrNotFound, fmt.Sprintf("there is no %s %v", what, id)}
}

// tableRow finds the row of err. An error that is not in the table is internal.
func tableRow(err error) apiError {
	for _, e := range apiErrors {
		if errors.Is(err, e.err) {
			return e
		}
	}
	return apiErrors[len(apiErrors)-1]
}

// errorOf returns the error of a code, for the client.
func errorOf(code string) error {
	for _, e := range apiErrors {
		if e.code == code {
			return e.err
		}
	}
	return ErrStranger
}

// errNoRoute is the answer to a path that the API does not have.
var errNoRoute = &detailed{ErrNotFound, "there is nothing at this path"}

// problem is the problem document of an error (RFC 9457): the code for programs, the detail for people. The
// code says what the type would, so the type is the one of that standard without a page of its own.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// apiErrorOf translates the ledger's errors into those of the API.
func apiErrorOf(err error) error {
	for _, pair := range []struct{ from, to error }{
		{ledger.ErrNoAccount, ErrNotFound}, {ledger.ErrNoEdge, ErrNotFound}, {ledger.ErrNoPlan, ErrUnknownPlan},
		{ledger.ErrTaken, ErrTaken}, {ledger.ErrAmount, ErrMalformed},
		{ledger.ErrFenced, ErrFenced},
	} {
		if errors.Is(err, pair.from) {
			return &detailed{pair.to, err.Error()}
		}
	}
	return err
}
