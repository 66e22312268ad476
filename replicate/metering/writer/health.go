package writer

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"regedge/replicate/metering/ledger"
	"regedge/schema"
)

// probeLimit bounds a query of the ledger for a readiness probe or a scrape.
const probeLimit = time.Second

func (w *Writer) health(r *http.Request, _ httprouter.Params) (any, error) {
	h := Health{Generation: w.generation, Waiting: []string{}, Now: w.config.Now().UTC()}
	err := w.look(r, func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error {
		h.Restoring = l.Restoring
		h.Waiting = append(h.Waiting, l.Awaited()...)
		h.Live = l.LiveEdges(now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// stuckAfter is how long the commit loop, which has something to do every second, may take for one
// thing before the writer is not ready.
const stuckAfter = 5 * time.Second

// failuresInARow is how many commits have to fail until the writer is not ready: one may meet a lock.
const failuresInARow = 2

// serveReady answers 200 while this writer holds the ledger, can read it, and commits. An access
// database that is behind is named, but the ledger is served without it.
func (w *Writer) serveReady(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	ctx, cancel := context.WithTimeout(r.Context(), probeLimit)
	defer cancel()
	var generation uint64
	err := w.config.Ledger.QueryRowContext(ctx, `SELECT generation FROM writer`).Scan(&generation)
	switch {
	case w.away.Load():
		http.Error(rw, errAway.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(rw, "the ledger can't be read", http.StatusServiceUnavailable)
	case generation != w.generation || w.fenced.Load():
		http.Error(rw, ErrFenced.Error(), http.StatusServiceUnavailable)
	case w.stuck() > stuckAfter:
		http.Error(rw, fmt.Sprintf("the commit loop has not answered for %.0f s: the ledger's disk or server hangs", w.stuck().Seconds()),
			http.StatusServiceUnavailable)
	case w.unwritten.Load() >= failuresInARow:
		http.Error(rw, "the ledger can't be written: the writer's log says why", http.StatusServiceUnavailable)
	default:
		io.WriteString(rw, "ready\n")
		if changes, age := w.projector.behind(); age > projectWait {
			fmt.Fprintf(rw, "the access database misses %d changes, the oldest for %.0f s\n", changes, age.Seconds())
		}
	}
}

// stuck is how long the commit loop has been at one thing, 0 before Run.
func (w *Writer) stuck() time.Duration {
	if turned := w.turned.Load(); turned != nil {
		return time.Since(*turned)
	}
	return 0
}

// metrics are what /metrics shows.
type metrics struct {
	registry                 *prometheus.Registry
	groups, messages, failed prometheus.Counter
	commits                  prometheus.Histogram
	gather                   prometheus.Gatherer
}

// newMetrics registers the metrics of a writer that holds a generation of the ledger.
func newMetrics(ledger *sql.DB, generation uint64, p *projector) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	held := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "regedge_writer_generation", Help: "Generation of the ledger that this writer holds.",
	})
	held.Set(float64(generation))
	m := &metrics{
		registry: prometheus.NewRegistry(),
		groups:   counter("regedge_writer_groups_total", "Groups of edges' messages committed together."),
		messages: counter("regedge_writer_messages_total", "Edges' messages in those groups."),
		commits:  newCommits(),
		failed:   counter("regedge_writer_failed_groups_total", "Groups whose commit failed or is unknown."),
	}
	m.gather = m.registry
	m.registry.MustRegister(held, m.groups, m.messages, m.failed, unresolvedCharges{ledger},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "regedge_writer_access_pending", Help: "Changes of accounts, keys and plans that the access database may miss.",
		}, func() float64 { changes, _ := p.behind(); return float64(changes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "regedge_writer_access_behind_seconds", Help: "Age of the oldest change that the access database may miss, 0 for none.",
		}, func() float64 { _, age := p.behind(); return age.Seconds() }))
	return m
}

// group counts a group of messages whose commit ended with err.
func (m *metrics) group(messages int, err error) {
	m.groups.Inc()
	m.messages.Add(float64(messages))
	if err != nil && !schema.Refused(err) {
		m.failed.Inc()
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.gather, promhttp.HandlerOpts{})
}

// unresolvedCharges counts the unresolved charges at each scrape. The metric is left out
// while the ledger can't be read.
type unresolvedCharges struct{ ledger *sql.DB }

var unresolvedDesc = prometheus.NewDesc("regedge_writer_unresolved_charges", "Charges in doubt that nobody has credited.", nil, nil)

// Describe names the metric.
func (c unresolvedCharges) Describe(to chan<- *prometheus.Desc) { to <- unresolvedDesc }

// Collect reads it from the ledger.
func (c unresolvedCharges) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	var count int64
	err := c.ledger.QueryRowContext(ctx, `SELECT count(*) FROM unresolved WHERE credited = 0`).Scan(&count)
	if err == nil {
		to <- prometheus.MustNewConstMetric(unresolvedDesc, prometheus.GaugeValue, float64(count))
	}
}
