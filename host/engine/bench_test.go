package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
)

// nativeMeter gives the handler a Meter without a guest between them.
type nativeMeter struct{ Meter }

func (m nativeMeter) Charge(r charge.Request) (charge.Verdict, error) {
	return m.Meter.Charge(context.Background(), r), nil
}

func (m nativeMeter) Void(id string) error { return m.Meter.Void(context.Background(), id) }

// nativeStore gives the handler a Store without a guest between them.
type nativeStore struct{ Database }

func (s nativeStore) Query(statement string, args []handler.Value) (*handler.Result, error) {
	var result handler.Result
	err := s.Database.Query(context.Background(), statement, args, &result)
	return &result, err
}

// forgetful is a meter that costs nothing and keeps nothing.
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
	var resp Response
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Serve(context.Background(), req, &resp); err != nil {
			b.Fatal(err)
		}
	}
	require.Equal(b, 200, resp.Status)
}

// BenchmarkServeRefused is a request that reaches no database and no meter: what the
// guest costs by itself.
func BenchmarkServeRefused(b *testing.B) {
	databases, _ := newDatabases(b)
	e := newEngine(b, realConfig(databases, forgetful{}))
	req := &Request{Method: "GET", Target: "/v1/companies/" + madeUpCIN}
	var resp Response
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Serve(context.Background(), req, &resp); err != nil {
			b.Fatal(err)
		}
	}
	require.Equal(b, 401, resp.Status)
}

// BenchmarkNativeCompany is the same work without a guest.
func BenchmarkNativeCompany(b *testing.B) {
	databases, key := newDatabases(b)
	h := nativeHandler(databases, forgetful{})
	req := &handler.Request{Method: "GET", Target: "/v1/companies/" + madeUpCIN,
		Authorization: []string{"Bearer " + key}, ClientAddr: func() string { return "192.0.2.1" }}
	b.ReportAllocs()
	status := 0
	for b.Loop() {
		status = h.Serve(req).Status
	}
	require.Equal(b, 200, status)
}

func nativeHandler(databases map[string]Database, meter Meter) *handler.Handler {
	return &handler.Handler{
		Access: nativeStore{databases["access"]}, Registry: nativeStore{databases["registry"]},
		Meter: nativeMeter{meter}, Clock: frozen(1763700000000), Random: constant{}, DocsURL: func() string { return docsURL },
	}
}

// BenchmarkRestore is what bringing an instance back to its pristine state costs.
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
	b.ReportMetric(float64(len(e.snapshot.memory)), "pristine-bytes") // Loop forgets what is said before it
	e.release(b.Context(), i, false)
}
