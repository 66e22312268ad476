// Package charge is the meter's contract: what a request tells the meter, what the
// meter answers, and the HTTP form of both. The component speaks it through
// wasi:http, so that the same file works beside any meter; in the host it is served
// in the process. It is a leaf that both sides of the contract import.
//
//	POST /v1/charge?id=…&account=7&key=12&endpoint=companies&outcome=found&rate=60
//	POST /v1/charge?id=…&sandbox=1&client=192.0.2.1&endpoint=…&outcome=…&rate=30
//	POST /v1/void?id=…
//
// A charge is answered with the status that the client will see if the request is
// refused (402, 429, 503), else 200, and with the headers named below. A void is
// answered 204. Both carry "Authorization: Bearer <meter token>".
package charge

// Endpoint names one of the five endpoints of the specification, section 4.
type Endpoint uint8

// The endpoints, in the order of the specification. Their numbers are stored in
// journals and never change.
const (
	Companies Endpoint = iota + 1
	Directors
	LLPs
	SearchCompanies
	SearchLLPs
)

// Outcome is what a request came to before the meter is asked. Its numbers are stored
// in journals and never change.
type Outcome uint8

const (
	// Found costs one credit and one unit of monthly volume.
	Found Outcome = iota + 1
	// NotFound (a 404, or a search without a match) costs nothing and counts towards
	// the not-found cap of its key.
	NotFound
	// Failed (a 400 or a 5xx) costs nothing. It counts to the per-minute rate, as every
	// authenticated request does, and to nothing else: no volume, cap or balance
	// refuses it.
	Failed
)

// Request is what the meter is told of one authenticated request.
type Request struct {
	// ID is the request id, 1 to MaxID characters of [0-9A-Za-z-].
	ID string
	// Account and Key are ids of the access database, at least 1; both are 0 for the
	// sandbox key, which is counted by Client instead.
	Account, Key int64
	Sandbox      bool
	// Client is the client's address without a port. Set for the sandbox key.
	Client string
	// PerMinute is the plan's rate in requests per UTC minute.
	PerMinute int64
	Endpoint  Endpoint
	Outcome   Outcome
}

// Unsent marks a number of a Verdict that is not sent to the client.
const Unsent = -1

// Verdict is the meter's answer to a Request.
type Verdict struct {
	// Code is empty when the request may be answered, else the problem code that
	// refuses it: one of the constants below.
	Code string
	// RateLimit, RateRemaining (requests) and RateReset (seconds to the next UTC
	// minute) are the RateLimit headers. While an edge cannot learn the others'
	// counts, only RateLimit is known and the other two are Unsent.
	RateLimit, RateRemaining, RateReset int64
	// CreditsRemaining is the account's balance after this charge; Unsent for the
	// sandbox key and on refusals.
	CreditsRemaining int64
	// RetryAfter is in seconds, at least 1; Unsent unless Code is set and a retry can help.
	RetryAfter int64
}

// The problem codes with which a meter refuses.
const (
	RateLimitExceeded     = "rate_limit_exceeded"     // 429
	MonthlyVolumeExceeded = "monthly_volume_exceeded" // 429
	NotFoundCapExceeded   = "not_found_cap_exceeded"  // 429
	InsufficientCredits   = "insufficient_credits"    // 402
	MeteringUnavailable   = "metering_unavailable"    // 503
)

// Status is the HTTP status that goes with a verdict's code, 200 for none, and 0 for a
// code that no meter gives.
func Status(code string) int {
	switch code {
	case "":
		return 200
	case InsufficientCredits:
		return 402
	case RateLimitExceeded, MonthlyVolumeExceeded, NotFoundCapExceeded:
		return 429
	case MeteringUnavailable:
		return 503
	}
	return 0
}
