package chaos

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/freeport"
	"regedge/replicate/metering/writer"
)

const (
	// standbyGoal is how long edges may be without a writer (docs/operations.md, "A standby for the
	// writer").
	standbyGoal = time.Minute
	// shippedWithin bounds the age of the changes that the loss of the machine may cost: a second,
	// and what a busy machine adds.
	shippedWithin = 3 * time.Second
	// purchasePause is the time between two purchases of the drill.
	purchasePause = 100 * time.Millisecond
)

// TestStandbyTakesOver kills the writer, and the Litestream beside it, under load; nothing of their
// disk is used again. A standby restores the ledger from what was shipped, and takes over.
func TestStandbyTakesOver(t *testing.T) {
	litestream, err := exec.LookPath(cmp.Or(os.Getenv("LITESTREAM"), "litestream"))
	if err != nil {
		testkit.MissingTool(t, "Litestream is not installed: run make tools, and set LITESTREAM to build/bin/litestream")
	}
	c := newCluster(t)
	shipping := c.shipLedger(litestream)
	for _, name := range []string{"one", "two"} {
		c.run(name)
	}
	busy, bought := c.account(1_000_000), c.account(1)
	stop := c.load(busy)
	purchases := c.buyUntilKilled(bought, func() {
		c.writer.Kill()
		shipping.Kill()
	})
	killed := time.Now()
	require.NoError(t, os.RemoveAll(c.path("ledger.db")), "the machine is lost")

	c.standBy(litestream)
	c.writer.await("/readyz", http.StatusOK)
	fresh := c.account(1000)
	for _, edge := range c.edges {
		eventually(t, func() bool { return fresh.ask(http.DefaultClient, edge) == http.StatusOK },
			func() string { return edge.name + " gets credits from the standby" })
	}
	outage := time.Since(killed)
	stop()
	busy.settles()

	at, err := bought.read()
	require.NoError(t, err)
	// One credit each, after the first; the one that was cut off may have been shipped.
	lost := purchases[min(int(at.Bought-1), len(purchases)):]
	t.Logf("edges got leases again after %.1f s; %d of %d purchases are lost", outage.Seconds(), len(lost), len(purchases))
	require.Less(t, outage, standbyGoal)
	for _, when := range lost {
		require.Less(t, killed.Sub(when), shippedWithin, "age of a lost purchase")
	}
}

// shipLedger runs Litestream on the ledger with the intervals of deploy/litestream, into a directory.
func (c *cluster) shipLedger(litestream string) *testkit.Process {
	config := c.path("litestream.yml")
	metrics := freeport.ForTest(c.t)
	require.NoError(c.t, os.WriteFile(config, fmt.Appendf(nil, `
addr: %s
dbs:
  - path: %s
    monitor-interval: 200ms
    replica: {type: file, path: %s, sync-interval: 200ms}
`, metrics, c.path("ledger.db"), c.path("shipped")), 0o600))
	p := &testkit.Process{Program: litestream, Args: []string{"replicate", "-config", config}}
	c.t.Cleanup(p.Kill)
	require.NoError(c.t, p.Start())
	eventually(c.t, func() bool {
		files, _ := filepath.Glob(c.path("shipped/ltx/0/*"))
		return len(files) > 0
	}, func() string { return "the ledger is shipped\n" + p.Tail() })
	response, err := http.Get("http://" + metrics + "/metrics")
	require.NoError(c.t, err)
	defer response.Body.Close()
	exported, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	for _, alarmed := range []string{"litestream_txid", "litestream_sync_error_count", "litestream_disk_full"} {
		require.Contains(c.t, string(exported), alarmed+"{", "deploy/prometheus/alarms.yml uses it")
	}
	return p
}

// buyUntilKilled buys one credit after another for five seconds, calls kill in the midst of it, and
// returns when each purchase was acknowledged.
func (c *cluster) buyUntilKilled(a *account, kill func()) (acknowledged []time.Time) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var buying sync.WaitGroup
	buying.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.client.ChangeCredits(ctx, a.id, writer.CreditChange{Amount: 1}); err != nil {
				return // cut off by the kill: its outcome is unknown
			}
			acknowledged = append(acknowledged, time.Now())
			time.Sleep(purchasePause)
		}
	})
	time.Sleep(5 * time.Second)
	kill()
	cancel()
	buying.Wait()
	require.NotEmpty(c.t, acknowledged)
	return acknowledged
}

// standBy restores the ledger and starts a writer on it under the address of the one that is gone,
// as a name or an address that moves with the service does.
func (c *cluster) standBy(litestream string) {
	ledger := c.path("standby.db")
	restore := exec.CommandContext(c.t.Context(), litestream, "restore", "-o", ledger, "file://"+c.path("shipped"))
	output, err := restore.CombinedOutput()
	require.NoError(c.t, err, string(output))
	gone := c.writer
	c.writer = &process{t: c.t, name: "standby", address: gone.address}
	c.writer.Program = gone.Program
	c.writer.Args = []string{"writer", "--token", operatorToken, "--database", ledger, "--access", c.path("access.db"),
		"--restored", "--listen", gone.address}
	c.t.Cleanup(c.writer.Kill)
	c.writer.start()
}
