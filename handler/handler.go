package handler

import (
	"regedge/handler/charge"
	"regedge/handler/fastbytes"
)

// Request is one HTTP request. The host's server, its engines and the handler share it.
type Request struct {
	// Method is the request method as sent, such as "GET".
	Method string
	// Target is the path and query as sent on the request line, undecoded.
	Target string
	// Authority is the host, and the port if there is one, that the client asked for. The
	// handler does not read it.
	Authority string
	// Headers are the fields as received, without Host. The handler reads only Authorization and
	// Idempotency-Key. Of a field that may occur only once, such as User-Agent, the host may keep
	// just the last.
	Headers []Header
	// ClientAddr returns the client's address without a port, as the host vouches for it, or "" if
	// it is unknown. It is called only for the sandbox key, whose requests are counted by it, and
	// for keys that are limited to networks.
	ClientAddr func() string
}

// Values returns the values of all header fields of a name, in any case, in their order.
func (r *Request) Values(name string) (values []string) {
	for i := range r.Headers {
		if fastbytes.EqualFold(r.Headers[i].Name, name) {
			values = append(values, r.Headers[i].Value)
		}
	}
	return values
}

// Header is one header field of a request or a response.
type Header struct{ Name, Value string }

// Response is a complete answer. Body is never changed after it is returned.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte
	// Cause is the database error behind a 503, for the host's log; it is not sent. nil if there
	// was none.
	Cause error
}

// Kind tells which field of a Value is set.
type Kind uint8

// The storage classes of SQLite that the service's schemas use.
const (
	Null Kind = iota
	Integer
	Text
	Blob
)

// Value is one SQL parameter or one column of a row.
type Value struct {
	Kind Kind
	Int  int64  // set for Integer
	Text string // set for Text and, as raw bytes, for Blob
}

// Result is the result of one statement: rows of Columns values each, one after the other.
type Result struct {
	Columns int
	Values  []Value
}

// Rows is the number of rows.
func (r *Result) Rows() int {
	if r.Columns == 0 {
		return 0
	}
	return len(r.Values) / r.Columns
}

// Row returns the values of row i, 0 <= i < Rows().
func (r *Result) Row(i int) []Value {
	return r.Values[i*r.Columns : (i+1)*r.Columns]
}

// Store runs one read-only SQL statement with numbered parameters (?1, ?2, …). An error means
// that the database could not be read; its text is for the log.
type Store interface {
	Query(statement string, args []Value) (*Result, error)
}

// Meter decides whether an authenticated request may be answered, and charges it.
//
// Charge is idempotent by the request's ID: a second call returns the same verdict and
// charges nothing more. An error means that the verdict is unknown: the request may or may
// not have been charged. Void takes back the charge of a request id, if there is one; after
// a nil error that id is not charged and never will be.
type Meter interface {
	Charge(charge.Request) (charge.Verdict, error)
	Void(requestID string) error
}

// Clock tells the time as Unix milliseconds, UTC.
type Clock interface{ UnixMilli() int64 }

// Random fills p with cryptographically secure random bytes.
type Random interface{ Read(p []byte) }

// Handler answers requests. Its fields are set once; Serve may then be called by many
// goroutines if the implementations of the interfaces allow it.
type Handler struct {
	// Access and Registry are the two databases (docs/design.md, "Databases").
	Access, Registry Store
	Meter            Meter
	Clock            Clock
	Random           Random
	// DocsURL returns the URL under which /problems/{code} is served, without a slash at its
	// end. The type of every problem begins with it; it is called for no other answer.
	DocsURL func() string
}

// call is the state of one request.
type call struct {
	*Handler
	id     string // request id
	path   string
	query  string
	route  route
	caller caller
	// idempotency is the client's Idempotency-Key, "" for none.
	idempotency string
	// release is the registry's release that the lookup read from, or "".
	release string
	// suggestions is the value of Search-Suggestion, or "".
	suggestions string
	// cause becomes Response.Cause.
	cause error
}

