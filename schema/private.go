package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// OpenPrivate opens a database for writing as OpenFile does, and makes a missing file so
// that its owner alone can read it. A file that is there keeps the mode that it was
// given, for one that another user's program is to read. The log and the index beside it
// have the file's mode.
func OpenPrivate(path string) (*sql.DB, error) {
	if err := makePrivate(path); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return OpenFile(path, false)
}

// makePrivate makes what is missing of the file and of the log's index, to which the
// driver would give a mode of its own.
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

// makeFile makes an empty file, unless there is one.
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
