package server

import (
	"bytes"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
)

// metrics counts requests by route and status, and times them by route and outcome. A counter or a
// histogram is made when it is first used. From then on it is found without a lock or an allocation.
type metrics struct {
	requests  *prometheus.CounterVec
	counters  [routeCount][500]atomic.Pointer[prometheus.Counter] // by status - 100
	seconds   *prometheus.HistogramVec
	durations [routeCount][outcomeCount]atomic.Pointer[prometheus.Observer]
	refusals  map[string]refusal // by problem code
	screened  prometheus.Counter
	// streamErrors are errors of HTTP/2 that could not be answered.
	streamErrors prometheus.Counter
}

// refusal counts the answers with a problem.
type refusal struct {
	code string
	prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, inFlight *atomic.Int64) (*metrics, error) {
	m := &metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "regedge_requests_total", Help: "Requests answered, by route and status.",
	}, []string{"route", "status"}), refusals: map[string]refusal{}}
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "regedge_request_seconds", Help: "Time from a request's header to its answer, without sending it. Outcomes are answered, not_found, refused (401, 402, 403, 429), invalid (other 4xx) and failed (5xx).",
		Buckets: []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .05, .25, 1, 5},
		// For a server that asks for native histograms: steps of 10%, over any range.
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, []string{"route", "outcome"})
	problems := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "regedge_problems_total", Help: "Requests answered with a problem, by its code: refusals by their reason.",
	}, []string{"code"})
	for _, p := range handler.Problems() {
		m.refusals[p.Code] = refusal{p.Code, problems.WithLabelValues(p.Code)}
	}
	m.screened = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "regedge_requests_screened_total", Help: "Requests refused without the component, since their address or key had just been refused.",
	})
	m.streamErrors = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "regedge_http2_errors_total", Help: "Streams and connections with HTTP/2 that ended without an answer since their frames broke the protocol.",
	})
	busy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "regedge_requests_in_flight", Help: "Lookups being answered now.",
	}, func() float64 { return float64(inFlight.Load()) })
	for _, collector := range []prometheus.Collector{m.requests, m.seconds, problems, busy, m.screened, m.streamErrors} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe counts an answer. It returns its problem code, empty for others.
func (m *metrics) observe(r route, response *handler.Response, took time.Duration) (code string) {
	m.duration(r, outcomeOf(response.Status)).Observe(took.Seconds())
	m.counter(r, response.Status).Inc()
	if response.Status < 400 {
		return ""
	}
	problem, known := m.refusals[string(problemCode(response.Body))]
	if known {
		problem.Inc()
	}
	return problem.code
}

func (m *metrics) duration(r route, o outcome) prometheus.Observer {
	slot := &m.durations[r][o]
	histogram := slot.Load()
	if histogram == nil {
		made := m.seconds.WithLabelValues(r.String(), outcomeNames[o])
		histogram = &made
		slot.Store(histogram)
	}
	return *histogram
}

func (m *metrics) counter(r route, status int) prometheus.Counter {
	slot := &m.counters[r][min(max(status-100, 0), 499)]
	counter := slot.Load()
	if counter == nil {
		made := m.requests.WithLabelValues(r.String(), strconv.Itoa(status))
		counter = &made
		slot.Store(counter)
	}
	return *counter
}

// problemCode returns the code in a problem document; nil for any other body. Quotes in the texts
// before it are escaped, so the first match is the code.
func problemCode(body []byte) []byte {
	_, rest, found := bytes.Cut(body, []byte(`,"code":"`))
	code, _, closed := bytes.Cut(rest, []byte(`"`))
	if !found || !closed {
		return nil
	}
	return code
}

// outcome classifies the result of a request by who would have to act on it.
type outcome uint8

const (
	answered outcome = iota
	notFound
	refused
	invalid
	failed
	outcomeCount
)

var outcomeNames = [outcomeCount]string{
	answered: "answered", notFound: "not_found", refused: "refused", invalid: "invalid", failed: "failed",
}

func outcomeOf(status int) outcome {
	switch {
	case status < 400:
		return answered
	case status >= 500:
		return failed
	}
	switch status {
	case 404:
		return notFound
	case 401, 402, 403, 429:
		return refused
	}
	return invalid
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
