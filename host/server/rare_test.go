package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	client "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/tracing"
	"regedge/internal/testkit/collector"
)

// TestALimitOfZeroIsItsDefault, and any other one is kept.
func TestALimitOfZeroIsItsDefault(t *testing.T) {
	limits := func(c Config) []any {
		c = c.withDefaults()
		return []any{c.ReadHeaderTimeout, c.WriteTimeout, c.IdleTimeout, c.DrainTimeout, c.MaxHeaderBytes, c.MaxTargetBytes, c.MaxInFlight, c.MaxConnections, c.MaxConnectionsPerAddress}
	}
	require.Equal(t, []any{
		DefaultReadHeaderTimeout, DefaultWriteTimeout, DefaultIdleTimeout, DefaultDrainTimeout,
		DefaultMaxHeaderBytes, DefaultMaxTargetBytes, DefaultMaxInFlight, DefaultMaxConnections, DefaultMaxConnectionsPerAddress,
	}, limits(Config{}))
	require.Equal(t, []any{time.Duration(1), time.Duration(2), time.Duration(3), time.Duration(4), 5, 6, 7, 8, 9}, limits(Config{
		ReadHeaderTimeout: 1, WriteTimeout: 2, IdleTimeout: 3, DrainTimeout: 4, MaxHeaderBytes: 5, MaxTargetBytes: 6, MaxInFlight: 7,
		MaxConnections: 8, MaxConnectionsPerAddress: 9,
	}))
}

// TestAListenerThatIsNotServedIsClosed: its clients would wait for answers, and its port be taken.
func TestAListenerThatIsNotServedIsClosed(t *testing.T) {
	s, _ := without(t, Config{})
	_, err := s.newBounded(nil)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorContains(t, s.Run(t.Context(), listener), "duplicate")
	_, err = net.Dial("tcp", listener.Addr().String())
	require.Error(t, err)
}

// TestNothingIsChargedOnceConnectionsAreClosed, over HTTP/2: net/http may close one that has just got a request.
func TestNothingIsChargedOnceConnectionsAreClosed(t *testing.T) {
	s, _ := without(t, Config{TLS: new(tls.Config), Answerer: answerWith(func(*handler.Response) error { return errors.New("it was asked") })})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.newSecure(listener).shutdown(t.Context()))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
}

// TestAFieldThatComesTwiceIsSentTwice, over HTTP/2.
func TestAFieldThatComesTwiceIsSentTwice(t *testing.T) {
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error {
		a.Status, a.Headers = 200, append(a.Headers, handler.Header{Name: "Link", Value: "a"}, handler.Header{Name: "Link", Value: "b"})
		return nil
	})})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil))
	require.Equal(t, []string{"a", "b"}, w.Header()["Link"])
}

// slowClient takes its answer slowly.
type slowClient struct {
	*httptest.ResponseRecorder
	take func()
}

func (c slowClient) Write(p []byte) (int, error) {
	c.take()
	return c.ResponseRecorder.Write(p)
}

// TestTheTimeOfARequestIsWithoutItsSending, over HTTP/2: a slow client would look like a slow server.
func TestTheTimeOfARequestIsWithoutItsSending(t *testing.T) {
	now := time.Unix(1000, 0)
	s, log := without(t, Config{Now: func() time.Time { return now }, Answerer: answerWith(func(a *handler.Response) error {
		now = now.Add(7 * time.Microsecond)
		a.Status, a.Body = 200, append(a.Body, "{}"...)
		return nil
	})})
	s.ServeHTTP(slowClient{httptest.NewRecorder(), func() { now = now.Add(time.Second) }}, httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil))
	require.Contains(t, log.String(), "duration_us=7 ")
}

func TestMethodsOfTheStandardAreLoggedByName(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"} {
		require.Equal(t, method, knownMethod(method))
	}
	for _, method := range []string{"", "get", "BREW", "reg_live_secret"} {
		require.Equal(t, "other", knownMethod(method))
	}
}

// TestLinesAreWrittenAtEachInterval, also by a server that is not busy.
func TestLinesAreWrittenAtEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to bytes.Buffer
		b := NewLogBuffer(&to)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.Run(ctx, time.Second)
		}()
		for _, want := range []string{"one\n", "one\none\n"} {
			_, err := b.Write([]byte("one\n"))
			require.NoError(t, err)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, want, to.String())
		}
		end()
		<-ended
	})
}

