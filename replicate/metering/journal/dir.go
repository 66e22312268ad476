package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is the storage of one state directory, owned by one process. Names are plain file
// names. OpenDir opens a real one; the simulation has its own.
type Dir interface {
	// List returns the names of the files, in no order.
	List() ([]string, error)
	// Open reads a file from its beginning. Zeros may follow what was written, while the
	// file is open for writing and after a crash.
	Open(name string) (io.ReadCloser, error)
	// Append opens a file for writing at its end, and creates it when missing.
	Append(name string) (File, error)
	// Remove deletes a file; a missing one is no error.
	Remove(name string) error
	// Rename gives a file another name, in place of a file that has it.
	Rename(from, to string) error
	// Sync makes created, renamed and removed files durable.
	Sync() error
	// Close releases the directory.
	Close() error
}

// File is a file open for appending.
type File interface {
	// Write appends p. After an error, part of p may be in the file.
	io.Writer
	// Sync makes everything written durable.
	Sync() error
	// Truncate cuts the file to size bytes; the next write goes there.
	Truncate(size int64) error
	// Size is the current size in bytes.
	Size() (int64, error)
	// Intact is nil while the file has its name and at least size bytes, ErrReplaced when somebody
	// deleted it, put another in its place or cut it short.
	Intact(size int64) error
	Close() error
}

// ErrInUse is returned by OpenDir when another process owns the state directory.
var ErrInUse = errors.New("the state directory is in use by another process")

// ErrReplaced is returned for a file that was deleted, replaced or cut short by somebody else.
var ErrReplaced = errors.New("the file was deleted, replaced or cut short by another process")

// ErrNotAFile is returned by OpenDir and Append if a directory, a pipe or a link has the name of a journal file.
var ErrNotAFile = errors.New("not a file of the journal")

const lockName = "lock"

// osDir is a Dir in the file system. It holds the lock file and the directory open, and locks both: people delete files
// with such a name, and some file systems lock only files.
type osDir struct {
	path   string
	lock   *os.File
	folder *os.File
	syncer *syncer
}

// OpenDir opens the directory at path, making it durably when missing (mode 0700), and locks it. It returns ErrInUse if
// another process has the lock, which ends with that process. It returns ErrNotAFile if something in it is not what its
// name says: skipping a part of the journal would make it look empty.
func OpenDir(path string) (Dir, error) {
	if err := makeDir(path); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of state directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("open state directory %s: %w", path, ErrInUse)
		}
		return nil, fmt.Errorf("lock state directory %s: %w", path, err)
	}
	d := &osDir{path: path, lock: lock}
	if d.folder, err = os.Open(path); err == nil {
		if unix.Flock(int(d.folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
			err = ErrInUse
		}
	}
	if err == nil {
		err = d.checkNames()
	}
	if err != nil {
		lock.Close()
		d.folder.Close() // which may be nil
		return nil, fmt.Errorf("open state directory %s: %w", path, err)
	}
	d.syncer = newSyncer()
	return d, nil
}

// ownName matches the names of segments and batches, but not those of copies that an operator made.
var ownName = regexp.MustCompile(`^(journal|batches)-[0-9]+\.log$`)

// checkNames checks that segments and batches are files.
func (d *osDir) checkNames() error {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if ownName.MatchString(e.Name()) {
			err = errors.Join(err, d.checkName(e.Name()))
		}
	}
	return err
}

// checkName checks that a name is free or belongs to a regular file: opening a pipe may block for ever, and writing
// through a link may damage a file that belongs to somebody else.
func (d *osDir) checkName(name string) error {
	path := filepath.Join(d.path, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is %s, %w", path, kindOf(info.Mode()), ErrNotAFile)
	}
	return nil
}

func kindOf(mode os.FileMode) string {
	switch mode.Type() {
	case os.ModeDir:
		return "a directory"
	case os.ModeNamedPipe:
		return "a named pipe"
	case os.ModeSymlink:
		return "a symbolic link"
	}
	return "a device or a socket"
}

// makeDir makes a directory, and those above it that are missing. It syncs the parent of each
// one that it made, or a power cut could take the new directory with all that was synced in it.
func makeDir(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func (d *osDir) List() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *osDir) Open(name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(d.path, name))
}

func (d *osDir) Append(name string) (File, error) {
	if err := d.checkName(name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	file := osFile{f, d.syncer}
	if strings.HasPrefix(name, segmentPrefix) { // the archive is written too seldom to matter
		return mapWhereSafe(file)
	}
	return file, nil
}

func (d *osDir) Remove(name string) error {
	err := os.Remove(filepath.Join(d.path, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (d *osDir) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
}

func (d *osDir) Sync() error { return syncDir(d.path) }

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (d *osDir) Close() error {
	d.syncer.close()
	return errors.Join(d.lock.Close(), d.folder.Close())
}

// osFile is a File in the file system.
type osFile struct {
	*os.File
	syncer *syncer
}

func (f osFile) Sync() error { return f.syncer.sync(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Intact implements File.
func (f osFile) Intact(size int64) error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.Name())
	if errors.Is(err, os.ErrNotExist) || err == nil && (!os.SameFile(own, named) || named.Size() < size) {
		return ErrReplaced
	}
	return err
}