// Serve answers one request. The order of its steps decides which answer wins if several
// apply (docs/contract.md, "Which answer wins").
func (h *Handler) Serve(req *Request) *Response {
	c, refusal := h.begin(req)
	if refusal != nil {
		return refusal
	}
	result := c.lookUp(req)
	verdict, settled := c.charge(req, result.outcome)
	switch {
	case !settled:
		return c.refuse(problem{code: charge.MeteringUnavailable, retryAfter: 1}, nil)
	case verdict.Code == charge.RateLimitExceeded:
		return c.refuseRate(&verdict)
	case verdict.Code != "":
		return c.refuse(problem{code: verdict.Code, retryAfter: verdict.RetryAfter}, &verdict)
	case result.problem.code != "":
		return c.refuse(result.problem, &verdict)
	}
	return c.succeed(result.data, &verdict)
}

// begin takes the steps that need neither registry nor meter. It returns an answer if they give one.
func (h *Handler) begin(req *Request) (*call, *Response) {
	c := &call{Handler: h, id: NewRequestID(h.Clock, h.Random)}
	c.path, c.query = splitTarget(req.Target)

	var found bool
	if c.route, found = matchRoute(c.path); !found {
		return c, c.refuse(c.noRoute(), nil)
	}
	switch req.Method {
	case "GET":
	case "OPTIONS":
		return c, c.preflight()
	default:
		return c, c.refuse(problem{code: MethodNotAllowed}, nil)
	}

	var refused problem
	if c.caller, refused = c.authenticate(req); refused.code != "" {
		return c, c.refuse(refused, nil)
	}
	return c, nil
}

// charge gets the meter's verdict. A call that fails is retried once under the same id; if the
// retry fails too, the charge is voided, and settled is false.
func (c *call) charge(req *Request, outcome charge.Outcome) (verdict charge.Verdict, settled bool) {
	r := c.chargeRequest(req, outcome)
	verdict, err := c.Meter.Charge(r)
	if err != nil {
		verdict, err = c.Meter.Charge(r)
	}
	if err == nil {
		return verdict, true
	}
	if outcome != charge.Failed {
		// If this fails as well, the charge may stand: the one exception of guarantee G2
		// (docs/design.md, "Guarantees").
		_ = c.Meter.Void(c.id)
	}
	return charge.Verdict{}, false
}

// chargeRequest describes the request to the meter.
func (c *call) chargeRequest(req *Request, outcome charge.Outcome) charge.Request {
	r := charge.Request{
		ID:        c.id,
		Account:   c.caller.account,
		Key:       c.caller.key,
		Sandbox:   c.caller.sandbox,
		PerMinute: c.caller.perMinute,
		Endpoint:  c.route.endpoint,
		Outcome:   outcome,

		KeyPerMinute: c.caller.keyPerMinute,
		LimitedUntil: c.caller.limitedUntil,
	}
	switch {
	case r.Sandbox:
		r.Client = req.ClientAddr()
	case c.idempotency != "":
		r.IdempotencyHash, r.TargetHash = shortHash(c.idempotency), shortHash(req.Target)
	}
	return r
}

// NewRequestID makes a request id in the layout of a ULID: 26 characters of Crockford's
// base32, of which the first 10 are the time in milliseconds, so that ids sort by time, and
// the others 80 random bits.
func NewRequestID(clock Clock, random Random) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var entropy [10]byte
	random.Read(entropy[:])

	var id [26]byte
	for i, ms := 9, uint64(clock.UnixMilli()); i >= 0; i-- {
		id[i] = alphabet[ms&31]
		ms >>= 5
	}
	out := 10
	var bits uint32
	var count uint // of bits
	for _, b := range entropy {
		bits, count = bits<<8|uint32(b), count+8
		for count >= 5 {
			count -= 5
			id[out] = alphabet[bits>>count&31]
			out++
		}
	}
	return string(id[:])
}
