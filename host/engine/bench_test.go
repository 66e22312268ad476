package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
)

// forgetful is a meter that costs nothing and records nothing.
type forgetful struct{}

func (forgetful) Charge(_ context.Context, r charge.Request) charge.Verdict {
	return charge.Verdict{RateLimit: r.PerMinute, RateRemaining: 1150, RateReset: 33,
		CreditsRemaining: 123456, RetryAfter: charge.Unsent}
}

func (forgetful) Void(context.Context, string) error { return nil }

func BenchmarkServeCompany(b *testing.B) {
	databases, key := newDatabases(b)
	e := newEngine(b, realConfig(databases, forgetful{}))
	req := lookup("/v1/companies/"+madeUpCIN, key)
	var resp handler.Response
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Answer(context.Background(), req, &resp); err != nil {
			b.Fatal(err)
		}
	}
	require.Equal(b, 200, resp.Status)
}

// BenchmarkServeRefused is a request that needs neither a database nor the meter: the cost of the
// guest alone.
func BenchmarkServeRefused(b *testing.B) {
	databases, _ := newDatabases(b)
	e := newEngine(b, realConfig(databases, forgetful{}))
	req := &handler.Request{Method: "GET", Target: "/v1/companies/" + madeUpCIN}
	var resp handler.Response
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Answer(context.Background(), req, &resp); err != nil {
			b.Fatal(err)
		}
	}
	require.Equal(b, 401, resp.Status)
}

// BenchmarkNativeCompany is the same work without a guest.
func BenchmarkNativeCompany(b *testing.B) {
	databases, key := newDatabases(b)
	native := newNative(databases, forgetful{})
	req := lookup("/v1/companies/"+madeUpCIN, key)
	var resp handler.Response
	b.ReportAllocs()
	for b.Loop() {
		resp.Headers, resp.Body = resp.Headers[:0], resp.Body[:0]
		if err := native.Answer(context.Background(), req, &resp); err != nil {
			b.Fatal(err)
		}
	}
	require.Equal(b, 200, resp.Status)
}

// newNative is the native engine over the same parts as realConfig's.
func newNative(databases map[string]Database, meter Meter) *Native {
	return NewNative(Parts{
		Access: databases["access"], Registry: databases["registry"], Meter: meter,
		Clock: frozen(1763700000000), Random: constant{}, DocsURL: docsURL,
	})
}

// BenchmarkRestore restores an instance to its pristine state.
func BenchmarkRestore(b *testing.B) {
	databases, _ := newDatabases(b)
	e := newEngine(b, realConfig(databases, forgetful{}))
	i, err := e.acquire(b.Context())
	require.NoError(b, err)
	for b.Loop() {
		if err := e.snapshot.restore(i); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(e.snapshot.memory)), "pristine-bytes") // Loop drops metrics reported before it
	e.release(b.Context(), i, false)
}
