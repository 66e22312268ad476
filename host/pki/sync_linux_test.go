package pki

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestKeysInAFolderThatCannotBeSyncedAreNotSaidToBeMade: after a power cut their files would have their old names.
func TestKeysInAFolderThatCannotBeSyncedAreNotSaidToBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := Create(dir, time.Now)
	require.NoError(t, err)
	device, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0) // which can't be synced
	require.NoError(t, err)
	defer device.Close()
	require.ErrorIs(t, trust.alone(func() error {
		for fd := range 1024 {
			if path, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); path == dir {
				require.NoError(t, unix.Dup3(int(device.Fd()), fd, unix.O_CLOEXEC))
			}
		}
		return nil
	}), syscall.EINVAL)
}
