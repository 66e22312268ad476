package journal

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsNoFileIsNotTakenForOne: a segment that was left out would be taken for none, and its charges be lost; a
// pipe ended the edge with "invalid argument", and batches were cut through a link.
func TestWhatIsNoFileIsNotTakenForOne(t *testing.T) {
	for kind, put := range map[string]func(path string) error{
		"a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a symbolic link": func(path string) error { return os.Symlink("elsewhere", path) },
	} {
		for _, name := range []string{segmentName(1), segmentName(7), archiveName(archiveDay)} {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, put(path))
			_, err := OpenDir(filepath.Dir(path))
			require.ErrorIs(t, err, ErrNotAFile)
			require.ErrorContains(t, err, path+" is "+kind)
			require.NoError(t, os.Remove(path))
			d, err := OpenDir(filepath.Dir(path))
			require.NoError(t, err, "the directory is free again")

			require.NoError(t, put(path))
			_, err = d.Append(name)
			require.ErrorIs(t, err, ErrNotAFile, "while the edge runs")
			require.NoError(t, d.Close())
		}
	}
	path := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(path, "batches-old.log"), 0o700), "an operator's own")
	d, err := OpenDir(path)
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

// TestBatchesAreKeptUntilThePipeInTheirPlaceIsGone, which was made while the edge ran.
func TestBatchesAreKeptUntilThePipeInTheirPlaceIsGone(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path)
	require.NoError(t, err)
	j, _, _, _ := opened(t, d, &recorder{})
	pipe := filepath.Join(path, archiveName(archiveDay))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.ErrorIs(t, j.Archive(1, batchOf(1), archiveDay, archiveDay), ErrNotAFile)
	require.NoError(t, os.Remove(pipe))
	require.NoError(t, j.Archive(1, batchOf(2), archiveDay, archiveDay))
	require.NotNil(t, archivedBatch(t, j, 1, 1))
	require.NotNil(t, archivedBatch(t, j, 1, 2))
	require.NoError(t, j.Close())
}
