package importer

import (
	"context"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/schema/importer/load"
)

// TestNoFileStaysOpen behind an import, of those that it read and wrote.
func TestNoFileStaysOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection closes forgotten files
	w := newFixture(t)
	w.run("2025-05-05", w.file(headerA+rowA), w.file(headerA+"x"+rowA), w.file(madeUpDocument))
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, file := range open {
		if path, err := os.Readlink("/proc/self/fd/" + file.Name()); err == nil {
			require.False(t, strings.HasPrefix(path, w.folder), path)
		}
	}
}

// TestTwoImportsMakeNoRegistryAtOnce: the second would empty the first one's draft.
func TestTwoImportsMakeNoRegistryAtOnce(t *testing.T) {
	w := newFixture(t)
	other, err := os.OpenFile(w.registry+load.DraftSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer other.Close()
	_, err = other.WriteString("of the other import")
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	_, err = Run(context.Background(), w.config("2025-05-05", w.file(headerA+rowA)))
	require.ErrorContains(t, err, "another process is writing to the registry: wait for it; if there is none, the file system has no locks")
	content, err := os.ReadFile(other.Name())
	require.NoError(t, err)
	require.Equal(t, "of the other import", string(content))
	require.NoError(t, other.Close())
	w.text("2025-05-05", headerA+rowA)
}

// TestRejectsThatCanNotBeWrittenEndTheImport: who asked for them would take an empty file for none.
func TestRejectsThatCanNotBeWrittenEndTheImport(t *testing.T) {
	for _, rows := range []string{"x" + rowA, "x" + rowA + rowA} {
		w := newFixture(t)
		w.rejects = "/dev/full"
		report, err := Run(t.Context(), w.config("2025-05-05", w.file(headerA+rows)))
		require.ErrorContains(t, err, "the rejects file", rows)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Empty(t, report.Release, rows)
		require.Empty(t, w.registryFiles(), rows)
	}
}
