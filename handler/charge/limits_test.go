package charge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARequestNeedsEachOfItsFields leaves out one field after the other.
func TestARequestNeedsEachOfItsFields(t *testing.T) {
	for _, r := range []Request{live(), sandbox()} {
		_, query, _ := strings.Cut(r.Target(), "?")
		fields := strings.Split(query, "&")
		for at, left := range fields {
			rest := append(append([]string{}, fields[:at]...), fields[at+1:]...)
			_, err := ParseRequest(strings.Join(rest, "&"))
			require.ErrorIs(t, err, ErrMalformed, "without "+left)
		}
	}
}

func TestValuesOfARequestAreBounded(t *testing.T) {
	_, key, _ := strings.Cut((&Request{ID: "r", Account: 7, Key: 12, PerMinute: 60, Endpoint: Companies, Outcome: Found}).Target(), "?")
	_, anyone, _ := strings.Cut((&Request{ID: "r", Sandbox: true, Client: "::1", PerMinute: 30, Endpoint: Companies, Outcome: Found}).Target(), "?")
	for name, c := range map[string]struct {
		query, from, to string
		valid           bool
	}{
		"longest id":         {key, "id=r", "id=" + strings.Repeat("r", MaxID), true},
		"longer id":          {key, "id=r", "id=" + strings.Repeat("r", MaxID+1), false},
		"no id":              {key, "id=r", "id=", false},
		"longest client":     {anyone, "client=::1", "client=" + strings.Repeat("1", MaxClient), true},
		"longer client":      {anyone, "client=::1", "client=" + strings.Repeat("1", MaxClient+1), false},
		"longest address":    {anyone, "client=::1", "client=0000:0000:0000:0000:0000:ffff:255.255.255.255", true},
		"a client unknown":   {anyone, "client=::1", "client=", true},
		"no sandbox":         {anyone, "sandbox=1", "sandbox=0", false},
		"a key that is none": {key, "key=12", "key=0", false},
		"least rate":         {key, "rate=60", "rate=1", true},
		"no rate":            {key, "rate=60", "rate=0", false},
		"both accounts":      {key, "key=12", "key=12&client=::1", false},
	} {
		require.Contains(t, c.query, c.from)
		_, err := ParseRequest(strings.Replace(c.query, c.from, c.to, 1))
		require.Equal(t, c.valid, err == nil, name)
	}
}

func TestIDsAreLettersDigitsAndHyphens(t *testing.T) {
	const allowed = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for c := range 256 {
		require.Equal(t, strings.IndexByte(allowed, byte(c)) >= 0, ValidID("r"+string([]byte{byte(c)})), "%q", rune(c))
	}
}

// TestNamesAreThoseOfTheContract: another program may be on the other side.
func TestNamesAreThoseOfTheContract(t *testing.T) {
	endpoints := map[Endpoint]string{1: "companies", 2: "directors", 3: "llps", 4: "search_companies", 5: "search_llps"}
	for number, name := range endpoints {
		require.Equal(t, name, number.String())
		require.Equal(t, number, ParseEndpoint(name))
	}
	outcomes := map[Outcome]string{1: "found", 2: "not_found", 3: "failed"}
	for number, name := range outcomes {
		require.Equal(t, name, number.String())
		require.Equal(t, number, ParseOutcome(name))
	}
	for _, unknown := range []string{"", "unknown", "Companies"} {
		require.Zero(t, ParseEndpoint(unknown))
		require.Zero(t, ParseOutcome(unknown))
	}
	for _, none := range []uint8{0, 6, 255} {
		require.Equal(t, "unknown", Endpoint(none).String())
		require.Equal(t, "unknown", Outcome(none).String())
	}
	require.Equal(t, "unknown", Outcome(4).String())
	for code, status := range map[string]int{
		"": 200, "insufficient_credits": 402, "rate_limit_exceeded": 429, "monthly_volume_exceeded": 429, "key_credits_exceeded": 429,
		"not_found_cap_exceeded": 429, "metering_unavailable": 503, "idempotency_key_reused": 422, "teapot": 0,
	} {
		require.Equal(t, status, Status(code), code)
	}
}

func TestAVoidNamesOneRequest(t *testing.T) {
	for _, query := range []string{"", "id", "r", "ID=r", "id=r&x=1", "id=" + strings.Repeat("r", MaxID+1)} {
		_, err := ParseVoid(query)
		require.ErrorIs(t, err, ErrMalformed, query)
	}
	id, err := ParseVoid("id=" + strings.Repeat("r", MaxID))
	require.NoError(t, err)
	require.Len(t, id, MaxID)
}

// TestUnsentNumbersHaveNoHeader, and every other number has its own.
func TestUnsentNumbersHaveNoHeader(t *testing.T) {
	headers := func(v Verdict) map[string]string {
		all := map[string]string{}
		v.Headers(func(name, value string) { all[name] = value })
		return all
	}
	require.Equal(t, map[string]string{"RateLimit-Limit": "1", "RateLimit-Remaining": "2", "RateLimit-Reset": "3",
		"X-Credits-Remaining": "4", "Retry-After": "5", "X-Problem-Code": "c"},
		headers(Verdict{Code: "c", RateLimit: 1, RateRemaining: 2, RateReset: 3, CreditsRemaining: 4, RetryAfter: 5}))
	require.Empty(t, headers(Verdict{RateLimit: Unsent, RateRemaining: Unsent, RateReset: Unsent, CreditsRemaining: Unsent, RetryAfter: Unsent}))
	none, err := ParseVerdict(200, func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, Verdict{RateLimit: Unsent, RateRemaining: Unsent, RateReset: Unsent, CreditsRemaining: Unsent, RetryAfter: Unsent}, none)
}
