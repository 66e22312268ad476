package handler

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

func TestTextIsJSON(t *testing.T) {
	for _, s := range []string{
		"", "plain", "plain and long enough for two", "the quote comes last\"", "\\starts badly", "eight by\teight by", `quote " and \ backslash`, "\x00\x01\x1f\n\r\t", "देवनागरी €", "bad \xff\xfe utf-8 \xe2\x82", "\u2028",
	} {
		w := writer{}
		w.text(s)
		var got string
		require.NoError(t, json.Unmarshal(w.buf, &got), "%q gave %s", s, w.buf)
		require.Equal(t, strings.ToValidUTF8(s, "\uFFFD"), collapse(got, s))
	}
}

// collapse makes runs of U+FFFD comparable: ToValidUTF8 replaces a run of broken bytes
// once, the writer each of them.
func collapse(got, source string) string {
	if utf8.ValidString(source) {
		return got
	}
	for strings.Contains(got, "\uFFFD\uFFFD") {
		got = strings.ReplaceAll(got, "\uFFFD\uFFFD", "\uFFFD")
	}
	return got
}

func FuzzText(f *testing.F) {
	f.Add("a\"b\\c\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		w := writer{}
		w.text(s)
		var got string
		require.NoError(t, json.Unmarshal(w.buf, &got))
		if utf8.ValidString(s) {
			require.Equal(t, s, got)
		}
	})
}

func TestMasks(t *testing.T) {
	for in, want := range map[string]string{
		"registry@example.com": "r****@e******.com",
		"a@b.co.in":            "a****@b******.in",
		"éa@localhost":         "é****@l******",
		"not an address":       "n****",
		"@example.com":         "****@e******.com",
		`"odd@local"@sub.in`:   `"****@s******.in`,
	} {
		require.Equal(t, want, maskEmail(in), in)
	}
	for in, want := range map[string]string{
		"+919876543210":   "+91******3210",
		"+91 98765 43210": "+91******3210",
		"080-2345 6789":   "******6789",
		"+1 415 555 0123": "******0123",
		"+358401234567":   "******4567",
		"12345":           "******",
		"":                "******",
	} {
		require.Equal(t, want, maskPhone(in), in)
	}
}

func TestMaskNeverKeepsTheMiddle(t *testing.T) {
	require.NotContains(t, maskEmail("firstname.lastname@company.example.com"), "lastname")
	require.NotContains(t, maskEmail("firstname.lastname@company.example.com"), "company")
	require.NotContains(t, maskPhone("+919876543210"), "98765")
}

func TestUnescape(t *testing.T) {
	for _, c := range []struct {
		in    string
		query bool
		want  string
		ok    bool
	}{
		{"a%20b", false, "a b", true},
		{"a+b", false, "a+b", true},
		{"a+b%2B", true, "a b+", true},
		{"%e0%A4%95", false, "क", true},
		{"%", false, "", false},
		{"%4", false, "", false},
		{"%zz", false, "", false},
		{"%41%", false, "", false},
	} {
		got, ok := unescape(c.in, c.query)
		require.Equal(t, c.ok, ok, c.in)
		require.Equal(t, c.want, got, c.in)
	}
}

func TestRoutes(t *testing.T) {
	for path, want := range map[string]charge.Endpoint{
		"/v1/companies/X":      charge.Companies,
		"/v1/directors/1":      charge.Directors,
		"/v1/llps/AAA-1234":    charge.LLPs,
		"/v1/search/companies": charge.SearchCompanies,
		"/v1/search/llps":      charge.SearchLLPs,
	} {
		got, ok := matchRoute(path)
		require.True(t, ok, path)
		require.Equal(t, want, got.endpoint, path)
	}
	for _, path := range []string{
		"", "/", "/v1", "/v1/", "/v1/companies", "/v1/companies/", "/v1/companies/X/", "/v1/companies/X/directors",
		"/v2/companies/X", "/v1/search", "/v1/search/", "/v1/search/companies/", "/v1/search/directors", "//v1/companies/X",
		"/V1/companies/X",
	} {
		_, ok := matchRoute(path)
		require.False(t, ok, path)
	}
}

