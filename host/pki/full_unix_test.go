//go:build unix

package pki_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
)

// TestACertificateThatDoesNotFitOnTheDiskLeavesTheOneBefore: its key fits, so that the pair would not match.
func TestACertificateThatDoesNotFitOnTheDiskLeavesTheOneBefore(t *testing.T) {
	if dir := os.Getenv("PKI_FULL"); dir != "" {
		renewWithin(t, dir, 400)
		return
	}
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	_, _, err = trust.Certificate("primary", "centre.example.org")
	require.NoError(t, err)
	before := filesOf(t, dir)
	require.Less(t, len(before["primary.key"]), 400)
	require.Greater(t, len(before["primary.crt"]), 400)
	// In a process of its own: the limit is one of the process, and go test has files, too.
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "PKI_FULL="+dir)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "file too large")
	require.Equal(t, before, filesOf(t, dir))
}

// renewWithin makes a certificate while no file may grow beyond so many bytes.
func renewWithin(t *testing.T, dir string, most uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	trust, err := pki.Open(dir, time.Now)
	require.NoError(t, err)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	limit.Cur = most
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	_, _, err = trust.Certificate("primary", "centre.example.org")
	require.NoError(t, err)
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(text)
	}
	return files
}
