package edge

import (
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

// ending is every part of an engine: whatever is asked ends with an error, or nil.
type ending struct{ err error }

func (e ending) Query(context.Context, string, []handler.Value, *handler.Result) error { return e.err }
func (e ending) Answer(context.Context, *handler.Request, *handler.Response) error     { return e.err }
func (e ending) Void(context.Context, string) error                                    { return e.err }
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
	lookup.End()
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, tracer.Run(ended))
	failed := map[string][]bool{}
	for _, s := range spans.Spans() {
		failed[s.Name] = append(failed[s.Name], s.Failed)
	}
	require.NotContains(t, spans.Bytes(), "broken", "the text is for the log")
	require.Equal(t, map[string][]bool{"SELECT access": {false, true}, "component": {false, true}, "void": {false, true}, "lookup": {false}}, failed)
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
