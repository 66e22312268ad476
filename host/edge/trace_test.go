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
	"regedge/host/tracing"
	"regedge/internal/testkit/collector"
)

// ending is every part of an engine: whatever is asked ends with an error, or nil.
type ending struct{ err error }

func (e ending) Query(context.Context, string, []handler.Value, *handler.Result) error { return e.err }
func (e ending) Answer(context.Context, *handler.Request, *handler.Response) error     { return e.err }
func (e ending) Void(context.Context, string) error                                    { return e.err }
func (e ending) Charge(context.Context, charge.Request) charge.Verdict                 { return charge.Verdict{} }

// TestASpanSaysWhatFailed, and its caller gets the error.
func TestASpanSaysWhatFailed(t *testing.T) {
	spans := collector.Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: spans.URL, Share: 1, Log: slog.New(slog.DiscardHandler), Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	require.NoError(t, err)
	ctx, lookup := tracer.Start(t.Context(), "lookup")
	for _, want := range []error{nil, errors.New("broken")} {
		of := ending{want}
		require.Equal(t, want, tracedDatabase{of, "access"}.Query(ctx, "", nil, &handler.Result{}))
		require.Equal(t, want, tracedAnswerer{of, spanOf(Wazero)}.Answer(ctx, nil, nil))
		require.Equal(t, want, tracedMeter{of}.Void(ctx, "id"))
	}
	lookup.End()
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, tracer.Run(ended))
	failed := map[string][]bool{}
	for _, s := range spans.Spans() {
		failed[s.Name] = append(failed[s.Name], s.Failed)
	}
	require.Equal(t, map[string][]bool{"SELECT access": {false, true}, "component": {false, true}, "void": {false, true}, "lookup": {false}}, failed)
}
