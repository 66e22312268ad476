//go:build !linux

package journal

import "os"

// syncer brings files to the disk.
type syncer struct{}

func newSyncer() *syncer { return &syncer{} }

// sync makes what was written to a file durable.
func (*syncer) sync(file *os.File) error { return file.Sync() }

func (*syncer) close() {}
