package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"
)

// DraftSuffix follows the registry's path in the name of its draft.
const DraftSuffix = ".importing"

// draft is the file in which a new registry is built: its pages are written once, without a
// journal, and an interrupted run leaves no registry. The file is locked until close, so that no
// other run takes it; the draft of a killed process is emptied by the next run.
type draft struct {
	target string
	folder *os.File // of the target
	file   *os.File // nil once it is closed
}

// draftOf makes the draft of a registry, or returns nil if there is a registry. The error wraps
// sqlite3.BUSY if another process holds the draft.
func draftOf(target string) (*draft, error) {
	d := &draft{target: target}
	if d.hasTarget() {
		return nil, nil // opening it then reports what is wrong, if anything
	}
	var err error
	if d.folder, err = os.Open(filepath.Dir(target)); err != nil {
		return nil, fmt.Errorf("make registry %s: its folder: %w", target, err)
	}
	if d.file, err = os.OpenFile(d.path(), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("make registry %s: %w", target, err), d.folder.Close())
	}
	if err := d.take(); err != nil {
		return nil, errors.Join(fmt.Errorf("make registry %s: %w", target, err), d.file.Close(), d.folder.Close())
	}
	return d, nil
}

// hasTarget reports whether there is a registry, or something else of its name that is not an empty file.
func (d *draft) hasTarget() bool {
	info, err := os.Lstat(d.target)
	return err == nil && (info.Size() > 0 || !info.Mode().IsRegular()) || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// take locks the draft and empties it.
func (d *draft) take() error {
	if err := unix.Flock(int(d.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return sqlite3.BUSY
	}
	// Another run may have renamed or removed the file before it was locked.
	named, err := os.Stat(d.path())
	held, heldErr := d.file.Stat()
	if err != nil || heldErr != nil || !os.SameFile(named, held) {
		return sqlite3.BUSY
	}
	if d.hasTarget() { // the other run was faster, and has made the registry
		return errors.Join(sqlite3.BUSY, os.Remove(d.path()))
	}
	if err := removeBeside(d.path()); err != nil {
		return err
	}
	return d.file.Truncate(0)
}

// removeBeside removes the files that SQLite keeps beside a database file.
func removeBeside(path string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (d *draft) path() string { return d.target + DraftSuffix }

// draftTuning writes no journal and syncs nothing: a draft that was not completed is useless.
// draftFinal gives the draft the settings that schema.OpenFile gives a new file.
const (
	draftTuning = `PRAGMA locking_mode=exclusive; PRAGMA journal_mode=off; PRAGMA synchronous=off; ` + usualCache
	draftFinal  = `PRAGMA journal_mode=wal`
)

// errMadeMeanwhile means that another process made the registry while a draft was written.
var errMadeMeanwhile = errors.New("another process has made this file meanwhile, and it stays as it is: run the same import again, into that")

// publish makes the draft the registry, durably, unless there is a registry by now. The database must be closed. A WAL
// left behind by a removed registry is deleted first: SQLite would otherwise apply it to the new file. If only the sync
// of the folder fails, the registry is there.
func (d *draft) publish() error {
	if d.hasTarget() {
		return fmt.Errorf("complete %s: %w", d.target, errMadeMeanwhile)
	}
	err := errors.Join(d.file.Sync(), removeBeside(d.target))
	if err == nil {
		err = os.Rename(d.path(), d.target)
	}
	if err != nil {
		return fmt.Errorf("complete %s: %w", d.target, err)
	}
	err = d.folder.Sync()
	d.unlock()
	if err != nil {
		return fmt.Errorf("complete %s: the registry is there and whole, but its name may be lost in a power cut: %w", d.target, err)
	}
	return nil
}

// published reports whether the draft has become the registry, perhaps not durably.
func (d *draft) published() bool { return d.file == nil }

// close removes the draft, and what SQLite left beside it, unless it was published. It does nothing
// for a nil or closed draft.
func (d *draft) close() error {
	if d == nil || d.file == nil {
		return nil
	}
	err := errors.Join(removeBeside(d.path()), os.Remove(d.path()))
	d.unlock()
	return err
}

// unlock closes the files, and with them gives up the lock.
func (d *draft) unlock() {
	d.file.Close()
	d.folder.Close()
	d.file = nil
}
