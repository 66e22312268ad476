package tracing_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"regedge/host/tracing"
	"regedge/internal/testkit"
	"regedge/internal/testkit/collector"
)

// fixture is a tracer with its metrics and its log.
type fixture struct {
	*tracing.Tracer
	metrics *prometheus.Registry
	log     *testkit.Log
}

func newFixture(t *testing.T, config tracing.Config) fixture {
	t.Helper()
	f := fixture{metrics: prometheus.NewRegistry(), log: new(testkit.Log)}
	config.Metrics, config.Log = tracing.NewMetrics(f.metrics), slog.New(slog.NewTextHandler(f.log, nil))
	if config.Endpoint == "" {
		config.Endpoint = "http://127.0.0.1:1"
	}
	var err error
	f.Tracer, err = tracing.New(t.Context(), config)
	require.NoError(t, err)
	return f
}

// run runs the tracer until the returned function is called, which waits for its end.
func (f fixture) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			t.Fatal("the tracer does not end")
		}
	}
}

// span makes a span.
func (f fixture) span(name string) {
	_, span := f.Start(context.Background(), name)
	span.End()
}

// value is the value of a counter.
func (f fixture) value(t *testing.T, name, reason string) float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == name && (reason == "" || m.Label[0].GetValue() == reason) {
				return m.Counter.GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

const (
	sent    = "regedge_trace_spans_sent_total"
	dropped = "regedge_trace_spans_dropped_total"
	refused = "regedge_traces_refused_total"
)

const asked = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestAShareOfTheRequestsIsTraced(t *testing.T) {
	const requests = 100_000
	for share, want := range map[float64][2]int{0: {0, 0}, 0.1: {9_000, 11_000}, 1: {requests, requests}} {
		for _, traceparent := range []string{"", asked, strings.TrimSuffix(asked, "1") + "0"} {
			f, traced := newFixture(t, tracing.Config{Share: share}), 0
			for range requests {
				if _, sampled := f.Sample(traceparent); sampled {
					traced++
				}
			}
			require.GreaterOrEqual(t, traced, want[0], "%v %q", share, traceparent)
			require.LessOrEqual(t, traced, want[1], "%v %q", share, traceparent)
		}
	}
}

func TestClientsGetAsManyTracesAsAreAllowed(t *testing.T) {
	now := time.Unix(1000, 0)
	f := newFixture(t, tracing.Config{Asked: 3, Now: func() time.Time { return now }})
	count := func() (traced int) {
		for n := range 50 { // each with a trace id of its own
			if parent, sampled := f.Sample(fmt.Sprintf("00-%032x-b7ad6b7169203331-01", n+1)); sampled {
				require.True(t, parent.IsRemote())
				traced++
			}
		}
		return traced
	}
	require.Equal(t, 3, count())
	require.Zero(t, count())
	now = now.Add(time.Second - 1)
	require.Zero(t, count(), "it is a limit of a second of the clock")
	now = now.Add(1)
	require.Equal(t, 3, count())
	require.EqualValues(t, 194, f.value(t, refused, ""))
}

// TestAClockThatWasSetBackRefusesNobody until it is where it was.
func TestAClockThatWasSetBackRefusesNobody(t *testing.T) {
	now := time.Unix(10_000, 0)
	f := newFixture(t, tracing.Config{Asked: 1, Now: func() time.Time { return now }})
	for range 3 {
		_, sampled := f.Sample(asked)
		require.True(t, sampled)
		_, sampled = f.Sample(asked)
		require.False(t, sampled)
		now = now.Add(-time.Hour)
	}
}

// TestTheSecondsAreThoseOfTheClock, where the configuration has none of its own.
func TestTheSecondsAreThoseOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, tracing.Config{Asked: 1})
		for range 3 {
			_, sampled := f.Sample(asked)
			require.True(t, sampled)
			_, sampled = f.Sample(asked)
			require.False(t, sampled)
			time.Sleep(time.Second)
		}
	})
}

