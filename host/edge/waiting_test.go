package edge_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/host/edge"
	"regedge/host/tracing"
	"regedge/internal/testkit/collector"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/schema"
)

// TestWhoWaitsForALeaseTakesNobodysInstance: a node that answers one request at a time answers another one
// meanwhile. Its spans show both.
func TestWhoWaitsForALeaseTakesNobodysInstance(t *testing.T) {
	for engine, run := range map[string]string{edge.Wazero: "component", edge.Native: "native"} {
		t.Run(engine, func(t *testing.T) {
			spans := collector.Start(t)
			tracer, err := tracing.New(t.Context(), tracing.Config{
				Endpoint: spans.URL, Share: 1, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
			})
			require.NoError(t, err)
			m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: unreachable{}, WaitLimit: time.Hour})
			require.NoError(t, err)
			defer m.Close()
			registry, err := edge.OpenFile(t.Context(), schema.Registry, sampletest.Registry(t))
			require.NoError(t, err)
			defer registry.Close()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			node, err := edge.New(t.Context(), edge.Config{
				Engine: engine, MaxInFlight: 1, Lookups: listener, Access: openAccess(t), Registry: registry, Meter: m,
				Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Tracer: tracer,
			})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(context.Background())
			services, stopped := node.Services(), make(chan error, 1)
			go func() { stopped <- services[len(services)-1].Run(ctx) }()
			ask := func(key string) (status int) {
				request, err := http.NewRequest(http.MethodGet, "http://"+listener.Addr().String()+"/v1/companies/"+sampletest.CompanyEveryField, nil)
				if err != nil {
					return 0
				}
				request.Header.Set("Authorization", "Bearer "+key)
				response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
				if err != nil {
					return 0
				}
				response.Body.Close()
				return response.StatusCode
			}
			waited := make(chan int, 1)
			go func() { waited <- ask(liveKey) }()
			require.Eventually(t, func() bool { return m.Waiting() == 1 }, time.Minute, time.Millisecond)
			require.Equal(t, http.StatusOK, ask(ident.SandboxKey))
			require.Equal(t, 1, m.Waiting())
			require.Error(t, m.Exchange(t.Context())) // which ends the wait
			require.Equal(t, http.StatusServiceUnavailable, <-waited)
			stop()
			require.NoError(t, <-stopped)
			require.NoError(t, tracer.Run(ctx))
			runs := 0
			for _, s := range spans.Spans() {
				if s.Name == run {
					runs++
				}
			}
			require.Equal(t, 2, runs)
		})
	}
}
