package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"
)

// TestOpenWaitsForItsOwner opens a file that its owner keeps locked, as a writer does while it recovers
// the WAL of a former run.
func TestOpenWaitsForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.db")
	owner, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer owner.Close()
	require.NoError(t, owner.Exec(`PRAGMA journal_mode=wal; CREATE TABLE plan (id); PRAGMA locking_mode=exclusive; INSERT INTO plan VALUES (1)`))

	opened := make(chan error, 1)
	go func() {
		store, err := Open(Config{Path: path, Timeout: time.Minute})
		if err == nil {
			err = store.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		require.NoError(t, err)
		require.Fail(t, "the owner has the lock")
	case <-time.After(200 * time.Millisecond):
	}
	require.NoError(t, owner.Exec(`PRAGMA locking_mode=normal; SELECT 1 FROM plan`))
	require.NoError(t, <-opened)

	require.NoError(t, owner.Exec(`PRAGMA locking_mode=exclusive; INSERT INTO plan VALUES (2)`))
	_, err = Open(Config{Path: path, Timeout: 10 * time.Millisecond})
	require.ErrorIs(t, err, sqlite3.BUSY, "not for ever")
}
