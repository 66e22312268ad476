package cli

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
)

// TestTrustInitReplacesNoKeysThatWereMadeMeanwhile: a setup that ran twice at once with --yes voided the keys of the first run,
// and both said that all was well.
func TestTrustInitReplacesNoKeysThatWereMadeMeanwhile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "trust")
	var second *program
	var once sync.Once
	_, err := pki.Create(dir, func() time.Time { // while it has the lock, and before its keys are there
		once.Do(func() {
			second = start("trust", "init", "--trust", dir, "--yes")
			require.Eventually(t, func() bool {
				list := testkit.OpenFiles(t, dir)
				return len(slices.DeleteFunc(list, func(name string) bool { return name != dir })) == 2
			}, time.Minute, time.Millisecond, "it waits")
		})
		return time.Now()
	})
	require.NoError(t, err)
	made, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	require.Equal(t, exitFailure, <-second.ended)
	require.Contains(t, second.stderr.String(), "another run has just made the keys")
	kept, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	require.Equal(t, made, kept)
}
