package sqld

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAServerThatWasLeftHasTimeToEnd: killed at once, it would leave its files as they are.
func TestAServerThatWasLeftHasTimeToEnd(t *testing.T) {
	dir, said := t.TempDir(), filepath.Join(t.TempDir(), "said")
	left := exec.Command("sh", "-c", `trap 'sleep 0.2; echo ended >"$0"; exit' INT; echo ready; while :; do sleep 0.01; done`, said)
	out, err := left.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, left.Start())
	defer left.Process.Kill()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	note := fmt.Sprintf("%d %s\n", left.Process.Pid, birth(left.Process.Pid))
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), []byte(note), 0o600))
	taken, err := takeDir(dir, newOutput(nil))
	require.NoError(t, err)
	taken.release()
	content, err := os.ReadFile(said)
	require.NoError(t, err)
	require.Equal(t, "ended\n", string(content))
}

// TestABirthIsOfOneProcess, so that no other one with its id is ended.
func TestABirthIsOfOneProcess(t *testing.T) {
	own := birth(os.Getpid())
	require.NotEmpty(t, own)
	require.Equal(t, own, birth(os.Getpid()))
	require.NotEqual(t, own, birth(1))
	ended := exec.Command("true")
	require.NoError(t, ended.Start())
	require.Eventually(t, func() bool { return birth(ended.Process.Pid) == "" }, time.Minute, time.Millisecond, "nobody has waited for it yet")
	require.NoError(t, ended.Wait())
	require.Empty(t, birth(ended.Process.Pid))
}
