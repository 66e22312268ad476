package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/engine"
	"regedge/host/server"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	// callers is the number of concurrent lookups.
	callers = 16
	// turn is the number of lookups that one subject answers before it is the other's turn.
	turn = 1600
)

// BenchmarkMetering measures what metering adds to a lookup of the component: the same
// lookups, in turns, with a meter that costs nothing and with one that has a journal and syncs with a
// writer. It reports the difference in percent of the lookup, as the median of the turns, since other
// programs may use the machine in some of them.
func BenchmarkMetering(b *testing.B) {
	w := newFixture(b)
	lookup := request("/v1/companies/"+sampletest.CompanyEveryField, w.key)
	var subjects []server.Answerer
	for _, m := range []engine.Meter{free{}, unlimited{runMeter(b, 7)}} {
		parts := w.parts()
		parts.Access, parts.Registry, parts.Meter = w.access.Database, w.registry.Database, m
		parts.Clock, parts.Random = engine.Clock{}, engine.Random{}
		component, err := engine.NewComponent(b.Context(), parts, engine.Limits{})
		require.NoError(b, err)
		b.Cleanup(func() { component.Close(context.Background()) })
		ask(b, component, lookup, 200) // warm
		subjects = append(subjects, component)
	}
	var metered, added, processor []float64
	for b.Loop() {
		without, with := together(b, subjects[0], lookup), together(b, subjects[1], lookup)
		metered = append(metered, float64(with.clock)/turn)
		added = append(added, 100*float64(with.clock-without.clock)/float64(with.clock))
		processor = append(processor, 100*float64(with.processor-without.processor)/float64(with.processor))
	}
	b.ReportMetric(testkit.Median(metered), "ns/lookup")
	b.ReportMetric(testkit.Median(added), "%metering")
	b.ReportMetric(testkit.Median(processor), "%processor")
}

// unlimited is a meter without a rate limit.
type unlimited struct{ *meter.Meter }

func (u unlimited) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	r.PerMinute = 1 << 30
	return u.Meter.Charge(ctx, r)
}

// spent is the time of a turn: by the clock, and of processors, which does not depend on other
// programs.
type spent struct{ clock, processor time.Duration }

// together measures one turn of lookups by all callers.
func together(b *testing.B, answerer server.Answerer, lookup *handler.Request) spent {
	begin, used := time.Now(), testkit.ProcessorTime(b)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() { ask(b, answerer, lookup, turn/callers) })
	}
	running.Wait()
	return spent{time.Since(begin), testkit.ProcessorTime(b) - used}
}

func ask(b *testing.B, answerer server.Answerer, request *handler.Request, times int) {
	var response handler.Response
	for range times {
		response.Headers, response.Body = response.Headers[:0], response.Body[:0]
		if err := answerer.Answer(context.Background(), request, &response); err != nil || response.Status != http.StatusOK {
			b.Errorf("status %d: %v", response.Status, err)
			return
		}
	}
}

// runMeter runs a writer and a meter in this process, with an account that has no limits.
func runMeter(b *testing.B, account int64) *meter.Meter {
	dir := b.TempDir()
	ledger, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(b, err)
	access, err := schema.OpenFile(filepath.Join(dir, "access.db"))
	require.NoError(b, err)
	central, err := writer.Open(b.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: "operator-token-of-bench"})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { central.Run(ctx) })
	way := &http.Client{Transport: writer.InProcess(central.Handler())}
	client := writer.NewClient("http://writer", "operator-token-of-bench", way)
	_, err = client.SetPlan(ctx, writer.Plan{ID: "unlimited", APIAccess: true, PerMinute: 1 << 30, MonthlyVolume: 1 << 40})
	require.NoError(b, err)
	for id := int64(0); id < account; {
		made, err := client.AddAccount(ctx, fmt.Sprint("account after ", id), "", "unlimited")
		require.NoError(b, err)
		id = made.ID
	}
	_, err = client.ChangeCredits(ctx, account, writer.CreditChange{Amount: 1 << 40})
	require.NoError(b, err)
	node, err := client.AddNode(ctx, "bench")
	require.NoError(b, err)
	m, err := meter.Open(meter.Config{State: filepath.Join(dir, "state"), Writer: meter.OverHTTP("http://writer", node.Token, way)})
	require.NoError(b, err)
	running.Go(func() { m.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
		m.Close()
		ledger.Close()
		access.Close()
	})
	return m
}

// free is a meter that costs nothing, to measure the engines alone.
type free struct{}

func (free) Charge(context.Context, charge.Request) charge.Verdict {
	return charge.Verdict{RateLimit: 60, RateRemaining: 59, RateReset: 30, CreditsRemaining: 1, RetryAfter: charge.Unsent}
}

func (free) Void(context.Context, string) error { return nil }

func BenchmarkAnswer(b *testing.B) {
	for _, target := range []string{
		"/v1/companies/" + sampletest.CompanyEveryField,
		"/v1/companies/" + sampletest.CompanyGrandBoard,
		"/v1/search/companies?name=made",
	} {
		w := newFixture(b)
		parts := w.parts()
		parts.Access, parts.Registry, parts.Meter = w.access.Database, w.registry.Database, free{}
		parts.Clock, parts.Random = engine.Clock{}, engine.Random{}
		component, err := engine.NewComponent(b.Context(), parts, engine.Limits{})
		require.NoError(b, err)
		b.Cleanup(func() { component.Close(context.Background()) })
		b.Run("native"+target, func(b *testing.B) { benchmark(b, engine.NewNative(parts), request(target, w.key)) })
		b.Run("component"+target, func(b *testing.B) { benchmark(b, component, request(target, w.key)) })
	}
}

func benchmark(b *testing.B, answerer server.Answerer, request *handler.Request) {
	var response handler.Response
	b.ReportAllocs()
	for b.Loop() {
		response.Headers, response.Body = response.Headers[:0], response.Body[:0]
		if err := answerer.Answer(b.Context(), request, &response); err != nil || response.Status != 200 {
			b.Fatalf("status %d: %v", response.Status, err)
		}
	}
}
