package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// OpenPrivate opens a writable database as OpenFile does, but makes a missing file with mode
// 0600. An existing file keeps its mode, so that an operator may let other users read it. The
// WAL and its index get the file's mode.
func OpenPrivate(path string) (*sql.DB, error) {
	if err := makePrivate(path); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return OpenFile(path)
}

// leaveToOwner gives the WAL and its index to the file's owner when root creates them by opening the file: the
// owner could not open it any more otherwise. SQLite's own VFS does the same.
func leaveToOwner(c *sqlite3.Conn, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil // the connection has failed
	}
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid == 0 {
		return nil
	}
	if err := c.Exec("SELECT 1 FROM sqlite_schema LIMIT 1"); err != nil { // creates both files
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		beside, err := os.Lstat(path + suffix)
		if err == nil && beside.Mode().IsRegular() && beside.Sys().(*syscall.Stat_t).Uid == 0 {
			_ = os.Lchown(path+suffix, int(owner.Uid), int(owner.Gid)) // fails where root may not, as in some containers
		}
	}
	return nil
}

// makePrivate creates the file and the WAL's index if missing, since the driver would give
// them another mode.
func makePrivate(path string) error {
	if err := makeFile(path, 0o600); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return makeFile(path+"-shm", info.Mode().Perm())
}

// makeFile makes an empty file, unless it exists.
func makeFile(path string, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Chmod(mode), file.Close())
}
