package schema

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// modes returns the file modes of a database's files while it is open.
func modes(t *testing.T, path string) (list []fs.FileMode) {
	t.Helper()
	db, err := OpenPrivate(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, Migrate(context.Background(), db, Access))
	_, err = db.Exec("UPDATE plan SET per_minute = per_minute")
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		list = append(list, info.Mode().Perm())
	}
	return list
}

func TestAPrivateDatabaseIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	path := filepath.Join(t.TempDir(), "a +&?#%.db")
	require.Equal(t, []fs.FileMode{0o600, 0o600, 0o600}, modes(t, path))
	require.Equal(t, []fs.FileMode{0o600, 0o600, 0o600}, modes(t, path), "a second time")
	require.NoError(t, os.Chmod(path, 0o640))
	require.Equal(t, []fs.FileMode{0o640, 0o640, 0o640}, modes(t, path), "as its owner says")
	require.NoError(t, os.Chmod(path, 0o660))
	require.Equal(t, []fs.FileMode{0o660, 0o660, 0o660}, modes(t, path), "whatever the umask is")
}

// TestRootLeavesADatabaseToItsOwner: who opens it next could not write to the WAL's index, nor so much as read.
func TestRootLeavesADatabaseToItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: it is about root")
	}
	const owner, group = 65534, 65533
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := OpenPrivate(path)
	require.NoError(t, err)
	require.NoError(t, Migrate(t.Context(), db, Access))
	require.NoError(t, db.Close())
	require.NoError(t, os.Chown(path, owner, group))
	for _, open := range []func(string) (*sql.DB, error){OpenReadOnly, OpenFile} {
		db, err := open(path)
		require.NoError(t, err)
		for range 3 { // connections of its own
			c, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.PingContext(t.Context()))
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			info, err := os.Stat(path + suffix)
			require.NoError(t, err)
			require.EqualValues(t, owner, info.Sys().(*syscall.Stat_t).Uid, suffix)
			require.EqualValues(t, group, info.Sys().(*syscall.Stat_t).Gid, suffix)
		}
	}
}
