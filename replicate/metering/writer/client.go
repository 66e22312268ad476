package writer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"regedge/replicate/dial"
	"regedge/replicate/registry/libsql"
)

// maxAnswer bounds a response, in bytes: it has room for a month's usage of a busy account.
const maxAnswer = 64 << 20

// maxNodeAnswer bounds a response to a node: it has room for the tokens of its replicas.
const maxNodeAnswer = 256 << 10

// Client calls a writer's API as an operator. Its methods return the errors of this package
// (ErrNotFound, ErrTooManyKeys, …), wrapped with the action and with the writer's detail. A change is
// made under an Idempotency-Key of its own, and its error is ErrUncertain when it may have been made.
type Client struct {
	url, token string
	http       *http.Client
	most       int64 // of an answer, in bytes
	// For Retrying.
	retryFor time.Duration
	notice   func(err error, pause time.Duration)
	// For Watched.
	waiting func() (done func())
	// For Timed.
	clock func(time.Time)
}

// operatorDialLimit has room for a first name server that does not answer, which costs 5 s.
const operatorDialLimit = 8 * time.Second

var operatorDial = DialWithin(operatorDialLimit)

// DialWithin returns a transport like http.DefaultTransport with a connect timeout. If that is below a request's
// deadline, its error says what did not answer: the name server or the machine. Of a name's addresses it takes the one
// that answers first. A connection that is lost silently is given up after some seconds.
func DialWithin(limit time.Duration) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = dial.Any(&net.Dialer{Timeout: limit, KeepAlive: 30 * time.Second})
	transport.HTTP2 = libsql.PingLost()
	return transport
}

// CallTimeout is how long a call of a client without an HTTP client of its own may take.
const CallTimeout = 10 * time.Second

// NewClient makes a client of the writer at url. With a nil HTTP client, requests have the timeout
// CallTimeout. An HTTP client whose transport is InProcess calls a writer in the same process.
func NewClient(url, token string, client *http.Client) *Client {
	if client == nil {
		client = &http.Client{Timeout: CallTimeout, Transport: operatorDial}
	}
	direct := *client // a redirect would send the token elsewhere, and turn a change into a GET
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{url: strings.TrimRight(url, "/"), token: token, http: &direct, most: maxAnswer}
}

// Watched returns a client that calls waiting when it sends a request, and done once it has the answer or an error.
func (c *Client) Watched(waiting func() (done func())) *Client {
	watched := *c
	watched.waiting = waiting
	return &watched
}

// Timed returns a client that calls clock with the writer's time, in seconds, of each answer that has it (RFC 9110,
// section 6.6.1).
func (c *Client) Timed(clock func(time.Time)) *Client {
	timed := *c
	timed.clock = clock
	return &timed
}

// ForNode returns a client for the calls of a node, with a lower limit on answers: the writer must not
// cost an edge the memory that its lookups need.
func (c *Client) ForNode() *Client {
	node := *c
	node.most = maxNodeAnswer
	return &node
}

// AddAccount makes an account on a plan, without credits.
func (c *Client) AddAccount(ctx context.Context, name, email, plan string) (Account, error) {
	body := map[string]string{"name": name, "email": email, "plan": plan}
	return changeOnce[Account](ctx, c, "add account", http.MethodPost, "/v1/accounts", body)
}

// Accounts lists all accounts, by id.
func (c *Client) Accounts(ctx context.Context) ([]Account, error) {
	return everything(ctx, c.AccountPage)
}

// AccountPage lists accounts by id. The search matches names, e-mail addresses, sign-in addresses too, and
// an account's number.
func (c *Client) AccountPage(ctx context.Context, q ListQuery) (Page[Account], error) {
	return call[Page[Account]](ctx, c, "list accounts", http.MethodGet, q.encode("/v1/accounts", nil), nil)
}

// Account reads one account.
func (c *Client) Account(ctx context.Context, id int64) (Account, error) {
	return call[Account](ctx, c, "read account", http.MethodGet, "/v1/accounts/"+decimal(id), nil)
}

// ChangeAccount changes name, e-mail, plan or suspension.
func (c *Client) ChangeAccount(ctx context.Context, id int64, change AccountChange) (Account, error) {
	return changeOnce[Account](ctx, c, "change account", http.MethodPatch, "/v1/accounts/"+decimal(id), change)
}

// AddKey makes a key. Its secret is only in this answer.
func (c *Client) AddKey(ctx context.Context, account int64, name string) (NewKey, error) {
	body := map[string]string{"name": name}
	return changeOnce[NewKey](ctx, c, "add key", http.MethodPost, "/v1/accounts/"+decimal(account)+"/keys", body)
}

// Keys lists the keys of an account, revoked ones too.
func (c *Client) Keys(ctx context.Context, account int64) ([]Key, error) {
	return everything(ctx, func(ctx context.Context, q ListQuery) (Page[Key], error) { return c.KeyPage(ctx, account, q) })
}

// KeyPage lists keys of an account by id, revoked ones too. The search looks into names and the characters
// that are shown.
func (c *Client) KeyPage(ctx context.Context, account int64, q ListQuery) (Page[Key], error) {
	return call[Page[Key]](ctx, c, "list keys", http.MethodGet, q.encode("/v1/accounts/"+decimal(account)+"/keys", nil), nil)
}

// Key returns a key by its id.
func (c *Client) Key(ctx context.Context, id int64) (Key, error) {
	return call[Key](ctx, c, "read key", http.MethodGet, "/v1/keys/"+decimal(id), nil)
}

