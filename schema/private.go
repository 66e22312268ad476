package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// OpenPrivate opens a writable database as OpenFile does, but makes a missing file with mode
// 0600. An existing file keeps its mode, so that an operator may let other users read it. The
// WAL and its index get the file's mode.
func OpenPrivate(path string) (*sql.DB, error) {
	if err := makePrivate(path); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return OpenFile(path, false)
}

// makePrivate makes the file and the WAL's index where they are missing, since the driver
// would give them another mode.
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