// TestTheMemoryOfManyWaitingLinesIsNotKept once they are written.
func TestTheMemoryOfManyWaitingLinesIsNotKept(t *testing.T) {
	b := NewLogBuffer(io.Discard)
	_, err := b.Write(make([]byte, maxWaitingBytes))
	require.NoError(t, err)
	require.NoError(t, b.Flush())
	b.mu.Lock()
	defer b.mu.Unlock()
	require.LessOrEqual(t, cap(b.spare)+cap(b.waiting), 2*maxBufferedBytes)
}

// TestAPageThatIsMissingIsNoPageForAProgram, in log and metrics.
func TestAPageThatIsMissingIsNoPageForAProgram(t *testing.T) {
	s, log := without(t, Config{
		Answerer: answerWith(func(a *handler.Response) error { a.Status = 404; return nil }),
		Pages: func(r *httprouter.Router) {
			r.GET("/guides/:name", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) { w.WriteHeader(404) })
		},
	})
	s.record(shown(s, "GET", "/guides/none"), 0)
	require.Contains(t, log.String(), "route=other status=404")
	s.record(shown(s, "GET", "/guides/none", handler.Header{Name: "Accept", Value: "text/html"}), 0)
	require.Contains(t, log.String(), "route=page status=404")
}

// TestWhoIsRefusedForItsAddressGivesBackWhatItTook, and no more: its key's count would fall below zero, and others of it
// get more than their share.
func TestWhoIsRefusedForItsAddressGivesBackWhatItTook(t *testing.T) {
	s := newShares(Config{MaxInFlight: 4}.withDefaults(), new(atomic.Int64))
	request := func(key string) *handler.Request {
		return &handler.Request{Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}}}
	}
	var inFlight []ticket
	for n := range byte(4) {
		turn, _ := s.enter(request(ident.NewKey(func(p []byte) { clear(p); p[0] = n })), "192.0.2.1")
		inFlight = append(inFlight, turn)
	}
	for _, key := range []string{ident.SandboxKey, ident.NewKey(func(p []byte) { clear(p); p[0] = 100 })} {
		turn, may := s.enter(request(key), "192.0.2.1")
		require.False(t, may)
		s.leave(turn)
	}
	for _, turn := range inFlight {
		s.leave(turn)
	}
	require.Zero(t, s.strangers.Load())
	require.Zero(t, s.keys.busy.Load())
	require.Equal(t, slots, idle(&s.keys, 0))
	require.Equal(t, slots, idle(&s.keys, 1))
	require.Zero(t, s.inFlight.Load())
}

// TestAKeyIsCountedByWhatTheHandlerReads: another form of its header must not be another share.
func TestAKeyIsCountedByWhatTheHandlerReads(t *testing.T) {
	for _, value := range []string{"Bearer key", "bearer key", "Bearer  key", "  Bearer   key  ", "Bearer", "Bearer ", ""} {
		want, _ := ident.Bearer([]string{value})
		require.Equal(t, want, keyOf(&handler.Request{Headers: []handler.Header{{Name: "aUTHORIZATION", Value: value}}}), "%q", value)
	}
	require.Empty(t, keyOf(&handler.Request{}))
}

// TestOneProcessorComputesHandshakesToo.
func TestOneProcessorComputesHandshakesToo(t *testing.T) {
	s, _ := without(t, Config{})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.Equal(t, 1, cap(s.newLane().compute))
	runtime.GOMAXPROCS(8)
	require.Equal(t, 4, cap(s.newLane().compute))
}

// TestAHostHasNoZoneAndASchemeBeginsWithALetter.
func TestAHostHasNoZoneAndASchemeBeginsWithALetter(t *testing.T) {
	for text, want := range map[string]bool{
		"h": true, "h:80": true, "h:": true, "h:x": false, "": false, ":80": false, "[::1]": true, "[::1]:80": true, "[::1": false, "[::1:80": false, "::1": false,
		"[fe80::1%eth0]": false, "[fe80::1%25eth0]": false, "[192.0.2.1]": false, "a@b": false, "a%20b": false, "é": true,
	} {
		require.Equal(t, want, isHost(text), text)
	}
	for text, want := range map[string]bool{"http": true, "a1+.-": true, "1a": false, "+a": false, "": false, "a_b": false, "HTTP": true} {
		require.Equal(t, want, isScheme(text), text)
	}
}

