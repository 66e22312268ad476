package server

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route and status. The counters of a pair are made when it
// first occurs and then found without a lock or an allocation.
type metrics struct {
	requests  *prometheus.CounterVec
	counters  [routeCount][500]atomic.Pointer[prometheus.Counter] // by status - 100
	durations [routeCount]prometheus.Observer
}

func newMetrics(registry prometheus.Registerer, inFlight *atomic.Int64) (*metrics, error) {
	m := &metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "regedge_requests_total", Help: "Requests answered, by route and status.",
	}, []string{"route", "status"})}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "regedge_request_seconds", Help: "Time from a request's header to its answer, without sending it.",
		Buckets: []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .05, .25, 1, 5},
	}, []string{"route"})
	for r := range routeCount {
		m.durations[r] = seconds.WithLabelValues(r.String())
	}
	busy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "regedge_requests_in_flight", Help: "Lookups being answered now.",
	}, func() float64 { return float64(inFlight.Load()) })
	for _, collector := range []prometheus.Collector{m.requests, seconds, busy} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) observe(r route, status int, took time.Duration) {
	m.durations[r].Observe(took.Seconds())
	slot := &m.counters[r][min(max(status-100, 0), 499)]
	counter := slot.Load()
	if counter == nil {
		made := m.requests.WithLabelValues(r.String(), strconv.Itoa(status))
		counter = &made
		slot.Store(counter)
	}
	(*counter).Inc()
}
