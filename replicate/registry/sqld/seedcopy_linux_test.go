package sqld

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestASeedThatCannotBeSyncedIsNotHandedOver: its primary removes the database before, and a power cut may come.
func TestASeedThatCannotBeSyncedIsNotHandedOver(t *testing.T) {
	folder, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer folder.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // which can't be synced
	require.NoError(t, err)
	defer device.Close()
	err = putCopy(folder, &syscall.Stat_t{Uid: uint32(os.Geteuid())}, file, func(to io.Writer, _ *os.File) error {
		return unix.Dup3(int(device.Fd()), int(to.(*os.File).Fd()), unix.O_CLOEXEC)
	})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = folder.Stat(seedName)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
