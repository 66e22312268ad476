package meter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// tracer notes what its spans are part of. It samples nothing by itself.
type tracer struct {
	noop.Tracer
	parents []trace.SpanContext
}

func (t *tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.parents = append(t.parents, trace.SpanContextFromContext(ctx))
	return t.Tracer.Start(ctx, name, options...)
}

func (*tracer) Sample(string) (parent trace.SpanContext, sampled bool) { return parent, false }

// traced is the span of a traced request.
type traced struct {
	noop.Span
	context trace.SpanContext
}

func (traced) IsRecording() bool                { return true }
func (s traced) SpanContext() trace.SpanContext { return s.context }

// TestOneSyncJoinsTheTraceOfARequestThatWaits: the next ones have nothing to do with it.
func TestOneSyncJoinsTheTraceOfARequestThatWaits(t *testing.T) {
	spans := &tracer{}
	m := newMeter(Config{Tracer: spans})
	waits := traced{context: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})}
	m.noteWait(t.Context())
	_, span := m.traceSync(t.Context())
	require.Nil(t, span, "the request is not traced")
	m.noteWait(trace.ContextWithSpan(t.Context(), waits))
	_, span = m.traceSync(t.Context())
	require.NotNil(t, span)
	require.Equal(t, []trace.SpanContext{waits.context}, spans.parents)
	_, span = m.traceSync(t.Context())
	require.Nil(t, span)
}
