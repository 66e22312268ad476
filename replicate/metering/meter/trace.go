package meter

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes the spans of syncs. Sample, called with an empty traceparent, decides whether to trace a
// sync that no traced request waits for.
type Tracer interface {
	trace.Tracer
	Sample(traceparent string) (parent trace.SpanContext, sampled bool)
}

// noteWait notes in the span of a request, if it is traced, that it waits for the writer. The next sync
// becomes part of its trace.
func (m *Meter) noteWait(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if m.config.Tracer == nil || !span.IsRecording() {
		return
	}
	span.AddEvent("waits for the writer")
	waits := span.SpanContext()
	m.waiting.Store(&waits)
}

// traceSync starts the span of a sync, if it is traced. It joins the trace of a request whose wait
// began before it.
func (m *Meter) traceSync(ctx context.Context) (context.Context, trace.Span) {
	if m.config.Tracer == nil {
		return ctx, nil
	}
	if waits := m.waiting.Swap(nil); waits != nil {
		ctx = trace.ContextWithSpanContext(ctx, *waits)
	} else if _, sampled := m.config.Tracer.Sample(""); !sampled {
		return ctx, nil
	}
	return m.config.Tracer.Start(ctx, "sync", trace.WithSpanKind(trace.SpanKindClient))
}

// endSync ends the span of a sync, nil if it is not traced.
func (m *Meter) endSync(span trace.Span, err error) {
	if span == nil {
		return
	}
	span.SetAttributes(attribute.Int64("regedge.epoch", int64(m.Epoch())))
	if err != nil {
		span.SetStatus(codes.Error, lostBy(err))
	}
	span.End()
}

// propagate puts the span to which ctx leads, if there is one, into a request.
func propagate(ctx context.Context, to http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(to))
}
