package journal

import (
	"io"
)

// Dir is the storage of one state directory, owned by one process. Names are plain file
// names. The simulator gives its own; OpenDir gives the real one.
type Dir interface {
	// List names the files, in no order.
	List() ([]string, error)
	// Open reads a file from its beginning. After what was written there may be zeros, while
	// the file is open for writing, and when it was not closed.
	Open(name string) (io.ReadCloser, error)
	// Append opens a file for writing at its end; it is made when missing.
	Append(name string) (File, error)
	// Remove deletes a file; a missing one is no error.
	Remove(name string) error
	// Sync makes the making and removing of files durable.
	Sync() error
	// Close gives the directory up.
	Close() error
}

// File is a file open for appending.
type File interface {
	io.Writer
	// Sync makes everything written durable.
	Sync() error
	// Truncate cuts the file to size bytes; the next write goes there.
	Truncate(size int64) error
	// Size is the current size in bytes.
	Size() (int64, error)
	Close() error
}
