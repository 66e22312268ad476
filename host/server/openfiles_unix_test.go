//go:build unix

package server

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestABoundListenerLeavesFilesToOthers: of the files that the process may open it takes a quarter.
func TestABoundListenerLeavesFilesToOthers(t *testing.T) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	const files = 4096
	if before.Max < files {
		t.Skip("the process may not open that many files")
	}
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: before.Max}))
	require.Equal(t, files/4, Bound(nil, slog.New(slog.DiscardHandler)).(*bound).most)
}
