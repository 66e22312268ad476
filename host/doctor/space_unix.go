//go:build linux || darwin

package doctor

import "golang.org/x/sys/unix"

// space asks the file system of a directory.
func space(dir string) (diskSpace, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return diskSpace{}, err
	}
	block := uint64(s.Bsize)
	return diskSpace{
		size: s.Blocks * block, free: s.Bavail * block, files: s.Files, filesFree: s.Ffree,
		readonly: readonly(uint64(s.Flags)),
	}, nil
}