// broken is a connection whose writes fail.
type broken struct {
	net.Conn
	err error
}

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func (b broken) Close() error { return nil }

// TestAClientThatHungUpIsNoSlowReader.
func TestAClientThatHungUpIsNoSlowReader(t *testing.T) {
	s, _ := without(t, Config{})
	l, err := s.newBounded(nil)
	require.NoError(t, err)
	unread := func() float64 {
		var m client.Metric
		require.NoError(t, l.unread.(prometheus.Metric).Write(&m))
		return m.Counter.GetValue()
	}
	for err, want := range map[error]float64{
		&net.OpError{Op: "write", Err: syscall.ECONNRESET}: 0, net.ErrClosed: 0, &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}: 1,
	} {
		before := unread()
		_, got := (&counted{Conn: broken{err: err}, of: l}).Write([]byte("answer"))
		require.Equal(t, err, got)
		require.Equal(t, want, unread()-before, err)
		require.Zero(t, l.writing.Load())
	}
}

// asking is a tracer that notes with which traceparent it is asked, and traces nothing.
type asking struct {
	trace.Tracer
	asked []string
}

func (a *asking) Sample(traceparent string) (parent trace.SpanContext, sampled bool) {
	a.asked = append(a.asked, traceparent)
	return parent, false
}

// TestTwoTraceparentsAreNone (W3C Trace Context, section 3.2): which of them is the client's is not known.
func TestTwoTraceparentsAreNone(t *testing.T) {
	tracer := new(asking)
	s, _ := without(t, Config{Tracer: tracer, Answerer: answerWith(func(a *handler.Response) error { a.Status = 200; return nil })})
	one, other := handler.Header{Name: "traceparent", Value: "one"}, handler.Header{Name: "Traceparent", Value: "other"}
	shown(s, "GET", "/v1/llps/AAA-0001")
	shown(s, "GET", "/v1/llps/AAA-0001", one)
	shown(s, "GET", "/v1/llps/AAA-0001", one, other)
	require.Equal(t, []string{"", "one", ""}, tracer.asked)
}

// TestASpanSaysWhatItsLineSays: the release, that the key is the sandbox's, and what failed.
func TestASpanSaysWhatItsLineSays(t *testing.T) {
	spans := collector.Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: spans.URL, Share: 1, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	require.NoError(t, err)
	answers := []handler.Response{
		{Status: 200, Headers: []handler.Header{{Name: handler.HeaderRegistryRelease, Value: "2025-05-05.1"}}},
		*problemOf(t, handler.RegistryUnavailable), *problemOf(t, handler.CompanyNotFound),
	}
	s, _ := without(t, Config{Tracer: tracer, Answerer: sandboxed(func(a *handler.Response) {
		*a, answers = answers[0], answers[1:]
	})})
	for range 3 {
		lookedUp(s, "192.0.2.1", ident.SandboxKey)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, tracer.Run(ended))
	var got []string
	for _, span := range spans.Spans() {
		a := span.Attributes
		got = append(got, fmt.Sprintf("%v %v %v %v %v %v %v", a["http.response.status_code"], a["regedge.sandbox"], a["regedge.account"], a["regedge.release"], a["regedge.code"], a["error.type"], span.Failed))
	}
	require.Equal(t, []string{
		"200 true <nil> 2025-05-05.1 <nil> <nil> false", "503 true <nil> <nil> registry_unavailable registry_unavailable true",
		"404 true <nil> <nil> company_not_found <nil> false",
	}, got)
}

// sandboxed answers the sandbox key.
type sandboxed func(*handler.Response)

func (f sandboxed) Answer(ctx context.Context, _ *handler.Request, a *handler.Response) error {
	BillOf(ctx).Sandbox = true
	f(a)
	return nil
}

func problemOf(t *testing.T, code string) *handler.Response {
	t.Helper()
	p, known := handler.FindProblem(code)
	require.True(t, known)
	return handler.NewProblem("", p, "id", 0)
}

