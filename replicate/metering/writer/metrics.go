package writer

import (
	"context"
	"database/sql"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"regedge/replicate/disk"
	"regedge/schema"
)

// metrics holds the metrics that /metrics exports.
type metrics struct {
	registry                 *prometheus.Registry
	groups, messages, failed prometheus.Counter
	commits                  prometheus.Histogram
	requests                 *prometheus.HistogramVec
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
		requests: newRequestTimes(),
		failed:   counter("regedge_writer_failed_groups_total", "Groups whose commit failed or is unknown, signs of life that could not be written, and each second in which the ledger could not be read."),
	}
	m.gather = m.registry
	m.registry.MustRegister(held, m.groups, m.messages, m.failed, disk.NewBounded(unresolvedCharges{ledger}),
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

// watch registers what a scrape reads without the commit loop, which may hang just then with the disk.
func (m *metrics) watch(w *Writer) {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	m.registry.MustRegister(m.commits, m.requests,
		gauge("regedge_writer_loop_seconds", "How long the commit loop has been at one thing, 0 while it waits for work.",
			func() float64 { return w.stuck().Seconds() }),
		gauge("regedge_writer_queued", "Operations that wait for the commit loop.",
			func() float64 { return float64(len(w.ops)) }),
		gauge("regedge_writer_fenced_nodes", "Nodes whose messages are refused: the ledger could not store some, or they report too much.",
			func() float64 { return float64(w.offenders.count()) }),
		gauge("regedge_writer_fenced", "1 when another writer has taken the ledger.",
			func() float64 { return oneIf(w.fenced.Load()) }),
		disk.NewBounded(ledgerState{w.config.Ledger}), disk.NewBounded(operatorTokens{w}), w.clocks,
		disk.NewBounded(ledgerFiles{w.location.path}), disk.Metrics(w.disks()...))
	if w.config.Backup != "" {
		m.registry.MustRegister(disk.NewBounded(gauge("regedge_writer_backup_age_seconds", "Age of the ledger's last backup, by --backup; +Inf without one, and for one that is empty, cut short or of a time to come.",
			func() float64 { return backupAge(w.config.Backup, w.config.Now()) })))
	}
	if w.config.Metrics != nil {
		m.gather = prometheus.Gatherers{w.config.Metrics, m.registry}
	}
}

// newCommits makes the histogram of the commit loop's work.
func newCommits() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "regedge_writer_commit_seconds", Help: "Time in which the commit loop committed what had arrived together.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14), // 1 ms to 8 s
	})
}

// newRequestTimes makes the histograms of the API's requests.
func newRequestTimes() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "regedge_writer_request_seconds", Help: "Time from a request of the writer's API to its answer, by route, method and status.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9), // 0.5 ms to 33 s
		// For a server that asks for native histograms: steps of 10%, over any range.
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, []string{"route", "method", "code"})
}

// timed measures a route's requests.
func (m *metrics) timed(route route, serve httprouter.Handle) httprouter.Handle {
	times := m.requests.MustCurryWith(prometheus.Labels{"route": route.path})
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		promhttp.InstrumentHandlerDuration(times, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			serve(rw, r, p)
		})).ServeHTTP(rw, r)
	}
}

