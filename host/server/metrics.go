package server

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route and status. The counter of a pair is made when the pair first
// occurs. From then on it is found without a lock or an allocation.
type metrics struct {
	requests  *prometheus.CounterVec
	counters  [routeCount][500]atomic.Pointer[prometheus.Counter] // by status - 100
	durations [routeCount]prometheus.Observer
	screened  prometheus.Counter
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
	m.screened = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "regedge_requests_screened_total", Help: "Requests refused without the component, since their address or key had just been refused.",
	})
	busy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "regedge_requests_in_flight", Help: "Lookups being answered now.",
	}, func() float64 { return float64(inFlight.Load()) })
	for _, collector := range []prometheus.Collector{m.requests, seconds, busy, m.screened} {
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

// route is the pattern of a path, without its parameters.
type route uint8

const (
	routeOther route = iota
	routePage
	routeInvalid // not a request
	routeCompanies
	routeDirectors
	routeLLPs
	routeSearchCompanies
	routeSearchLLPs
	routeCount
)

var routeNames = [routeCount]string{
	routeOther: "other", routePage: "page", routeInvalid: "invalid",
	routeCompanies: "/v1/companies/{cin}", routeDirectors: "/v1/directors/{din}",
	routeLLPs: "/v1/llps/{llpin}", routeSearchCompanies: "/v1/search/companies",
	routeSearchLLPs: "/v1/search/llps",
}

func (r route) String() string { return routeNames[r] }

// routeOf returns the route of a target for log and metrics only: the Answerer does its own routing.
func routeOf(target string) route {
	rest, ok := strings.CutPrefix(target, "/v1/")
	if !ok {
		return routeOther
	}
	rest, _, _ = strings.Cut(rest, "?")
	head, tail, _ := strings.Cut(rest, "/")
	switch head {
	case "companies":
		return routeCompanies
	case "directors":
		return routeDirectors
	case "llps":
		return routeLLPs
	case "search":
		switch tail {
		case "companies":
			return routeSearchCompanies
		case "llps":
			return routeSearchLLPs
		}
	}
	return routeOther
}
