package chaos

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	// standbyGoal is how long edges may be without a writer; how long they were is in docs/operations.md, "A standby
	// for the writer".
	standbyGoal = time.Minute
	// purchasePause is the time between two purchases of the drill.
	purchasePause = 100 * time.Millisecond
)

// shippedWithin bounds the age of the changes that the loss of the machine may cost (docs/operations.md, the
// same): a second, and what a busy machine adds.
var shippedWithin = flag.Duration("shipped", 3*time.Second, "the age of changes that the loss of the writer's machine may cost")

func findLitestream(t *testing.T) string {
	litestream, err := exec.LookPath(cmp.Or(os.Getenv("LITESTREAM"), "litestream"))
	if err != nil {
		testkit.MissingTool(t, "Litestream is not installed: run make tools, and set LITESTREAM to build/bin/litestream")
	}
	return litestream
}

// TestStandbyTakesOver kills the writer, and the Litestream beside it, under load; nothing of their
// disk is used again. A standby restores the ledger from what was shipped, and takes over.
func TestStandbyTakesOver(t *testing.T) {
	litestream := findLitestream(t)
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
		require.Less(t, killed.Sub(when), *shippedWithin, "age of a lost purchase")
	}
}

// shipLedger runs Litestream on the ledger as deploy/litestream has it, but into a directory, and with a
// validation that a test can wait for.
func (c *cluster) shipLedger(litestream string) *testkit.Process {
	content, err := os.ReadFile("../../deploy/litestream/litestream.yml")
	require.NoError(c.t, err)
	var config struct {
		Addr       string         `yaml:"addr"`
		Validation map[string]any `yaml:"validation"`
		Stop       string         `yaml:"shutdown-sync-timeout"`
		Snapshot   map[string]any `yaml:"snapshot"`
		DBs        []struct {
			Path            string         `yaml:"path"`
			MonitorInterval string         `yaml:"monitor-interval"`
			Replica         map[string]any `yaml:"replica"`
		} `yaml:"dbs"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	require.NoError(c.t, decoder.Decode(&config))
	require.Len(c.t, config.DBs, 1)
	metrics := testkit.FreePort(c.t)
	ledger := &config.DBs[0]
	config.Addr, config.Validation["interval"], ledger.Path = metrics, "200ms", c.path("ledger.db")
	ledger.Replica = map[string]any{"type": "file", "path": c.path("shipped"), "sync-interval": ledger.Replica["sync-interval"]}
	content, err = yaml.Marshal(config)
	require.NoError(c.t, err)
	file := c.path("litestream.yml")
	require.NoError(c.t, os.WriteFile(file, content, 0o600))
	p := &testkit.Process{Program: litestream, Args: []string{"replicate", "-config", file}}
	c.t.Cleanup(p.Kill)
	require.NoError(c.t, p.Start())
	eventually(c.t, func() bool {
		files, _ := filepath.Glob(c.path("shipped/ltx/0/*"))
		return len(files) > 0
	}, func() string { return "the ledger is shipped\n" + p.Tail() })
	alarmed := []string{"litestream_txid", "litestream_sync_error_count", "litestream_disk_full", "litestream_last_validation_success"}
	eventually(c.t, func() bool {
		exported := litestreamMetrics(c.t, metrics)
		return !slices.ContainsFunc(alarmed, func(name string) bool { return !strings.Contains(exported, name+"{") })
	}, func() string { return "Litestream has the metrics that deploy/prometheus/alarms.yml uses" })
	return p
}

// litestreamMetrics reads what a Litestream exports, empty while it does not answer.
func litestreamMetrics(t *testing.T, address string) string {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	exported, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(exported)
}

// TestLitestreamTellsThatTheLedgerIsNotShipped takes the destination away from a Litestream with the
// settings of deploy/litestream, and gives it back. What the alarm RegedgeLedgerNotShipped asks for
// follows; and it holds nothing against a destination for which Litestream counts no operations.
func TestLitestreamTellsThatTheLedgerIsNotShipped(t *testing.T) {
	litestream := findLitestream(t)
	rules, err := os.ReadFile("../../deploy/prometheus/alarms.yml")
	require.NoError(t, err)
	require.Contains(t, string(rules), "litestream_last_validation_success == 0")
	settings, err := os.ReadFile("../../deploy/litestream/litestream.yml")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^validation:.*\n  interval: \d+s$`, string(settings), "without it there is no such metric")

	dir, address := t.TempDir(), testkit.FreePort(t)
	db, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE made_up (n INTEGER)`)
	require.NoError(t, err)
	config, shipped := filepath.Join(dir, "litestream.yml"), filepath.Join(dir, "shipped")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
addr: %s
validation: {interval: 200ms}
dbs:
  - path: %s
    monitor-interval: 200ms
    replica: {type: file, path: %s, sync-interval: 200ms}
`, address, filepath.Join(dir, "ledger.db"), shipped), 0o600))
	p := &testkit.Process{Program: litestream, Args: []string{"replicate", "-config", config}}
	t.Cleanup(p.Kill)
	require.NoError(t, p.Start())
	ok := regexp.MustCompile(`(?m)^litestream_last_validation_success\{.*level="0"\} (\d)$`)
	validated := func(want string) func() bool {
		return func() bool {
			_, err := db.Exec(`INSERT INTO made_up VALUES (1)`)
			require.NoError(t, err)
			found := ok.FindStringSubmatch(litestreamMetrics(t, address))
			return found != nil && found[1] == want
		}
	}
	require.Eventually(t, validated("1"), time.Minute, 100*time.Millisecond, p.Tail())
	require.NotContains(t, litestreamMetrics(t, address), "litestream_replica_operation_total{", "then the alarm can use it for a directory, too")
	require.Eventually(t, func() bool { // it is made for the first thing that is shipped
		_, err := os.Stat(shipped)
		return err == nil
	}, time.Minute, 100*time.Millisecond, p.Tail())
	require.NoError(t, os.Rename(shipped, shipped+"-away"))
	require.NoError(t, os.WriteFile(shipped, nil, 0o600))
	require.Eventually(t, validated("0"), time.Minute, 100*time.Millisecond, p.Tail())
	require.NoError(t, os.Remove(shipped))
	require.NoError(t, os.Rename(shipped+"-away", shipped))
	require.Eventually(t, validated("1"), time.Minute, 100*time.Millisecond, p.Tail())
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
