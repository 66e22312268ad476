package charge

// Endpoint is one of the five endpoints (docs/contract.md, "Endpoints").
type Endpoint uint8

// The endpoints. Their numbers are stored in journals and never change.
const (
	Companies Endpoint = iota + 1
	Directors
	LLPs
	SearchCompanies
	SearchLLPs
)

// Outcome is the result of a request before the meter is asked. Its numbers are stored in
// journals and never change.
type Outcome uint8

const (
	// Found costs one credit and one unit of monthly volume.
	Found Outcome = iota + 1
	// NotFound (a 404, or a search without a match) is free and counts towards the
	// not-found cap of its key.
	NotFound
	// Failed (a 400 or a 5xx) is free. Like every authenticated request it counts towards
	// the per-minute rate, but no volume, cap or balance refuses it.
	Failed
)

// Request describes one authenticated request to the meter.
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
	// KeyPerMinute is the key's own rate, 0 for none.
	KeyPerMinute int64
	// LimitedUntil is when the month ends whose credits the key has spent, in Unix
	// milliseconds; 0 if it may go on.
	LimitedUntil int64
	Endpoint     Endpoint
	Outcome      Outcome
	// IdempotencyHash and TargetHash are hashes (HashLength) of the client's Idempotency-Key and of the
	// request's target; both are empty for a request without that header, and for the sandbox
	// key. A repeated pair of one API key is not charged again: the verdict is then Replayed.
	IdempotencyHash, TargetHash string
}

// Unsent marks a number of a Verdict that is not sent to the client.
const Unsent = -1

// Verdict is the meter's answer to a Request.
type Verdict struct {
	// Code is empty if the request may be answered, else the problem code of the refusal:
	// one of the constants below.
	Code string
	// RateLimit, RateRemaining (requests) and RateReset (seconds to the next UTC
	// minute) are the RateLimit headers. While an edge cannot sync with the writer, it
	// knows only RateLimit; the other two are Unsent.
	RateLimit, RateRemaining, RateReset int64
	// CreditsRemaining is the account's balance after this charge; Unsent for the
	// sandbox key and on refusals.
	CreditsRemaining int64
	// RetryAfter is in seconds, at least 1; Unsent unless Code is set and a retry can help.
	RetryAfter int64
	// Replayed says that the request was not charged, because one with the same IdempotencyHash and
	// TargetHash was.
	Replayed bool
}

// The problem codes of a meter's refusals, with their HTTP statuses.
const (
	RateLimitExceeded     = "rate_limit_exceeded"     // 429
	KeyCreditsExceeded    = "key_credits_exceeded"    // 429
	MonthlyVolumeExceeded = "monthly_volume_exceeded" // 429
	NotFoundCapExceeded   = "not_found_cap_exceeded"  // 429
	InsufficientCredits   = "insufficient_credits"    // 402
	IdempotencyKeyReused  = "idempotency_key_reused"  // 422
	MeteringUnavailable   = "metering_unavailable"    // 503
)

// Status returns the HTTP status of a verdict's code: 200 for the empty code, 0 for a code that
// is not a meter's.
func Status(code string) int {
	switch code {
	case "":
		return 200
	case InsufficientCredits:
		return 402
	case IdempotencyKeyReused:
		return 422
	case RateLimitExceeded, KeyCreditsExceeded, MonthlyVolumeExceeded, NotFoundCapExceeded:
		return 429
	case MeteringUnavailable:
		return 503
	}
	return 0
}
