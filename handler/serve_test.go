package handler

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
)

// liveKey is a well-formed key.
var liveKey = ident.NewKey((&countingRandom{}).Read)

// canned is a store with one answer to each statement, and what it was asked.
type canned struct {
	rows  map[string][]Value
	err   error
	asked []string
	args  [][]Value
}

func (s *canned) Query(statement string, args []Value) (*Result, error) {
	s.asked, s.args = append(s.asked, statement), append(s.args, args)
	row := s.rows[statement]
	return &Result{Columns: len(row), Values: row}, s.err
}

// verdicts is a meter with one verdict.
type verdicts struct {
	verdict  charge.Verdict
	asked    []charge.Request
	exceeded bool
}

func (m *verdicts) Charge(r charge.Request) (charge.Verdict, error) {
	m.asked = append(m.asked, r)
	return m.verdict, nil
}

func (*verdicts) Void(string) error { return nil }

func (m *verdicts) Exceeded(r charge.Request) (charge.Verdict, bool) {
	m.asked = append(m.asked, r)
	return m.verdict, m.exceeded
}

// bench is a handler with a known key, a company, and all that it was asked.
type bench struct {
	*Handler
	access, registry *canned
	meter            *verdicts
}

func integer(n int64) Value { return Value{Kind: Integer, Int: n} }

func newBench() *bench {
	b := &bench{
		access: &canned{rows: map[string][]Value{accessStatement: {
			integer(7), integer(5), integer(0), integer(1), integer(60), integer(1), integer(0), integer(0), {Kind: Blob}, integer(0), integer(0),
		}}},
		registry: &canned{rows: map[string][]Value{
			searchStatement:    {text("r-1"), text(`[{"value":"x"}]`)},
			searchLLPStatement: {text("r-1"), text(`[]`)},
			forgivingStatement: {text("r-1"), text("[]"), {}},
			directorStatement:  {text("r-1"), text("00000001"), text("ASHA"), {}, text("[]"), integer(0)},
			companyStatement:   make([]Value, 1+len(companyHead)+len(companyRest)), // after the release
		}},
		meter: &verdicts{verdict: charge.Verdict{RateLimit: 60, RateRemaining: 59, RateReset: 9, CreditsRemaining: 41, RetryAfter: charge.Unsent}},
	}
	b.registry.rows[companyStatement][0] = text("r-1")
	b.Handler = &Handler{
		Access: b.access, Registry: b.registry, Meter: b.meter, Clock: fixedClock(1), Random: &countingRandom{},
		DocsURL: func() string { return "https://docs.example" },
	}
	return b
}

func request(method, target string, fields ...string) *Request {
	r := &Request{Method: method, Target: target, ClientAddr: func() string { return "192.0.2.1" }}
	for i := 0; i < len(fields); i += 2 {
		r.Headers = append(r.Headers, Header{fields[i], fields[i+1]})
	}
	return r
}

func (b *bench) get(target string, fields ...string) *Response {
	return b.Serve(request("GET", target, append([]string{"authorization", "Bearer " + liveKey}, fields...)...))
}

// header is the value of a header that is there once, "" for none.
func header(t *testing.T, r *Response, name string) (value string) {
	t.Helper()
	for _, h := range r.Headers {
		if h.Name == name {
			require.Empty(t, value, "%s comes twice", name)
			value = h.Value
		}
	}
	return value
}

