package handler

import (
	"strconv"

	"regedge/handler/charge"
)

// Names of the response headers (docs/contract.md, "Headers").
const (
	HeaderRequestID       = "X-Request-Id"
	HeaderRegistryRelease = "X-Registry-Release"
)

const (
	allowedMethods = "GET, OPTIONS"
	exposedHeaders = "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"X-Credits-Remaining, X-Registry-Release, Retry-After, Idempotent-Replayed, Search-Suggestion"
	requestHeaders = "Authorization, Idempotency-Key, Traceparent"
	// preflightSeconds is how long a browser may cache a preflight: a day, the maximum that
	// browsers accept.
	preflightSeconds = "86400"
	// maxHeaders is the maximum in an answer, so that the slice is allocated once.
	maxHeaders = 16
)

// MaxBody bounds a response body, in bytes. The longest answers, 50 directors with long names,
// are far below it; a larger one means that the registry is damaged.
const MaxBody = 256 << 10

// succeed wraps data into the envelope (docs/contract.md, "Envelope").
func (c *call) succeed(data []byte, v *charge.Verdict) *Response {
	body := make([]byte, 0, len(data)+128)
	body = append(body, `{"data":`...)
	body = append(body, data...)
	body = append(body, `,"meta":{"request_id":"`...)
	body = append(body, c.id...)
	body = append(body, `","credits_remaining":`...)
	if c.caller.sandbox || v.CreditsRemaining == charge.Unsent {
		body = append(body, "null"...)
	} else {
		body = strconv.AppendInt(body, v.CreditsRemaining, 10)
	}
	body = append(body, `,"sandbox":`...)
	body = strconv.AppendBool(body, c.caller.sandbox)
	body = append(body, "}}"...)

	headers := c.commonHeaders("application/json")
	headers = appendRate(headers, v)
	if c.suggestions != "" {
		headers = append(headers, Header{HeaderSearchSuggestion, c.suggestions})
	}
	if !c.caller.sandbox && v.CreditsRemaining != charge.Unsent {
		headers = append(headers, Header{charge.HeaderCreditsRemaining, strconv.FormatInt(v.CreditsRemaining, 10)})
	}
	return &Response{Status: 200, Headers: appendReplayed(headers, v), Body: body}
}

// refuse answers with a problem. v has the RateLimit headers; it is nil if the meter was not
// asked, as for 401 and 403 (docs/contract.md, "Which answer wins").
func (c *call) refuse(p problem, v *charge.Verdict) *Response {
	described, known := FindProblem(p.code)
	if !known {
		described, _ = FindProblem(InternalError)
	}
	if p.detail != "" {
		described.Detail = p.detail
	}
	return c.problem(described, p.retryAfter, v)
}

// problem answers with a problem, see refuse.
func (c *call) problem(p Problem, retryAfter int64, v *charge.Verdict) *Response {
	headers := c.commonHeaders("application/problem+json")
	if v != nil {
		headers = appendReplayed(appendRate(headers, v), v)
	}
	if retryAfter > 0 {
		headers = append(headers, Header{charge.HeaderRetryAfter, strconv.FormatInt(retryAfter, 10)})
	}
	switch p.Status {
	case 401:
		headers = append(headers, Header{"WWW-Authenticate", `Bearer realm="regedge"`})
	case 405:
		headers = append(headers, Header{"Allow", allowedMethods})
	}
	return &Response{Status: p.Status, Headers: headers, Body: problemBody(c.DocsURL(), p, c.id), Cause: c.cause}
}

// NewProblem returns the answer with a problem for a host whose handler could not answer.
// retryAfter is in seconds and sent only if positive.
func NewProblem(docsURL string, p Problem, requestID string, retryAfter int64) *Response {
	c := call{Handler: &Handler{DocsURL: func() string { return docsURL }}, id: requestID}
	return c.problem(p, retryAfter, nil)
}

// problemBody returns a problem document (RFC 9457).
func problemBody(docsURL string, p Problem, requestID string) []byte {
	w := writer{buf: make([]byte, 0, 512)}
	w.raw(`{"type":`)
	w.text(docsURL + "/problems/" + p.Code)
	w.raw(`,"title":`)
	w.text(p.Title)
	w.raw(`,"status":`)
	w.integer(int64(p.Status))
	w.raw(`,"detail":`)
	w.text(p.Detail)
	w.raw(`,"code":`)
	w.text(p.Code)
	w.raw(`,"request_id":`)
	w.text(requestID)
	w.raw("}")
	return w.buf
}

// preflight answers a CORS preflight (Fetch standard).
func (c *call) preflight() *Response {
	return &Response{Status: 204, Headers: []Header{
		{HeaderRequestID, c.id},
		{"Cache-Control", "private, no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"Access-Control-Allow-Origin", "*"},
		{"Access-Control-Allow-Methods", allowedMethods},
		{"Access-Control-Allow-Headers", requestHeaders},
		{"Access-Control-Max-Age", preflightSeconds},
		{"Allow", allowedMethods},
	}}
}

func (c *call) commonHeaders(contentType string) []Header {
	headers := append(make([]Header, 0, maxHeaders),
		Header{"Content-Type", contentType},
		Header{HeaderRequestID, c.id},
		Header{"Cache-Control", "private, no-store"},
		Header{"X-Content-Type-Options", "nosniff"},
		Header{"Access-Control-Allow-Origin", "*"},
		Header{"Access-Control-Expose-Headers", exposedHeaders},
	)
	if c.release != "" {
		headers = append(headers, Header{HeaderRegistryRelease, c.release})
	}
	return headers
}

func appendReplayed(headers []Header, v *charge.Verdict) []Header {
	if v.Replayed {
		headers = append(headers, Header{charge.HeaderReplayed, "true"})
	}
	return headers
}

func appendRate(headers []Header, v *charge.Verdict) []Header {
	for _, h := range [...]struct {
		name  string
		value int64
	}{
		{charge.HeaderRateLimit, v.RateLimit},
		{charge.HeaderRateRemaining, v.RateRemaining},
		{charge.HeaderRateReset, v.RateReset},
	} {
		if h.value != charge.Unsent {
			headers = append(headers, Header{h.name, strconv.FormatInt(h.value, 10)})
		}
	}
	return headers
}
