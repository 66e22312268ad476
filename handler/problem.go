package handler

import "regedge/handler/charge"

// The problem codes of the handler and its host; those of the meter are in package charge.
const (
	InvalidCIN           = "invalid_cin"
	InvalidDIN           = "invalid_din"
	InvalidLLPIN         = "invalid_llpin"
	InvalidQuery         = "invalid_query"
	InvalidRequest       = "invalid_request"
	InvalidIdempotency   = "invalid_idempotency_key"
	MissingAPIKey        = "missing_api_key"
	InvalidAPIKey        = "invalid_api_key"
	AddressNotAllowed    = "address_not_allowed"
	PlanWithoutAPIAccess = "plan_without_api_access"
	AccountSuspended     = "account_suspended"
	CompanyNotFound      = "company_not_found"
	DirectorNotFound     = "director_not_found"
	LLPNotFound          = "llp_not_found"
	RouteNotFound        = "route_not_found"
	MethodNotAllowed     = "method_not_allowed"
	RequestTimeout       = "request_timeout"
	URITooLong           = "uri_too_long"
	HeaderTooLarge       = "header_too_large"
	InternalError        = "internal_error"
	RegistryUnavailable  = "registry_unavailable"
	Overloaded           = "overloaded"
)

// Problem describes an error code: its HTTP status, its title, and the detail that is sent
// unless the refusal has a more specific one. Detail ends with what the client can do.
type Problem struct {
	Code   string
	Status int
	Title  string
	Detail string
}

// problems is the table of error codes (docs/contract.md, "Errors").
var problems = [...]Problem{
	{InvalidCIN, 400, "Invalid CIN",
		"A CIN has 21 characters: a letter, 5 digits, 2 letters, 4 digits, 3 letters, 6 digits, as in U72900ZZ2015PTC000001."},
	{InvalidDIN, 400, "Invalid DIN",
		"A DIN has 1 to 8 digits, as in 99999901."},
	{InvalidLLPIN, 400, "Invalid LLPIN",
		"An LLPIN is three letters, an optional hyphen and four digits, as in ZZZ-0001, given once."},
	{InvalidQuery, 400, "Invalid query",
		"The parameter name is missing. Give it once, with 1 to 200 characters."},
	{InvalidIdempotency, 400, "Invalid Idempotency-Key",
		"An Idempotency-Key has 1 to 64 printable ASCII characters without spaces, and is sent once. A random UUID is best."},
	{InvalidRequest, 400, "Invalid request",
		"This is not a well-formed HTTP request. Check what the client sends on the request line and in the header."},
	{MissingAPIKey, 401, "API key missing",
		"Send the header Authorization: Bearer <API_KEY>. The sandbox key reg_sandbox_public works without an account."},
	{InvalidAPIKey, 401, "API key invalid",
		"This is not a valid API key. Send it in one header, as Authorization: Bearer KEY, without quotes, and check that it was copied whole, and was not revoked and has not expired."},
	{charge.InsufficientCredits, 402, "No credits left",
		"The account has no credits left. Add credits and try again."},
	{AddressNotAllowed, 403, "Address not allowed",
		"The key may not be used from this address. Its owner says from which networks it may."},
	{PlanWithoutAPIAccess, 403, "Plan without API access",
		"The account's plan does not include API access. Change the plan and try again."},
	{AccountSuspended, 403, "Account suspended",
		"The account is suspended. Ask support to lift it."},
	{CompanyNotFound, 404, "Company not found",
		"No company with this CIN is in the register. This call was free."},
	{DirectorNotFound, 404, "Director not found",
		"No director with this DIN is in the register. This call was free."},
	{LLPNotFound, 404, "LLP not found",
		"No LLP with this LLPIN is in the register. This call was free."},
	{RouteNotFound, 404, "Route not found",
		"There is nothing at this path. See the reference for the five endpoints under /v1."},
	{MethodNotAllowed, 405, "Method not allowed",
		"Every endpoint is read with GET."},
	{RequestTimeout, 408, "Request timeout",
		"The request did not arrive in time. Send it again."},
	{URITooLong, 414, "URI too long",
		"The path and query are longer than 8,192 bytes. Shorten the name."},
	{charge.IdempotencyKeyReused, 422, "Idempotency-Key reused",
		"A lookup of another path or query was made under this Idempotency-Key in the last 10 minutes. Use a new key for each lookup, and the same one to repeat it."},
	{charge.RateLimitExceeded, 429, "Rate limit exceeded",
		"The requests of this minute are used up. Wait for the number of seconds in Retry-After."},
	{charge.KeyCreditsExceeded, 429, "Key's credits exceeded",
		"The key has spent the credits that its owner allows it in a month. It works again with the next month, UTC, or when the owner raises the limit."},
	{charge.MonthlyVolumeExceeded, 429, "Monthly volume exceeded",
		"The plan's calls of this month are used up. They start anew with the next month, UTC; a larger plan lifts the limit at once."},
	{charge.NotFoundCapExceeded, 429, "Not-found cap exceeded",
		"Today 100 lookups found nothing: the most for a key, or with the sandbox key for an address. Lookups work again from the next day, UTC."},
	{HeaderTooLarge, 431, "Header too large",
		"The request line and the header fields are longer than 16 KiB. Send fewer or shorter fields."},
	{InternalError, 500, "Internal error",
		"The request could not be completed and was not charged. Try again; if it stays, report the request id."},
	{charge.MeteringUnavailable, 503, "Metering unavailable",
		"The account's balance cannot be reached at the moment. The request was not charged. Try again after Retry-After seconds."},
	{RegistryUnavailable, 503, "Registry unavailable",
		"The register cannot be read at the moment. The request was not charged. Try again after Retry-After seconds."},
	{Overloaded, 503, "Overloaded",
		"Too many requests are being answered. The request was not charged. Try again after Retry-After seconds."},
}

// Problems lists every error code, by status.
func Problems() []Problem { return problems[:] }

// FindProblem returns the description of a code.
func FindProblem(code string) (Problem, bool) {
	for i := range problems {
		if problems[i].Code == code {
			return problems[i], true
		}
	}
	return Problem{}, false
}

// problem is a refusal. detail replaces the table's if it is set; retryAfter is in seconds and
// sent only if positive.
type problem struct {
	code       string
	detail     string
	retryAfter int64
}
