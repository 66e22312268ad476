package simulation

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seeds    = flag.Int("seeds", 2000, "number of seeds of the simulation")
	firstRun = flag.Int("from", 1, "the first of the seeds")
	onlySeed = flag.Uint64("seed", 0, "the one seed to run, with its trace")
	steps    = flag.Int("steps", 500, "steps of a run")
)

const (
	// shortSeeds is how many seeds run with -short.
	shortSeeds = 60
	// garbagePercent lets garbage gather: a run makes much of it, and little stays.
	garbagePercent = 400
)

// simulate makes one run. The bubble gives the parts under test a clock that stands
// still while any of them has work, so that nothing depends on the machine.
func simulate(t *testing.T, seed uint64) (done summary) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, *onlySeed != 0)
		defer w.close()
		defer func() {
			if t.Failed() {
				w.tell()
				t.Logf("again: go test ./internal/simulation -run TestSeed -seed %d -steps %d", seed, *steps)
			}
		}()
		w.run(*steps)
		done = w.summary
	})
	return done
}

func TestSeeds(t *testing.T) {
	if *onlySeed != 0 {
		t.Log(ptr(simulate(t, *onlySeed)))
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	total := *seeds
	if testing.Short() {
		total = min(total, shortSeeds)
	}
	begin := time.Now()
	sum := runSeeds(t, total)
	t.Logf("%s\n%.0f steps a second", sum, float64(sum.steps)/time.Since(begin).Seconds())
	if name, n := sum.least(); !t.Failed() && total >= 2000 {
		require.GreaterOrEqual(t, n, int64(1000), "%s did not occur often enough", name)
	}
}

// runSeeds makes the runs, as many at once as there are processors, and stops at the
// first that fails.
func runSeeds(t *testing.T, total int) *summary {
	var sum summary
	var mu sync.Mutex
	var next atomic.Int64
	var failed atomic.Bool
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprintf("worker=%d", i), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1); n <= int64(total) && !failed.Load(); n = next.Add(1) {
					seed := uint64(*firstRun) + uint64(n) - 1
					passed := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
						done := simulate(t, seed)
						mu.Lock()
						defer mu.Unlock()
						sum.add(&done)
					})
					if !passed {
						failed.Store(true)
					}
				}
			})
		}
	})
	return &sum
}

// TestSameSeedSameRun holds that a seed repeats.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		require.Equal(t, simulate(t, seed), simulate(t, seed))
	}
}

func ptr[T any](v T) *T { return &v }
