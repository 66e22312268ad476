package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

// eachSqld calls test with both commands that run sqld: the server's address and directory, a token that
// may read, and the process, which was not started yet.
func eachSqld(t *testing.T, test func(*testing.T, *sqld.Server, string, *testkit.Process)) {
	dir := t.TempDir()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	token, err := made.Token("access", pki.ReadWrite, 0)
	require.NoError(t, err)
	cert, key, err := made.Certificate("machine", "127.0.0.1")
	require.NoError(t, err)
	tls := &sqld.TLSFiles{CA: made.AuthorityFile(), Cert: cert, Key: key}
	followed := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(dir, "followed"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t),
		JWTKeyFile: made.PrimaryKeyFile("access"), TLS: tls,
	}}
	require.NoError(t, followed.Start())
	t.Cleanup(followed.Kill)
	sqldtest.Await(t, followed, token)
	sqldtest.ExecWith(t, followed, token, "CREATE TABLE probe (n INTEGER)")
	putAwaySigningKeys(t, filepath.Join(dir, "trust"))
	program, err := exec.LookPath("regedge") // TestMain puts it on the PATH
	require.NoError(t, err)
	for command, more := range map[string][]string{
		"primary": {"--replication", testkit.FreePort(t)},
		"replica": {"--primary", "https://" + followed.GRPC},
	} {
		t.Run(command, func(t *testing.T) {
			server := &sqld.Server{Config: sqld.Config{HTTP: testkit.FreePort(t), Dir: filepath.Join(dir, command)}}
			args := append([]string{command, "--sqld", followed.Program, "--dir", server.Dir, "--listen", server.HTTP,
				"--jwt-key", made.PrimaryKeyFile("access"), "--tls-ca", tls.CA, "--tls-cert", tls.Cert, "--tls-key", tls.Key}, more...)
			p := &testkit.Process{Program: program, Args: args, Log: new(testkit.Log)}
			t.Cleanup(func() {
				p.Stop()
				if t.Failed() {
					t.Log(p.Log)
				}
			})
			test(t, server, token, p)
		})
	}
}

// serverOf waits until a sqld runs in a directory, and returns its process id.
func serverOf(t *testing.T, dir string) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(filepath.Join(dir, "regedge.lock"))
		if err == nil {
			_, err = fmt.Sscan(string(content), &pid)
		}
		return err == nil && !ended(pid)
	}, time.Minute, 10*time.Millisecond)
	return pid
}

// ended reports whether a process has ended, also one that nobody has waited for yet.
func ended(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(content), ") Z ")
}

func TestSqldEndsWithItsRegedge(t *testing.T) {
	eachSqld(t, func(t *testing.T, server *sqld.Server, token string, p *testkit.Process) {
		left := 0
		for range 3 { // each start finds its addresses free
			require.NoError(t, p.Start())
			require.Eventually(t, func() bool { return serverOf(t, server.Dir) != left }, time.Minute, 10*time.Millisecond)
			sqldtest.Await(t, server, token)
			require.True(t, left == 0 || ended(left), "the sqld that was left answers")
			left = serverOf(t, server.Dir)
			p.Kill()
		}
		require.Eventually(t, func() bool { return ended(left) }, time.Minute, 10*time.Millisecond, "it ends without another start")
	})
}

func TestASecondRegedgeLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	eachSqld(t, func(t *testing.T, server *sqld.Server, token string, p *testkit.Process) {
		require.NoError(t, p.Start())
		sqldtest.Await(t, server, token)
		running := serverOf(t, server.Dir)
		code, said := ran(p.Args...)
		require.Equal(t, exitFailure, code)
		require.Contains(t, said, server.Dir+": another regedge runs a server in this directory")
		require.NoError(t, syscall.Kill(running, 0))
		sqldtest.Await(t, server, token)
	})
}
