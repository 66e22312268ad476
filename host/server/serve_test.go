package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/ident"
)

// answerWith answers with a function.
type answerWith func(*handler.Response) error

func (f answerWith) Answer(_ context.Context, _ *handler.Request, a *handler.Response) error {
	return f(a)
}

func (f answerWith) Refuse(_ context.Context, _ *handler.Request, a *handler.Response) bool {
	return f(a) == nil
}

// without makes a server that has no listener, and what it logs.
func without(t *testing.T, config Config) (*Server, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	config.Log, config.Metrics = slog.New(slog.NewTextHandler(log, nil)), prometheus.NewRegistry()
	config.NewRequestID = func() string { return "from-the-server" }
	s, err := New(config)
	require.NoError(t, err)
	return s, log
}

// lookedUp serves a lookup with a key from an address, and returns its exchange.
func lookedUp(s *Server, address, key string) *exchange {
	e := exchanges.Get().(*exchange)
	e.request.Method, e.request.Target = "GET", "/v1/llps/AAA-0001"
	e.request.Headers = append(e.request.Headers, handler.Header{Name: "Authorization", Value: "Bearer " + key})
	s.serve(e, address)
	return e
}

// TestAHeaderMayBeAsLargeAsItsBound, over HTTP/2.
func TestAHeaderMayBeAsLargeAsItsBound(t *testing.T) {
	s, _ := without(t, Config{MaxHeaderBytes: 1000, Answerer: answerWith(func(a *handler.Response) error { a.Status = http.StatusOK; return nil })})
	for size, want := range map[int]int{1000: http.StatusOK, 1001: http.StatusRequestHeaderFieldsTooLarge} {
		r := httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil)
		r.RequestURI = r.URL.RequestURI()
		r.Header.Set("X-Long", strings.Repeat("a", size-len("GET/v1/llps/AAA-0001h")-len("X-Long")))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, size)
	}
}

// TestAnAnswerDuringTheEndIsTheLastOfItsConnection, over HTTP/2: net/http makes a GOAWAY of the field.
func TestAnAnswerDuringTheEndIsTheLastOfItsConnection(t *testing.T) {
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error { a.Status = http.StatusOK; return nil })})
	for draining, want := range map[bool]string{false: "", true: "close"} {
		s.draining.Store(draining)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, want, w.Header().Get("Connection"))
	}
}

// TestAnAnswerWithoutAStatusIsNone: any but a final status breaks the connection, or its client.
func TestAnAnswerWithoutAStatusIsNone(t *testing.T) {
	for got, want := range map[int]int{0: 500, 100: 500, 199: 500, 200: 200, 599: 599, 600: 500} {
		s, log := without(t, Config{Answerer: answerWith(func(a *handler.Response) error { a.Status = got; return nil })})
		require.Equal(t, want, lookedUp(s, "192.0.2.1", ident.SandboxKey).response.Status, got)
		require.Equal(t, want != got, bytes.Contains(log.Bytes(), []byte("the answer has status")), got)
	}
}

// TestNoLookupBeginsOnceConnectionsAreClosed: it would be charged, and its answer not sent.
func TestNoLookupBeginsOnceConnectionsAreClosed(t *testing.T) {
	begun := 0
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error { begun++; a.Status = 200; return nil })})
	s.refusing.Store(true)
	e := lookedUp(s, "192.0.2.1", ident.SandboxKey)
	require.Equal(t, 503, e.response.Status)
	require.Zero(t, begun)
	require.Zero(t, s.inFlight.Load())
}

// TestASuspectIsTrustedAgain after 32 requests that are not refused, and what the
// screen could not do is logged.
func TestASuspectIsTrustedAgain(t *testing.T) {
	screened, status := 0, 429
	refuses := false
	s, log := without(t, Config{
		Answerer: answerWith(func(a *handler.Response) error { a.Status = status; return nil }),
		Screen: answerWith(func(a *handler.Response) error {
			screened++
			if !refuses {
				return errors.New("let through")
			}
			a.Status, a.Cause = 429, errors.New("the screen's cause")
			return nil
		}),
	})
	key := ident.NewKey(func(p []byte) { clear(p) })
	for _, who := range []string{ident.SandboxKey, key} {
		screened, status = 0, 429
		lookedUp(s, "192.0.2.1", who)
		status = 200
		for range 3 * suspicion {
			require.Equal(t, 200, lookedUp(s, "192.0.2.1", who).response.Status)
		}
		require.Equal(t, suspicion, screened)
	}
	status = 429
	lookedUp(s, "192.0.2.1", key)
	status = 200
	for range suspicion / 2 {
		lookedUp(s, "192.0.2.1", key)
	}
	refuses = true
	require.Equal(t, 429, lookedUp(s, "192.0.2.1", key).response.Status)
	require.Contains(t, log.String(), "the screen's cause")
	refuses, screened = false, 0
	for range 3 * suspicion {
		lookedUp(s, "192.0.2.1", key)
	}
	require.Equal(t, suspicion, screened, "the screen's refusal counts like any other")
}

