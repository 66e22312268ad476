package edge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/engine"
	"regedge/host/tracing"
	"regedge/internal/testkit/collector"
)

// ending stands for every part of an engine. Each of its calls returns the error of its context or its own, if any.
type ending struct{ err error }

func (e ending) Query(ctx context.Context, _ string, _ []handler.Value, _ *handler.Result) error {
	return cmp.Or(ctx.Err(), e.err)
}
func (e ending) Answer(ctx context.Context, _ *handler.Request, _ *handler.Response) error {
	return cmp.Or(ctx.Err(), e.err)
}
func (e ending) Void(ctx context.Context, _ string) error { return cmp.Or(ctx.Err(), e.err) }
func (e ending) Charge(context.Context, charge.Request) charge.Verdict {
	return charge.Verdict{Code: "insufficient_credits", Replayed: true}
}

// TestASpanSaysWhatFailed, and its caller gets the error.
func TestASpanSaysWhatFailed(t *testing.T) {
	spans := collector.Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: spans.URL, Share: 1, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	require.NoError(t, err)
	sampled, lookup := tracer.Start(t.Context(), "lookup")
	for _, want := range []error{nil, errors.New("broken")} {
		of := ending{want}
		for _, ctx := range []context.Context{sampled, t.Context()} { // with and without a trace
			require.Equal(t, want, tracedDatabase{of, "access"}.Query(ctx, "", nil, &handler.Result{}))
			require.Equal(t, want, tracedAnswerer{of, spanOf(Wazero)}.Answer(ctx, nil, nil))
			require.Equal(t, want, tracedMeter{of}.Void(ctx, "id"))
		}
	}
	late, end := context.WithCancel(sampled)
	end() // as at the deadline of a lookup, which a trace puts off no more than another does
	require.ErrorIs(t, tracedDatabase{ending{}, "access"}.Query(late, "", nil, &handler.Result{}), context.Canceled)
	require.ErrorIs(t, tracedAnswerer{ending{}, spanOf(Wazero)}.Answer(late, nil, nil), context.Canceled)
	require.ErrorIs(t, tracedMeter{ending{}}.Void(late, "id"), context.Canceled)
	lookup.End()
	require.NoError(t, tracer.Run(late))
	failed := map[string][]bool{}
	for _, s := range spans.Spans() {
		failed[s.Name] = append(failed[s.Name], s.Failed)
	}
	require.NotContains(t, spans.Bytes(), "broken", "the text is for the log")
	require.Equal(t, map[string][]bool{"SELECT access": {false, true, true}, "component": {false, true, true}, "void": {false, true, true}, "lookup": {false}}, failed)
}

// TestSpansSayWhatWasReadAndCharged, and of which database.
func TestSpansSayWhatWasReadAndCharged(t *testing.T) {
	spans := collector.Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: spans.URL, Share: 1, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	require.NoError(t, err)
	n := emptyNode(t)
	n.config.Tracer = tracer
	parts := n.traced(engine.Parts{Access: n.config.Access, Registry: n.config.Registry, Meter: ending{}})
	ctx, lookup := tracer.Start(t.Context(), "lookup")
	require.NoError(t, parts.Access.Query(ctx, "SELECT 1 UNION SELECT 2", nil, &handler.Result{}))
	require.NoError(t, parts.Registry.Query(ctx, "SELECT 1", nil, &handler.Result{}))
	want := charge.Verdict{Code: "insufficient_credits", Replayed: true}
	for _, ctx := range []context.Context{ctx, t.Context()} {
		require.Equal(t, want, parts.Meter.Charge(ctx, charge.Request{Outcome: charge.Found}))
	}
	lookup.End()
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, tracer.Run(ended))
	require.EqualValues(t, 2, spans.Named("SELECT access")[0].Attributes["db.response.returned_rows"])
	require.EqualValues(t, 1, spans.Named("SELECT registry")[0].Attributes["db.response.returned_rows"])
	require.Equal(t, map[string]any{"regedge.code": "insufficient_credits", "regedge.found": true, "regedge.replayed": true},
		spans.Named("charge")[0].Attributes)

	n.config.Tracer = nil
	parts = engine.Parts{Access: n.config.Access, Registry: n.config.Registry, Meter: ending{}}
	require.Equal(t, parts, n.traced(parts), "nothing is wrapped without a tracer")
}
