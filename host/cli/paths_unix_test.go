//go:build unix

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPipeInPlaceOfAFileIsNamed: opening a pipe without a writer blocks for ever, and no signal ends that.
func TestAPipeInPlaceOfAFileIsNamed(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	at := func(args ...string) []string { return args }
	sqld := at("--listen", "127.0.0.1:0", "--replication", "127.0.0.1:0", "--tls-ca", file, "--tls-key", file)
	for flag, args := range map[string][]string{
		"--database": at("writer", "--access", file, "--database", pipe),
		"--access":   at("writer", "--database", file, "--access", pipe),
		"--tls-cert": at("edge", "--registry", file, "--access", file, "--writer", "http://x", "--state", ".", "--tls-key", file, "--tls-cert", pipe),
		"--registry": at("doctor", "edge", "--access", file, "--writer", "http://x", "--state", ".", "--registry", pipe),
		"--jwt-key":  append(at("primary", "--dir", ".", "--tls-cert", file, "--jwt-key", pipe), sqld...),
		"--dir":      append(at("primary", "--tls-cert", file, "--jwt-key", file, "--dir", pipe), sqld...),
		"--trust":    at("trust", "init", "--trust", pipe),
		"the file":   at("push", pipe, "--registry", "http://127.0.0.1:1"),
	} {
		p := start(args...)
		require.Equal(t, exitMisuse, endOf(t, p), args)
		require.Contains(t, p.stderr.String(), flag+": "+pipe+" is a pipe, not a ", args)
	}
}

// endOf is the exit code of a program that has to end by itself.
func endOf(t *testing.T, p *program) int {
	t.Helper()
	select {
	case code := <-p.ended:
		return code
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end", p.stderr.String())
		return 0
	}
}

// TestASecretComesFromAPipe, such as a shell's <(command), also if its writer opens it late; a silent pipe
// times out.
func TestASecretComesFromAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	written := make(chan error, 1)
	go func() {
		time.Sleep(10 * pipePause)
		written <- os.WriteFile(pipe, []byte("secret\n"), 0)
	}()
	token, err := readToken("", pipe)
	require.NoError(t, err)
	require.Equal(t, "secret", token)
	require.NoError(t, <-written)

	p := start("account", "list", "--token-file", pipe)
	require.Equal(t, exitFailure, endOf(t, p))
	require.Contains(t, p.stderr.String(), "nothing came out of "+pipe)
	require.Contains(t, p.stderr.String(), "hint: ")

	open, err := os.OpenFile(pipe, os.O_RDWR, 0) // held open, and nothing is written
	require.NoError(t, err)
	defer open.Close()
	_, err = readToken("", pipe)
	require.ErrorContains(t, err, "nothing came out of "+pipe)

	long := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(long, bytes.Repeat([]byte{'x'}, maxSecret+1), 0o600))
	_, err = readToken("", long)
	require.ErrorContains(t, err, "holds more than a secret")
}

// TestAServiceReadsEachTokenOnce, since a pipe gives it once: a token that is used in several places is not asked for again.
func TestAServiceReadsEachTokenOnce(t *testing.T) {
	pipe := func(token string) string {
		path := filepath.Join(t.TempDir(), "pipe")
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		go func() { _ = os.WriteFile(path, []byte(token+"\n"), 0) }()
		return path
	}
	c := startCentre(t, "--database-token-file", pipe("of the ledger"), "--access-token-file", pipe("of access"))
	node, err := c.client.AddNode(t.Context(), "east")
	require.NoError(t, err)
	p := start("edge", "--listen", "127.0.0.1:0", "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path("east"), "--token-file", pipe(node.Token),
		"--registry-token-file", pipe("a"), "--access-token-file", pipe("b"))
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(func() bool { return p.status("/readyz", "") == 200 }), p.stderr.String())
}

// TestAWatchReadsItsTokenOnce, the first time that it looks.
func TestAWatchReadsItsTokenOnce(t *testing.T) {
	c := startCentre(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	go func() { _ = os.WriteFile(pipe, []byte("token\n"), 0) }()
	shown := statusCommand{Registry: "http://127.0.0.1:1", RegistryTokenFile: pipe}
	for range 2 {
		now, err := shown.collect(t.Context(), &Main{Now: time.Now, Stderr: io.Discard}, c.client)
		require.NoError(t, err)
		require.ErrorContains(t, now.failed, "127.0.0.1:1", "the token was read")
	}
}