// problemOf reads a problem document.
func problemOf(t *testing.T, r *Response) (code string) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
		RequestID                 string `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal(r.Body, &p), "%s", r.Body)
	require.Equal(t, "application/problem+json", header(t, r, "Content-Type"))
	require.Equal(t, r.Status, p.Status)
	require.Equal(t, "https://docs.example/problems/"+p.Code, p.Type)
	require.Equal(t, header(t, r, HeaderRequestID), p.RequestID)
	require.NotEmpty(t, p.Detail)
	return p.Code
}

func TestAnAnswerSaysWhatIsLeft(t *testing.T) {
	b := newBench()
	r := b.get("/v1/directors/1")
	require.Equal(t, 200, r.Status)
	require.JSONEq(t, `{"data":{"din":"00000001","name":"ASHA","status":null,"linked_companies":[],"linked_companies_total":0},
		"meta":{"request_id":"`+header(t, r, HeaderRequestID)+`","credits_remaining":41,"sandbox":false}}`, string(r.Body))
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff",
		"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": exposedHeaders,
		HeaderRegistryRelease: "r-1", charge.HeaderCreditsRemaining: "41",
		charge.HeaderRateLimit: "60", charge.HeaderRateRemaining: "59", charge.HeaderRateReset: "9",
		charge.HeaderReplayed: "", charge.HeaderRetryAfter: "", HeaderSearchSuggestion: "",
	} {
		require.Equal(t, want, header(t, r, name), name)
	}
	require.Len(t, b.meter.asked, 1)
	require.Equal(t, charge.Request{ID: header(t, r, HeaderRequestID), Account: 5, Key: 7, PerMinute: 60,
		Endpoint: charge.Directors, Outcome: charge.Found}, b.meter.asked[0])

	b.meter.verdict = charge.Verdict{RateLimit: charge.Unsent, RateRemaining: charge.Unsent, RateReset: charge.Unsent,
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent, Replayed: true}
	r = b.get("/v1/directors/1")
	require.Contains(t, string(r.Body), `"credits_remaining":null`)
	for _, name := range []string{charge.HeaderCreditsRemaining, charge.HeaderRateLimit, charge.HeaderRateRemaining, charge.HeaderRateReset} {
		require.Empty(t, header(t, r, name), "%s is not known", name)
	}
	require.Equal(t, "true", header(t, r, charge.HeaderReplayed))
}

func TestTheSandboxKeyHasNoCredits(t *testing.T) {
	b := newBench()
	r := b.Serve(request("GET", "/v1/search/companies?name=tea", "Authorization", "Bearer "+ident.SandboxKey))
	require.Equal(t, 200, r.Status)
	require.Contains(t, string(r.Body), `"credits_remaining":null,"sandbox":true`)
	require.Empty(t, header(t, r, charge.HeaderCreditsRemaining))
	require.Empty(t, b.access.asked)
	require.Equal(t, "192.0.2.1", b.meter.asked[0].Client)
	require.True(t, b.meter.asked[0].Sandbox)
	require.EqualValues(t, SandboxPerMinute, b.meter.asked[0].PerMinute)
}

func TestKeysAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		change func(row []Value) []Value
		status int
		code   string
	}{
		"none":              {"", nil, 401, MissingAPIKey},
		"another form":      {"reg_live_short", nil, 401, InvalidAPIKey},
		"unknown":           {liveKey, func([]Value) []Value { return nil }, 401, InvalidAPIKey},
		"suspended":         {liveKey, func(row []Value) []Value { row[2].Int = 1; return row }, 403, AccountSuspended},
		"ended":             {liveKey, func(row []Value) []Value { row[7].Int = 1; return row }, 401, InvalidAPIKey},
		"without access":    {liveKey, func(row []Value) []Value { row[3].Int = 0; return row }, 403, PlanWithoutAPIAccess},
		"suspended without": {liveKey, func(row []Value) []Value { row[2].Int, row[3].Int = 1, 0; return row }, 403, AccountSuspended},
		"from elsewhere":    {liveKey, func(row []Value) []Value { row[8].Text = "\x04\x18\xc0\x00\x03\x00"; return row }, 403, AddressNotAllowed},
		"from elsewhere and suspended": {liveKey, func(row []Value) []Value {
			row[2].Int, row[3].Int, row[8].Text = 1, 0, "\x04\x18\xc0\x00\x03\x00"
			return row
		}, 403, AddressNotAllowed},
		"ended, from elsewhere": {liveKey, func(row []Value) []Value {
			row[7].Int, row[8].Text = 1, "\x04\x18\xc0\x00\x03\x00"
			return row
		}, 401, InvalidAPIKey},
		"damaged networks":    {liveKey, func(row []Value) []Value { row[8].Text = "\x04\x18\xc0"; return row }, 403, AddressNotAllowed},
		"well-formed, unsure": {liveKey, nil, 503, charge.MeteringUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			if c.change != nil {
				b.access.rows[accessStatement] = c.change(b.access.rows[accessStatement])
			}
			if c.status == 503 {
				b.access.err = errors.New("away")
			}
			r := b.Serve(request("GET", "/v1/directors/1", "Authorization", "Bearer "+c.key))
			require.Equal(t, c.status, r.Status)
			require.Equal(t, c.code, problemOf(t, r))
			require.Equal(t, c.status == 401, header(t, r, "WWW-Authenticate") != "")
			require.Equal(t, c.status == 503, header(t, r, charge.HeaderRetryAfter) == "1")
			require.Equal(t, b.access.err, r.Cause)
			require.Empty(t, b.meter.asked)
			require.Empty(t, b.registry.asked)
			require.Empty(t, header(t, r, charge.HeaderRateLimit))
		})
	}
	b := newBench()
	b.get("/v1/directors/1")
	b.access.rows[accessStatement][7].Int = 2
	require.Equal(t, 200, b.get("/v1/directors/1").Status, "a key ends when its time has come, not before")
	b.access.rows[accessStatement][8].Text = "\x04\x18\xc0\x00\x02\x00"
	require.Equal(t, 200, b.get("/v1/directors/1").Status, "192.0.2.1 is in 192.0.2.0/24")
	away := request("GET", "/v1/directors/1", "Authorization", "Bearer "+liveKey)
	away.ClientAddr = func() string { return "" }
	r := b.Serve(away)
	require.Equal(t, AddressNotAllowed, problemOf(t, r), "nobody knows from where")
	require.Contains(t, string(r.Body), "may not be used from this address")
	require.Zero(t, b.meter.asked[0].KeyPerMinute)
	require.Zero(t, b.meter.asked[0].LimitedUntil)
	b.access.rows[accessStatement][9].Int, b.access.rows[accessStatement][10].Int = 9, 77
	b.get("/v1/directors/1")
	require.EqualValues(t, 9, b.meter.asked[len(b.meter.asked)-1].KeyPerMinute, "the meter counts")
	require.EqualValues(t, 77, b.meter.asked[len(b.meter.asked)-1].LimitedUntil)
	require.EqualValues(t, 60, b.meter.asked[len(b.meter.asked)-1].PerMinute)
	hash := ident.Hash(liveKey)
	require.Equal(t, []Value{{Kind: Blob, Text: string(hash[:])}}, b.access.args[0])
}

func TestRoutesAndMethodsComeBeforeKeys(t *testing.T) {
	b := newBench()
	r := b.Serve(request("GET", "/v1/nothing"))
	require.Equal(t, RouteNotFound, problemOf(t, r))
	require.Empty(t, header(t, r, "Allow"))
	r = b.Serve(request("POST", "/v1/directors/1"))
	require.Equal(t, MethodNotAllowed, problemOf(t, r))
	require.Equal(t, allowedMethods, header(t, r, "Allow"))
	r = b.Serve(request("OPTIONS", "/v1/directors/1"))
	require.Equal(t, 204, r.Status)
	require.Empty(t, r.Body)
	require.Equal(t, requestHeaders, header(t, r, "Access-Control-Allow-Headers"))
	require.Equal(t, allowedMethods, header(t, r, "Access-Control-Allow-Methods"))
	require.Equal(t, allowedMethods, header(t, r, "Allow"))
	require.Equal(t, "nosniff", header(t, r, "X-Content-Type-Options"))
	require.Equal(t, "private, no-store", header(t, r, "Cache-Control"))
	require.Empty(t, b.meter.asked)
}

// TestTheMetersRefusalWins over the lookup's result, and the answer has the meter's headers.
func TestTheMetersRefusalWins(t *testing.T) {
	b := newBench()
	b.meter.verdict.Code, b.meter.verdict.RetryAfter = charge.InsufficientCredits, charge.Unsent
	r := b.get("/v1/directors/x")
	require.Equal(t, 402, r.Status)
	require.Equal(t, charge.InsufficientCredits, problemOf(t, r))
	require.Equal(t, "59", header(t, r, charge.HeaderRateRemaining))
	require.Empty(t, header(t, r, charge.HeaderRetryAfter))
	r = b.get("/v1/directors/1")
	require.Equal(t, "r-1", header(t, r, HeaderRegistryRelease))

	b.meter.verdict.Code, b.meter.verdict.RetryAfter = charge.RateLimitExceeded, 9
	r = b.get("/v1/directors/1")
	require.Equal(t, 429, r.Status)
	require.Equal(t, "9", header(t, r, charge.HeaderRetryAfter))
	require.Empty(t, header(t, r, HeaderRegistryRelease), "the registry does not matter to it")
	b.meter.verdict.RetryAfter = 0
	require.Empty(t, header(t, b.get("/v1/directors/1"), charge.HeaderRetryAfter))
}

func TestLookupsThatFindNothingOrFail(t *testing.T) {
	for target, c := range map[string]struct {
		code    string
		outcome charge.Outcome
	}{
		"/v1/companies/x":                                            {InvalidCIN, charge.Failed},
		"/v1/directors/123456789":                                    {InvalidDIN, charge.Failed},
		"/v1/llps/x":                                                 {InvalidLLPIN, charge.Failed},
		"/v1/companies/U72900KA2015PTC990001":                        {CompanyNotFound, charge.NotFound},
		"/v1/companies/U72900KA2015PTC99%30":                         {InvalidCIN, charge.Failed},
		"/v1/directors/%31":                                          {"", charge.Found},
		"/v1/search/companies":                                       {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&name=b":                         {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=%ff":                              {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=%zz":                              {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=+":                                {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&limit=0":                        {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&limit=11":                       {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&limit=":                         {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&limit=%3":                       {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&limit=1&limit=1":                {InvalidQuery, charge.Failed},
		"/v1/search/companies?name=a&limit=10":                       {"", charge.Found},
		"/v1/search/companies?name=a&limit=+5%20":                    {"", charge.Found},
		"/v1/search/companies?name=a&limit=9&%zz=1":                  {"", charge.Found},
		"/v1/search/companies?name=" + strings.Repeat("%C3%A9", 200): {"", charge.Found},
		"/v1/search/companies?name=" + strings.Repeat("%C3%A9", 201): {InvalidQuery, charge.Failed},
		"/v1/search/llps?llpin=x":                                    {InvalidLLPIN, charge.Failed},
		"/v1/search/llps?llpin=AAA-1234&llpin=AAA-1234":              {InvalidLLPIN, charge.Failed},
		"/v1/search/llps":                                            {InvalidLLPIN, charge.Failed},
	} {
		b := newBench()
		r := b.get(target)
		require.Equal(t, c.outcome, b.meter.asked[0].Outcome, target)
		if c.code == "" {
			require.Equal(t, 200, r.Status, target)
		} else {
			require.Equal(t, c.code, problemOf(t, r), target)
			require.Equal(t, "59", header(t, r, charge.HeaderRateRemaining), target)
		}
	}
}

func TestTheLimitIsThatOfTheClient(t *testing.T) {
	for query, limit := range map[string]int64{"": 5, "&limit=1": 1, "&limit=9": 9, "&limit=10": 10} {
		b := newBench()
		b.get("/v1/search/companies?name=tea" + query)
		require.Equal(t, limit, b.registry.args[0][8].Int, query)
	}
}

func TestARegistryThatCannotBeReadCostsNothing(t *testing.T) {
	b := newBench()
	b.registry.err = errors.New("away")
	r := b.get("/v1/directors/1")
	require.Equal(t, RegistryUnavailable, problemOf(t, r))
	require.Equal(t, "1", header(t, r, charge.HeaderRetryAfter))
	require.Equal(t, b.registry.err, r.Cause)
	require.Equal(t, charge.Failed, b.meter.asked[0].Outcome)
	b = newBench()
	b.registry.rows[directorStatement] = nil // no row
	require.Equal(t, RegistryUnavailable, problemOf(t, b.get("/v1/directors/1")))
}

func TestIdempotencyKeysAreReadOnceAndChecked(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		ok     bool
	}{
		"none":               {nil, true},
		"one":                {[]string{"idempotency-KEY", "!~"}, true},
		"the longest":        {[]string{"Idempotency-Key", strings.Repeat("x", 64)}, true},
		"too long":           {[]string{"Idempotency-Key", strings.Repeat("x", 65)}, false},
		"empty":              {[]string{"Idempotency-Key", ""}, false},
		"a space":            {[]string{"Idempotency-Key", "a b"}, false},
		"a control":          {[]string{"Idempotency-Key", "a\x7f"}, false},
		"twice":              {[]string{"Idempotency-Key", "a", "Idempotency-Key", "a"}, false},
		"one and another":    {[]string{"Idempotency-Kez", "a b", "Idempotency-Key", "a"}, true},
		"another after one":  {[]string{"Idempotency-Key", "a", "Other", "a"}, true},
		"another of no size": {[]string{"Idempotency-Keys", "a b"}, true},
	} {
		b := newBench()
		r := b.get("/v1/directors/1", c.fields...)
		asked := b.meter.asked[0]
		if !c.ok {
			require.Equal(t, InvalidIdempotency, problemOf(t, r), name)
			require.Empty(t, b.registry.asked, name)
			continue
		}
		require.Equal(t, 200, r.Status, name)
		keyed := strings.Contains(strings.ToLower(strings.Join(c.fields, ",")+","), "idempotency-key,")
		require.Equal(t, keyed, asked.IdempotencyHash != "", name)
		require.Equal(t, keyed, asked.TargetHash != "", name)
	}
	b := newBench()
	b.get("/v1/directors/1", "Idempotency-Key", "one")
	b.get("/v1/directors/2", "Idempotency-Key", "one")
	b.get("/v1/directors/1", "Idempotency-Key", "two")
	first, target, key := b.meter.asked[0], b.meter.asked[1], b.meter.asked[2]
	require.Len(t, first.IdempotencyHash, charge.HashLength)
	require.Equal(t, first.IdempotencyHash, target.IdempotencyHash)
	require.NotEqual(t, first.TargetHash, target.TargetHash)
	require.NotEqual(t, first.IdempotencyHash, key.IdempotencyHash)
	require.Equal(t, first.TargetHash, key.TargetHash)
}

// TestContactsAreReadByThePlan: what the plan does not include is never read.
func TestContactsAreReadByThePlan(t *testing.T) {
	b := newBench()
	b.get("/v1/companies/U72900KA2015PTC990001")
	require.Equal(t, []Value{integer(1), integer(0)}, b.registry.args[0][1:3], "e-mail, and no phone")
	require.Equal(t, ident.CINNumber("U72900KA2015PTC990001"), b.registry.args[0][3].Int)
}

// TestAScreenRefusesForTheRateAlone, and charges nothing.
func TestAScreenRefusesForTheRateAlone(t *testing.T) {
	b := newBench()
	r := request("GET", "/v1/directors/1", "Authorization", "Bearer "+liveKey)
	require.Nil(t, b.Screen(r, b.meter))
	b.meter.exceeded, b.meter.verdict.Code, b.meter.verdict.RetryAfter = true, charge.RateLimitExceeded, 9
	refused := b.Screen(r, b.meter)
	require.Equal(t, charge.RateLimitExceeded, problemOf(t, refused))
	require.Equal(t, "9", header(t, refused, charge.HeaderRetryAfter))
	require.Empty(t, b.registry.asked)
	require.Equal(t, MissingAPIKey, problemOf(t, b.Screen(request("GET", "/v1/directors/1"), b.meter)))
}

func TestAHostsProblemIsLikeTheHandlers(t *testing.T) {
	described, known := FindProblem(Overloaded)
	require.True(t, known)
	r := NewProblem("https://docs.example", described, "id", 3)
	require.Equal(t, Overloaded, problemOf(t, r))
	require.Equal(t, "3", header(t, r, charge.HeaderRetryAfter))
	b := newBench()
	b.meter.verdict.Code = "made_up"
	require.Equal(t, InternalError, problemOf(t, b.get("/v1/directors/1")))
}

// TestABodyOverTheLimitIsRefusedBeforeItIsCharged.
func TestABodyOverTheLimitIsRefusedBeforeItIsCharged(t *testing.T) {
	require.Equal(t, charge.Found, render(&writer{buf: make([]byte, MaxBody)}).outcome)
	require.Equal(t, charge.Failed, render(&writer{buf: make([]byte, MaxBody+1)}).outcome)
}

func TestColumnsAreWrittenByTheirKinds(t *testing.T) {
	for want, write := range map[string]func(w *writer){
		"null":  func(w *writer) { w.boolean(Value{}) },
		"true":  func(w *writer) { w.boolean(integer(1)) },
		"false": func(w *writer) { w.boolean(integer(0)) },
		"-7":    func(w *writer) { w.value(integer(-7)) },
		`""`:    func(w *writer) { w.value(text("")) },
	} {
		var w writer
		write(&w)
		require.Equal(t, want, string(w.buf))
	}
	var w writer
	w.value(Value{})
	require.Equal(t, "null", string(w.buf))
}

func TestRowsOfAResult(t *testing.T) {
	require.Zero(t, (&Result{}).Rows())
	r := Result{Columns: 2, Values: []Value{text("a"), text("b"), text("c"), text("d")}}
	require.Equal(t, 2, r.Rows())
	require.Equal(t, []Value{text("c"), text("d")}, r.Row(1))
	values := request("GET", "", "A", "1", "b", "2", "a", "3").Values("a")
	require.Equal(t, []string{"1", "3"}, values)
}

// TestAShortNumberIsHiddenWhole: its last four digits would be most of it.
func TestAShortNumberIsHiddenWhole(t *testing.T) {
	require.Equal(t, "******", maskPhone("1234567"))
	require.Equal(t, "******5678", maskPhone("12345678"))
	require.Equal(t, "+91******7890", maskPhone("  +911234567890"))
}

// TestTextIsCopiedUpToTheFirstSpecialByte, wherever it is.
func TestTextIsCopiedUpToTheFirstSpecialByte(t *testing.T) {
	for at := range 20 {
		for special, want := range map[string]int{"\x1f": at, "\"": at, "\\": at, "\x80": at, " ": 20, "!": 20, "\x7f": 20, "[": 20, "]": 20, "#": 20} {
			s := strings.Repeat("x", at) + special + strings.Repeat("x", 19-at)
			got := plain(make([]byte, 20), s)
			if want == at { // it may stop at the beginning of eight bytes
				require.True(t, got == at || at < 16 && got == at/8*8, "%q: %d", s, got)
				continue
			}
			require.Equal(t, 20, got, "%q", s)
		}
	}
}
