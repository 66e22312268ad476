package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACopyThatEndedEarlyIsToldFromAWholeOne, by its header alone.
func TestACopyThatEndedEarlyIsToldFromAWholeOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	for _, pageSize := range []string{"512", "4096", "65536"} {
		db, err := OpenFile(path)
		require.NoError(t, err)
		for _, statement := range []string{"PRAGMA journal_mode = DELETE", "PRAGMA page_size = " + pageSize, "VACUUM",
			"CREATE TABLE made_up (x)", "INSERT INTO made_up VALUES (zeroblob(200000))"} {
			_, err = db.Exec(statement)
			require.NoError(t, err, statement)
		}
		require.NoError(t, db.Close())
		require.NoError(t, CutShort(path))
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.EqualError(t, CutShort(path), "it is empty")
		for _, size := range []int{100, len(whole) / 2, len(whole) - 1} {
			require.NoError(t, os.WriteFile(path, whole[:size], 0o600))
			require.Error(t, CutShort(path), "%d bytes of %d", size, len(whole))
		}
		older := append([]byte(nil), whole...)
		older[27]++ // the count of changes: a program from before 2010 has written last, and left the size as it was
		require.NoError(t, os.WriteFile(path, older[:len(whole)/2], 0o600))
		require.NoError(t, CutShort(path), "a size that is not valid")
		require.NoError(t, os.Remove(path))
	}
	db, err := OpenFile(path)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE made_up (x)")
	require.NoError(t, err)
	running, err := os.ReadFile(path) // the table is in the log
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, CutShort(path))
	require.NoError(t, os.WriteFile(path, running, 0o600))
	require.ErrorContains(t, CutShort(path), "it holds no table: the file of a running database was copied")

	for _, other := range []string{"short", "age-encryption.org/v1\n" + string(bytes.Repeat([]byte{7}, 200))} {
		require.NoError(t, os.WriteFile(path, []byte(other), 0o600))
		require.NoError(t, CutShort(path), "no database")
	}
	require.ErrorIs(t, CutShort(path+"-missing"), os.ErrNotExist)
}
