package edge_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/host/edge"
	"regedge/host/service"
	"regedge/host/tracing"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	// traceTurn is the number of lookups that one node answers before it is the other's turn.
	traceTurn = 1000
	// manyTraces is a share large enough to measure its cost. No span is dropped.
	manyTraces = .3
)

// BenchmarkTraces measures what traces add to a charged lookup, by processor time from the bytes of its
// request to those of its answer: nodes in turns, with the component, log line, metrics, meter and
// journal. "off" has no tracer, "none" one that traces nothing. The cost of a share of 1% is computed from
// that of manyTraces. What the collector reads is in it, since it runs in this process.
func BenchmarkTraces(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	centre, metrics := newBenchCentre(b), prometheus.NewRegistry()
	off, none := centre.node(b, nil), centre.node(b, tracer(b, sink.URL, 0, prometheus.NewRegistry()))
	many := centre.node(b, tracer(b, sink.URL, manyTraces, metrics))
	nodes := []*benchNode{off, none, many}
	for range 3 {
		for _, n := range nodes {
			n.turn(b) // warm
		}
	}
	times := map[*benchNode][]float64{}
	for b.Loop() {
		for _, n := range nodes {
			begun := testkit.ProcessorTime(b)
			n.turn(b)
			times[n] = append(times[n], float64(testkit.ProcessorTime(b)-begun)/traceTurn)
		}
	}
	base := testkit.Median(times[off])
	perTrace := (testkit.Median(times[many]) - base) / manyTraces
	b.ReportMetric(base, "cpu-ns/lookup")
	b.ReportMetric(100*(testkit.Median(times[none])-base)/base, "%none")
	b.ReportMetric(perTrace, "cpu-ns/trace")
	b.ReportMetric(100*perTrace/100/base, "%at-1%")
	families, err := metrics.Gather()
	require.NoError(b, err)
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "regedge_trace_spans_dropped_total" {
				require.Zero(b, m.Counter.GetValue(), "dropped spans cost less")
			}
		}
	}
}

// tracer makes a running tracer.
func tracer(b *testing.B, endpoint string, share float64, metrics prometheus.Registerer) *tracing.Tracer {
	t, err := tracing.New(b.Context(), tracing.Config{
		Endpoint: endpoint, Share: share, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(metrics),
	})
	require.NoError(b, err)
	runFor(b, t.Run)
	return t
}

// runFor runs something until the test ends.
func runFor(b testing.TB, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	b.Cleanup(func() { cancel(); running.Wait() })
}

// benchCentre is a writer in this process, and an account without limits.
type benchCentre struct {
	client *writer.Client
	way    *http.Client
	access string
	key    string
}

func newBenchCentre(b testing.TB) *benchCentre {
	dir := b.TempDir()
	c := &benchCentre{access: filepath.Join(dir, "access.db")}
	ledger, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(b, err)
	b.Cleanup(func() { ledger.Close() })
	access, err := schema.OpenFile(c.access)
	require.NoError(b, err)
	b.Cleanup(func() { access.Close() })
	const token = "operator-token-of-bench"
	central, err := writer.Open(b.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token})
	require.NoError(b, err)
	runFor(b, central.Run)
	c.way = &http.Client{Transport: writer.InProcess(central.Handler())}
	c.client = writer.NewClient("http://writer", token, c.way)
	_, err = c.client.SetPlan(b.Context(), writer.Plan{ID: "unlimited", APIAccess: true, PerMinute: 1 << 30, MonthlyVolume: 1 << 40})
	require.NoError(b, err)
	account, err := c.client.AddAccount(b.Context(), "bench", "", "unlimited")
	require.NoError(b, err)
	_, err = c.client.ChangeCredits(b.Context(), account.ID, writer.CreditChange{Amount: 1 << 40})
	require.NoError(b, err)
	key, err := c.client.AddKey(b.Context(), account.ID, "")
	require.NoError(b, err)
	c.key = key.Secret
	return c
}

// benchNode is a node whose lookups come from memory.
type benchNode struct {
	listener *feeds
	request  []byte
}

func (c *benchCentre) node(b *testing.B, traces *tracing.Tracer) *benchNode {
	made, err := c.client.AddNode(b.Context(), fmt.Sprintf("bench-%d", b.N)+filepath.Base(b.TempDir()))
	require.NoError(b, err)
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	ctx, cancel := context.WithCancel(context.Background())
	n := &benchNode{listener: &feeds{make(chan net.Conn), ctx}, request: []byte("GET /v1/companies/" + sampletest.CompanyEveryField +
		" HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer " + c.key + "\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")}
	config := edge.Config{Engine: edge.Wazero, DocsURL: "http://docs.example", Lookups: n.listener, Log: log, Metrics: prometheus.NewRegistry()}
	metering := meter.Config{State: b.TempDir(), Writer: meter.OverHTTP("http://writer", made.Token, c.way)}
	if traces != nil {
		config.Tracer, metering.Tracer = traces, traces
	}
	config.Meter, err = meter.Open(metering)
	require.NoError(b, err)
	config.Access, err = edge.OpenFile(b.Context(), schema.Access, c.access)
	require.NoError(b, err)
	config.Registry, err = edge.OpenFile(b.Context(), schema.Registry, sampletest.Registry(b))
	require.NoError(b, err)
	node, err := edge.New(b.Context(), config)
	require.NoError(b, err)
	services := append([]service.Service{{Name: "meter", Run: config.Meter.Run}}, node.Services()...)
	var running sync.WaitGroup
	running.Go(func() { service.Run(ctx, services...) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
		config.Meter.Close()
		config.Access.Close()
		config.Registry.Close()
	})
	return n
}

// turn asks the node for a turn of lookups over one connection.
func (n *benchNode) turn(b *testing.B) {
	at := 0
	conn := &feed{closed: make(chan struct{}), answer: "HTTP/1.1 200", next: func() []byte {
		if at++; at > traceTurn {
			return nil
		}
		return n.request
	}}
	n.listener.conns <- conn
	<-conn.closed
	require.Empty(b, conn.wrong)
}
