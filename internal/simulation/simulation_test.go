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
	onlySeed = flag.Uint64("seed", 0, "the one seed to run, with a trace")
	steps    = flag.Int("steps", 500, "steps of a run")
)

const (
	// shortSeeds is how many seeds run with -short.
	shortSeeds = 60
	// garbagePercent is GOGC: a run allocates much and keeps little.
	garbagePercent = 800
)

// simulate makes one run, in a synctest bubble: its clock stands still while any goroutine can
// run, so that nothing depends on the machine's speed.
func simulate(t *testing.T, seed uint64) (done summary) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, seed, *onlySeed != 0)
		defer s.close()
		defer func() {
			if t.Failed() {
				s.logTrace()
				t.Logf("run it again: go test ./internal/simulation -run TestSeed -seed %d -steps %d", seed, *steps)
			}
		}()
		s.run(*steps)
		done = s.summary
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
		require.GreaterOrEqual(t, sum.batchesLost, int64(50), "flipped bits took too few of the batches that a restored ledger lacked")
	}
}

// runSeeds makes the runs, as many in parallel as there are processors, and stops at the first
// that fails.
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

// TestSeedsThatFailed runs those that found a mistake among many thousands, the simulation's own too, as long as they run into
// the same.
func TestSeedsThatFailed(t *testing.T) {
	for seed, mistake := range map[uint64]string{
		5010768:  "a ledger that waits for its edges after an earlier reply had one count grants of a month twice",
		8014998:  "a retry charged again after a write that took longer than its key is remembered",
		12065183: "credits that nobody granted kept after their end, with 503 in place of 402",
		12087783: "the end of an epoch said in the writer's place",
		20002270: "a lease of a restored ledger that was taken for a closed one until a restart",
		20421849: "the volume that an edge was ever granted declared after a false claim of a restore, and a clock months ahead",
		20428214: "an epoch that a forger gave to one disk of an edge, and the writer to the other",
		22006360: "a forged reply that confirmed a disk which had lost the record of a batch",
		20457144: "a sum equal to the key whose usage the simulation refuses",
	} {
		t.Run(mistake, func(t *testing.T) { simulate(t, seed) })
	}
}

// TestSameSeedSameRun checks that a seed determines its run.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		require.Equal(t, simulate(t, seed), simulate(t, seed))
	}
}

func ptr[T any](v T) *T { return &v }
