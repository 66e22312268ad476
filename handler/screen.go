package handler

import "regedge/handler/charge"

// Rates is the part of a meter that counts requests per minute.
type Rates interface {
	// Exceeded tells whether the meter would refuse a request for its rate, and with which verdict.
	// It counts nothing.
	Exceeded(charge.Request) (verdict charge.Verdict, exceeded bool)
}

// Screen answers a request that needs nothing from the registry: one that is refused for its route,
// method, key or rate, or a preflight. It returns nil for every other request, and charges nothing.
// The answer is the one that Serve would give, so a host that expects a refusal can skip the rest,
// such as the component.
func (h *Handler) Screen(req *Request, rates Rates) *Response {
	c, refusal := h.begin(req)
	if refusal != nil {
		return refusal
	}
	// A rate is used up whatever the outcome is.
	if verdict, exceeded := rates.Exceeded(c.chargeRequest(req, charge.Failed)); exceeded {
		return c.refuseRate(&verdict)
	}
	return nil
}

// refuseRate does not name the release, even if it was read: Screen has not read it.
func (c *call) refuseRate(v *charge.Verdict) *Response {
	c.release = ""
	return c.refuse(problem{code: v.Code, retryAfter: v.RetryAfter}, v)
}
