package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/host/server"
	"regedge/internal/testkit"
)

// unreadLogLimit is for the slowest machine that runs the tests.
const unreadLogLimit = time.Minute

// talkative is a server that writes a megabyte of lines, makes a file beside itself, and runs on.
const talkative = `#!/bin/sh
yes 'a line of a server' | head -c 1000000
: > "$0.done"
exec sleep 600
`

// TestSqldDoesNotWaitForALogThatIsNotRead: it would answer nobody, and its regedge would not end with it.
func TestSqldDoesNotWaitForALogThatIsNotRead(t *testing.T) {
	dir := t.TempDir()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("machine", "127.0.0.1")
	require.NoError(t, err)
	putAwaySigningKeys(t, filepath.Join(dir, "trust"))
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	for command, more := range map[string][]string{
		"primary": {"--replication", testkit.FreePort(t)},
		"replica": {"--primary", "https://127.0.0.1:1"},
	} {
		t.Run(command, func(t *testing.T) {
			server := filepath.Join(t.TempDir(), "server")
			require.NoError(t, os.WriteFile(server, []byte(talkative), 0o700))
			data := filepath.Join(dir, command)
			args := append([]string{command, "--sqld", server, "--dir", data, "--listen", testkit.FreePort(t),
				"--jwt-key", made.PrimaryKeyFile("access"), "--tls-ca", made.AuthorityFile(), "--tls-cert", cert, "--tls-key", key}, more...)

			t.Run("goes on, and ends when it is told to", func(t *testing.T) {
				p, ends := unread(t, program, args)
				require.Eventually(t, func() bool { _, err := os.Stat(server + ".done"); return err == nil }, unreadLogLimit, 10*time.Millisecond)
				require.NoError(t, p.Signal(syscall.SIGTERM))
				require.Zero(t, <-ends)
			})
			t.Run("ends with its server, for an init system that starts both again", func(t *testing.T) {
				require.NoError(t, os.Remove(server+".done"))
				_, ends := unread(t, program, args)
				require.Eventually(t, func() bool { _, err := os.Stat(server + ".done"); return err == nil }, unreadLogLimit, 10*time.Millisecond)
				require.NoError(t, syscall.Kill(serverOf(t, data), syscall.SIGKILL))
				require.Equal(t, exitFailure, <-ends)
			})
			t.Run("goes on when the reader of its log has ended", func(t *testing.T) {
				require.NoError(t, os.Remove(server+".done"))
				p, ends := logging(t, unheard(t), program, args)
				require.Eventually(t, func() bool { _, err := os.Stat(server + ".done"); return err == nil }, unreadLogLimit, 10*time.Millisecond)
				require.NoError(t, p.Signal(syscall.SIGTERM))
				require.Zero(t, <-ends)
			})
		})
	}
}

// TestAServiceOutlivesTheReaderOfItsLog, such as a program that collects it and is restarted.
func TestAServiceOutlivesTheReaderOfItsLog(t *testing.T) {
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	t.Setenv("REGEDGE_OF_ANOTHER", "a warning before the log")
	dir, address := t.TempDir(), testkit.FreePort(t)
	for _, service := range [][]string{
		{"writer", "--listen", address, "--token", operatorToken,
			"--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db")},
		{"dev", "--listen", address, "--writer-listen", testkit.FreePort(t), "--data", filepath.Join(dir, "data")}, // with an edge's log
	} {
		p, ends := logging(t, unheard(t), program, service)
		require.Eventually(t, func() bool {
			answer, err := http.Get("http://" + address + "/readyz")
			if err != nil {
				return false
			}
			answer.Body.Close()
			return answer.StatusCode == http.StatusOK
		}, unreadLogLimit, 10*time.Millisecond, "%s has said that it serves, and goes on", service[0])
		require.NoError(t, p.Signal(syscall.SIGTERM))
		require.Zero(t, <-ends, service[0])
	}
}

// TestALogThatCannotBeToldIsNoFailureOfAService at its end, but what its disk refuses is.
func TestALogThatCannotBeToldIsNoFailureOfAService(t *testing.T) {
	writer := unheard(t)
	defer writer.Close()
	buffer := server.NewLogBuffer(writer)
	_, err := buffer.Write([]byte("the last line\n"))
	require.NoError(t, err)
	require.NoError(t, flushed(buffer)())

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	buffer = server.NewLogBuffer(full)
	_, err = buffer.Write([]byte("the last line\n"))
	require.NoError(t, err)
	require.ErrorIs(t, flushed(buffer)(), syscall.ENOSPC)
}

// TestAnOrdinaryCommandEndsWithItsReader, such as head, as others do.
func TestAnOrdinaryCommandEndsWithItsReader(t *testing.T) {
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	_, ends := logging(t, unheard(t), program, []string{"version"})
	require.Equal(t, -1, <-ends, "by a signal")
}

// unheard returns a pipe whose reader has ended.
func unheard(t *testing.T) *os.File {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	return writer
}

// unread starts a program whose output nobody reads, and returns its exit code once it ends, -1 if it had to be killed.
func unread(t *testing.T, program string, args []string) (*os.Process, <-chan int) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { reader.Close() })
	return logging(t, writer, program, args)
}

// logging starts a program that writes to a pipe, and returns its exit code once it ends, -1 if a signal ended it.
func logging(t *testing.T, writer *os.File, program string, args []string) (*os.Process, <-chan int) {
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = writer, writer
	require.NoError(t, command.Start())
	require.NoError(t, writer.Close())
	late := time.AfterFunc(2*unreadLogLimit, func() { _ = command.Process.Kill() })
	ends, ended := make(chan int, 1), make(chan struct{})
	go func() {
		_ = command.Wait()
		ends <- command.ProcessState.ExitCode()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		late.Stop()
	})
	return command.Process, ends
}
