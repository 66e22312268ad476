package pki

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestTheFolderInPlaceIsLocked: while a run waited, another one put a new folder in place of the one that it waits for.
func TestTheFolderInPlaceIsLocked(t *testing.T) {
	trust := &Trust{dir: filepath.Join(t.TempDir(), "trust")}
	require.NoError(t, os.Mkdir(trust.dir, 0o700))
	old, err := trust.lock()
	require.NoError(t, err)
	locked := make(chan *os.File, 1)
	go func() {
		folder, err := trust.lock()
		if err != nil {
			t.Error(err)
		}
		locked <- folder
	}()
	require.Eventually(t, func() bool { return len(testkit.OpenFiles(t, trust.dir)) == 2 }, time.Minute, time.Millisecond, "it waits")
	require.NoError(t, os.Rename(trust.dir, trust.dir+".aside"))
	require.NoError(t, os.Mkdir(trust.dir, 0o700))
	require.NoError(t, old.Close())
	folder := <-locked
	defer folder.Close()
	about, err := folder.Stat()
	require.NoError(t, err)
	require.True(t, trust.isIn(about))
}

// TestARunThatNeverEndsIsNotWaitedForForEver: one that was stopped with Ctrl-Z held up all others, which Ctrl-C did not end.
func TestARunThatNeverEndsIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trust := &Trust{dir: t.TempDir()}
		held, err := trust.lock()
		require.NoError(t, err)
		defer held.Close()
		_, err = Create(trust.dir, time.Now)
		require.ErrorIs(t, err, ErrBusy)
		require.Empty(t, testkit.OpenFiles(t, trust.dir)[1:], "but the one that is held")
	})
}
