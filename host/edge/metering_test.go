package edge_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"regedge/host/edge"
	"regedge/replicate/metering/meter"
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
