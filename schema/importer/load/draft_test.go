package load

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
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

// openDraft opens a registry that is not there yet, and writes into it.
func openDraft(t *testing.T) (s *Store, target string) {
	t.Helper()
	target = filepath.Join(t.TempDir(), "registry.db")
	s, err := Open(t.Context(), target, 1)
	require.NoError(t, err)
	require.NoError(t, s.StartBulk())
	s.StartIndex(nil, "2025-01-01")
	_, err = writeBatch(s, madeUpBatch(1), "2025-01-01")
	require.NoError(t, err)
	return s, target
}

// TestADraftThatCannotBeRenamedHasNoRelease: something else has the name of the registry by then.
func TestADraftThatCannotBeRenamedHasNoRelease(t *testing.T) {
	s, target := openDraft(t)
	require.NoError(t, os.Mkdir(target, 0o700))
	released, _, err := s.Finish("one")
	require.ErrorContains(t, err, "complete "+target)
	require.False(t, released)
	require.NoError(t, s.Close())
	require.NoFileExists(t, target+DraftSuffix)
}

// TestARegistryWhoseNameCannotBeSyncedIsThere, says the error, and an import into it goes on from it.
func TestARegistryWhoseNameCannotBeSyncedIsThere(t *testing.T) {
	s, target := openDraft(t)
	require.NoError(t, s.draft.folder.Close())
	released, _, err := s.Finish("one")
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorContains(t, err, "complete "+target+": the registry is there")
	require.True(t, released)
	require.NoError(t, s.Close())
	require.NoFileExists(t, target+DraftSuffix)
	again, err := Open(t.Context(), target, 1)
	require.NoError(t, err)
	require.NoError(t, again.StartBulk())
	released, held, err := again.Finish("two")
	require.NoError(t, err)
	require.False(t, released, "nothing is new")
	require.EqualValues(t, 1, held.Companies)
	require.NoError(t, again.Close())
}

// TestADraftThatHasAnotherNameByNowIsNotTaken: a run that has just ended made it the registry, or removed it.
func TestADraftThatHasAnotherNameByNowIsNotTaken(t *testing.T) {
	for name, end := range map[string]func(draft, target string) error{
		"renamed": os.Rename,
		"removed": func(draft, _ string) error { return os.Remove(draft) },
		"replaced": func(draft, target string) error {
			return errors.Join(os.Rename(draft, target), os.WriteFile(draft, nil, 0o600))
		},
		"begun again": func(draft, _ string) error { return errors.Join(os.Remove(draft), os.WriteFile(draft, nil, 0o600)) },
	} {
		d := &draft{target: filepath.Join(t.TempDir(), "registry.db")}
		require.NoError(t, os.WriteFile(d.path(), []byte("whole"), 0o600))
		var err error
		d.file, err = os.OpenFile(d.path(), os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, end(d.path(), d.target))
		require.ErrorIs(t, d.take(), sqlite3.BUSY, name)
		info, err := d.file.Stat()
		require.NoError(t, err)
		require.Len(t, "whole", int(info.Size()), name)
		d.unlock()
	}
}

// TestADraftReplacesNoRegistryThatWasMadeMeanwhile, as by another import that was quicker, or by a copy: its records would be lost
// without a word.
func TestADraftReplacesNoRegistryThatWasMadeMeanwhile(t *testing.T) {
	s, target := openDraft(t)
	require.NoError(t, os.WriteFile(target, []byte("whole"), 0o600))
	require.NoError(t, os.WriteFile(target+"-wal", []byte("newest"), 0o600))
	released, _, err := s.Finish("one")
	require.ErrorContains(t, err, "complete "+target)
	require.False(t, released)
	require.NoError(t, s.Close())
	require.NoFileExists(t, target+DraftSuffix)

	late := &draft{target: target} // looked for the registry just before
	late.file, err = os.OpenFile(late.path(), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.ErrorIs(t, late.take(), sqlite3.BUSY)
	late.unlock()
	require.NoFileExists(t, late.path())
	for path, want := range map[string]string{target: "whole", target + "-wal": "newest"} {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
}

// TestTheIDOfAReleaseHasItsTimeInUTC, so that ids sort by time wherever they are made.
func TestTheIDOfAReleaseHasItsTimeInUTC(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 15, 0, 0, time.FixedZone("", 5*3600+1800))
	id, err := NewReleaseID(at, bytes.NewReader([]byte{0x1a, 0x2b, 0x3c}))
	require.NoError(t, err)
	require.Equal(t, "20261121T014500Z-1a2b3c", id)
}

// TestADraftThatCouldNotBeOpenedIsGone: another run may begin at once.
func TestADraftThatCouldNotBeOpenedIsGone(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	path := filepath.Join(t.TempDir(), "registry.db")
	_, err := Open(ended, path, 1)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
}
