package handler

import (
	"regedge/handler/charge"
)

// Handler answers requests. Its fields are set once; Serve may then be called by many
// goroutines if the parts behind the interfaces allow it.
type Handler struct {
	// Access and Registry are the two databases (design section 2).
	Access, Registry Store
	Meter            Meter
	Clock            Clock
	Random           Random
	// DocsURL returns the address under which /problems/{code} is served, without a slash
	// at its end. It begins the type of every problem, and is called for no other answer.
	DocsURL func() string
}

// call is one request on its way through the handler.
type call struct {
	*Handler
	id     string // request id
	path   string
	query  string
	route  route
	caller caller
	// release is the registry's release that the lookup read from, or "".
	release string
}

// answer is what a lookup came to before the meter is asked: data of a 200, or a problem.
type answer struct {
	outcome charge.Outcome
	data    []byte // finished JSON
	problem problem
}

// Serve answers one request. The order of its steps decides which answer wins where
// several would do (design section 5).
func (h *Handler) Serve(req *Request) *Response {
	c := &call{Handler: h, id: NewRequestID(h.Clock, h.Random)}
	c.path, c.query = splitTarget(req.Target)

	var found bool
	if c.route, found = matchRoute(c.path); !found {
		return c.refuse(problem{code: RouteNotFound}, nil)
	}
	switch req.Method {
	case "GET":
	case "OPTIONS":
		return c.preflight()
	default:
		return c.refuse(problem{code: MethodNotAllowed}, nil)
	}

	var refused problem
	if c.caller, refused = c.authenticate(req); refused.code != "" {
		return c.refuse(refused, nil)
	}
	result := c.lookUp()
	verdict, settled := c.charge(req, result.outcome)
	switch {
	case !settled:
		return c.refuse(problem{code: charge.MeteringUnavailable, retryAfter: 1}, nil)
	case verdict.Code != "":
		return c.refuse(problem{code: verdict.Code, retryAfter: verdict.RetryAfter}, &verdict)
	case result.problem.code != "":
		return c.refuse(result.problem, &verdict)
	}
	return c.succeed(result.data, &verdict)
}

// charge asks the meter for its verdict. A lost verdict is asked for once more under the
// same id; if that is lost too, the charge is voided, and settled is false.
func (c *call) charge(req *Request, outcome charge.Outcome) (verdict charge.Verdict, settled bool) {
	r := charge.Request{
		ID:        c.id,
		Account:   c.caller.account,
		Key:       c.caller.key,
		Sandbox:   c.caller.sandbox,
		PerMinute: c.caller.perMinute,
		Endpoint:  c.route.endpoint,
		Outcome:   outcome,
	}
	if r.Sandbox {
		r.Client = req.ClientAddr()
	}
	verdict, err := c.Meter.Charge(r)
	if err != nil {
		verdict, err = c.Meter.Charge(r)
	}
	if err == nil {
		return verdict, true
	}
	if outcome != charge.Failed {
		// When this is lost as well, the charge may stand: the one exception of G2.
		_ = c.Meter.Void(c.id)
	}
	return charge.Verdict{}, false
}
