package charge

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func live() Request {
	return Request{ID: "01ARYZ6S41ABCDEFGHJKMNPQRS", Account: 7, Key: 12, PerMinute: 60, Endpoint: Companies, Outcome: Found}
}

func sandbox() Request {
	return Request{ID: "01ARYZ6S41ABCDEFGHJKMNPQRS", Sandbox: true, Client: "2001:db8::1", PerMinute: 30, Endpoint: SearchLLPs, Outcome: NotFound}
}

// keyed is a request with an Idempotency-Key.
func keyed() Request {
	r := live()
	r.IdempotencyHash, r.TargetHash = strings.Repeat("0123456789abcdef", 2), strings.Repeat("f", HashLength)
	return r
}

// limited is a request of a key with a rate of its own.
func limited(r Request) Request {
	r.KeyPerMinute, r.LimitedUntil = 7, 1_790_000_000_000
	return r
}

func TestRequestSurvivesItsHTTPForm(t *testing.T) {
	ended := live() // without a rate of its own
	ended.LimitedUntil = 1_790_000_000_000
	for _, want := range []Request{live(), sandbox(), keyed(), limited(live()), limited(keyed()), ended} {
		path, query, _ := strings.Cut(want.Target(), "?")
		require.Equal(t, ChargePath, path)
		got, err := ParseRequest(query)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	r := live()
	_, query, _ := strings.Cut(VoidTarget(r.ID), "?")
	id, err := ParseVoid(query)
	require.NoError(t, err)
	require.Equal(t, r.ID, id)
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	r := live()
	_, good, _ := strings.Cut(r.Target(), "?")
	for name, query := range map[string]string{
		"empty":                   "",
		"unknown field":           good + "&x=1",
		"repeated field":          good + "&rate=60",
		"both kinds":              good + "&sandbox=1&client=::1",
		"half of a kind":          strings.Replace(good, "&key=12", "", 1),
		"zero account":            strings.Replace(good, "account=7", "account=0", 1),
		"negative rate":           strings.Replace(good, "rate=60", "rate=-1", 1),
		"id with a newline":       strings.Replace(good, "id=01", "id=0\n", 1),
		"unknown endpoint":        strings.Replace(good, "companies", "all", 1),
		"unknown outcome":         strings.Replace(good, "found", "lost", 1),
		"overflowing number":      strings.Replace(good, "account=7", "account=99999999999999999999", 1),
		"half of a key":           good + "&idempotency=" + keyed().IdempotencyHash,
		"a key of another length": good + "&idempotency=0&target=0",
		"half of a target":        good + "&idempotency=" + keyed().IdempotencyHash + "&target=0",
		"a key in capitals":       good + "&idempotency=" + strings.ToUpper(keyed().IdempotencyHash) + "&target=" + keyed().TargetHash,
		"a key at the sandbox":    "id=1&sandbox=1&client=::1&endpoint=llps&outcome=found&rate=30&idempotency=" + keyed().IdempotencyHash + "&target=" + keyed().TargetHash,
		"a rate of no key":        "id=1&sandbox=1&client=::1&endpoint=llps&outcome=found&rate=30&key_rate=7",
		"a key's rate of zero":    good + "&key_rate=0",
		"a limit of no key":       "id=1&sandbox=1&client=::1&endpoint=llps&outcome=found&rate=30&limited=7",
		"limited until nothing":   good + "&limited=0",
		"two rates of a key":      good + "&key_rate=7&key_rate=7",
		"long id":                 strings.Replace(good, "id=", "id="+strings.Repeat("A", MaxID), 1),
	} {
		_, err := ParseRequest(query)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	_, err := ParseVoid("id=")
	require.ErrorIs(t, err, ErrMalformed)
}

func TestVerdictSurvivesItsHTTPForm(t *testing.T) {
	for _, want := range []Verdict{
		{RateLimit: 60, RateRemaining: 59, RateReset: 12, CreditsRemaining: 0, RetryAfter: Unsent},
		{RateLimit: 60, RateRemaining: 59, RateReset: 12, CreditsRemaining: 7, RetryAfter: Unsent, Replayed: true},
		{Code: IdempotencyKeyReused, RateLimit: 60, RateRemaining: 1, RateReset: 1, CreditsRemaining: Unsent, RetryAfter: Unsent},
		{Code: InsufficientCredits, RateLimit: 60, RateRemaining: 1, RateReset: 1, CreditsRemaining: Unsent, RetryAfter: Unsent},
		{Code: MeteringUnavailable, RateLimit: 60, RateRemaining: Unsent, RateReset: Unsent, CreditsRemaining: Unsent, RetryAfter: 1},
	} {
		headers := map[string]string{}
		want.Headers(func(name, value string) { headers[name] = value })
		got, err := ParseVerdict(Status(want.Code), func(name string) string { return headers[name] })
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestMalformedVerdictsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
	}{
		"unknown code":           {418, map[string]string{HeaderCode: "teapot"}},
		"status without code":    {429, nil},
		"code with other status": {200, map[string]string{HeaderCode: InsufficientCredits}},
		"negative number":        {200, map[string]string{HeaderRateLimit: "-1"}},
		"replayed and refused":   {402, map[string]string{HeaderCode: InsufficientCredits, HeaderReplayed: "true"}},
		"half replayed":          {200, map[string]string{HeaderReplayed: "yes"}},
		"not a number":           {200, map[string]string{HeaderCreditsRemaining: "many"}},
	} {
		_, err := ParseVerdict(c.status, func(n string) string { return c.headers[n] })
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, r := range []Request{live(), sandbox(), keyed()} {
		_, query, _ := strings.Cut(r.Target(), "?")
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r, err := ParseRequest(query)
		if err != nil {
			return
		}
		_, again, _ := strings.Cut(r.Target(), "?")
		same, err := ParseRequest(again)
		require.NoError(t, err)
		require.Equal(t, r, same)
	})
}

// FuzzParseVerdict checks that an answer of a meter which is accepted says one thing alone: its
// status fits its code, its numbers are written as they are read, and none is negative.
func FuzzParseVerdict(f *testing.F) {
	f.Add(200, "", "60", "59", "12", "0", "")
	f.Add(402, InsufficientCredits, "60", "1", "1", "", "")
	f.Add(503, MeteringUnavailable, "60", "", "", "", "1")
	f.Add(418, "teapot", "-1", "+1", " 1", "0x1", "99999999999999999999")
	f.Fuzz(func(t *testing.T, status int, code, limit, remaining, reset, credits, retry string) {
		headers := map[string]string{
			HeaderCode: code, HeaderRateLimit: limit, HeaderRateRemaining: remaining, HeaderRateReset: reset,
			HeaderCreditsRemaining: credits, HeaderRetryAfter: retry,
		}
		v, err := ParseVerdict(status, func(name string) string { return headers[name] })
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, status, Status(v.Code))
		require.GreaterOrEqual(t, min(v.RateLimit, v.RateRemaining, v.RateReset, v.CreditsRemaining, v.RetryAfter), int64(Unsent))
		written := map[string]string{}
		v.Headers(func(name, value string) { written[name] = value })
		again, err := ParseVerdict(status, func(name string) string { return written[name] })
		require.NoError(t, err)
		require.Equal(t, v, again)
	})
}

func TestNumbersAreDigitsAlone(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 7, "0042": 42, "9223372036854775807": math.MaxInt64} {
		got, ok := parseNumber(text)
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{
		"", "-1", "+1", " 1", "1 ", "1_000", "0x1", "1.0", "٣", ":", "7/", "9223372036854775808", "9999999999999999999", "18446744073709551616",
	} {
		_, ok := parseNumber(text)
		require.False(t, ok, text)
	}
}