// TestClientsThatAskAtOnceGetNoMoreTraces than are allowed, and each of the others is counted.
func TestClientsThatAskAtOnceGetNoMoreTraces(t *testing.T) {
	const clients, seconds = 8, 2000
	var now, traced atomic.Int64
	f := newFixture(t, tracing.Config{Asked: 1, Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	for range seconds {
		now.Add(1)
		var asking sync.WaitGroup
		begin := make(chan struct{})
		for range clients {
			asking.Go(func() {
				<-begin
				if _, sampled := f.Sample(asked); sampled {
					traced.Add(1)
				}
			})
		}
		close(begin)
		asking.Wait()
	}
	require.EqualValues(t, seconds, traced.Load())
	require.EqualValues(t, seconds*(clients-1), f.value(t, refused, ""))
}

func TestTraceparents(t *testing.T) {
	f := newFixture(t, tracing.Config{Share: 1})
	for _, c := range []struct {
		name, traceparent string
		valid             bool
	}{
		{"of the standard", asked, true},
		{"with a flag that is random", asked[:53] + "03", true},
		{"of a later version", "01" + asked[2:] + "-more", true},
		{"none", "", false},
		{"of version ff", "ff" + asked[2:], false},
		{"longer than its version", asked + "-more", false},
		{"cut", asked[:54], false},
		{"in capitals", strings.ToUpper(asked), false},
		{"without a trace", "00-" + strings.Repeat("0", 32) + asked[35:], false},
		{"without a span", asked[:36] + strings.Repeat("0", 16) + asked[52:], false},
		{"that is not hex", asked[:40] + "x" + asked[41:], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent, _ := f.Sample(c.traceparent)
			require.Equal(t, c.valid, parent.IsValid())
		})
	}
}

// TestOtherFlagsAskForNothing: the lowest bit of a traceparent's flags asks for a trace, of whatever digit.
func TestOtherFlagsAskForNothing(t *testing.T) {
	f := newFixture(t, tracing.Config{Asked: 1})
	for _, flags := range []string{"00", "02", "0a", "0c", "0e", "f0"} {
		_, sampled := f.Sample(asked[:53] + flags)
		require.False(t, sampled, flags)
	}
	require.Zero(t, f.value(t, refused, ""))
	_, sampled := f.Sample(asked)
	require.True(t, sampled, "nothing was taken by the others")
}

// FuzzSample gives whatever a client sends: nothing but a whole traceparent is a parent.
func FuzzSample(f *testing.F) {
	f.Add(asked)
	f.Add("01" + asked[2:] + "-more")
	f.Add("")
	tracer, err := tracing.New(f.Context(), tracing.Config{
		Endpoint: "http://127.0.0.1:1", Asked: 1 << 30, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, traceparent string) {
		parent, sampled := tracer.Sample(traceparent)
		if sampled != (parent.IsValid() && parent.IsSampled()) {
			t.Errorf("sampled is %v for %+v", sampled, parent)
		}
		if ids := parent.TraceID().String() + "-" + parent.SpanID().String(); sampled && !strings.Contains(traceparent, ids) {
			t.Errorf("%q gave %s", traceparent, ids)
		}
	})
}

func TestAllSpansAreSentAtTheEnd(t *testing.T) {
	c := collector.Start(t)
	f := newFixture(t, tracing.Config{Endpoint: c.URL + "/", Service: "regedge-test", Version: "1.2.3"})
	stop := f.run(t)
	const spans = 1200 // more than a batch
	for n := range spans {
		f.span(fmt.Sprint(n))
	}
	stop()
	require.Len(t, c.Spans(), spans)
	require.Equal(t, "regedge-test", c.Spans()[0].Service)
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, said := range []string{"1.2.3", host} {
		require.Contains(t, c.Bytes(), said)
	}
	require.EqualValues(t, spans, f.value(t, sent, ""))
	require.Zero(t, f.value(t, dropped, "queue"))
	require.Empty(t, f.log.String())
}

// TestSpansAreSentWithoutAnEnd sends a batch that is not full while the tracer runs.
func TestSpansAreSentWithoutAnEnd(t *testing.T) {
	c := collector.Start(t)
	f := newFixture(t, tracing.Config{Endpoint: c.URL})
	defer f.run(t)()
	f.span("early")
	require.Eventually(t, func() bool { return len(c.Named("early")) == 1 }, time.Minute, time.Millisecond)
}

// TestEachBatchSaysWhichVersionMadeIt: the same version as the process and its spans name.
func TestEachBatchSaysWhichVersionMadeIt(t *testing.T) {
	c := collector.Start(t)
	f := newFixture(t, tracing.Config{Endpoint: c.URL, Version: "1.2.3"})
	stop := f.run(t)
	f.span("one")
	stop()
	require.Equal(t, 2, strings.Count(c.Bytes(), "1.2.3"))
}

// TestTheHeaderOfTheConfigurationStaysAsItIs: its owner may use it for other requests.
func TestTheHeaderOfTheConfigurationStaysAsItIs(t *testing.T) {
	header := http.Header{"Api-Key": {"secret"}}
	newFixture(t, tracing.Config{Header: header})
	require.Equal(t, http.Header{"Api-Key": {"secret"}}, header)
}

// TestAConnectionToACollectorIsUsedAgain, also if its answers are long.
func TestAConnectionToACollectorIsUsedAgain(t *testing.T) {
	var connections atomic.Int64
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strings.Repeat("a", 10_000))
	}))
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	web.Start()
	defer web.Close()
	f := newFixture(t, tracing.Config{Endpoint: web.URL})
	stop := f.run(t)
	for n := range 3 {
		f.span("lookup")
		require.Eventually(t, func() bool { return f.value(t, sent, "") == float64(n+1) }, time.Minute, time.Millisecond)
	}
	stop()
	require.EqualValues(t, 1, connections.Load())
}

