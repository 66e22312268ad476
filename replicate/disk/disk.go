// Package disk tells how much room the file system of a directory has, and how much a process's own
// files take.
package disk

import (
	"io/fs"
	"path/filepath"
)

// Space is the room of a file system, for a process without privileges.
type Space struct {
	Size, Free       uint64 // bytes
	Files, FilesFree uint64 // 0 where files are not counted
	ReadOnly         bool
}

// used is the size in bytes of a file, or of all files below a directory. What can't be read counts as
// 0.
func used(path string) (bytes int64) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
