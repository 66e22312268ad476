package tracing

import "github.com/prometheus/client_golang/prometheus"

// Metrics count sent and dropped spans. They exist without a tracer, too.
type Metrics struct {
	sent, refused prometheus.Counter
	crowded, lost prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regedge_trace_spans_sent_total", Help: "Spans that the collector of --traces took.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regedge_traces_refused_total", Help: "Requests that asked for a trace and got none, since --traces-asked others had in that second.",
		}),
	}
	dropped := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "regedge_trace_spans_dropped_total", Help: "Spans dropped because the queue was full (queue) or the collector did not take them (collector).",
	}, []string{"reason"})
	m.crowded, m.lost = dropped.WithLabelValues("queue"), dropped.WithLabelValues("collector")
	registry.MustRegister(m.sent, m.refused, dropped)
	return m
}
