package schema

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// Refused reports whether the database refused a statement's content: by a check, a type, a key or a
// trigger. A retry would be refused too, and the transaction can't have been committed. All other
// errors, such as a full disk, say nothing about the content. Servers send only the error's text.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, sqlite3.CONSTRAINT) || errors.Is(err, sqlite3.MISMATCH) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, " constraint failed") || strings.Contains(text, "cannot store ") ||
		strings.Contains(text, "datatype mismatch")
}

// OfDisk adds a hint to a disk error: some full disks, such as a tmpfs, report only an I/O error, and a lock
// does not say who holds it.
func OfDisk(err error) error {
	switch {
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room on the disk (df)", err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("%w: another program holds the lock (fuser shows which): a sqlite3 left open, a Litestream stopped half-way? Or has the file system no locks?", err)
	case errors.Is(err, sqlite3.IOERR):
		return fmt.Errorf("%w: is the disk full (df), or broken (dmesg)?", err)
	}
	return err
}
