package importer

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoFileStaysOpen behind an import, of those that it read and wrote.
func TestNoFileStaysOpen(t *testing.T) {
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
