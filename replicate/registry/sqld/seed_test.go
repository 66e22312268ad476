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

// TestASeedIsCopiedIntoAFileOfItsOwn: what lies in its place is the directory's user's, who may hold it open.
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