// timedCommit commits a group, and measures it.
func (w *Writer) timedCommit(ctx context.Context, group []*operation) {
	began := time.Now()
	w.commitGroup(ctx, group)
	w.metrics.commits.Observe(time.Since(began).Seconds())
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// backupAhead is how far the clock of whoever wrote a backup may be ahead of this one.
const backupAhead = time.Minute

// backupAge is the time since a backup was written, in seconds. A backup from the future is reported as old: otherwise
// nobody would be told of its age before that time has come.
func backupAge(path string, now time.Time) float64 {
	info, err := os.Stat(path)
	if err != nil || schema.CutShort(path) != nil {
		return math.Inf(1)
	}
	age := now.Sub(info.ModTime())
	if age < -backupAhead {
		return math.Inf(1)
	}
	return age.Seconds()
}

// ledgerState shows what the ledger says of a restore and of its nodes. It is left out while the
// ledger can't be read.
type ledgerState struct{ ledger *sql.DB }

var (
	restoringDesc = prometheus.NewDesc("regedge_writer_restoring", "1 while a restored ledger waits for its nodes: nothing is granted.", nil, nil)
	nodesDesc     = prometheus.NewDesc("regedge_writer_nodes", "Nodes in service, awaited by a restore, and retired (fenced for ever).", []string{"state"}, nil)
)

// Describe names the metrics.
func (s ledgerState) Describe(to chan<- *prometheus.Desc) { to <- restoringDesc; to <- nodesDesc }

// Collect reads them from the ledger.
func (s ledgerState) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	const query = `SELECT restoring, (SELECT count(*) FROM node WHERE retired = 0),
		(SELECT count(*) FROM node WHERE retired = 0 AND declared = 0), (SELECT count(*) FROM node WHERE retired = 1) FROM writer`
	var restoring, inService, awaited, retired float64
	if s.ledger.QueryRowContext(ctx, query).Scan(&restoring, &inService, &awaited, &retired) != nil {
		return
	}
	to <- prometheus.MustNewConstMetric(restoringDesc, prometheus.GaugeValue, restoring)
	for state, count := range map[string]float64{"in_service": inService, "awaited": awaited, "retired": retired} {
		to <- prometheus.MustNewConstMetric(nodesDesc, prometheus.GaugeValue, count, state)
	}
}

// disks lists where the ledger is, if it is a file, and its backup, if there is one.
func (w *Writer) disks() (list []disk.Kept) {
	for name, file := range map[string]string{"ledger": w.location.path, "backup": w.config.Backup} {
		if file != "" {
			list = append(list, disk.Kept{Directories: map[string]string{name: filepath.Dir(file)}})
		}
	}
	return list
}

// ledgerFiles shows the sizes of the ledger and of its write-ahead log. path is empty for a ledger on a server.
type ledgerFiles struct{ path string }

var ledgerBytesDesc = prometheus.NewDesc("regedge_writer_ledger_bytes", "Size of the ledger's file and of its write-ahead log (wal).", []string{"file"}, nil)

// Describe names the metric.
func (f ledgerFiles) Describe(to chan<- *prometheus.Desc) { to <- ledgerBytesDesc }

// Collect reads it from the file system.
func (f ledgerFiles) Collect(to chan<- prometheus.Metric) {
	for file, path := range map[string]string{"ledger": f.path, "wal": f.path + "-wal"} {
		if info, err := os.Stat(path); err == nil && f.path != "" {
			to <- prometheus.MustNewConstMetric(ledgerBytesDesc, prometheus.GaugeValue, float64(info.Size()), file)
		}
	}
}

// operatorTokens shows when the operators' tokens end. It is left out while the ledger can't be read.
type operatorTokens struct{ w *Writer }

var (
	tokenEndsDesc = prometheus.NewDesc("regedge_writer_token_ends_seconds", "Until an operators' token ends; left out once it has.", []string{"token"}, nil)
	tokenLifeDesc = prometheus.NewDesc("regedge_writer_token_life_seconds", "For how long an operators' token was made.", []string{"token"}, nil)
)

// Describe names the metrics.
func (o operatorTokens) Describe(to chan<- *prometheus.Desc) {
	to <- tokenEndsDesc
	to <- tokenLifeDesc
}

// Collect reads them from the ledger.
func (o operatorTokens) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	now := o.w.now()
	list, err := collect(ctx, o.w.config.Ledger, selectTokens+` WHERE ends_at > ?`, []any{now},
		func(rows *sql.Rows) (OperatorToken, error) { return scanToken(rows, now) })
	if err != nil {
		return
	}
	for _, t := range list {
		to <- prometheus.MustNewConstMetric(tokenEndsDesc, prometheus.GaugeValue, t.Ends.Sub(time.UnixMilli(now)).Seconds(), t.Name)
		to <- prometheus.MustNewConstMetric(tokenLifeDesc, prometheus.GaugeValue, t.Ends.Sub(t.Created).Seconds(), t.Name)
	}
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
