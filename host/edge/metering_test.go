package edge_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/host/edge"
	"regedge/host/service"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// unreachable is a writer that no message reaches.
type unreachable struct{}

func (unreachable) Sync(context.Context, []byte) ([]byte, error) { return nil, errors.New("no route") }

// scrape returns the samples of a registry by name and labels, as text.
func scrape(metrics prometheus.Gatherer) map[string]string {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/", nil))
	samples := map[string]string{}
	for line := range strings.Lines(page.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			samples[name] = value
		}
	}
	return samples
}

// TestAScrapeShowsTheMeter is the place to check a new metric of the meter or its journal.
func TestAScrapeShowsTheMeter(t *testing.T) {
	metrics := prometheus.NewRegistry()
	m, err := edge.OpenMeter(metrics, meter.Config{State: t.TempDir(), Writer: unreachable{}})
	require.NoError(t, err)
	got := scrape(metrics)
	for name, want := range map[string]string{
		"regedge_verdicts_answered_total":    "0",
		"regedge_verdicts_refused_total":     "0",
		"regedge_verdicts_unavailable_total": "0",
		"regedge_verdicts_crowded_total":     "0",
		"regedge_verdicts_waiting":           "0",
		"regedge_unsettled_charges":          "0",
		"regedge_leased_accounts":            "0",
		"regedge_lease_headroom_seconds":     "-1",
		"regedge_journal_corrupt_files":      "0",
		"regedge_journal_replaced_total":     "0",
	} {
		require.Equal(t, want, got[name], name)
	}
	require.Contains(t, got, "regedge_journal_sync_seconds_count")
	require.NoError(t, m.Close())
}

// TestAChargeIsMeasuredAndReported: how long the disk took, in seconds, and that the writer does not have it yet.
func TestAChargeIsMeasuredAndReported(t *testing.T) {
	centre, metrics := newBenchCentre(t), prometheus.NewRegistry()
	made, err := centre.client.AddNode(t.Context(), "east")
	require.NoError(t, err)
	began := time.Now()
	m, err := edge.OpenMeter(metrics, meter.Config{State: t.TempDir(), Writer: meter.OverHTTP("http://writer", made.Token, centre.way), WaitLimit: time.Hour})
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Exchange(t.Context()))
	verdict := make(chan charge.Verdict, 1)
	go func() {
		verdict <- m.Charge(t.Context(), charge.Request{
			ID: "01KADN4XQ0V8R5T2M7C3B9HZ6E", Account: 1, Key: 1, PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found,
		})
	}()
	require.Eventually(t, func() bool { return m.Waiting() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, m.Exchange(t.Context()))
	require.Empty(t, (<-verdict).Code)
	require.NoError(t, m.Flush())
	samples := scrape(metrics)
	require.Equal(t, "1", samples["regedge_verdicts_answered_total"])
	sum, err := strconv.ParseFloat(samples["regedge_journal_sync_seconds_sum"], 64)
	require.NoError(t, err)
	require.Positive(t, sum)
	require.Less(t, sum, time.Since(began).Seconds())
	stored, err := strconv.ParseFloat(samples[`regedge_stored_bytes{files="journal"}`], 64)
	require.NoError(t, err)
	require.Positive(t, stored)
	require.Less(t, stored, 100e6, "the journal alone")

	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	endpoint, err := libsql.Open(refuses.URL, "ended")
	require.NoError(t, err)
	content, err := os.ReadFile(sampletest.Registry(t))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(sqld.File(dir)), 0o700))
	require.NoError(t, os.WriteFile(sqld.File(dir), content, 0o600))
	registry, err := edge.OpenReplica(edge.ReplicaConfig{
		Database: schema.Registry, Dir: dir, Endpoint: endpoint, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer registry.Close()
	lookups, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	access, err := edge.OpenFile(t.Context(), schema.Access, centre.access)
	require.NoError(t, err)
	defer access.Close()
	node, err := edge.New(t.Context(), edge.Config{
		Engine: edge.Native, Access: access, Registry: registry, Meter: m, Log: slog.New(slog.DiscardHandler), Metrics: metrics,
		Lookups: lookups,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	reported := make(chan error, 1)
	client := writer.NewClient("http://writer", made.Token, centre.way).ForNode()
	go func() { reported <- node.Report(edge.Reporter{Client: client, Address: "east:8080"}).Run(ctx) }()
	var reports []writer.Report
	require.Eventually(t, func() bool {
		reports, err = centre.client.Reports(t.Context())
		return err == nil && len(reports) == 1
	}, time.Minute, 10*time.Millisecond)
	served := make(chan error, 1)
	go func() { served <- service.Run(ctx, node.Services()...) }()
	answer, err := http.Get("http://" + lookups.Addr().String() + "/readyz")
	require.NoError(t, err)
	ready, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s", ready)
	require.Contains(t, string(ready), "registry replica: the replica's endpoint refuses the token", "an operator should know")
	stop()
	require.NoError(t, errors.Join(<-reported, <-served))
	require.Equal(t, []any{"east:8080", "", int64(1), int64(0)}, []any{reports[0].Address, reports[0].Ready, reports[0].Unsettled, reports[0].Refused})
}
