//go:build linux || darwin

package disk

import "golang.org/x/sys/unix"

// Of asks the file system of a directory.
func Of(dir string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Space{}, err
	}
	block := uint64(s.Bsize)
	return Space{
		Size: s.Blocks * block, Free: s.Bavail * block, Files: s.Files, FilesFree: s.Ffree,
		ReadOnly: readonly(uint64(s.Flags)),
	}, nil
}
