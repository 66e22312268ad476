package writer

import (
	"context"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"regedge/replicate/metering/syncproto"
)

// Tracer makes the spans of requests. Sample decides whether to trace a request, and under which span
// of the edge or the client, by its traceparent; both may be empty.
type Tracer interface {
	trace.Tracer
	Sample(traceparent string) (parent trace.SpanContext, sampled bool)
}

// start starts the span of a request, nil if it is not traced. A request's own context has no span.
func (w *Writer) start(r *http.Request) (*http.Request, trace.Span) {
	if w.config.Tracer == nil {
		return r, nil
	}
	var asked string
	if values := r.Header.Values("Traceparent"); len(values) == 1 {
		asked = values[0]
	}
	parent, sampled := w.config.Tracer.Sample(asked)
	if !sampled {
		return r, nil
	}
	ctx, span := w.config.Tracer.Start(trace.ContextWithRemoteSpanContext(r.Context(), parent), r.Method+" "+r.Pattern,
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			semconv.HTTPRequestMethodKey.String(r.Method), semconv.HTTPRoute(r.Pattern)))
	return r.WithContext(ctx), span
}

// traced makes a span of the requests of a route, of operators and owners.
func (w *Writer) traced(route route, serve httprouter.Handle) httprouter.Handle {
	if route.needs == anyone || route.needs == edges {
		return serve
	}
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		r, span := w.start(r)
		if span == nil {
			serve(rw, r, p)
			return
		}
		answer := &answered{ResponseWriter: rw, status: http.StatusOK}
		serve(answer, r, p)
		span.SetAttributes(semconv.HTTPResponseStatusCode(answer.status), attribute.String("regedge.request_id", rw.Header().Get(RequestIDHeader)))
		if answer.status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// answered remembers the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// traceSync starts the span of an edge's message that is answered at once, nil if it is not traced.
func (w *Writer) traceSync(r *http.Request, node string, m syncproto.Message) (*http.Request, trace.Span) {
	if m.Sync != nil && m.Sync.HoldMillis > 0 {
		return r, nil
	}
	r, span := w.start(r)
	if span != nil {
		span.SetAttributes(attribute.String("regedge.node", node))
	}
	return r, span
}

// endSync ends the span of an edge's message, nil if it is not traced.
func endSync(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, tableRow(err).code)
	}
	span.End()
}

// noteSpan notes the span of an operation, if its request is traced.
func (w *Writer) noteSpan(ctx context.Context, op *operation) {
	if w.config.Tracer == nil {
		return
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		op.span = span
	}
}

// traceCommit makes the span of a commit for each operation in it whose request is traced.
func (w *Writer) traceCommit(ops []*operation, began time.Time, err error) {
	if w.config.Tracer == nil {
		return
	}
	for _, op := range ops {
		if op.span == nil {
			continue
		}
		name := "commit"
		if op.readOnly {
			name = "read"
		}
		_, span := w.config.Tracer.Start(trace.ContextWithSpan(context.Background(), op.span), name,
			trace.WithTimestamp(began), trace.WithAttributes(attribute.Int("regedge.operations", len(ops))))
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