// RevokeKey revokes a key for ever. It is idempotent.
func (c *Client) RevokeKey(ctx context.Context, id int64) (Key, error) {
	return changeOnce[Key](ctx, c, "revoke key", http.MethodDelete, "/v1/keys/"+decimal(id), nil)
}

// Plans lists the plans.
func (c *Client) Plans(ctx context.Context) ([]Plan, error) {
	return call[[]Plan](ctx, c, "list plans", http.MethodGet, "/v1/plans", nil)
}

// SetPlan adds or changes a plan.
func (c *Client) SetPlan(ctx context.Context, p Plan) (Plan, error) {
	return changeOnce[Plan](ctx, c, "set plan", http.MethodPut, "/v1/plans/"+url.PathEscape(p.ID), p)
}

// ChangePlan changes the given fields of a plan. It returns ErrUnknownPlan when there is none.
func (c *Client) ChangePlan(ctx context.Context, id string, change PlanChange) (Plan, error) {
	return changeOnce[Plan](ctx, c, "change plan", http.MethodPatch, "/v1/plans/"+url.PathEscape(id), change)
}

// ChangeCredits adds or takes credits and returns the account after it.
func (c *Client) ChangeCredits(ctx context.Context, account int64, change CreditChange) (Account, error) {
	return changeOnce[Account](ctx, c, "change credits", http.MethodPost, "/v1/accounts/"+decimal(account)+"/credits", change)
}

// Credits lists the credit journal of an account, oldest first.
func (c *Client) Credits(ctx context.Context, account int64) ([]CreditEntry, error) {
	return call[[]CreditEntry](ctx, c, "list credits", http.MethodGet, "/v1/accounts/"+decimal(account)+"/credits", nil)
}

// AddNode makes an edge and its token.
func (c *Client) AddNode(ctx context.Context, name string) (NewNode, error) {
	return changeOnce[NewNode](ctx, c, "add node", http.MethodPost, "/v1/nodes", map[string]string{"name": name})
}

// NewNodeToken replaces the token of an edge. The old one is refused from then on.
func (c *Client) NewNodeToken(ctx context.Context, name string) (NewNode, error) {
	return changeOnce[NewNode](ctx, c, "make node token", http.MethodPost, "/v1/nodes/"+url.PathEscape(name)+"/token", nil)
}

// Nodes lists the edges, retired ones too.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	return everything(ctx, c.NodePage)
}

// NodePage lists edges by name, retired ones too. The search looks into names.
func (c *Client) NodePage(ctx context.Context, q ListQuery) (Page[Node], error) {
	return call[Page[Node]](ctx, c, "list nodes", http.MethodGet, q.encode("/v1/nodes", nil), nil)
}

// RetireNode fences an edge for ever, and compensates its outstanding credits. With oldEpochs
// the edge stays in service, and only its earlier epochs are written off.
func (c *Client) RetireNode(ctx context.Context, name string, oldEpochs bool) (Node, error) {
	path := "/v1/nodes/" + url.PathEscape(name) + "/retire"
	return changeOnce[Node](ctx, c, "retire node", http.MethodPost, path, map[string]bool{"old_epochs": oldEpochs})
}

// Usage lists usage rows by hour, account, key, endpoint and outcome.
func (c *Client) Usage(ctx context.Context, q UsageQuery) ([]UsageRow, error) {
	return call[[]UsageRow](ctx, c, "list usage", http.MethodGet, "/v1/usage"+q.encode(), nil)
}

// UnresolvedPage is a page of the charges whose verdict may not have arrived, newest first. The search looks into request ids
// and names of edges.
func (c *Client) UnresolvedPage(ctx context.Context, q ListQuery) (Page[Unresolved], error) {
	return call[Page[Unresolved]](ctx, c, "list unresolved charges", http.MethodGet, q.encode("/v1/unresolved", nil), nil)
}

// CreditUnresolved gives the account of an unresolved charge its credit back. It is idempotent.
func (c *Client) CreditUnresolved(ctx context.Context, id string) (Unresolved, error) {
	path := "/v1/unresolved/" + url.PathEscape(id) + "/credit"
	return changeOnce[Unresolved](ctx, c, "credit unresolved charge", http.MethodPost, path, nil)
}

// Health returns the state of the writer.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return call[Health](ctx, c, "ask health", http.MethodGet, "/v1/health", nil)
}

func (q UsageQuery) encode() string {
	v := url.Values{}
	if q.Account != 0 {
		v.Set("account", decimal(q.Account))
	}
	if !q.From.IsZero() {
		v.Set("from", q.From.UTC().Format(time.RFC3339))
	}
	if !q.To.IsZero() {
		v.Set("to", q.To.UTC().Format(time.RFC3339))
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// InProcess is a transport that calls a handler in the same process, for clients that otherwise
// use a network.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := &captured{status: http.StatusOK, header: http.Header{}}
	done := make(chan error, 1)
	go func() { done <- t.serve(answer, r) }()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, ContentLength: int64(answer.body.Len()),
		Body: io.NopCloser(&answer.body), Request: r,
	}, nil
}

// serve calls the handler. A panic of it is an error of this request, as over a network: it must not end the process.
func (t inProcess) serve(answer *captured, r *http.Request) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	t.handler.ServeHTTP(answer, r)
	return nil
}

// captured is a ResponseWriter that stores the response.
type captured struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) WriteHeader(status int)      { c.status = status }
func (c *captured) Write(p []byte) (int, error) { return c.body.Write(p) }
