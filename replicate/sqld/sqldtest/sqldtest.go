// Package sqldtest runs real libSQL servers for tests, and skips a test where there is
// no sqld.
package sqldtest

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/hrana"
	"regedge/replicate/logtest"
	"regedge/replicate/sqld"
)

// startLimit is how long a server may take to answer on a busy machine.
const startLimit = 30 * time.Second

// Program is the server's program. Without one the test is skipped.
func Program(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	program, err := sqld.Program(filepath.Join(filepath.Dir(file), "..", "..", ".."))
	if err != nil {
		t.Skip(err)
	}
	return program
}

// Primary starts a primary without tokens in a folder of the test, and waits for it.
func Primary(t testing.TB) *sqld.Server {
	t.Helper()
	return Start(t, sqld.Config{HTTP: Address(t), GRPC: Address(t)})
}

// Replica starts a replica of a primary, and waits until it answers.
func Replica(t testing.TB, of *sqld.Server) *sqld.Server {
	t.Helper()
	return Start(t, sqld.Config{HTTP: Address(t), Primary: "http://" + of.GRPC})
}

// Address is a free address.
func Address(t testing.TB) string {
	t.Helper()
	address, err := sqld.FreeAddress()
	require.NoError(t, err)
	return address
}

// Start starts a server that ends with the test, in a folder of the test if none is
// named.
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

// Await waits until a server answers.
func Await(t testing.TB, server *sqld.Server, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	require.NoError(t, server.Await(ctx, token))
}

// Exec runs statements on a server in one transaction.
func Exec(t testing.TB, server *sqld.Server, statements ...string) {
	t.Helper()
	client := hrana.New(server.URL(), "")
	defer client.Close()
	list := make([]hrana.Statement, len(statements))
	for i, text := range statements {
		list[i].SQL = text
	}
	require.NoError(t, client.Commit(t.Context(), list))
}

// LoseDatabase has the replica with a directory lose its database: its primary is killed,
// so that the replica removes its files to copy them anew, which fails, since others appear
// there meanwhile. Something must have been written at the primary. log is what the replica
// writes, token may read at the primary.
func LoseDatabase(t testing.TB, primary *sqld.Server, token, dir string, log *logtest.Log) {
	t.Helper()
	said := func() int { return strings.Count(log.String(), "error resetting namespace") }
	before := said()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Microsecond): // fails while the directory is away
				_ = os.WriteFile(filepath.Join(filepath.Dir(sqld.File(dir)), "in-the-way-"+strconv.Itoa(n%100)), nil, 0o600)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 3 { // a primary may find its log as it was
		primary.Kill()
		require.NoError(t, primary.Start())
		Await(t, primary, token)
		for waited := time.Now(); time.Since(waited) < startLimit/3; time.Sleep(10 * time.Millisecond) {
			if said() > before {
				return
			}
		}
	}
	require.Fail(t, "the replica has not lost its database", log.String())
}