// TestTheSandboxKeyHoldsNobodyUp: everybody uses it, so a client that uses up its rate is held up by address alone. A live key
// is held up at each address.
func TestTheSandboxKeyHoldsNobodyUp(t *testing.T) {
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error { a.Status = 429; return nil })})
	for key, all := range map[string]bool{ident.SandboxKey: false, ident.NewKey(func(p []byte) { clear(p) }): true} {
		one, other := &peer{conn: &counted{address: "192.0.2.1"}}, &peer{conn: &counted{address: "198.51.100.1"}}
		for range 2 * unpaidBurst {
			s.pace(lookedUp(s, "192.0.2.1", key), one)
		}
		require.Positive(t, one.conn.heldUntil())
		s.pace(lookedUp(s, "198.51.100.1", key), other)
		require.Equal(t, all, other.conn.heldUntil() > 0)
	}
}

// billing answers as a handler that charges an account.
type billing struct {
	bill Bill
	code string // of the problem, if there is one
}

func (b *billing) Answer(ctx context.Context, _ *handler.Request, a *handler.Response) error {
	*BillOf(ctx) = b.bill
	a.Status = http.StatusOK
	if b.code != "" {
		p, _ := handler.FindProblem(b.code)
		*a = *handler.NewProblem("", p, "id", 0)
	}
	return nil
}

// TestALookupWithALiveKeyIsReported for the log of the key's requests, with what it cost, and no other lookup is.
func TestALookupWithALiveKeyIsReported(t *testing.T) {
	var reported []Served
	answerer := &billing{}
	s, _ := without(t, Config{Answerer: answerer, Served: func(r Served) { reported = append(reported, r) }})
	for _, c := range []struct {
		billing
		want []Served
	}{
		{billing{Bill{Account: 5, Key: 7, Cost: 1}, ""}, []Served{{Key: 7, Endpoint: "llps", Status: 200, Credits: 1}}},
		{billing{Bill{Account: 5, Key: 7}, charge.InsufficientCredits},
			[]Served{{ID: "id", Key: 7, Endpoint: "llps", Status: 402, Code: charge.InsufficientCredits}}},
		{billing{Bill{Account: 5, Key: 7}, handler.LLPNotFound}, []Served{{ID: "id", Key: 7, Endpoint: "llps", Status: 404, Code: handler.LLPNotFound}}},
		{billing{Bill{Sandbox: true}, ""}, nil},
		{billing{Bill{}, handler.InvalidAPIKey}, nil},
	} {
		*answerer, reported = c.billing, nil
		s.record(lookedUp(s, "192.0.2.1", ""), 0)
		require.Equal(t, c.want, reported)
	}
}

// TestALargeBodyIsNotKept for the next request: a few of them would take the memory of thousands.
func TestALargeBodyIsNotKept(t *testing.T) {
	e := exchanges.New().(*exchange)
	for size, kept := range map[int]bool{maxReusedBytes: true, maxReusedBytes + 1: false} {
		e.response.Body = make([]byte, 0, size)
		e.reset()
		require.Equal(t, kept, cap(e.response.Body) > 0, size)
	}
}

// TestLookupsAreNamedAsTheyAreCharged: the log of a key shows both.
func TestLookupsAreNamedAsTheyAreCharged(t *testing.T) {
	for target, want := range map[string]charge.Endpoint{
		"/v1/companies/x": charge.Companies, "/v1/directors/x": charge.Directors, "/v1/llps/x": charge.LLPs,
		"/v1/search/companies?name=x": charge.SearchCompanies, "/v1/search/llps?name=x": charge.SearchLLPs,
	} {
		require.Equal(t, want.String(), endpointNames[routeOf(target)], target)
	}
	require.Equal(t, routeOther, routeOf("/v1/search/x"))
}

// TestOutcomesAreCountedByWhoHasToDoSomething.
func TestOutcomesAreCountedByWhoHasToDoSomething(t *testing.T) {
	for status, want := range map[int]string{
		200: "answered", 204: "answered", 399: "answered", 400: "invalid", 401: "refused", 402: "refused", 403: "refused", 404: "not_found",
		405: "invalid", 414: "invalid", 429: "refused", 431: "invalid", 500: "failed", 503: "failed",
	} {
		require.Equal(t, want, outcomeNames[outcomeOf(status)], status)
	}
}

