//go:build unix

package server

import "golang.org/x/sys/unix"

// openFiles is how many files the process may have open at once (RLIMIT_NOFILE), 0 if that is not known.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30))
}