// TestSpansThatACollectorRejectsAreCountedAsDropped, and it is said why, once until it takes all again.
func TestSpansThatACollectorRejectsAreCountedAsDropped(t *testing.T) {
	partial := func(rejected uint64, why string) []byte {
		message := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), rejected)
		message = protowire.AppendString(protowire.AppendTag(message, 2, protowire.BytesType), why)
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), message)
	}
	var reply atomic.Pointer[[]byte]
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(*reply.Load())
	}))
	defer web.Close()
	f := newFixture(t, tracing.Config{Endpoint: web.URL})
	batches := func(number int, answer []byte) {
		reply.Store(&answer)
		for range number {
			stop := f.run(t)
			f.span("one")
			f.span("two")
			f.span("three")
			stop()
		}
	}
	batches(2, partial(2, "over the quota"))
	require.EqualValues(t, 2, f.value(t, sent, ""))
	require.EqualValues(t, 4, f.value(t, dropped, "collector"))
	require.Equal(t, 1, strings.Count(f.log.String(), "over the quota"))
	batches(1, nil)
	require.EqualValues(t, 5, f.value(t, sent, ""))
	require.Contains(t, f.log.String(), "takes traces again")
	for _, answer := range [][]byte{partial(0, "an advice"), partial(1<<63, "fewer than none"), []byte("\xff\xff")} {
		batches(1, answer)
	}
	require.EqualValues(t, 14, f.value(t, sent, ""))
	batches(1, partial(1000, "more than there were"))
	require.EqualValues(t, 14, f.value(t, sent, ""))
	require.EqualValues(t, 7, f.value(t, dropped, "collector"))
}

// answering starts a collector that gives one answer to all.
func answering(t *testing.T, answer []byte) (url string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(answer)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestWhatACollectorSaysDoesNotFillTheLog, however long it is.
func TestWhatACollectorSaysDoesNotFillTheLog(t *testing.T) {
	message := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	message = protowire.AppendString(protowire.AppendTag(message, 2, protowire.BytesType), strings.Repeat("why", 10_000))
	answer := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), message)
	f := newFixture(t, tracing.Config{Endpoint: answering(t, answer)})
	stop := f.run(t)
	f.span("one")
	stop()
	require.Contains(t, f.log.String(), "whywhy")
	require.Less(t, len(f.log.String()), 1000)
}

// TestASingleSpanThatIsRejectedIsCounted, whatever else the answer says: later versions of OTLP may say more.
func TestASingleSpanThatIsRejectedIsCounted(t *testing.T) {
	more := protowire.AppendFixed32(protowire.AppendTag(nil, 9, protowire.Fixed32Type), 7)
	more = protowire.AppendString(protowire.AppendTag(more, 8, protowire.BytesType), "\x08\x05")
	message := protowire.AppendVarint(protowire.AppendTag(append([]byte(nil), more...), 1, protowire.VarintType), 1)
	answer := protowire.AppendBytes(protowire.AppendTag(more, 1, protowire.BytesType), message)
	f := newFixture(t, tracing.Config{Endpoint: answering(t, answer)})
	stop := f.run(t)
	f.span("one")
	f.span("two")
	stop()
	require.EqualValues(t, 1, f.value(t, dropped, "collector"))
	require.EqualValues(t, 1, f.value(t, sent, ""))
}