// TestNobodyPaysForARefusal, a page, or a malformed request; sandbox and accounts have their own rates.
func TestNobodyPaysForARefusal(t *testing.T) {
	account, sandbox := Bill{Account: 1, Key: 1}, Bill{Sandbox: true}
	for _, c := range []struct {
		route  route
		status int
		bill   Bill
		unpaid bool
	}{
		{routeLLPs, 200, account, false}, {routeLLPs, 404, account, false}, {routeLLPs, 402, account, false}, {routeLLPs, 429, account, true},
		{routeLLPs, 200, sandbox, false}, {routeLLPs, 404, sandbox, false}, {routeLLPs, 429, sandbox, true},
		{routeLLPs, 401, Bill{}, true}, {routeOther, 404, Bill{}, true}, {routeLLPs, 204, Bill{}, true}, {routePage, 200, Bill{}, true},
		{routeInvalid, 400, account, true}, {routeInvalid, 200, account, true}, {routePage, 200, sandbox, true},
	} {
		e := &exchange{route: c.route, bill: c.bill}
		e.response.Status = c.status
		require.Equal(t, c.unpaid, e.unpaid(), "%+v", c)
	}
}

// TestAKeyIsPacedFromManyAddresses, by its refusals alone, and a client behind a
// trusted proxy by its own address.
func TestAKeyIsPacedFromManyAddresses(t *testing.T) {
	s, _ := without(t, Config{})
	key := ident.NewKey(func(p []byte) { clear(p) })
	unknown := ident.NewKey(func(p []byte) { p[0] = 1 })
	answered := func(address, key string, status int) {
		e := exchanges.New().(*exchange)
		e.client, e.response.Status, e.route = address, status, routeLLPs
		e.request.Headers = append(e.request.Headers, handler.Header{Name: "Authorization", Value: "Bearer " + key})
		s.pace(e, &peer{text: "10.0.0.1"})
	}
	for n := range 2 * unpaidBurst {
		answered(fmt.Sprint("192.0.2.", n), key, 429)
		answered("198.51.100.1", unknown, 401)
	}
	now := time.Now()
	require.Positive(t, s.paces.unpaidKey.early(s.shares.slot(key), now))
	require.Zero(t, s.paces.unpaidKey.early(s.shares.slot(unknown), now), "anybody can send it")
	require.Positive(t, s.paces.unpaidAddress.early(s.shares.slot("198.51.100.1"), now))
	require.LessOrEqual(t, s.paces.unpaidAddress.early(s.shares.slot("198.51.100.1"), now), longestHold, "and no longer")
	require.Zero(t, s.paces.unpaidAddress.early(s.shares.slot("10.0.0.1"), now), "the proxy")
	require.Zero(t, s.paces.unpaidAddress.early(s.shares.slot("192.0.2.7"), now))
}

// TestWhoComesEarlyWaitsForTheNextInterval, after a burst, for a limited time.
func TestWhoComesEarlyWaitsForTheNextInterval(t *testing.T) {
	p := &pace{burst: 3, interval: time.Second, longest: 4 * time.Second}
	now := time.Now()
	var waits []time.Duration
	for range 9 {
		waits = append(waits, p.note(7, now))
	}
	second := time.Second
	require.Equal(t, []time.Duration{0, 0, 0, second, 2 * second, 3 * second, 4 * second, 4 * second, 4 * second}, waits)
	require.Equal(t, 4*second, p.early(7, now))
	require.Zero(t, p.early(8, now), "another slot")
	require.Equal(t, 2*second, p.note(7, now.Add(3*second)))
	require.Zero(t, p.early(7, now.Add(5*second)))

	var hold time.Duration
	paces := newPaces()
	for range connectionBurst + 300 {
		hold = paces.connections.note(7, now)
	}
	require.Equal(t, 300*connectionInterval, hold, "connections at once are let in one by one")
}

// TestUnpaidAnswersOverHTTP2AreCounted, also where they come slowly.
func TestUnpaidAnswersOverHTTP2AreCounted(t *testing.T) {
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error { a.Status = 429; return nil })})
	for range 10 * unpaidBurst {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil))
	}
	require.Positive(t, s.paces.unpaidAddress.early(s.shares.slot("192.0.2.1"), time.Now()))
}

// shown serves a request for a page, and returns its exchange.
func shown(s *Server, method, target string, fields ...handler.Header) *exchange {
	e := exchanges.New().(*exchange)
	e.request.Method, e.request.Target, e.request.Authority = method, target, "h"
	e.request.Headers = append(e.request.Headers, fields...)
	s.serve(e, "192.0.2.1")
	return e
}

