package regedge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const company = `{"data":{"cin":"U72900ZZ2015PTC000001","company_name":"A"},"meta":{"request_id":"01","credits_remaining":9,"sandbox":false}}`

// service answers the n-th attempt with the n-th of steps, and every later one with the last.
type service struct {
	*httptest.Server
	keys  []string // the Idempotency-Key of each attempt
	asked string   // path and query of the last one
	steps []func(http.ResponseWriter)
}

func serve(t *testing.T, steps ...func(http.ResponseWriter)) *service {
	s := &service{steps: steps}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.keys, s.asked = append(s.keys, r.Header.Get("Idempotency-Key")), r.RequestURI
		s.steps[min(len(s.keys), len(s.steps))-1](w)
	}))
	t.Cleanup(s.Close)
	return s
}

// client has a sleep that records pauses and takes no time.
func (s *service) client(t *testing.T, config Config) (*Client, *[]time.Duration) {
	t.Helper()
	config.BaseURL = s.URL
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	c.sleep = func(ctx context.Context, pause time.Duration) error {
		pauses = append(pauses, pause)
		return ctx.Err()
	}
	return c, &pauses
}

func found(w http.ResponseWriter) { io.WriteString(w, company) }

// lost breaks the connection in the middle of an answer.
func lost(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, company[:20])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func problem(status int, code Code, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("X-Request-Id", "01ID")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"https://docs/problems/%s","title":"T","status":%d,"detail":"D","code":"%s","request_id":"01ID"}`, code, status, code)
	}
}

func TestALostAnswerIsAskedForAgainUnderTheSameIdempotencyKey(t *testing.T) {
	s := serve(t, lost, problem(503, Overloaded, "Retry-After", "1"), func(w http.ResponseWriter) {
		w.Header().Set("Idempotent-Replayed", "true")
		found(w)
	})
	c, pauses := s.client(t, Config{})
	got, err := c.Company(context.Background(), "U72900ZZ2015PTC000001")
	if err != nil {
		t.Fatal(err)
	}
	if got.Attempts != 3 || !got.Replayed || *got.CreditsRemaining != 9 || got.Data.Name != "A" {
		t.Errorf("got %+v, want the third attempt's answer, replayed", got)
	}
	if len(s.keys) != 3 || len(s.keys[0]) != 32 || s.keys[1] != s.keys[0] || s.keys[2] != s.keys[0] {
		t.Errorf("keys of the attempts: got %q, want one random key three times", s.keys)
	}
	if len(*pauses) != 2 || (*pauses)[1] < time.Second {
		t.Errorf("pauses: got %v, want the second at least the Retry-After of 1s", *pauses)
	}
	if _, err := c.Company(context.Background(), "U72900ZZ2015PTC000001"); err != nil || s.keys[3] == s.keys[0] {
		t.Errorf("another call: got error %v, key %q, want a key of its own", err, s.keys[3])
	}
}

func TestWhatARetryCannotMendIsReturnedAtOnce(t *testing.T) {
	for name, step := range map[Code]func(http.ResponseWriter){
		CompanyNotFound:       problem(404, CompanyNotFound),
		InsufficientCredits:   problem(402, InsufficientCredits),
		IdempotencyKeyReused:  problem(422, IdempotencyKeyReused),
		InvalidAPIKey:         problem(401, InvalidAPIKey),
		MonthlyVolumeExceeded: problem(429, MonthlyVolumeExceeded, "Retry-After", "86400"),
		RateLimitExceeded:     problem(429, RateLimitExceeded, "Retry-After", "31"), // longer than MaxWait by default
	} {
		t.Run(string(name), func(t *testing.T) {
			s := serve(t, step)
			c, _ := s.client(t, Config{})
			_, err := c.Company(context.Background(), "x")
			var answered *Error
			if !errors.Is(err, name) || !errors.As(err, &answered) || len(s.keys) != 1 {
				t.Fatalf("got %v after %d attempts, want %s after 1", err, len(s.keys), name)
			}
			if want := fmt.Sprintf("%d %s: D (request 01ID)", answered.Status, name); err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
			if answered.RequestID != "01ID" || answered.Detail != "D" || !strings.HasSuffix(answered.Type, string(name)) {
				t.Errorf("got %+v, want the problem's fields", answered)
			}
			if want := map[Code]time.Duration{MonthlyVolumeExceeded: 24 * time.Hour, RateLimitExceeded: 31 * time.Second}[name]; answered.RetryAfter != want {
				t.Errorf("RetryAfter: got %s, want %s", answered.RetryAfter, want)
			}
		})
	}
}

func TestWhatMayPassIsRetried(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503} {
		s := serve(t, problem(status, ""), found)
		c, _ := s.client(t, Config{})
		if got, err := c.Company(context.Background(), "x"); err != nil || got.Attempts != 2 {
			t.Errorf("%d: got %v, %v, want the second attempt's answer", status, got, err)
		}
	}
}

func TestRetriesEnd(t *testing.T) {
	s := serve(t, problem(503, RegistryUnavailable, "Retry-After", "1"))
	c, pauses := s.client(t, Config{MaxRetries: 2})
	_, err := c.FindLLP(context.Background(), "AAA-0001")
	if !errors.Is(err, RegistryUnavailable) || len(s.keys) != 3 || len(*pauses) != 2 {
		t.Errorf("got %v after %d attempts, want registry_unavailable after 3", err, len(s.keys))
	}
	c, _ = s.client(t, Config{MaxRetries: -1})
	s.keys = nil
	if _, err = c.FindLLP(context.Background(), "AAA-0001"); len(s.keys) != 1 {
		t.Errorf("without retries: %d attempts (%v), want 1", len(s.keys), err)
	}
}

func TestACallWithoutAnswerSaysUnderWhichKeyToAskAgain(t *testing.T) {
	s := serve(t, lost)
	c, _ := s.client(t, Config{})
	_, err := c.Director(context.Background(), "1", WithIdempotencyKey("mine"))
	var unanswered *UnansweredError
	if !errors.As(err, &unanswered) || unanswered.IdempotencyKey != "mine" || unanswered.Attempts != 4 {
		t.Errorf("got %v, want an UnansweredError of 4 attempts with the key", err)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the failure of the last attempt in it", err)
	}
}

// TestAProblemAfterALostAnswerSaysUnderWhichKeyToAskAgain, since the lost one may have been charged.
func TestAProblemAfterALostAnswerSaysUnderWhichKeyToAskAgain(t *testing.T) {
	s := serve(t, lost, problem(503, Overloaded))
	c, _ := s.client(t, Config{})
	_, err := c.Director(context.Background(), "1")
	var answered *Error
	if !errors.As(err, &answered) || answered.Attempts != 4 || answered.IdempotencyKey == "" || answered.IdempotencyKey != s.keys[0] {
		t.Errorf("got %+v, want an Error of 4 attempts with the key %s", answered, s.keys[0])
	}
}

func TestASuccessWithoutMetaIsNone(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter) {
		w.Header().Set("X-Request-Id", "01ID")
		io.WriteString(w, `{"data":{"cin":"U72900ZZ2015PTC000001"}}`)
	})
	c, _ := s.client(t, Config{})
	if got, err := c.Company(context.Background(), "x"); err == nil || err.Error() != "read the answer of 01ID: it has no meta" || len(s.keys) != 1 {
		t.Errorf("got %v, %v after %d attempts, want an error after 1", got, err, len(s.keys))
	}
}

// TestAPageInPlaceOfAnAnswerIsCalledThat, such as the sign-in page of a network.
func TestAPageInPlaceOfAnAnswerIsCalledThat(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter) { io.WriteString(w, "<html>") })
	c, _ := s.client(t, Config{})
	if _, err := c.Company(context.Background(), "x"); err == nil || !strings.HasPrefix(err.Error(), "read an answer that is not of this service: ") {
		t.Errorf("got %v", err)
	}
}

// TestASuccessWithoutDataIsNone: a company without a CIN would be taken for one, and null for a search that found nothing.
func TestASuccessWithoutDataIsNone(t *testing.T) {
	for _, body := range []string{`{"meta":{"request_id":"01ID"}}`, `{"data":null,"meta":{"request_id":"01ID"}}`} {
		s := serve(t, func(w http.ResponseWriter) {
			w.Header().Set("X-Request-Id", "01ID")
			io.WriteString(w, body)
		})
		c, _ := s.client(t, Config{})
		const want = "read the answer of 01ID: it has no data"
		if got, err := c.Company(context.Background(), "x"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, %v", body, got, err)
		}
		if got, err := c.Search(context.Background(), "x", 0); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, %v", body, got, err)
		}
	}
}

func TestAnAttemptThatHangsIsRepeated(t *testing.T) {
	var hung atomic.Bool
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hung.CompareAndSwap(false, true) {
			<-end
		}
		found(w)
	}))
	defer server.Close()
	defer close(end)
	c, err := New(Config{BaseURL: server.URL, Timeout: 200 * time.Millisecond, MaxRetries: 20}) // a busy machine needs more
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Company(context.Background(), "x")
	if err != nil || got.Attempts < 2 {
		t.Errorf("got %v, %v, want an answer of a later attempt", got, err)
	}
}

func TestAnAttemptThatHangsIsCalledThat(t *testing.T) {
	end := make(chan struct{})
	s := serve(t, func(http.ResponseWriter) { <-end })
	defer close(end)
	c, _ := s.client(t, Config{Timeout: 50 * time.Millisecond, MaxRetries: -1})
	_, err := c.Company(context.Background(), "x")
	if err == nil || !strings.Contains(err.Error(), "no answer after 1 attempts: no answer within 50ms") || strings.Count(err.Error(), "50ms") > 1 {
		t.Errorf("got %v, want the timeout of the attempt, once", err)
	}
}

// TestARetryTakesAnotherConnection where the one before is silent, as after a NAT forgot it: HTTP/2 would send all retries, and
// all later calls, over the same one.
func TestARetryTakesAnotherConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { found(w) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	between, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close()
	var opened, silent atomic.Int32 // so many connections, the first ones, pass on nothing more
	go func() {
		for {
			near, err := between.Accept()
			if err != nil {
				return
			}
			number := opened.Add(1)
			far, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				return
			}
			for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
				go func() {
					defer to.Close()
					buffer := make([]byte, 64<<10)
					for {
						n, err := from.Read(buffer)
						if err != nil {
							return
						}
						if silent.Load() < number {
							to.Write(buffer[:n])
						}
					}
				}()
			}
		}
	}()
	transport := newHTTPClient().Transport.(*http.Transport)
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{}
	}
	transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	defer transport.CloseIdleConnections()
	c, err := New(Config{BaseURL: "https://" + between.Addr().String(), Timeout: 200 * time.Millisecond, MaxRetries: 20, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if _, err := c.Company(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	silent.Store(opened.Load())
	if got, err := c.Company(context.Background(), "x"); err != nil || got.Attempts < 2 {
		t.Errorf("got %v, %v, want the answer of a retry", got, err)
	}
}

func TestTheContextEndsACall(t *testing.T) {
	s := serve(t, problem(503, Overloaded, "Retry-After", "20"))
	c, err := New(Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.sleep = func(ctx context.Context, pause time.Duration) error {
		cancel() // the service has answered
		return sleep(ctx, pause)
	}
	_, err = c.Search(ctx, "name", 0)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, Overloaded) {
		t.Errorf("got %v, want both the end of the context and what the service had said", err)
	}
}

// TestTheErrorOfAnEndedCallNamesTheCauseOnce, and is the context's own too, whichever version of HTTP the call was made by.
func TestTheErrorOfAnEndedCallNamesTheCauseOnce(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		begun := make(chan struct{}, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			<-r.Context().Done()
		}))
		s.EnableHTTP2 = http2
		s.StartTLS()
		defer s.Close()
		c, err := New(Config{BaseURL: s.URL, HTTPClient: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		left := errors.New("the visitor left")
		go func() {
			<-begun
			cancel(left)
		}()
		_, err = c.Company(ctx, "x")
		if want := "no answer after 1 attempts: the visitor left"; err == nil || err.Error() != want {
			t.Errorf("HTTP/2 %v: got %q, want %q", http2, err, want)
		}
		if !errors.Is(err, left) || !errors.Is(err, context.Canceled) {
			t.Errorf("HTTP/2 %v: got %#v, want both the cause and what the context says", http2, err)
		}
		if of := new(url.Error); !errors.As(err, &of) || of.Op != "Get" {
			t.Errorf("HTTP/2 %v: got %#v, want also the error of net/http", http2, err)
		}
	}
}

func TestTheKeyFollowsNoRedirect(t *testing.T) {
	elsewhere := serve(t, found)
	s := serve(t, func(w http.ResponseWriter) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusFound)
	})
	c, _ := s.client(t, Config{})
	_, err := c.Company(context.Background(), "x")
	var answered *Error
	if !errors.As(err, &answered) || answered.Status != http.StatusFound || len(elsewhere.keys) != 0 {
		t.Errorf("got %v and %d calls elsewhere, want the 302 as an error", err, len(elsewhere.keys))
	}
}

// TestAProgramMayReplaceTheDefaultTransport: tracing libraries put their own round tripper in its place.
func TestAProgramMayReplaceTheDefaultTransport(t *testing.T) {
	type traced struct{ http.RoundTripper }
	replaced := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = replaced })
	http.DefaultTransport = traced{replaced}
	s := serve(t, found)
	c, _ := s.client(t, Config{})
	if got, err := c.Company(context.Background(), "x"); err != nil || got.Data.Name != "A" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for _, config := range []Config{{BaseURL: "localhost:8080"}, {BaseURL: "ftp://host"}, {BaseURL: ":"}, {APIKey: "reg_live_x\n"}, {APIKey: "reg_live_x "}} {
		if c, err := New(config); err == nil {
			t.Errorf("%+v: got %v, want an error", config, c)
		}
	}
	for address, want := range map[string]string{
		"127.0.0.1:8080":             `BaseURL: want an address such as http://127.0.0.1:8080, got "127.0.0.1:8080"`,
		"http://127.0.0.1:99999":     `BaseURL: want an address such as http://127.0.0.1:8080, got "http://127.0.0.1:99999"`,
		"https://api.example.org/v1": `BaseURL: want the address without /v1, which each call adds; got "https://api.example.org/v1"`,
		"http://127.0.0.1:8080?a=1":  `BaseURL: want the address without ? and #; got "http://127.0.0.1:8080?a=1"`,
		"http://127.0.0.1:8080/#a":   `BaseURL: want the address without ? and #; got "http://127.0.0.1:8080/#a"`,
		"http://127.0.0.1:8080/v1/":  `BaseURL: want the address without /v1, which each call adds; got "http://127.0.0.1:8080/v1/"`,
	} {
		if _, err := New(Config{BaseURL: address}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
}

func TestAHeaderThatCanNotBeSentIsRefused(t *testing.T) {
	for _, header := range []http.Header{{"no name": {"x"}}, {"": {"x"}}, {"a:b": {"x"}}, {"é": {"x"}}, {"X": {"fine", "a\nb"}}, {"X": {"a\x7fb"}}} {
		if _, err := New(Config{Header: header}); err == nil || !strings.Contains(err.Error(), "can't be sent") {
			t.Errorf("%q: got %v", header, err)
		}
	}
	if _, err := New(Config{Header: http.Header{"traceparent": {"00-1"}, "X-Name": {"\tcafé "}, "X-None": nil}}); err != nil {
		t.Error(err)
	}
}

func TestSuggestions(t *testing.T) {
	for value, want := range map[string][]string{
		"":                                   nil,
		`"TATA MOTORS", "TATA \"X\" \\ LTD"`: {"TATA MOTORS", `TATA "X" \ LTD`},
		`"%E0%A4%86 50%"`:                    {"%E0%A4%86 50%"}, // not percent-encoded: kept as it is
		`"%E0%A4%86 50%25"`:                  {"आ 50%"},
		`"A+B LTD"`:                          {"A+B LTD"},
		`"open`:                              nil,
		`"open\`:                             nil,
		`token`:                              nil,
		`"a" "b"`:                            nil,
	} {
		if got := suggestions(http.Header{"Search-Suggestion": {value}}); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

func TestPausesGrowAndStayWithinTheirBounds(t *testing.T) {
	for attempts, most := range []time.Duration{0, firstPause, 2 * firstPause, 4 * firstPause, 8 * firstPause, 16 * firstPause, longestPause, longestPause} {
		if attempts == 0 {
			continue
		}
		for range 100 {
			if got := randomPause(attempts); got < most/2 || got > most {
				t.Fatalf("pause after %d attempts: got %s, want %s to %s", attempts, got, most/2, most)
			}
		}
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "-3": 0, "soon": 0, "9300000000": longestRetryAfter, "93000000000000000000": longestRetryAfter,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func TestAPauseOfMaxWaitIsWaitedFor(t *testing.T) {
	for asked, attempts := range map[string]int{"30": 2, "31": 1} {
		s := serve(t, problem(429, RateLimitExceeded, "Retry-After", asked), found)
		c, pauses := s.client(t, Config{MaxWait: 30 * time.Second})
		if _, err := c.Company(context.Background(), "x"); len(s.keys) != attempts || (err == nil) != (attempts == 2) {
			t.Errorf("Retry-After %s: %d attempts (%v, pauses %v), want %d", asked, len(s.keys), err, *pauses, attempts)
		}
	}
}

// TestNoPauseIsLongerThanMaxWait: a short one is no reason to give up.
func TestNoPauseIsLongerThanMaxWait(t *testing.T) {
	s := serve(t, lost, problem(503, Overloaded), found)
	c, pauses := s.client(t, Config{MaxWait: time.Millisecond})
	got, err := c.Company(context.Background(), "x")
	if err != nil || got.Attempts != 3 || len(*pauses) != 2 || slices.Max(*pauses) > time.Millisecond {
		t.Errorf("got %v, %v after pauses %v, want the third attempt's answer after 1ms each", got, err, *pauses)
	}
}

// TestAPauseIsTheLongerOfTheClientsAndTheServices: a service that is down is asked ever less often.
func TestAPauseIsTheLongerOfTheClientsAndTheServices(t *testing.T) {
	for asked, least := range map[string]time.Duration{"0": firstPause / 2, "1": time.Second} {
		s := serve(t, problem(503, Overloaded, "Retry-After", asked))
		c, pauses := s.client(t, Config{MaxRetries: 5})
		if _, err := c.Company(context.Background(), "x"); err == nil || len(*pauses) != 5 {
			t.Fatalf("got %v after pauses %v, want an error after 5", err, *pauses)
		}
		if got := *pauses; slices.Min(got) < least || got[4] < 8*firstPause {
			t.Errorf("Retry-After %s: got pauses %v, want each from %s on, and the last from %s on", asked, got, least, 8*firstPause)
		}
	}
}

func TestWhatIsAskedFor(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter) {
		w.Header().Set("RateLimit-Reset", "30")
		w.Header().Set("X-Registry-Release", "r1")
		io.WriteString(w, `{"data":[],"meta":{}}`)
	})
	c, err := New(Config{BaseURL: s.URL + "/api//"})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range []string{"name=a+%26+b", "limit=1&name=a+%26+b", "limit=2&name=a+%26+b"} {
		got, err := c.Search(context.Background(), "a & b", limit)
		if err != nil || s.asked != "/api/v1/search/companies?"+want {
			t.Fatalf("limit %d: asked for %q (%v), want %q", limit, s.asked, err, want)
		}
		if reset := got.RateLimit.Reset; reset == nil || *reset != 30*time.Second {
			t.Errorf("reset: got %v, want 30s", reset)
		}
		if got.Release != "r1" {
			t.Errorf("release: got %q, want r1", got.Release)
		}
	}
	for want, call := range map[string]func() error{
		"companies": func() error { _, err := c.Company(context.Background(), "a/b?c"); return err },
		"directors": func() error { _, err := c.Director(context.Background(), "a/b?c"); return err },
		"llps":      func() error { _, err := c.LLP(context.Background(), "a/b?c"); return err },
	} {
		if call(); s.asked != "/api/v1/"+want+"/a%2Fb%3Fc" {
			t.Errorf("asked for %q, want it of the %s, in one part of the path", s.asked, want)
		}
	}
}

func TestAnAnswerThatIsTooLongIsNone(t *testing.T) {
	for size, want := range map[int]bool{maxBody: true, maxBody + 1: false} {
		s := serve(t, func(w http.ResponseWriter) { io.WriteString(w, company+strings.Repeat(" ", size-len(company))) })
		c, _ := s.client(t, Config{MaxRetries: -1})
		_, err := c.Company(context.Background(), "x")
		var unanswered *UnansweredError
		if (err == nil) != want || err != nil && !errors.As(err, &unanswered) {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

// TestSuggestionsOfSeveralLines: a proxy may divide a list (RFC 9110, section 5.3).
func TestSuggestionsOfSeveralLines(t *testing.T) {
	got := suggestions(http.Header{"Search-Suggestion": {`"TATA MOTORS"`, `"TATA STEEL", "TATA POWER"`}})
	if want := []string{"TATA MOTORS", "TATA STEEL", "TATA POWER"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHeadersOfTheConfigurationReplaceNoneOfTheCall(t *testing.T) {
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		found(w)
	}))
	defer server.Close()
	header := http.Header{
		"Traceparent": {"00-trace"}, "Authorization": {"Bearer other"}, "Idempotency-Key": {"other"},
		"authorization": {"Bearer third"}, "idempotency-key": {"third"}, "user-agent": {"third"},
	}
	c, err := New(Config{BaseURL: server.URL, APIKey: "mine", Header: header})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Company(context.Background(), "x", WithIdempotencyKey("own")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Traceparent": "00-trace", "Authorization": "Bearer mine", "Idempotency-Key": "own", "User-Agent": "regedge-go/" + Version} {
		if values := got.Values(name); len(values) != 1 || values[0] != want {
			t.Errorf("%s: got %q, want %q", name, values, want)
		}
	}
	c, err = New(Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Company(context.Background(), "x"); err != nil || got.Get("Authorization") != "Bearer "+SandboxKey {
		t.Errorf("without a key: got %q (%v), want the sandbox key", got.Get("Authorization"), err)
	}
}

// TestAKeyThatNoHeaderTakesIsRefusedAtOnce, and not as a call that may have been charged.
func TestAKeyThatNoHeaderTakesIsRefusedAtOnce(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	defer server.Close()
	c, err := New(Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var unanswered *UnansweredError
	_, err = c.Company(context.Background(), "x", WithIdempotencyKey("a\nb"))
	if err == nil || errors.As(err, &unanswered) || !strings.Contains(err.Error(), "control character") || sent > 0 {
		t.Errorf("got %v after %d requests", err, sent)
	}
}

func TestEachRateLimitIsReadFromItsHeader(t *testing.T) {
	got := rateLimit(http.Header{"Ratelimit-Limit": {"60"}, "Ratelimit-Remaining": {"59"}, "Ratelimit-Reset": {"7"}})
	if *got.Limit != 60 || *got.Remaining != 59 || *got.Reset != 7*time.Second {
		t.Errorf("got %d, %d, %s, want 60, 59, 7s", *got.Limit, *got.Remaining, *got.Reset)
	}
	if got := rateLimit(http.Header{"Ratelimit-Limit": {"60"}}); *got.Limit != 60 || got.Remaining != nil || got.Reset != nil {
		t.Errorf("of the limit alone: got %+v, want nothing else", got)
	}
}

// transport sends requests, and lets a test look at them and at their answers.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// body notes that it was closed.
type body struct {
	io.ReadCloser
	closed *int
}

func (b body) Close() error {
	*b.closed++
	return b.ReadCloser.Close()
}

// TestAnAttemptEndsAfterTenSeconds by default, and leaves nothing open, whatever its answer.
func TestAnAttemptEndsAfterTenSeconds(t *testing.T) {
	s := serve(t, problem(503, Overloaded), problem(404, CompanyNotFound))
	closed := 0
	var attempts []context.Context
	c, _ := s.client(t, Config{HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		deadline, limited := r.Context().Deadline()
		if left := time.Until(deadline); !limited || left > 10*time.Second || left < 5*time.Second {
			t.Errorf("got %s for an attempt, want 10s", left)
		}
		attempts = append(attempts, r.Context())
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			response.Body = body{response.Body, &closed}
		}
		return response, err
	})}})
	if _, err := c.Company(context.Background(), "x"); !errors.Is(err, CompanyNotFound) {
		t.Fatal(err)
	}
	if len(attempts) != 2 || closed < 2 {
		t.Errorf("%d attempts, %d answers were closed, want 2 of each", len(attempts), closed)
	}
	for _, attempt := range attempts {
		if attempt.Err() == nil {
			t.Error("the timer of an attempt goes on after it")
		}
	}
}

// TestConnectionsAreKept for the next calls, also of many goroutines.
func TestConnectionsAreKept(t *testing.T) {
	const many = 16
	var opened atomic.Int32
	arrived, all := make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-all
		found(w)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := New(Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		failed := make(chan error)
		for range many {
			go func() {
				_, err := c.Company(context.Background(), "x")
				failed <- err
			}()
		}
		for range many {
			<-arrived
		}
		for range many {
			all <- struct{}{}
		}
		for range many {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
	}
	if opened.Load() > many+many/2 {
		t.Errorf("%d connections for twice %d calls at a time, want them to be used again", opened.Load(), many)
	}
}

func TestAnErrorHasItsCodeAndWhatTheServiceSaidBesideIt(t *testing.T) {
	s := serve(t, problem(403, AccountSuspended, "RateLimit-Limit", "60"))
	c, _ := s.client(t, Config{})
	_, err := c.Company(context.Background(), "x")
	var answered *Error
	if !errors.As(err, &answered) || answered.RateLimit.Limit == nil || *answered.RateLimit.Limit != 60 || answered.Type != "https://docs/problems/account_suspended" {
		t.Errorf("got %+v", answered)
	}
	if want := "403 account_suspended: D (request 01ID)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestAnAnswerThatIsNotOfTheServiceHasNoCode, and says so.
func TestAnAnswerThatIsNotOfTheServiceHasNoCode(t *testing.T) {
	s := serve(t, problem(503, Overloaded), func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "<html>")
	})
	c, _ := s.client(t, Config{})
	_, err := c.Company(context.Background(), "x")
	var answered *Error
	if !errors.As(err, &answered) || answered.Code != "" || answered.Attempts != 2 || err.Error() != "403 an answer that is not of this service" {
		t.Errorf("got %+v, want an error without a code, after two attempts", err)
	}
	if errors.Is(err, InternalError) {
		t.Error("it is no error of the service")
	}
}

func TestAResultHasWhatTheServiceSaidBesideIt(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter) {
		w.Header().Set("Search-Suggestion", `"TATA MOTORS"`)
		w.Header().Set("Idempotent-Replayed", "false")
		io.WriteString(w, `{"data":[],"meta":{"request_id":"01","credits_remaining":null,"sandbox":true}}`)
	}, problem(404, CompanyNotFound))
	c, _ := s.client(t, Config{})
	got, err := c.Search(context.Background(), "tata", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.RequestID != "01" || !got.Sandbox || got.CreditsRemaining != nil || got.Replayed || !slices.Equal(got.Suggestions, []string{"TATA MOTORS"}) {
		t.Errorf("got %+v", got)
	}
	var answered *Error
	if _, err := c.Company(context.Background(), "x"); !errors.As(err, &answered) || answered.Title != "T" || answered.Detail != "D" {
		t.Errorf("got %+v, want the title and the detail, each in its field", answered)
	}
}

// TestWhatIsNotSetHasItsDefault, and so has what is negative; and calls go through the proxy of the environment.
func TestWhatIsNotSetHasItsDefault(t *testing.T) {
	for _, config := range []Config{{}, {Timeout: -1, MaxWait: -1}} {
		c, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		if c.base != "http://127.0.0.1:8080" || c.config.Timeout != 10*time.Second || c.config.MaxWait != 30*time.Second || c.config.MaxRetries != 3 {
			t.Errorf("%+v: got %+v", config, c.config)
		}
		if transport, ok := c.config.HTTPClient.Transport.(*http.Transport); !ok || transport.Proxy == nil || transport == http.DefaultTransport {
			t.Errorf("got %+v, want a transport of its own, with the proxy of the environment", c.config.HTTPClient.Transport)
		}
	}
}
