package push

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestASnapshotWhoseNameCannotBeSyncedIsAFailure: after a power cut it might be gone, and with it the way back to its release.
func TestASnapshotWhoseNameCannotBeSyncedIsAFailure(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	device, err := os.Open(os.DevNull) // which can't be synced
	require.NoError(t, err)
	defer device.Close()
	release, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	folder := filepath.Dir(snapshotPath(dir, release))
	var once sync.Once
	_, err = Snapshot(t.Context(), registry, dir, func(Progress) {
		once.Do(func() {
			for fd := range 1024 {
				if path, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); path == folder {
					require.NoError(t, unix.Dup3(int(device.Fd()), fd, unix.O_CLOEXEC))
				}
			}
		})
	})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = Snapshot(t.Context(), registry, dir, nil)
	require.NoError(t, err)
}
