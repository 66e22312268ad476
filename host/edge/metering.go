package edge

import (
	"errors"
	"io/fs"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/hint"
	"regedge/replicate/disk"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/meter"
)

// OpenMeter opens a meter and registers its metrics. On a disk that is full or read-only the meter opens
// later, and refuses live keys until then.
func OpenMeter(metrics prometheus.Registerer, config meter.Config) (*meter.Meter, error) {
	syncs := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "regedge_journal_sync_seconds", Help: "Time of the journal's fsyncs.", Buckets: syncBuckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	})
	config.Synced = func(took time.Duration) { syncs.Observe(took.Seconds()) }
	opened, err := meter.OpenLater(config)
	if err != nil {
		return nil, ExplainState(err, config.State)
	}
	if err := errors.Join(metrics.Register(syncs), metrics.Register(&meterCollector{opened, meterMetrics()})); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	metrics.MustRegister(disk.Metrics(disk.Kept{
		Directories: map[string]string{"state": config.State}, Files: map[string]string{"journal": config.State},
	}))
	return opened, nil
}

// ExplainState adds a hint to the error of a state directory that can't be opened.
func ExplainState(err error, dir string) error {
	switch {
	case errors.Is(err, journal.ErrInUse):
		return hint.With(err, "another regedge runs on %s: stop it, or choose another directory", dir)
	case errors.Is(err, journal.ErrNotAFile):
		return hint.With(err, "move it out of the directory, and see what made it there; in place of a link, put the file that it leads to")
	case errors.Is(err, fs.ErrPermission):
		return hint.With(err, "let the user that this runs as read and write %s and every file in it (ls -la, chown)", dir)
	}
	return err
}

// syncBuckets range from a disk that caches its writes to one that is broken, in seconds.
var syncBuckets = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3}

// meterSample is the state of a meter at one scrape.
type meterSample struct {
	meter.Stats
	lease.Headroom
	corrupt int
}

// meterMetric is one metric of a sample.
type meterMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*meterSample) float64
}

func counter(name, help string, value func(*meterSample) int64) meterMetric {
	return meterMetric{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue,
		func(s *meterSample) float64 { return float64(value(s)) }}
}

func gauge(name, help string, value func(*meterSample) float64) meterMetric {
	return meterMetric{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value}
}

// meterMetrics lists the metrics of every node with a meter.
func meterMetrics() []meterMetric {
	return []meterMetric{
		counter("regedge_verdicts_answered_total", "Requests that the meter let through.",
			func(s *meterSample) int64 { return s.Answered }),
		counter("regedge_verdicts_refused_total", "Requests refused for rate, volume, not-found cap or credits.",
			func(s *meterSample) int64 { return s.Refused }),
		counter("regedge_verdicts_unavailable_total", "Requests refused for lack of a lease.",
			func(s *meterSample) int64 { return s.Unavailable }),
		counter("regedge_verdicts_waited_total", "Requests that waited for the writer.",
			func(s *meterSample) int64 { return s.Waited }),
		counter("regedge_verdicts_crowded_total", "Requests refused at once, since too many waited for the writer.",
			func(s *meterSample) int64 { return s.Crowded }),
		gauge("regedge_verdicts_waiting", "Requests that wait for the writer now.",
			func(s *meterSample) float64 { return float64(s.Waiting) }),
		counter("regedge_verdicts_doubted_total", "Verdicts that may not have reached the component.",
			func(s *meterSample) int64 { return s.Doubted }),
		gauge("regedge_unresolved_charges", "Charges in doubt that were not reported to the writer yet.",
			func(s *meterSample) float64 { return float64(s.Unresolved) }),
		gauge("regedge_unsettled_charges", "Charges that the writer may not have.",
			func(s *meterSample) float64 { return float64(s.Unsettled) }),
		gauge("regedge_leased_accounts", "Accounts with a lease at this node.",
			func(s *meterSample) float64 { return float64(s.Accounts) }),
		gauge("regedge_leased_credits", "Credits that may be spent at this node without the writer.",
			func(s *meterSample) float64 { return float64(s.Credits) }),
		gauge("regedge_lease_headroom_seconds", "How long the shortest lease in use lasts at its account's present rate of use, at most 600; -1 while none is in use.",
			func(s *meterSample) float64 {
				if s.LeastMillis < 0 {
					return -1
				}
				return float64(s.LeastMillis) / 1000
			}),
		gauge("regedge_leases_short", "Accounts in use whose lease lasts for less than a minute, though the writer may have more for them.",
			func(s *meterSample) float64 { return float64(s.Short) }),
		gauge("regedge_journal_corrupt_files", "Damaged segments of the journal, and files of reported batches, that were set aside in the state directory, until an operator takes them away; -1 when it can't be listed.",
			func(s *meterSample) float64 { return float64(s.corrupt) }),
		counter("regedge_journal_replaced_total", "Segments of the journal that another process deleted, replaced or cut short.",
			func(s *meterSample) int64 { return s.Replaced }),
		gauge("regedge_writer_unreachable", "1 while the writer does not answer.",
			func(s *meterSample) float64 { return boolToFloat(s.Unreachable) }),
	}
}

// meterCollector takes one sample of a meter at each scrape.
type meterCollector struct {
	meter   *meter.Meter
	metrics []meterMetric
}

// Describe implements prometheus.Collector.
func (c *meterCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *meterCollector) Collect(to chan<- prometheus.Metric) {
	sample := &meterSample{c.meter.Stats(), c.meter.Headroom(), c.meter.Corrupt()}
	for _, m := range c.metrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(sample))
	}
}
