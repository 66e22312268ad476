package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// TestAFullDiskIsNamed: SQLite calls it an I/O error where the index of a WAL has no room.
func TestAFullDiskIsNamed(t *testing.T) {
	for _, room := range []string{"size=64k", "size=1m"} {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, room); err != nil {
			t.Skip("a file system can't be mounted here: ", err)
		}
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
		db, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
		if err == nil {
			err = fill(db)
			require.NoError(t, db.Close())
		}
		require.ErrorContains(t, schema.OfDisk(err), "(df)")
	}
}

// TestADiskErrorSaysWhatToDo, whoever reports it.
func TestADiskErrorSaysWhatToDo(t *testing.T) {
	for _, full := range []error{sqlite3.FULL, &os.PathError{Err: syscall.ENOSPC}} {
		require.ErrorContains(t, schema.OfDisk(fmt.Errorf("write: %w", full)), "make room")
	}
	require.ErrorContains(t, schema.OfDisk(fmt.Errorf("read: %w", sqlite3.IOERR)), "dmesg")
	require.ErrorContains(t, schema.OfDisk(fmt.Errorf("begin: %w", sqlite3.BUSY)), "another program", "a lock does not say whose it is")
	require.ErrorContains(t, schema.OfDisk(sqlite3.BUSY), "has the file system no locks?", "nor whether there can be one")
	other := errors.New("another")
	require.Equal(t, other, schema.OfDisk(other))
	require.NoError(t, schema.OfDisk(nil))
}

// fill writes until that fails.
func fill(db *sql.DB) error {
	_, err := db.Exec(`CREATE TABLE t (content)`)
	for err == nil {
		_, err = db.Exec(`INSERT INTO t VALUES (zeroblob(50000))`)
	}
	return err
}
