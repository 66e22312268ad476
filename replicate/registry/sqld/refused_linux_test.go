package sqld

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFailedStartLeavesTheDirectory: the next one would be told that another regedge runs there.
func TestAFailedStartLeavesTheDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, lockName), 0o700))
	_, err := takeDir(dir, newOutput(t.Output()))
	require.ErrorContains(t, err, "is a directory")
	require.NoError(t, os.Remove(filepath.Join(dir, lockName)))
	h, err := takeDir(dir, newOutput(t.Output()))
	require.NoError(t, err)
	h.release()
}

// TestAServerThatCannotBeNotedIsEnded: nobody could end it once this process was killed.
func TestAServerThatCannotBeNotedIsEnded(t *testing.T) {
	h, err := takeDir(t.TempDir(), newOutput(t.Output()))
	require.NoError(t, err)
	h.release() // so that nothing can be written
	r := &run{hold: h, command: exec.Command("sleep", "3600")}
	require.ErrorIs(t, r.launch(nil), os.ErrClosed)
	require.NotNil(t, r.command.ProcessState, "it has ended")
}

// TestALockedDatabaseIsAskedAgainByTheSameConnection: one that leaves keeps its place in sqld's queue of writers, and all others wait
// for it.
func TestALockedDatabaseIsAskedAgainByTheSameConnection(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			_, _ = io.WriteString(w, `{"baton":"x","results":[{"type":"error","error":{"message":"SQLite error: database is locked","code":"SQLITE_BUSY"}}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"baton":"x","results":[{"type":"ok","response":{"type":"execute","result":{"cols":[],"rows":[]}}}]}`)
	}))
	defer server.Close()
	require.NoError(t, new(writeCheck).begin(t.Context(), server.URL))
	require.GreaterOrEqual(t, asked.Load(), int64(4), "twice locked, begun, rolled back")
}
