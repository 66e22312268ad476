package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/meter"
)

// meterReading is what a meter says at one scrape.
type meterReading struct {
	meter.Stats
	lease.Headroom
}

// meterMetric is one number of a reading.
type meterMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*meterReading) float64
}

func counterOf(name, help string, of func(*meterReading) int64) meterMetric {
	return meterMetric{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue,
		func(r *meterReading) float64 { return float64(of(r)) }}
}

func gaugeOf(name, help string, of func(*meterReading) float64) meterMetric {
	return meterMetric{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, of}
}

// meterMetrics lists what every node with a meter tells.
func meterMetrics() []meterMetric {
	return []meterMetric{
		counterOf("regedge_verdicts_answered_total", "Requests that the meter let through.",
			func(r *meterReading) int64 { return r.Answered }),
		counterOf("regedge_verdicts_refused_total", "Requests refused for rate, volume, not-found cap or credits.",
			func(r *meterReading) int64 { return r.Refused }),
		counterOf("regedge_verdicts_unavailable_total", "Requests refused for want of a lease.",
			func(r *meterReading) int64 { return r.Unavailable }),
		counterOf("regedge_verdicts_waited_total", "Requests that waited for the writer.",
			func(r *meterReading) int64 { return r.Waited }),
		counterOf("regedge_verdicts_doubted_total", "Verdicts that may not have reached the component.",
			func(r *meterReading) int64 { return r.Doubted }),
		gaugeOf("regedge_unresolved_charges", "Charges in doubt that the writer does not know of yet.",
			func(r *meterReading) float64 { return float64(r.Unresolved) }),
		gaugeOf("regedge_unsettled_charges", "Charges that the writer may not have.",
			func(r *meterReading) float64 { return float64(r.Unsettled) }),
		gaugeOf("regedge_leased_accounts", "Accounts with a lease at this node.",
			func(r *meterReading) float64 { return float64(r.Accounts) }),
		gaugeOf("regedge_leased_credits", "Credits that may be spent at this node without the writer.",
			func(r *meterReading) float64 { return float64(r.Credits) }),
		gaugeOf("regedge_lease_headroom_seconds", "How long the shortest lease in use lasts at its account's present use, at most 600; -1 while none is in use.",
			func(r *meterReading) float64 {
				if r.LeastMillis < 0 {
					return -1
				}
				return float64(r.LeastMillis) / 1000
			}),
		gaugeOf("regedge_leases_short", "Accounts in use whose lease lasts for less than a minute, though the writer may have more for them.",
			func(r *meterReading) float64 { return float64(r.Short) }),
		gaugeOf("regedge_writer_unreachable", "1 while the writer does not answer.",
			func(r *meterReading) float64 {
				if r.Unreachable {
					return 1
				}
				return 0
			}),
	}
}

// meterCollector reads a meter once a scrape.
type meterCollector struct {
	meter *meter.Meter
	list  []meterMetric
}

// Describe names the metrics.
func (c *meterCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.list {
		to <- m.desc
	}
}

// Collect reads them.
func (c *meterCollector) Collect(to chan<- prometheus.Metric) {
	reading := &meterReading{c.meter.Stats(), c.meter.Headroom()}
	for _, m := range c.list {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(reading))
	}
}

// registerMeter registers what the meter counts.
func registerMeter(registry prometheus.Registerer, m *meter.Meter) error {
	return registry.Register(&meterCollector{m, meterMetrics()})
}

// syncBuckets are from a disk that keeps its writes in memory to one that is broken.
var syncBuckets = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3}

// journalSyncs registers how long the journal's syncs take, and returns what notes them.
func journalSyncs(registry prometheus.Registerer) (synced func(time.Duration), err error) {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "regedge_journal_sync_seconds", Help: "Time of the journal's fsyncs.", Buckets: syncBuckets,
	})
	if err := registry.Register(histogram); err != nil {
		return nil, err
	}
	return func(took time.Duration) { histogram.Observe(took.Seconds()) }, nil
}
