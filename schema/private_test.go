package schema

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// modes are those of a database's files while it is open.
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
}
