package cli

import (
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
)

// TestConnectionsLeaveAProgramItsFiles: one that may open few of them answers a customer, and others than customers, beside
// more connections than it has files for. It would accept them up to its last file.
func TestConnectionsLeaveAProgramItsFiles(t *testing.T) {
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	lookups, writer, log := testkit.FreePort(t), testkit.FreePort(t), &testkit.Log{}
	command := exec.Command("sh", "-c", `ulimit -n 128; exec "$0" "$@"`, program, "dev", "--listen", lookups,
		"--writer-listen", writer, "--data", filepath.Join(t.TempDir(), "data"))
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	late := time.AfterFunc(2*time.Minute, func() { _ = command.Process.Kill() })
	defer late.Stop()
	defer func() {
		require.NoError(t, command.Process.Signal(syscall.SIGTERM))
		require.NoError(t, command.Wait(), log.String())
	}()

	client := func(once bool) *http.Client {
		return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: once}}
	}
	customer := client(false)
	defer customer.CloseIdleConnections()
	status := func(client *http.Client, url string) int {
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
	lookup, probe := "http://"+lookups+"/v1/search/companies?name=limited", "http://"+writer+"/readyz"
	for _, url := range []string{lookup, probe} {
		require.Eventually(t, func() bool { return status(customer, url) == http.StatusOK }, time.Minute, 20*time.Millisecond)
	}
	for range 200 {
		conn, err := net.Dial("tcp", lookups)
		require.NoError(t, err)
		defer conn.Close()
	}
	require.Equal(t, http.StatusOK, status(client(true), probe))
	require.Equal(t, http.StatusOK, status(customer, lookup))

	operator := client(true) // of another address
	operator.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
	for range 200 {
		conn, err := net.Dial("tcp", writer)
		require.NoError(t, err)
		defer conn.Close()
		_, _ = conn.Write([]byte("GET /readyz HTTP/1.1\r\nHost: made-up\r\n\r\n")) // then it is idle
		require.Equal(t, http.StatusOK, status(operator, probe))
	}
	require.Equal(t, http.StatusOK, status(customer, lookup))
	require.Contains(t, log.String(), "connections are closed: too many are open")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "raise LimitNOFILE=") }, time.Minute, 10*time.Millisecond)
}
