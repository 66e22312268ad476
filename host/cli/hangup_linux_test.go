package cli

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClosedTerminalEndsAServiceInOrder, but for one that was started by nohup.
func TestAClosedTerminalEndsAServiceInOrder(t *testing.T) {
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	caught := make(chan os.Signal, 1) // so that the program does not ignore it when the tests run by nohup
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for name, how := range map[string]struct {
		before string
		sent   []syscall.Signal
	}{
		"in a terminal": {"", []syscall.Signal{syscall.SIGHUP}},
		"by nohup":      {"trap '' HUP; ", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			command := exec.Command("sh", "-c", how.before+`exec "$0" "$@"`, program, "writer", "--listen", "127.0.0.1:0", "--token",
				operatorToken, "--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"))
			log, err := command.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			late := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
			defer late.Stop()
			lines := bufio.NewScanner(log)
			for lines.Scan() && !strings.Contains(lines.Text(), `"serving"`) {
			}
			for _, signal := range how.sent {
				require.NoError(t, command.Process.Signal(signal))
				time.Sleep(10 * time.Millisecond) // the kernel need not keep the order of two that wait
			}
			for lines.Scan() {
			}
			require.NoError(t, command.Wait())
		})
	}
}
