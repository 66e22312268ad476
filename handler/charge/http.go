package charge

import (
	"errors"
	"strconv"
	"strings"
)

// The paths of the contract, and the headers of its answers. An Unsent number has no header.
const (
	ChargePath = "/v1/charge"
	VoidPath   = "/v1/void"

	HeaderRateLimit        = "RateLimit-Limit"
	HeaderRateRemaining    = "RateLimit-Remaining"
	HeaderRateReset        = "RateLimit-Reset"
	HeaderCreditsRemaining = "X-Credits-Remaining"
	HeaderRetryAfter       = "Retry-After"
	HeaderReplayed         = "Idempotent-Replayed" // "true" or absent
	HeaderCode             = "X-Problem-Code"
)

// MaxID and MaxClient bound the text fields of a Request, in bytes.
const (
	MaxID     = 64
	MaxClient = 45 // the longest textual IPv6 address
)

// HashLength is the length of Request.IdempotencyHash and Request.TargetHash: 16 bytes in hexadecimal.
const HashLength = 32

// ErrMalformed is returned for a query or an answer that breaks the contract.
var ErrMalformed = errors.New("malformed meter message")

var endpointNames = [...]string{
	Companies: "companies", Directors: "directors", LLPs: "llps",
	SearchCompanies: "search_companies", SearchLLPs: "search_llps",
}

var outcomeNames = [...]string{Found: "found", NotFound: "not_found", Failed: "failed"}

func (e Endpoint) String() string { return nameOf(endpointNames[:], int(e)) }

func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

func nameOf(names []string, i int) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return "unknown"
}

// ParseEndpoint is the inverse of Endpoint.String; 0 for an unknown name.
func ParseEndpoint(name string) Endpoint { return Endpoint(indexOf(endpointNames[:], name)) }

// ParseOutcome is the inverse of Outcome.String; 0 for an unknown name.
func ParseOutcome(name string) Outcome { return Outcome(indexOf(outcomeNames[:], name)) }

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name && n != "" {
			return i
		}
	}
	return 0
}

// Target returns the path and query of the charge call for r.
func (r *Request) Target() string {
	b := make([]byte, 0, 192)
	b = append(b, ChargePath+"?id="...)
	b = append(b, r.ID...)
	if r.Sandbox {
		b = append(b, "&sandbox=1&client="...)
		b = append(b, r.Client...)
	} else {
		b = append(b, "&account="...)
		b = strconv.AppendInt(b, r.Account, 10)
		b = append(b, "&key="...)
		b = strconv.AppendInt(b, r.Key, 10)
	}
	b = append(b, "&endpoint="...)
	b = append(b, r.Endpoint.String()...)
	b = append(b, "&outcome="...)
	b = append(b, r.Outcome.String()...)
	b = append(b, "&rate="...)
	b = strconv.AppendInt(b, r.PerMinute, 10)
	if r.KeyPerMinute != 0 {
		b = append(b, "&key_rate="...)
		b = strconv.AppendInt(b, r.KeyPerMinute, 10)
	}
	if r.LimitedUntil != 0 {
		b = append(b, "&limited="...)
		b = strconv.AppendInt(b, r.LimitedUntil, 10)
	}
	if r.IdempotencyHash != "" {
		b = append(b, "&idempotency="...)
		b = append(b, r.IdempotencyHash...)
		b = append(b, "&target="...)
		b = append(b, r.TargetHash...)
	}
	return string(b)
}

// VoidTarget returns the path and query of the void call for a request id.
func VoidTarget(id string) string { return VoidPath + "?id=" + id }

// ParseRequest parses the query of a charge call, without its "?". Unknown, repeated, missing or
// invalid fields are ErrMalformed.
func ParseRequest(query string) (Request, error) {
	var r Request
	seen := 0
	for rest := query; rest != ""; {
		var field string
		field, rest, _ = strings.Cut(rest, "&")
		name, value, _ := strings.Cut(field, "=")
		bit := r.set(name, value)
		if bit == 0 || seen&bit != 0 {
			return Request{}, ErrMalformed
		}
		seen |= bit
	}
	always := bitID | bitEndpoint | bitOutcome | bitRate
	if seen&bitKey != 0 {
		seen &^= bitKeyRate | bitLimited // they may be absent
	}
	switch seen {
	case always | bitAccount | bitKey, always | bitSandbox | bitClient, always | bitAccount | bitKey | bitIdempotency | bitTarget:
		return r, nil
	}
	return Request{}, ErrMalformed
}

