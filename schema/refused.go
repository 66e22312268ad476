package schema

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// Refused reports whether err is a database's refusal of what a statement would write: a check, a
// type, a key or a trigger. It would be refused again, and the transaction can't have been committed.
// All other errors, such as a full disk, say nothing about the content. Servers send the text alone.
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

// OfDisk adds to an error of a database's file what to look at: some full disks, such as a tmpfs, say only
// that there was an error, and a lock does not say whose it is.
func OfDisk(err error) error {
	switch {
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room on the disk (df)", err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("%w: another program keeps it so (fuser): a sqlite3 left open, a Litestream stopped half-way?", err)
	case errors.Is(err, sqlite3.IOERR):
		return fmt.Errorf("%w: is the disk full (df), or broken (dmesg)?", err)
	}
	return err
}