// TestAMalformedRequestCountsForItsAddress, as any other answer that nobody pays for.
func TestAMalformedRequestCountsForItsAddress(t *testing.T) {
	s, _ := without(t, Config{})
	addr, stop := listening(t, s)
	defer stop()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "no request\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.paces.unpaidAddress.due[s.shares.slot("127.0.0.1")].Load() > 0 }, time.Minute, time.Millisecond)
}

// listening runs a server on a port of its own.
func listening(t *testing.T, s *Server) (addr string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	return listener.Addr().String(), func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// TestAHandshakeThatIsHeldUpHasItsTimeAfterwards: a client that reconnects often is slowed down, not shut out.
func TestAHandshakeThatIsHeldUpHasItsTimeAfterwards(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	s, _ := without(t, Config{ReadHeaderTimeout: 500 * time.Millisecond, TLS: new(tls.Config)})
	l, err := s.newBounded(nil)
	require.NoError(t, err)
	held := &counted{Conn: server, of: l, address: "192.0.2.1", closed: make(chan struct{})}
	held.hold(time.Second)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.newSecure(newHandOver(&net.TCPAddr{})).(*secure).handshake(t.Context(), held)
	}()
	require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Minute)))
	_, err = client.Write([]byte{22, 3, 1}) // the begin of a first message, which is read once it is no longer held up
	require.NoError(t, err)
	_, err = client.Read(make([]byte, 1))
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe), "%v", err)
	<-ended
}

// TestStreamsOfAnEarlyAddressTakeTurns, and their connection is held up, also for those that are answered: a hundred at
// once from each of many connections would make others wait.
func TestStreamsOfAnEarlyAddressTakeTurns(t *testing.T) {
	var inFlight, most atomic.Int64
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error {
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		for range 1000 {
			runtime.Gosched()
		}
		most.Store(max(most.Load(), n, inFlight.Load()))
		a.Status = 200
		return nil
	})})
	l, err := s.newBounded(nil)
	require.NoError(t, err)
	from := &peer{text: "192.0.2.1", conn: &counted{of: l, address: "192.0.2.1"}}
	ask := func() {
		r := httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil)
		s.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), peerKey{}, from)))
	}
	ask()
	require.Zero(t, from.conn.heldUntil(), "it is not early yet")
	for range 2 * unpaidBurst {
		s.paces.unpaidAddress.note(s.shares.slot("192.0.2.1"), time.Now().Add(time.Minute))
	}
	var streams sync.WaitGroup
	for range 20 {
		streams.Go(ask)
	}
	streams.Wait()
	require.EqualValues(t, 1, most.Load())
	require.Positive(t, from.conn.heldUntil())
}

// TestWhoIsHeldUpHasNoFurtherRequestAnswered, though it was read together with the last one.
func TestWhoIsHeldUpHasNoFurtherRequestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := without(t, Config{})
		held := &counted{of: &bounded{server: s}, address: "192.0.2.1", closed: make(chan struct{})}
		c := &connection{peer: &peer{conn: held}, of: newConnections(nil, s.config.Log)}
		held.hold(time.Hour)
		began := time.Now()
		c.await()
		require.Equal(t, longestHolds, time.Since(began))
	})
}

// noting is an Answerer that keeps the names of the fields that it gets.
type noting struct{ names []string }

func (n *noting) Answer(_ context.Context, q *handler.Request, a *handler.Response) error {
	for _, field := range q.Headers {
		n.names = append(n.names, field.Name)
	}
	a.Status = 200
	return nil
}

// TestTheHostIsNoFieldOfARequest over HTTP/2, where it may come twice.
func TestTheHostIsNoFieldOfARequest(t *testing.T) {
	got := new(noting)
	s, _ := without(t, Config{Answerer: got})
	r := httptest.NewRequest(http.MethodGet, "https://h/v1/llps/AAA-0001", nil)
	r.Header["Host"], r.Header["X-A"] = []string{"h"}, []string{"b"}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, 200, w.Code)
	require.Equal(t, []string{"X-A"}, got.names)
}

// TestWhatTheLibraryOfHTTP2SaysIsNoError: it may hold what a client sent.
func TestWhatTheLibraryOfHTTP2SaysIsNoError(t *testing.T) {
	s, log := without(t, Config{TLS: new(tls.Config)})
	s.newSecure(newHandOver(&net.TCPAddr{})).(*secure).http2.ErrorLog.Print("what a client sent")
	require.Empty(t, log.String(), "the level is debug")
}
