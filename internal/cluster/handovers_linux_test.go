package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// handovers is a primary and a replica, each a command of its own.
type handovers struct {
	t                *testing.T
	primary, replica *testkit.Process
	dirs             [2]string // of the two
	urls             [2]string
	tokens           [2]string
	log              *testkit.Log
}

func startHandovers(t *testing.T) *handovers {
	t.Helper()
	regedge, err := program()
	require.NoError(t, err)
	dir := t.TempDir()
	trust, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	alone := filepath.Join(dir, "alone") // a service refuses to see the keys that sign
	require.NoError(t, os.Mkdir(alone, 0o700))
	own := func(file string) string {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		path := filepath.Join(alone, filepath.Base(file))
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	command := func(name, certificate, key string, hosts []string, more ...string) *testkit.Process {
		cert, certKey, err := trust.Certificate(certificate, hosts...)
		require.NoError(t, err)
		return &testkit.Process{Program: regedge, Args: append([]string{
			name, "--sqld", sqldtest.Program(t), "--dir", filepath.Join(dir, name), "--jwt-key", own(key),
			"--tls-ca", own(trust.AuthorityFile()), "--tls-cert", own(cert), "--tls-key", own(certKey),
		}, more...)}
	}
	h := &handovers{t: t, log: &testkit.Log{}, dirs: [2]string{filepath.Join(dir, "primary"), filepath.Join(dir, "replica")}}
	at, replication, near := testkit.FreePort(t), testkit.FreePort(t), testkit.FreePort(t)
	h.urls = [2]string{"http://" + at, "http://" + near}
	h.primary = command("primary", "primary", trust.PrimaryKeyFile("registry"), []string{"127.0.0.1"}, "--listen", at, "--replication", replication)
	h.replica = command("replica", "edge", trust.ReplicaKeyFile("registry"), nil, "--listen", near, "--primary", "https://"+replication)
	h.tokens[0], err = trust.Token("registry", pki.ReadWrite, 0)
	require.NoError(t, err)
	h.tokens[1], err = trust.Token("registry", pki.ReadOnly, time.Hour)
	require.NoError(t, err)
	for _, p := range []*testkit.Process{h.primary, h.replica} {
		p.Log = h.log
		require.NoError(t, p.Start())
		p.EndWith(t)
	}
	return h
}

// reads is the number in the database of the primary (0) or the replica (1), -1 if it does not answer.
func (h *handovers) reads(which int) int {
	db, err := libsql.Open(h.urls[which], h.tokens[which])
	require.NoError(h.t, err)
	defer db.Close()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Second)
	defer cancel()
	var n int
	if db.QueryRowContext(ctx, "SELECT n FROM probe").Scan(&n) != nil {
		return -1
	}
	return n
}

// put hands a database with a number over.
func (h *handovers) put(n int) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "made")
	made, err := sqlite3.Open(file)
	require.NoError(h.t, err)
	require.NoError(h.t, made.Exec(fmt.Sprintf(`PRAGMA journal_mode = wal; CREATE TABLE probe (n INTEGER); INSERT INTO probe VALUES (%d);
		CREATE TABLE pad (id INTEGER PRIMARY KEY, text);
		WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 60000) INSERT INTO pad SELECT n, hex(randomblob(150)) FROM c`, n)))
	require.NoError(h.t, made.Close())
	require.NoError(h.t, sqld.Seed(h.dirs[0]).Put(file, nil))
}

// disturb kills a command or its server, after a while, and starts the command again.
func (h *handovers) disturb(random *rand.Rand) string {
	h.t.Helper()
	which := random.IntN(2)
	after := time.Duration(random.IntN(1500)) * time.Millisecond
	time.Sleep(after)
	p, name := h.primary, "primary"
	if which == 1 {
		p, name = h.replica, "replica"
	}
	what := "command"
	if random.IntN(2) == 0 {
		what = "server"
		if pid := serverOf(h.dirs[which]); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) // the command ends with it, or was just starting another one
	}
	p.Kill()
	require.NoError(h.t, p.Start())
	return fmt.Sprintf("killed the %s of the %s after %v", what, name, after)
}

// TestHandedOverDatabasesSurviveKills: whatever is killed while a database is handed over, compressed, placed, fetched or
// served, both have the last one in the end, whole, and the replica follows.
func TestHandedOverDatabasesSurviveKills(t *testing.T) {
	t.Parallel()
	h := startHandovers(t)
	require.Eventually(t, func() bool {
		_, err := os.Lstat(filepath.Join(h.dirs[0], "regedge.lock"))
		return !errors.Is(err, fs.ErrNotExist)
	}, patience, 20*time.Millisecond)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := 6
	if soak() {
		rounds = 100
	}
	for n := 1; n <= rounds; n++ {
		h.put(2 * n)
		did := []string{h.disturb(random)}
		if random.IntN(2) == 0 {
			did = append(did, h.disturb(random))
		}
		for which := range h.dirs {
			require.Eventually(t, func() bool { return h.reads(which) == 2*n }, time.Minute, 50*time.Millisecond, "seed %d, round %d, %d: %v", seed, n, which, did)
		}
		db, err := libsql.Open(h.urls[0], h.tokens[0])
		require.NoError(t, err)
		require.NoError(t, libsql.Commit(t.Context(), db, []libsql.Statement{{SQL: "UPDATE probe SET n = n + 1"}, {SQL: "DELETE FROM pad WHERE id % 7 = 0"}}))
		db.Close()
		require.Eventually(t, func() bool { return h.reads(1) == 2*n+1 }, time.Minute, 50*time.Millisecond, "seed %d, round %d: %v", seed, n, did)
		for _, dir := range h.dirs {
			sqldtest.RequireIntact(t, sqld.File(dir))
		}
	}
}
