package cli

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
)

// TestConnectionsLeaveAProgramItsFiles: one that may open few of them answers a customer, and others than customers, beside
// more connections than it has files for. It would accept them up to its last file.
func TestConnectionsLeaveAProgramItsFiles(t *testing.T) {
	lookups, writer := testkit.FreePort(t), testkit.FreePort(t)
	log := startWithFewFiles(t, "dev", "--listen", lookups, "--writer-listen", writer, "--data", filepath.Join(t.TempDir(), "data"))
	customer := clientFrom(127, 0, 0, 1)
	lookup, probe := "http://"+lookups+"/v1/search/companies?name=limited", "http://"+writer+"/readyz"
	for _, url := range []string{lookup, probe} {
		require.Eventually(t, func() bool { return statusFor(t, customer, url) == http.StatusOK }, time.Minute, 20*time.Millisecond)
	}
	for range 200 {
		conn, err := net.Dial("tcp", lookups)
		require.NoError(t, err)
		defer conn.Close()
	}
	once := clientFrom(127, 0, 0, 1)
	require.Equal(t, http.StatusOK, statusFor(t, once, probe))
	once.CloseIdleConnections()
	require.Equal(t, http.StatusOK, statusFor(t, customer, lookup))
	crowd(t, writer, log)
	require.Equal(t, http.StatusOK, statusFor(t, customer, lookup))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "raise LimitNOFILE=") }, time.Minute, 10*time.Millisecond)
}

// TestConnectionsLeaveTheWriterItsFiles: without it no edge gets a lease.
func TestConnectionsLeaveTheWriterItsFiles(t *testing.T) {
	writer, dir := testkit.FreePort(t), t.TempDir()
	log := startWithFewFiles(t, "writer", "--listen", writer, "--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"),
		"--token", strings.Repeat("made-up-", 5))
	client := clientFrom(127, 0, 0, 1)
	require.Eventually(t, func() bool { return statusFor(t, client, "http://"+writer+"/readyz") == http.StatusOK }, time.Minute, 20*time.Millisecond)
	crowd(t, writer, log)
}

// TestConnectionsLeaveAPrimaryItsFiles: without it no edge follows, and no account is changed.
func TestConnectionsLeaveAPrimaryItsFiles(t *testing.T) {
	s := startStage(t, "access")
	s.running[0].halt()
	log := startWithFewFiles(t, s.primaryArguments(t)...)
	sqldtest.Await(t, s.primary, s.write)
	for range 200 {
		conn, err := net.Dial("tcp", s.primary.GRPC)
		require.NoError(t, err)
		defer conn.Close()
	}
	pair, err := tls.LoadX509KeyPair(s.edge.Cert, s.edge.Key)
	require.NoError(t, err)
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: time.Minute}
	other, err := tls.DialWithDialer(from, "tcp", s.primary.GRPC, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	require.NoError(t, err, "an edge at another address is heard")
	require.NoError(t, other.Close())
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "too many are open") }, time.Minute, 10*time.Millisecond)
}

// startWithFewFiles starts the program, which may open 128 files, and ends it with the test.
func startWithFewFiles(t *testing.T, arguments ...string) *testkit.Log {
	t.Helper()
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	log := &testkit.Log{}
	command := exec.Command("sh", append([]string{"-c", `ulimit -n 128; exec "$0" "$@"`, program}, arguments...)...)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	late := time.AfterFunc(2*time.Minute, func() { _ = command.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		require.NoError(t, command.Process.Signal(syscall.SIGTERM))
		require.NoError(t, command.Wait(), log.String())
	})
	return log
}

// crowd opens more connections to the API of a writer than the program has files for, beside which another address is answered.
func crowd(t *testing.T, address string, log *testkit.Log) {
	t.Helper()
	for range 200 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, _ = conn.Write([]byte("GET /readyz HTTP/1.1\r\nHost: made-up\r\n\r\n")) // then it is idle
		other := clientFrom(127, 0, 0, 2)
		require.Equal(t, http.StatusOK, statusFor(t, other, "http://"+address+"/readyz"))
		other.CloseIdleConnections()
	}
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "connections are closed: too many are open")
	}, time.Minute, 10*time.Millisecond)
}

// clientFrom is a client with an address of this machine.
func clientFrom(a, b, c, d byte) *http.Client {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(a, b, c, d)}}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: from.DialContext}}
}

// statusFor is the status of an answer to the sandbox key, 0 for none.
func statusFor(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer reg_sandbox_public")
	answer, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
