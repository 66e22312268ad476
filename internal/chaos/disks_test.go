package chaos

import (
	"context"
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/schema"
)

// mount mounts a file system of a given size, or skips the test.
func (c *cluster) mount(name, size string) string {
	dir := c.path(name)
	require.NoError(c.t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		c.t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	c.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func (a *account) asks(p *process, times int) (last int) {
	for range times {
		last = a.ask(http.DefaultClient, p)
	}
	return last
}

// asksUntilHeard asks until the answer is another than 503: a lookup waits for the writer a second, which a busy machine
// may need for something else.
func (a *account) asksUntilHeard(p *process) (status int) {
	a.cluster.t.Helper()
	eventually(a.cluster.t, func() bool {
		status = a.asks(p, 1)
		return status != http.StatusServiceUnavailable
	}, func() string { return p.name + " hears the writer" })
	return status
}

func TestEdgeWithFullDisk(t *testing.T) {
	c := newCluster(t)
	dir := c.mount("small", "1m")
	p := c.edge("small", "http://"+c.writer.address, filepath.Join(dir, "state"))
	p.start()
	p.await("/readyz", http.StatusOK)
	a := c.account(100_000)
	require.Equal(t, http.StatusOK, a.asks(p, 50))

	filler := filepath.Join(dir, "filler")
	exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=4k").Run() // until nothing is left
	eventually(t, func() bool { return a.asks(p, 50) == http.StatusServiceUnavailable }, func() string { return "live keys are answered 503" })
	require.Equal(t, http.StatusServiceUnavailable, p.status("/readyz"))
	eventually(t, func() bool { return strings.Contains(p.Tail(), "no space left on device") }, func() string { return "it logs the reason" })
	sandbox := &account{cluster: c, key: "reg_sandbox_public"}
	require.Equal(t, http.StatusOK, sandbox.asks(p, 1))

	require.NoError(t, os.Remove(filler))
	eventually(t, func() bool { return a.asks(p, 1) == http.StatusOK }, func() string { return "it serves again" })
	p.await("/readyz", http.StatusOK)
	a.settles()
	p.Kill()
	p.start()
	p.await("/readyz", http.StatusOK)
	a.settles()
}

func TestEdgeWithReadOnlyState(t *testing.T) {
	c := newCluster(t)
	dir := c.mount("fixed", "1m")
	p := c.edge("fixed", "http://"+c.writer.address, filepath.Join(dir, "state"))
	p.start()
	p.await("/readyz", http.StatusOK)
	a := c.account(1000)
	require.Equal(t, http.StatusOK, a.asks(p, 5))
	p.Kill()
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	p.start()
	p.servesSandboxAlone(a, "read-only file system")
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=1m"))
	p.await("/readyz", http.StatusOK)
	require.Equal(t, http.StatusOK, a.asks(p, 5))
	a.settles()
}

// servesSandboxAlone holds that an edge whose disk can't be written answers nobody else.
func (p *process) servesSandboxAlone(a *account, reason string) {
	t := a.cluster.t
	sandbox := &account{cluster: a.cluster, key: "reg_sandbox_public"}
	eventually(t, func() bool { return sandbox.asks(p, 1) == http.StatusOK }, func() string { return "the sandbox works: " + p.Tail() })
	// The last page of a journal may have room for some.
	eventually(t, func() bool { return a.asks(p, 50) == http.StatusServiceUnavailable }, func() string { return "live keys get 503" })
	require.Equal(t, http.StatusServiceUnavailable, p.status("/readyz"))
	eventually(t, func() bool { return strings.Contains(p.Tail(), reason) }, func() string { return "it logs the reason" })
}

// TestEdgeStartsOnAFullDisk starts an edge without a state directory, and then one whose charges are in
// its journal, on a disk that has no room.
func TestEdgeStartsOnAFullDisk(t *testing.T) {
	c := newCluster(t)
	dir := c.mount("small", "1m")
	p := c.edge("small", "http://"+c.writer.address, filepath.Join(dir, "state"))
	a := c.account(1000)
	filler := filepath.Join(dir, "filler")
	fill := func() { exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=4k").Run() }
	for range 2 { // without a journal, and with one
		fill()
		p.start()
		p.servesSandboxAlone(a, "no space left on device")
		require.NoError(t, os.Remove(filler))
		eventually(t, func() bool { return a.asks(p, 1) == http.StatusOK }, func() string { return "it serves by itself: " + p.Tail() })
		p.await("/readyz", http.StatusOK)
		p.Kill()
	}
	p.start()
	p.await("/readyz", http.StatusOK)
	a.settles()
}

func TestWriterWithLockedLedger(t *testing.T) {
	c := newCluster(t)
	p := c.run("one")
	a := c.account(1000)
	require.Equal(t, http.StatusOK, a.asks(p, 5))

	db, err := schema.OpenFile(c.path("ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{}) // takes the write lock
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.asks(p, 10), "from the lease")
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
	defer cancel()
	_, err = c.client.AddAccount(ctx, "never", "", "scale")
	require.Error(t, err, "an operator gets an error")
	require.NoError(t, tx.Rollback())
	require.Equal(t, http.StatusOK, a.asks(p, 10))
	a.settles()
}

func TestWriterWithDamagedLedger(t *testing.T) {
	c := newCluster(t)
	p := c.run("one")
	a := c.account(1000)
	require.Equal(t, http.StatusOK, a.asks(p, 5))
	a.settles()
	backup := c.path("backup.db")
	copyLedger(t, c.path("ledger.db"), backup)
	require.Equal(t, http.StatusOK, a.asks(p, 20))
	a.settles()

	c.writer.Kill()
	content, err := os.ReadFile(backup)
	require.NoError(t, err)
	for i := 100; i < len(content); i++ {
		content[i] ^= 0xa5
	}
	c.replaceLedger(content)
	c.writer.fails()
	require.Regexp(t, "malformed|not a database", c.writer.Tail())
	require.Equal(t, http.StatusOK, a.asks(p, 3), "from the lease, without the writer")

	content, err = os.ReadFile(backup)
	require.NoError(t, err)
	c.replaceLedger(content)
	args := c.writer.Args
	c.writer.Args = append(args, "--restored")
	c.writer.start()
	c.writer.Args = args
	eventually(t, func() bool { return a.asks(p, 1) == http.StatusOK }, func() string { return "it serves" })
	a.settles()
}

// copyLedger makes a backup of a ledger that is in use.
func copyLedger(t *testing.T, from, to string) {
	db, err := schema.OpenFile(from)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`VACUUM INTO ?`, to)
	require.NoError(t, err)
}

func (c *cluster) replaceLedger(content []byte) {
	for _, end := range []string{"-wal", "-shm"} {
		os.Remove(c.path("ledger.db" + end))
	}
	require.NoError(c.t, os.WriteFile(c.path("ledger.db"), content, 0o600))
}
