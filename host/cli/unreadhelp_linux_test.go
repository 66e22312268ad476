package cli

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelpThatNobodyReadsIsNoMisuse: with head or a pager that was left, help ended with code 2 and the advice to see the help.
func TestHelpThatNobodyReadsIsNoMisuse(t *testing.T) {
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	to := func(out *os.File, args ...string) (*os.ProcessState, string) {
		defer out.Close()
		said := &strings.Builder{}
		command := exec.Command(program, args...)
		command.Stdout, command.Stderr = out, said
		command.Env = []string{"PATH=" + os.Getenv("PATH")} // without variables that a warning would name
		_ = command.Run()
		return command.ProcessState, said.String()
	}
	for _, args := range [][]string{{}, {"push", "--help"}, {"help", "import"}} {
		reader, pipe, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		state, said := to(pipe, args...)
		require.Equal(t, syscall.SIGPIPE, state.Sys().(syscall.WaitStatus).Signal(), "as other commands end: %v", state)
		require.Empty(t, said)

		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		require.NoError(t, err)
		state, said = to(full, args...)
		require.Equal(t, exitFailure, state.ExitCode())
		require.Equal(t, "regedge: write /dev/stdout: no space left on device\n", said)
	}
}
