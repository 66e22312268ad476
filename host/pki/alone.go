package pki

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alone acts while no other process makes keys or certificates in the folder: two at once would leave the key of one
// beside the certificate of the other. Some file systems lock files only, such as NFS; there nobody is waited for, as the guide says.
func (t *Trust) alone(act func() error) error {
	folder, err := t.lock()
	if err != nil {
		return fmt.Errorf("lock trust: %w", err)
	}
	defer folder.Close()
	if err := act(); err != nil {
		return err
	}
	return folder.Sync() // so that renamed files have their new names after a power cut, too
}

// lockPatience is how long a run may take before those that wait for it give up: it makes a few keys, and one that takes longer
// hangs, or was stopped (Ctrl-Z). Ctrl-C does not end the waiting.
const (
	lockPatience = 10 * time.Second
	lockPause    = 10 * time.Millisecond
)

// lock locks the folder until the file is closed. While it waits, Replace may put another folder in its place. It returns ErrBusy
// after lockPatience.
func (t *Trust) lock() (*os.File, error) {
	began := time.Now()
	for {
		folder, err := os.Open(t.dir)
		if err != nil {
			return nil, err
		}
		for errors.Is(unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
			if time.Since(began) > lockPatience {
				folder.Close()
				return nil, ErrBusy
			}
			time.Sleep(lockPause)
		}
		locked, _ := folder.Stat()
		if there, err := os.Stat(t.dir); err == nil && os.SameFile(there, locked) {
			return folder, nil
		}
		folder.Close()
	}
}

// syncFolder syncs the names of the files in a folder.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
