package disk

import "golang.org/x/sys/unix"

func readonly(flags uint64) bool { return flags&unix.ST_RDONLY != 0 }
