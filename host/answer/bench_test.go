package answer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/answer"
	"regedge/host/server"
	"regedge/testdata"
)

// free is a meter that costs nothing, so that the engines are measured alone.
type free struct{}

func (free) Charge(context.Context, charge.Request) charge.Verdict {
	return charge.Verdict{RateLimit: 60, RateRemaining: 59, RateReset: 30, CreditsRemaining: 1, RetryAfter: charge.Unsent}
}

func (free) Void(context.Context, string) error { return nil }

func BenchmarkAnswer(b *testing.B) {
	for _, target := range []string{
		"/v1/companies/" + testdata.CompanyEveryField,
		"/v1/companies/" + testdata.CompanyGrandBoard,
		"/v1/search/companies?name=made",
	} {
		w := newWorld(b)
		parts := w.parts()
		parts.Access, parts.Registry, parts.Meter = w.access.Database, w.registry.Database, free{}
		parts.Clock, parts.Random = answer.Clock{}, answer.Random{}
		component, err := answer.NewComponent(b.Context(), parts, answer.Limits{})
		require.NoError(b, err)
		b.Cleanup(func() { component.Close(context.Background()) })
		b.Run("native"+target, func(b *testing.B) { benchmark(b, answer.NewNative(parts), request(target, w.key)) })
		b.Run("component"+target, func(b *testing.B) { benchmark(b, component, request(target, w.key)) })
	}
}

func benchmark(b *testing.B, answerer server.Answerer, request *server.Request) {
	var response handler.Response
	b.ReportAllocs()
	for b.Loop() {
		response.Headers, response.Body = response.Headers[:0], response.Body[:0]
		if err := answerer.Answer(b.Context(), request, &response); err != nil || response.Status != 200 {
			b.Fatalf("status %d: %v", response.Status, err)
		}
	}
}
