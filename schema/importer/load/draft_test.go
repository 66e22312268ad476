package load

import (
	"io/fs"
	"os"
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

// TestADraftThatCannotBeRenamedHasNoRelease: something else has the name of the registry by then.
func TestADraftThatCannotBeRenamedHasNoRelease(t *testing.T) {
	target := filepath.Join(t.TempDir(), "registry.db")
	s, err := Open(t.Context(), target, 1)
	require.NoError(t, err)
	require.NoError(t, s.StartBulk())
	s.StartIndex(nil, "2025-01-01")
	_, err = writeBatch(s, madeUpBatch(1), "2025-01-01")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(target, 0o700))
	released, _, err := s.Finish("one")
	require.ErrorContains(t, err, "complete "+target)
	require.False(t, released)
	require.NoError(t, s.Close())
	require.NoFileExists(t, target+DraftSuffix)
}