// TestAPageGetsAllFieldsOfItsRequest, and is shown as what it says it is.
func TestAPageGetsAllFieldsOfItsRequest(t *testing.T) {
	var got []string
	s, _ := without(t, Config{Pages: func(r *httprouter.Router) {
		r.GET("/page", func(w http.ResponseWriter, q *http.Request, _ httprouter.Params) {
			got = q.Header.Values("X-Twice")
			w.Header()["Link"] = got
		})
	}})
	e := shown(s, "GET", "/page", handler.Header{Name: "x-twice", Value: "a"}, handler.Header{Name: "X-Twice", Value: "b"})
	require.Equal(t, 200, e.response.Status)
	require.Equal(t, []string{"a", "b"}, got)
	require.Subset(t, e.response.Headers, []handler.Header{{Name: "Link", Value: "a"}, {Name: "Link", Value: "b"}})
	require.Equal(t, "nosniff", valueOf(e.response.Headers, "X-Content-Type-Options"))
	require.Equal(t, "no-store", valueOf(shown(s, "GET", "/readyz").response.Headers, "Cache-Control"))
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "BREW"} {
		require.Equal(t, 405, shown(s, method, "/page").response.Status, method)
	}
}

// TestARefusedLargePageCountsNoLonger: else refusals would use up all places.
func TestARefusedLargePageCountsNoLonger(t *testing.T) {
	s, _ := without(t, Config{Pages: func(r *httprouter.Router) {
		r.GET("/large", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
			w.Write(make([]byte, maxReusedBytes+1))
		})
	}})
	var sending []*exchange
	for range maxLarge {
		sending = append(sending, shown(s, "GET", "/large"))
	}
	for range 3 {
		e := shown(s, "GET", "/large")
		require.Equal(t, 503, e.response.Status)
		require.Nil(t, e.written)
	}
	sending[0].written()
	require.Equal(t, 200, shown(s, "GET", "/large").response.Status)
	require.EqualValues(t, maxLarge, s.large.Load())
}

// TestWhatTheLibrarySaysIsLoggedWithoutWhatClientsSent, and only at level debug.
func TestWhatTheLibrarySaysIsLoggedWithoutWhatClientsSent(t *testing.T) {
	var log bytes.Buffer
	quiet{slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}.Printf("error when serving %q", "SECRET")
	require.Contains(t, log.String(), "level=DEBUG")
	require.NotContains(t, log.String(), "SECRET")
}

// TestALineHasTheTimeOfItsRequest in microseconds.
func TestALineHasTheTimeOfItsRequest(t *testing.T) {
	s, log := without(t, Config{})
	e := exchanges.New().(*exchange)
	e.response.Status = 200
	s.record(e, 1500*time.Microsecond)
	require.Contains(t, log.String(), "duration_us=1500 ")
}

// TestBothProtocolsHaveAllDeadlines: a client that holds a connection without one would hold it for ever.
func TestBothProtocolsHaveAllDeadlines(t *testing.T) {
	s, _ := without(t, Config{ReadHeaderTimeout: time.Second, WriteTimeout: 2 * time.Second, IdleTimeout: 3 * time.Second, MaxHeaderBytes: 5000, TLS: new(tls.Config)})
	listener := newHandOver(&net.TCPAddr{})
	one := s.newPlain(listener).(plain)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, []time.Duration{one.ReadTimeout, one.WriteTimeout, one.IdleTimeout})
	require.Equal(t, 5000, one.ReadBufferSize)
	two := s.newSecure(listener).(*secure)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, []time.Duration{two.http2.ReadTimeout, two.http2.WriteTimeout, two.http2.IdleTimeout})
	require.Equal(t, []string{"h2", "http/1.1"}, two.config.NextProtos)
	require.Empty(t, s.config.TLS.NextProtos, "the configuration is its caller's")
}

// TestACertificateIsReadOnceAtATime: on a disk that hangs, each minute would begin another attempt.
func TestACertificateIsReadOnceAtATime(t *testing.T) {
	c := &certificate{certFile: filepath.Join(t.TempDir(), "missing.crt"), now: time.Now, log: slog.New(slog.DiscardHandler), reading: true}
	require.Nil(t, c.reread())
	c.reading = false
	read := c.reread()
	require.NotNil(t, read)
	<-read
	require.False(t, c.reading)
	require.Nil(t, c.reread(), "it is due in a minute")
}

// TestAnAddressWithManyKeysIsHeldUp: each of its keys is refused too seldom for a hold of its own.
func TestAnAddressWithManyKeysIsHeldUp(t *testing.T) {
	s, _ := without(t, Config{})
	from := &peer{conn: &counted{address: "192.0.2.1"}}
	for n := range byte(2 * unpaidBurst) {
		e := exchanges.New().(*exchange)
		e.client, e.response.Status = "192.0.2.1", http.StatusTooManyRequests
		key := ident.NewKey(func(p []byte) { clear(p); p[0] = n })
		e.request.Headers = []handler.Header{{Name: "Authorization", Value: "Bearer " + key}}
		s.pace(e, from)
	}
	require.Positive(t, from.conn.heldUntil())
}