func TestBearer(t *testing.T) {
	for _, c := range []struct {
		headers []string
		key     string
		present bool
	}{
		{nil, "", false},
		{[]string{""}, "", false},
		{[]string{"Bearer"}, "", false},
		{[]string{"Bearer "}, "", false},
		{[]string{"Bearer k"}, "k", true},
		{[]string{"bearer   k "}, "k", true},
		{[]string{"Basic k"}, "", true},
		{[]string{"k"}, "", true},
		{[]string{"Bearer k", "Bearer k"}, "", true},
	} {
		key, present := bearer(c.headers)
		require.Equal(t, c.present, present, "%q", c.headers)
		require.Equal(t, c.key, key, "%q", c.headers)
	}
}

type fixedClock int64

func (c fixedClock) UnixMilli() int64 { return int64(c) }

type countingRandom struct{ n byte }

func (r *countingRandom) Read(p []byte) {
	for i := range p {
		r.n++
		p[i] = r.n
	}
}

func TestRequestIDsSortByTimeAndDiffer(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).UnixMilli()
	random := &countingRandom{}
	first := NewRequestID(fixedClock(now), random)
	second := NewRequestID(fixedClock(now), random)
	later := NewRequestID(fixedClock(now+1), random)
	require.True(t, charge.ValidID(first))
	require.Len(t, first, 26)
	require.NotEqual(t, first, second)
	require.Equal(t, first[:10], second[:10])
	require.Less(t, first[:10], later[:10])
	require.Equal(t, "01ARYZ6S410000000000000000"[:10], NewRequestID(fixedClock(1469918176385), random)[:10])
}

// meterScript answers each charge with the next of its steps.
type meterScript struct {
	charges []error
	voided  []string
	asked   []charge.Request
}

func (m *meterScript) Charge(r charge.Request) (charge.Verdict, error) {
	m.asked = append(m.asked, r)
	err := m.charges[len(m.asked)-1]
	return charge.Verdict{RateLimit: 30, RateRemaining: 29, RateReset: 1, CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent}, err
}

func (m *meterScript) Void(id string) error {
	m.voided = append(m.voided, id)
	return nil
}

// emptySearch is a store whose every answer is an empty search.
type emptySearch struct{}

func (emptySearch) Query(string, []Value) (*Result, error) {
	return &Result{Columns: 2, Values: []Value{text("release"), text("[]")}}, nil
}

func TestALostVerdict(t *testing.T) {
	lost := errors.New("no answer")
	serve := func(meter *meterScript) *Response {
		h := &Handler{Registry: emptySearch{}, Meter: meter, Clock: fixedClock(1), Random: &countingRandom{}, DocsURL: func() string { return "" }}
		return h.Serve(&Request{Method: "GET", Target: "/v1/search/companies?name=abc",
			Authorization: []string{"Bearer reg_sandbox_public"}, ClientAddr: func() string { return "192.0.2.1" }})
	}
	t.Run("is asked for once more under the same id", func(t *testing.T) {
		meter := &meterScript{charges: []error{lost, nil}}
		require.Equal(t, 200, serve(meter).Status)
		require.Len(t, meter.asked, 2)
		require.Equal(t, meter.asked[0], meter.asked[1])
		require.Empty(t, meter.voided)
	})
	t.Run("is voided and answered 503 when it is lost twice", func(t *testing.T) {
		meter := &meterScript{charges: []error{lost, lost}}
		require.Equal(t, 503, serve(meter).Status)
		require.Equal(t, []string{meter.asked[0].ID}, meter.voided)
	})
}

func TestEveryProblemIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Problems() {
		require.False(t, seen[p.Code], "%s stands twice", p.Code)
		seen[p.Code] = true
		require.NotEmpty(t, p.Title, p.Code)
		require.NotEmpty(t, p.Detail, p.Code)
		require.GreaterOrEqual(t, p.Status, 400)
		if status := charge.Status(p.Code); status != 0 {
			require.Equal(t, status, p.Status, p.Code)
		}
	}
}
