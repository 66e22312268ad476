package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Config says what is traced and where it is sent.
type Config struct {
	// Endpoint is the base URL of the collector; its path /v1/traces gets the spans.
	Endpoint string
	// Header is sent with each batch, such as a collector's key.
	Header http.Header
	// Share of the requests are traced, from 0 to 1.
	Share float64
	// Asked is how many requests a second are traced, beyond that share, because their client asks for
	// it.
	Asked int
	// Service and Version are what the collector sees as the name and version of this process.
	Service, Version string
	Log              *slog.Logger
	Metrics          *Metrics
	// Now is the clock of the limit; nil means time.Now.
	Now func() time.Time
	// Transport carries the batches; nil means one of its own.
	Transport http.RoundTripper
}

// Tracer makes spans and sends them. It is safe for concurrent use.
type Tracer struct {
	trace.Tracer
	below   uint64 // a request is traced if a random number is below it
	asked   limit
	refused prometheus.Counter
	queue   *queue
}

// New returns a tracer. It sends nothing until Run is called.
func New(ctx context.Context, config Config) (*Tracer, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Transport == nil {
		config.Transport = newTransport()
	}
	about, err := describe(ctx, config)
	if err != nil {
		return nil, err
	}
	q, err := newQueue(config)
	if err != nil {
		return nil, err
	}
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), // Sample has decided
		sdk.WithSpanProcessor(q), sdk.WithResource(about))
	return &Tracer{
		Tracer: provider.Tracer("regedge", trace.WithInstrumentationVersion(config.Version)),
		below:  threshold(config.Share), refused: config.Metrics.refused, queue: q,
		asked: limit{most: config.Asked, now: config.Now},
	}, nil
}

// describe names this process. The environment's OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win.
func describe(ctx context.Context, config Config) (*resource.Resource, error) {
	own := resource.WithAttributes(semconv.ServiceName(config.Service), semconv.ServiceVersion(config.Version))
	if host, err := os.Hostname(); err == nil {
		own = resource.WithAttributes(semconv.ServiceName(config.Service), semconv.ServiceVersion(config.Version), semconv.HostName(host))
	}
	about, err := resource.New(ctx, resource.WithSchemaURL(semconv.SchemaURL), own, resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this process by OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return about, nil
}

// threshold is the number below which this share of all 64-bit numbers lies.
func threshold(share float64) uint64 {
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(share * (1 << 64))
}

// Sample decides whether a request is traced. It returns the client's span from its traceparent (W3C
// Trace Context), which becomes the parent of the request's span; it is invalid without one. The share
// does not depend on the trace id, which a client chooses; nor can a client keep its requests out of the
// share.
func (t *Tracer) Sample(traceparent string) (parent trace.SpanContext, sampled bool) {
	if rand.Uint64() < t.below || t.below == math.MaxUint64 {
		return parse(traceparent), true
	}
	if !asks(traceparent) {
		return parent, false
	}
	if t.asked.spent() { // first, since reading a traceparent costs more
		t.refused.Inc()
		return parent, false
	}
	if parent = parse(traceparent); !parent.IsSampled() {
		return parent, false
	}
	if !t.asked.take() {
		t.refused.Inc()
		return parent, false
	}
	return parent, true
}

// flagAt is the index of the last hex digit of the flags: its lowest bit asks for a trace.
const flagAt = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0")

// asks reports whether a traceparent may ask for a trace, at less cost than parse.
func asks(traceparent string) bool { return len(traceparent) > flagAt && traceparent[flagAt]&1 == 1 }

// parse reads a traceparent. A malformed one gives an invalid span.
func parse(traceparent string) trace.SpanContext {
	if len(traceparent) <= flagAt {
		return trace.SpanContext{}
	}
	from := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), from))
}

// limit is a rate limit: at most most events in each second of the clock.
type limit struct {
	most int
	now  func() time.Time

	mu     sync.Mutex
	second int64
	taken  int
}

// spent reports whether nothing is left of this second.
func (l *limit) spent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := l.now().Unix(); second != l.second {
		l.second, l.taken = second, 0
	}
	return l.taken >= l.most
}

// take takes one of this second's events; false if others have taken the last one meanwhile.
func (l *limit) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken >= l.most {
		return false
	}
	l.taken++
	return true
}
