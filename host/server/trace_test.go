package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"regedge/handler"
	"regedge/host/server"
	"regedge/host/tracing"
	"regedge/internal/testkit/collector"
)

// everyOther traces every other request, so that an untraced request reuses a traced one's memory.
type everyOther struct {
	*tracing.Tracer
	mu   sync.Mutex
	last bool
}

func (e *everyOther) Sample(traceparent string) (trace.SpanContext, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = !e.last
	parent, _ := e.Tracer.Sample(traceparent)
	return parent, e.last
}

func TestLookupsAreTraced(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for name, begin := range map[string]starter{"HTTP/1.1": start, "HTTP/1.1 and TLS": startSecure, "HTTP/2": func(t testing.TB, config server.Config) *running {
		r := startSecure(t, config)
		r.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
		return r
	}} {
		t.Run(name, func(t *testing.T) {
			spans := collector.Start(t)
			tracer, err := tracing.New(t.Context(), tracing.Config{
				Endpoint: spans.URL, Share: 1, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
			})
			require.NoError(t, err)
			var inside []trace.SpanContext // of each call of the Answerer
			r := begin(t, server.Config{
				Tracer: &everyOther{Tracer: tracer},
				Pages: func(r *httprouter.Router) {
					r.GET("/page", func(http.ResponseWriter, *http.Request, httprouter.Params) {})
				},
				Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
					inside = append(inside, trace.SpanContextFromContext(ctx))
					switch q.Target {
					case "/v1/companies/broken":
						*server.BillOf(ctx) = server.Bill{Account: 3, Key: 5}
						return errors.New("broken")
					case "/v1/companies/panics":
						panic("panics")
					}
					*server.BillOf(ctx) = server.Bill{Account: 3, Key: 5, Cost: 1}
					return fine(ctx, q, a)
				}),
			})
			ask := func(method, path string) {
				request, err := http.NewRequest(method, r.url+path, nil)
				require.NoError(t, err)
				request.Header.Set("Traceparent", parent)
				response, err := r.client.Do(request)
				require.NoError(t, err)
				response.Body.Close()
			}
			for _, path := range []string{"x", "x", "broken", "x", "panics", "x"} {
				ask("GET", "/v1/companies/"+path)
				ask("GET", "/page") // no lookup
			}
			ask("BREW", "/nowhere")
			require.NoError(t, r.stop())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.NoError(t, tracer.Run(ctx))

			var names []string
			var failed []bool
			for _, s := range spans.Spans() {
				names, failed = append(names, s.Name), append(failed, s.Failed)
				require.Equal(t, "b7ad6b7169203331", s.Parent)
				require.Equal(t, map[bool]string{true: "https", false: "http"}[name != "HTTP/1.1"], s.Attributes["url.scheme"])
			}
			const companies = "GET /v1/companies/{cin}"
			require.Equal(t, []string{companies, companies, companies, "HTTP"}, names)
			require.Equal(t, []bool{false, true, true, false}, failed)
			require.Equal(t, "from-the-answerer", spans.Spans()[0].Attributes["regedge.request_id"])
			for name, want := range map[string]int{"account": 3, "key": 5, "cost": 1} {
				require.EqualValues(t, want, spans.Spans()[0].Attributes["regedge."+name], name)
			}
			require.Equal(t, "internal_error", spans.Spans()[1].Attributes["regedge.code"])
			require.EqualValues(t, 3, spans.Spans()[1].Attributes["regedge.account"], "also of a lookup that costs nothing")
			logged := 0
			for _, line := range r.log.lines() {
				if strings.Contains(line, `"trace_id":`) {
					require.Contains(t, line, `"trace_id":"`+spans.Spans()[0].Trace+`"`)
					logged++
				}
			}
			require.Equal(t, 4, logged)
			require.Equal(t, "_OTHER", spans.Spans()[3].Attributes["http.request.method"])
			require.Len(t, inside, 7)
			for n, s := range inside {
				traced := n%2 == 0
				require.Equal(t, traced, s.IsValid(), "request %d", n)
				if traced {
					require.Equal(t, spans.Spans()[n/2].ID, s.SpanID().String())
				}
			}
		})
	}
}
