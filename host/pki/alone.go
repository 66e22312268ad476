package pki

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// alone acts while no other process makes keys or certificates in the folder: two at once would leave the key of one
// beside the certificate of the other. Some file systems lock files only; there nobody is waited for.
func (t *Trust) alone(act func() error) error {
	folder, err := t.lock()
	if err != nil {
		return fmt.Errorf("lock trust: %w", err)
	}
	defer folder.Close()
	return act()
}

// lock locks the folder until the file is closed. While it waits, Replace may put another folder in its place.
func (t *Trust) lock() (*os.File, error) {
	for {
		folder, err := os.Open(t.dir)
		if err != nil {
			return nil, err
		}
		for unix.Flock(int(folder.Fd()), unix.LOCK_EX) == unix.EINTR {
		}
		locked, _ := folder.Stat()
		if there, err := os.Stat(t.dir); err == nil && os.SameFile(there, locked) {
			return folder, nil
		}
		folder.Close()
	}
}
