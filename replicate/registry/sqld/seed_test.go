package sqld

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASeedIsCopiedIntoAFileOfItsOwn: a file that lies in its place belongs to the directory's user, who may hold it open.
func TestASeedIsCopiedIntoAFileOfItsOwn(t *testing.T) {
	folder, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer folder.Close()
	require.NoError(t, folder.WriteFile(seedPart, []byte("theirs"), 0o600))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("made"), 0o600))
	err = putCopy(folder, &syscall.Stat_t{}, file, func(to io.Writer, _ *os.File) error {
		_, err := io.WriteString(to, "made")
		return err
	})
	require.ErrorIs(t, err, fs.ErrExist)
	content, err := folder.ReadFile(seedPart)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
}

// TestThePartOfAKilledPushIsRemoved: it is as large as the registry, and would keep the next one from being copied.
func TestThePartOfAKilledPushIsRemoved(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), nil, 0o600)) // a primary has run there
	require.NoError(t, os.Mkdir(filepath.Join(dir, seedFolder), 0o700))
	part := filepath.Join(dir, seedFolder, seedPart)
	require.NoError(t, os.WriteFile(part, []byte("cut"), 0o600))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("whole"), 0o600))
	require.NoError(t, Seed(dir).Put(file, nil))
	require.NoFileExists(t, part)
	content, err := os.ReadFile(SeedFile(dir))
	require.NoError(t, err)
	require.Equal(t, "whole", string(content))
}
