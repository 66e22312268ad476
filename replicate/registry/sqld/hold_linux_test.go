package sqld_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

const lockName = "regedge.lock"

// TestAServerThatWasLeftIsEnded: the lock file names a server that still runs, and has the addresses.
func TestAServerThatWasLeftIsEnded(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]bool{"asked": false, "killed, since it hangs": true} {
		t.Run(name, func(t *testing.T) {
			left := sqldtest.Primary(t)
			pid := left.PID()
			note, err := os.ReadFile(filepath.Join(left.Dir, lockName))
			require.NoError(t, err)
			if hang {
				require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			}
			log, dir := &testkit.Log{}, t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), note, 0o600))
			next := sqldtest.Start(t, sqld.Config{Dir: dir, HTTP: left.HTTP, GRPC: left.GRPC, Log: log})
			require.Contains(t, log.String(), fmt.Sprintf("ending the server that a regedge which was killed has left: process %d", pid))
			require.NotEqual(t, pid, next.PID())
			require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, patience, 10*time.Millisecond)
		})
	}
}

// TestALaterProcessOfTheSameIDIsLeftAlone: the birth in the lock file is another's.
func TestALaterProcessOfTheSameIDIsLeftAlone(t *testing.T) {
	other := sqldtest.Primary(t)
	dir := t.TempDir()
	for _, note := range []string{"%d", "%d 1", "%d boot 1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), fmt.Appendf(nil, note+"\n", other.PID()), 0o600))
		next := sqldtest.Start(t, sqld.Config{Dir: dir, HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t)})
		sqldtest.Await(t, other, "")
		next.Stop()
	}
}

func TestADirectoryHasOneServer(t *testing.T) {
	t.Parallel()
	first := sqldtest.Primary(t)
	second := &sqld.Server{Config: first.Config}
	require.ErrorIs(t, second.Start(), sqld.ErrInUse)
	require.Len(t, testkit.OpenFiles(t, filepath.Join(first.Dir, lockName)), 1, "who was refused keeps nothing open")
	require.NoError(t, os.Remove(filepath.Join(first.Dir, lockName)))
	require.ErrorIs(t, second.Start(), sqld.ErrInUse, "nor does a lock file that is deleted let anybody in")
	sqldtest.Await(t, first, "")
	first.Stop()
	require.NoError(t, second.Start())
	defer second.Kill()
	sqldtest.Await(t, second, "")
}

// TestANoteReplacesALongerOne: a server that a killed regedge has left is known by it.
func TestANoteReplacesALongerOne(t *testing.T) {
	dir := t.TempDir()
	note := filepath.Join(dir, lockName)
	require.NoError(t, os.WriteFile(note, []byte("4194303 of another machine's boot, with more words than there are now 1234567\n"), 0o600))
	left := sqldtest.Start(t, sqld.Config{Dir: dir, HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t)})
	content, err := os.ReadFile(note)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(content), "\n"))
	require.True(t, strings.HasPrefix(string(content), fmt.Sprintf("%d ", left.PID())), string(content))
	require.NotContains(t, string(content), "words")
}
