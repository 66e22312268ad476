package load

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestADraftThatCannotBeSyncedBecomesNoRegistry: after a power cut it would lack pages.
func TestADraftThatCannotBeSyncedBecomesNoRegistry(t *testing.T) {
	target := filepath.Join(t.TempDir(), "registry.db")
	d, err := draftOf(target)
	require.NoError(t, err)
	require.NoError(t, d.file.Close())
	require.ErrorIs(t, d.publish(), fs.ErrClosed)
	require.NoFileExists(t, target)
}