const (
	bitID = 1 << iota
	bitSandbox
	bitClient
	bitAccount
	bitKey
	bitEndpoint
	bitOutcome
	bitRate
	bitKeyRate
	bitLimited
	bitIdempotency
	bitTarget
)

// set assigns one field and returns its bit, or 0 when name or value is not allowed.
func (r *Request) set(name, value string) int {
	ok, bit := false, 0
	switch name {
	case "id":
		r.ID, ok, bit = value, ValidID(value), bitID
	case "sandbox":
		r.Sandbox, ok, bit = true, value == "1", bitSandbox
	case "client":
		r.Client, ok, bit = value, len(value) <= MaxClient, bitClient
	case "account":
		r.Account, ok = parsePositive(value)
		bit = bitAccount
	case "key":
		r.Key, ok = parsePositive(value)
		bit = bitKey
	case "endpoint":
		r.Endpoint = ParseEndpoint(value)
		ok, bit = r.Endpoint != 0, bitEndpoint
	case "outcome":
		r.Outcome = ParseOutcome(value)
		ok, bit = r.Outcome != 0, bitOutcome
	case "rate":
		r.PerMinute, ok = parsePositive(value)
		bit = bitRate
	case "key_rate":
		r.KeyPerMinute, ok = parsePositive(value)
		bit = bitKeyRate
	case "limited":
		r.LimitedUntil, ok = parsePositive(value)
		bit = bitLimited
	case "idempotency":
		r.IdempotencyHash, ok, bit = value, validHash(value), bitIdempotency
	case "target":
		r.TargetHash, ok, bit = value, validHash(value), bitTarget
	}
	if !ok {
		return 0
	}
	return bit
}

// ParseVoid parses the query of a void call, without its "?", and returns the request id.
func ParseVoid(query string) (string, error) {
	id, ok := strings.CutPrefix(query, "id=")
	if !ok || !ValidID(id) {
		return "", ErrMalformed
	}
	return id, nil
}

// ValidID reports whether id can be a request id.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func validHash(s string) bool {
	for i := 0; i < len(s); i++ {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return len(s) == HashLength
}

func parsePositive(s string) (int64, bool) {
	n, ok := parseNumber(s)
	return n, ok && n > 0
}

// parseNumber parses a decimal number without a sign, at most 2^63-1. strconv.ParseInt would
// bring 3 KB of tables into the component, for errors that quote the text.
func parseNumber(s string) (n int64, ok bool) {
	const most = 19 // digits: such a number is below 2^64, so one above 2^63-1 becomes negative
	if s == "" || len(s) > most {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		digit := s[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + int64(digit)
	}
	return n, n >= 0
}

// Headers calls yield for each header of the verdict's HTTP form.
func (v *Verdict) Headers(yield func(name, value string)) {
	number := func(name string, n int64) {
		if n != Unsent {
			yield(name, strconv.FormatInt(n, 10))
		}
	}
	number(HeaderRateLimit, v.RateLimit)
	number(HeaderRateRemaining, v.RateRemaining)
	number(HeaderRateReset, v.RateReset)
	number(HeaderCreditsRemaining, v.CreditsRemaining)
	number(HeaderRetryAfter, v.RetryAfter)
	if v.Replayed {
		yield(HeaderReplayed, "true")
	}
	if v.Code != "" {
		yield(HeaderCode, v.Code)
	}
}

// ParseVerdict parses the HTTP form of a verdict; get returns a header's value, or "". A status
// that does not match the code, or an invalid number, is ErrMalformed.
func ParseVerdict(status int, get func(name string) string) (Verdict, error) {
	v := Verdict{Code: get(HeaderCode)}
	if s := Status(v.Code); s == 0 || s != status {
		return Verdict{}, ErrMalformed
	}
	for _, n := range []struct {
		name string
		to   *int64
	}{
		{HeaderRateLimit, &v.RateLimit},
		{HeaderRateRemaining, &v.RateRemaining},
		{HeaderRateReset, &v.RateReset},
		{HeaderCreditsRemaining, &v.CreditsRemaining},
		{HeaderRetryAfter, &v.RetryAfter},
	} {
		*n.to = Unsent
		text := get(n.name)
		if text == "" {
			continue
		}
		parsed, ok := parseNumber(text)
		if !ok {
			return Verdict{}, ErrMalformed
		}
		*n.to = parsed
	}
	switch replayed := get(HeaderReplayed); {
	case replayed == "true" && v.Code == "":
		v.Replayed = true
	case replayed != "":
		return Verdict{}, ErrMalformed
	}
	return v, nil
}
