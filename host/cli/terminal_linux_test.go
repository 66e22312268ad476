package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// atTerminal runs a command as a process of its own whose terminal types a text, and returns its exit
// code and what the terminal showed.
func atTerminal(t *testing.T, types string, args ...string) (code int, shown string) {
	t.Helper()
	screen, terminal := openTerminal(t)
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, c.Start())
	require.NoError(t, terminal.Close())
	_, err = io.WriteString(screen, types)
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = out.ReadFrom(screen)
	require.ErrorIs(t, err, syscall.EIO, "the terminal's last user has ended")
	if err := c.Wait(); err != nil {
		var ended *exec.ExitError
		require.True(t, errors.As(err, &ended), "%v", err)
	}
	return c.ProcessState.ExitCode(), out.String()
}

// TestNobodyIsAskedWhereTheQuestionIsNotSeen: a script that keeps what a command says would wait for ever.
func TestNobodyIsAskedWhereTheQuestionIsNotSeen(t *testing.T) {
	screen, terminal := openTerminal(t)
	defer screen.Close()
	defer terminal.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "said"))
	require.NoError(t, err)
	defer file.Close()
	require.True(t, (&Main{Stdin: terminal, Stderr: terminal}).asksAtTerminal())
	for _, m := range []*Main{{Stdin: terminal, Stderr: file}, {Stdin: file, Stderr: terminal}, {Stdin: terminal, Stderr: new(bytes.Buffer)}} {
		require.False(t, m.asksAtTerminal())
	}
}

// TestWhoInterruptsAQuestionIsToldThatNothingWasChanged, on a line below it.
func TestWhoInterruptsAQuestionIsToldThatNothingWasChanged(t *testing.T) {
	screen, terminal := openTerminal(t)
	defer terminal.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := (&Main{Stdin: terminal, Stderr: terminal}).confirm(ctx, false, "Revoke it?")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "nothing was changed")
	const want = "Revoke it? Type yes: \r\n"
	shown := make([]byte, 100)
	n, err := io.ReadAtLeast(screen, shown, len(want)) // the question and the line below it are two writes
	require.NoError(t, err)
	require.Equal(t, want, string(shown[:n]))
}

// openTerminal opens a pseudo-terminal: the side that a person sits at, and the program's.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { screen.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return screen, terminal
}