// TestACollectorMayBeBelowAPath, as behind a gateway of several tenants.
func TestACollectorMayBeBelowAPath(t *testing.T) {
	asked := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.URL.Path }))
	defer web.Close()
	f := newFixture(t, tracing.Config{Endpoint: web.URL + "/tenant/otlp"})
	stop := f.run(t)
	f.span("one")
	stop()
	require.Equal(t, "POST /tenant/otlp/v1/traces", <-asked)
}

// TestARequestOfTheShareIsTracedThoughItsClientIsNot: its traceparent says that the client records nothing.
func TestARequestOfTheShareIsTracedThoughItsClientIsNot(t *testing.T) {
	c := collector.Start(t)
	f := newFixture(t, tracing.Config{Endpoint: c.URL, Share: 1})
	stop := f.run(t)
	parent, sampled := f.Sample(asked[:53] + "00")
	require.True(t, sampled)
	_, span := f.Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "lookup")
	span.End()
	stop()
	require.Len(t, c.Named("lookup"), 1)
	require.Equal(t, asked[3:35], c.Named("lookup")[0].Trace)
}

// TestAnAnswerWithoutAnEndIsNotRead to its end, by which the next batch would wait.
func TestAnAnswerWithoutAnEndIsNotRead(t *testing.T) {
	wrote := make(chan int, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, piece := 0, []byte(strings.Repeat("a", 8<<10))
		for r.Context().Err() == nil {
			n, err := w.Write(piece)
			if all += n; err != nil {
				break
			}
		}
		wrote <- all
	}))
	defer web.Close()
	f := newFixture(t, tracing.Config{Endpoint: web.URL})
	stop := f.run(t)
	f.span("lookup")
	select {
	case all := <-wrote:
		require.Less(t, all, 64<<20, "what the connection holds")
	case <-time.After(time.Minute):
		t.Error("the connection stays open")
	}
	stop()
	require.EqualValues(t, 1, f.value(t, sent, ""))
}

// TestACollectorThatHangsHoldsNobodyUp has a collector that takes connections and answers none.
func TestACollectorThatHangsHoldsNobodyUp(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer hangs.Close()
	f := newFixture(t, tracing.Config{Endpoint: "http://" + hangs.Addr().String()})
	stop := f.run(t)
	const spans = 20_000
	for range spans { // would take days if one waited for the collector
		f.span("lookup")
	}
	require.GreaterOrEqual(t, f.value(t, dropped, "queue"), float64(spans-5000))
	stop()
	require.EqualValues(t, spans, f.value(t, dropped, "queue")+f.value(t, dropped, "collector"))
	require.Zero(t, f.value(t, sent, ""))
	require.Equal(t, 1, strings.Count(f.log.String(), "the collector takes no traces"))
}

// TestACollectorThatHangsIsGivenUp: a batch after 5 s, and what is left at the end after 2 s.
func TestACollectorThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			conn, hangs := net.Pipe()
			go io.Copy(io.Discard, hangs)
			return conn, nil
		}}
		f := newFixture(t, tracing.Config{Endpoint: "http://collector.invalid", Transport: transport})
		stop := f.run(t)
		f.span("alone")
		time.Sleep(7 * time.Second) // a second of them for other spans of its batch
		require.EqualValues(t, 1, f.value(t, dropped, "collector"))
		for range 2000 {
			f.span("left")
		}
		stopped := time.Now()
		stop()
		require.LessOrEqual(t, time.Since(stopped), 2*time.Second)
		require.EqualValues(t, 2001, f.value(t, dropped, "collector"))
	})
}

// roundTrip is a transport in this process.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestFullBatchesAreSentAtOnce: the queue holds four of them.
func TestFullBatchesAreSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		f := newFixture(t, tracing.Config{Endpoint: "http://collector.invalid", Transport: transport})
		stop := f.run(t)
		synctest.Wait()
		began := time.Now()
		for _, spans := range []int{512, 3 * 512} {
			for range spans {
				f.span("lookup")
			}
			synctest.Wait()
		}
		require.EqualValues(t, 4*512, f.value(t, sent, ""))
		require.Zero(t, time.Since(began), "it waits for no others")
		stop()
	})
}

