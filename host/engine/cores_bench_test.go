package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/engine"
	"regedge/host/server"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
)

// crowd is a number of goroutines that make lookups concurrently, and a number of cores.
type crowd struct{ cores, goroutines int }

func (c crowd) String() string { return fmt.Sprintf("%d-cores-%d-goroutines", c.cores, c.goroutines) }

// BenchmarkCores measures what lookups of the component, metered and journalled, cost on one core and on two
// (or all that there are), without HTTP. All crowds take turns; each figure is a median of the turns:
// processor time beside that of one goroutine on one core, and the time that goroutines waited for locks. Two components
// that share no lock show what of it is the machine's: caches, and cores that are halves of one.
func BenchmarkCores(b *testing.B) {
	component, lookup := charging(b)
	other, otherLookup := charging(b)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))

	crowds := []crowd{{1, 1}}
	for _, goroutines := range []int{1, 2, 4, 8} {
		crowds = append(crowds, crowd{min(2, runtime.NumCPU()), goroutines})
	}
	ratios, waits := map[crowd][]float64{}, map[crowd][]float64{}
	var apart []float64
	for b.Loop() {
		var alone time.Duration
		for n, c := range crowds {
			runtime.GOMAXPROCS(c.cores)
			c.ask(b, component, lookup, turn/8) // warm
			before := lockWaits()
			used := testkit.ProcessorTime(b)
			c.ask(b, component, lookup, turn)
			used, waited := testkit.ProcessorTime(b)-used, lockWaits()-before
			if n == 0 {
				alone = used
			}
			ratios[c] = append(ratios[c], float64(used)/float64(alone))
			waits[c] = append(waits[c], float64(waited)/turn)
		}
		runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
		halves := func(times int) {
			var running sync.WaitGroup
			running.Go(func() { ask(b, component, lookup, times/2) })
			running.Go(func() { ask(b, other, otherLookup, times/2) })
			running.Wait()
		}
		halves(turn / 8)
		used := testkit.ProcessorTime(b)
		halves(turn)
		apart = append(apart, float64(testkit.ProcessorTime(b)-used)/float64(alone))
	}
	b.ReportMetric(testkit.Median(apart), "of-one-core/apart")
	for _, c := range crowds[1:] {
		b.ReportMetric(testkit.Median(ratios[c]), "of-one-core/"+c.String())
		b.ReportMetric(testkit.Median(waits[c]), "ns-locked-out/"+c.String())
	}
}

// charging returns a component of its own with a meter of its own, and a lookup for it.
func charging(b *testing.B) (server.Answerer, *handler.Request) {
	b.Helper()
	w := newFixture(b)
	parts := w.parts()
	parts.Access, parts.Registry, parts.Meter = w.access.Database, w.registry.Database, unlimited{runMeter(b, 7)}
	parts.Clock, parts.Random = engine.Clock{}, engine.Random{}
	component, err := engine.NewComponent(b.Context(), parts, engine.Limits{})
	require.NoError(b, err)
	b.Cleanup(func() { component.Close(context.Background()) })
	return component, request("/v1/companies/"+sampletest.CompanyEveryField, w.key)
}

// ask has a crowd make so many lookups.
func (c crowd) ask(b *testing.B, answerer server.Answerer, lookup *handler.Request, times int) {
	var running sync.WaitGroup
	for range c.goroutines {
		running.Go(func() { ask(b, answerer, lookup, times/c.goroutines) })
	}
	running.Wait()
}

// lockWaits is how long goroutines of this process have waited for locks, in all.
func lockWaits() time.Duration {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}
