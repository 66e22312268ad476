package chaos

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	rounds = flag.Int("rounds", 4, "rounds of chaos")
	seed   = flag.Uint64("seed", 0, "seed of the times of the kills, from the clock when 0")
)

// killsInRound is how many processes are killed in a round.
const killsInRound = 4

// TestChaos kills processes while clients send requests.
func TestChaos(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("run it again, with other timing: go test ./internal/chaos -run TestChaos -rounds %d -seed %d", *rounds, *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	c := newCluster(t)
	for _, name := range []string{"one", "two", "three"} {
		c.run(name)
	}
	rich, poor := c.account(10_000_000), c.account(int64(*rounds)*400)
	kills := map[string]int{}
	for range *rounds {
		stop := c.load(rich, poor)
		for range killsInRound {
			time.Sleep(time.Duration(50+random.IntN(400)) * time.Millisecond)
			victim := append(c.edges, c.writer)[random.IntN(len(c.edges)+1)]
			victim.Kill()
			kills[victim.name]++
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			victim.start()
		}
		for _, p := range append(c.edges, c.writer) {
			p.await("/readyz", http.StatusOK)
		}
		stop()
		rich.settles()
		poor.settles()
	}
	unanswered := int64(0)
	for _, a := range []*account{rich, poor} {
		answered, cut := a.got()
		require.Positive(t, answered)
		require.LessOrEqual(t, answered, a.bought, "answered beyond what was bought")
		at, err := a.read()
		require.NoError(t, err)
		unanswered += at.Spent - answered
		t.Logf("account %d: %d bought, %v by status, %d cut off, %d spent", a.id, a.bought, a.codes, cut, at.Spent)
	}
	t.Logf("%d rounds, kills: %v", *rounds, kills)
	edges := 0
	for _, p := range c.edges {
		edges += kills[p.name]
	}
	require.LessOrEqual(t, unanswered, int64(edges*clientsOfEdge), "a killed edge has one request of each client under way")
}

// clientsOfEdge is how many clients use each edge at once.
const clientsOfEdge = 2

// load sends requests to every edge until the returned function is called.
func (c *cluster) load(accounts ...*account) (stop func()) {
	var running sync.WaitGroup
	var ended atomic.Bool
	for _, p := range c.edges {
		for range clientsOfEdge {
			running.Go(func() {
				client := p.dials()
				defer client.CloseIdleConnections()
				for i := 0; !ended.Load(); i++ {
					if status := accounts[i%len(accounts)].ask(client, p); status != http.StatusOK {
						time.Sleep(5 * time.Millisecond)
					}
				}
			})
		}
	}
	return func() {
		ended.Store(true)
		running.Wait()
	}
}
