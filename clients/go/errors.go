package regedge

import (
	"fmt"
	"time"
)

// Code is the stable code of a problem. It is an error, for errors.Is.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes of the contract. Later versions of the service may add some.
const (
	InvalidRequest          Code = "invalid_request"
	InvalidCIN              Code = "invalid_cin"
	InvalidDIN              Code = "invalid_din"
	InvalidLLPIN            Code = "invalid_llpin"
	InvalidQuery            Code = "invalid_query"
	InvalidIdempotencyKey   Code = "invalid_idempotency_key"
	MissingAPIKey           Code = "missing_api_key"
	InvalidAPIKey           Code = "invalid_api_key"
	InsufficientCredits     Code = "insufficient_credits"
	AddressNotAllowed       Code = "address_not_allowed"
	PlanWithoutAPIAccess    Code = "plan_without_api_access"
	AccountSuspended        Code = "account_suspended"
	CompanyNotFound         Code = "company_not_found"
	DirectorNotFound        Code = "director_not_found"
	LLPNotFound             Code = "llp_not_found"
	RouteNotFound           Code = "route_not_found"
	MethodNotAllowed        Code = "method_not_allowed"
	RequestTimeout          Code = "request_timeout"
	URITooLong              Code = "uri_too_long"
	IdempotencyKeyReused    Code = "idempotency_key_reused"
	RateLimitExceeded       Code = "rate_limit_exceeded"
	KeyCreditsExceeded      Code = "key_credits_exceeded"
	MonthlyVolumeExceeded   Code = "monthly_volume_exceeded"
	NotFoundCapExceeded     Code = "not_found_cap_exceeded"
	HeaderTooLarge          Code = "header_too_large"
	InternalError           Code = "internal_error"
	MeteringUnavailable     Code = "metering_unavailable"
	RegistryUnavailable     Code = "registry_unavailable"
	Overloaded              Code = "overloaded"
	codeOfNoProblemDocument Code = "" // an answer that is not the service's, such as a proxy's
)

// Error is an answer that is not a success (RFC 9457). It wraps its code:
// errors.Is(err, CompanyNotFound).
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is empty when the answer is not one of the service, such as a proxy's page.
	Code Code
	// Type is the address of a page that explains the code.
	Type string
	// Title and Detail are for people and may change.
	Title, Detail string
	// RequestID identifies the call to support. Empty when the answer has none.
	RequestID string
	// RetryAfter is how long the service asks to wait, or 0.
	RetryAfter time.Duration
	// RateLimit is the account's rate after this call.
	RateLimit RateLimit
	// IdempotencyKey is the key of the call, for [WithIdempotencyKey]. An attempt before this answer may have been charged though
	// its own was lost: the same call under this key is not charged again within 10 minutes at the same edge.
	IdempotencyKey string
	// Attempts is how often the call was made.
	Attempts int
}

// Error says status, code, detail and request id.
func (e *Error) Error() string {
	what := string(e.Code)
	if e.Code == codeOfNoProblemDocument {
		what = "an answer that is not of this service"
	}
	message := fmt.Sprintf("%d %s", e.Status, what)
	if e.Detail != "" {
		message += ": " + e.Detail
	}
	if e.RequestID != "" {
		message += " (request " + e.RequestID + ")"
	}
	return message
}

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }

// UnansweredError is a call of which no whole answer arrived. The service may have answered and
// charged it. The same call WithIdempotencyKey(IdempotencyKey) is not charged again within 10
// minutes at the same edge.
type UnansweredError struct {
	// Err is the failure of the last attempt.
	Err            error
	IdempotencyKey string
	Attempts       int
}

// Error says what failed, and after how many attempts.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("no answer after %d attempts: %v", e.Attempts, e.Err)
}

// Unwrap returns the failure of the last attempt.
func (e *UnansweredError) Unwrap() error { return e.Err }