// TestBatchesThatComeMeanwhileAreSentAtOnce, one after another: while the collector took the first, three others became full.
func TestBatchesThatComeMeanwhileAreSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			<-slow
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		f := newFixture(t, tracing.Config{Endpoint: "http://collector.invalid", Transport: transport})
		stop := f.run(t)
		began := time.Now()
		for _, spans := range []int{512, 3 * 512} {
			for range spans {
				f.span("lookup")
			}
			synctest.Wait()
		}
		close(slow)
		synctest.Wait()
		require.EqualValues(t, 4*512, f.value(t, sent, ""))
		require.Zero(t, time.Since(began))
		stop()
	})
}

func TestACollectorThatRefuses(t *testing.T) {
	c := collector.Start(t)
	f := newFixture(t, tracing.Config{Endpoint: c.URL, Header: http.Header{"Api-Key": {"secret-of-the-collector"}}})
	stop := f.run(t)
	await := func(name, reason string, want float64) {
		t.Helper()
		require.Eventually(t, func() bool { return f.value(t, name, reason) == want }, time.Minute, time.Millisecond, f.log.String())
	}
	for n, status := range []int{503, 302} { // a redirect is not followed, since the header is for one host
		c.Answer(status)
		f.span("lost")
		await(dropped, "collector", float64(n+1))
	}
	require.NotContains(t, f.log.String(), "takes traces again")
	c.Answer(http.StatusOK)
	f.span("kept")
	await(sent, "", 1)
	stop()
	require.Len(t, c.Spans(), 1)
	require.Len(t, c.Headers(), 3)
	for _, header := range c.Headers() {
		require.Equal(t, "secret-of-the-collector", header.Get("Api-Key"))
	}
	require.Equal(t, 1, strings.Count(f.log.String(), "the collector takes no traces"))
	require.Equal(t, 1, strings.Count(f.log.String(), "takes traces again"))
	require.NotContains(t, f.log.String(), "secret")
}

// TestAWebPageIsNoCollector: a sign-in page or a wrong address answers 200, too, and the spans are gone.
func TestAWebPageIsNoCollector(t *testing.T) {
	var answer atomic.Value
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, body, _ := strings.Cut(answer.Load().(string), "|")
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	}))
	defer web.Close()
	f := newFixture(t, tracing.Config{Endpoint: web.URL})
	await := func(name, reason string, want int) {
		t.Helper()
		require.Eventually(t, func() bool { return f.value(t, name, reason) == float64(want) }, time.Minute, time.Millisecond, f.log.String())
	}
	answer.Store("")
	stop := f.run(t)
	for n, page := range []string{
		"text/html; charset=utf-8|", "text/plain|<!DOCTYPE html><title>Sign in</title>", "application/xhtml+xml|<html/>", "TEXT/HTML|x",
	} {
		answer.Store(page)
		f.span("lost")
		await(dropped, "collector", n+1)
	}
	for n, reply := range []string{"application/x-protobuf|", "application/json|{}", "|", "text/plain|ok"} {
		answer.Store(reply)
		f.span("kept")
		await(sent, "", n+1)
	}
	stop()
	require.Contains(t, f.log.String(), "answered with a web page")
	require.EqualValues(t, 4, f.value(t, dropped, "collector"))
}

func TestTheEnvironmentDescribesTheProcess(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "lookups-mumbai")
	c := collector.Start(t)
	f := newFixture(t, tracing.Config{Endpoint: c.URL, Service: "regedge-edge"})
	stop := f.run(t)
	f.span("one")
	stop()
	require.Equal(t, "lookups-mumbai", c.Named("one")[0].Service)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "not a pair")
	_, err := tracing.New(t.Context(), tracing.Config{Endpoint: c.URL})
	require.ErrorContains(t, err, "OTEL_RESOURCE_ATTRIBUTES")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "")
	_, err = tracing.New(t.Context(), tracing.Config{Endpoint: "http://[::1"})
	require.ErrorContains(t, err, "endpoint of traces")
}

// BenchmarkSample is what tracing adds to a request that is not traced.
func BenchmarkSample(b *testing.B) {
	tracer, err := tracing.New(b.Context(), tracing.Config{
		Endpoint: "http://127.0.0.1:1", Share: 1e-9, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	require.NoError(b, err)
	for name, traceparent := range map[string]string{"nothing": "", "traced elsewhere": asked[:53] + "00", "asks in vain": asked} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tracer.Sample(traceparent)
			}
		})
	}
}
