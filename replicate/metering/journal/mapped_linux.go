package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// mapWhereSafe maps a file into memory on file systems where that was tested, and uses system calls on
// others. Where a file system or a device checksums its writes, a thread that touches a page under
// writeback blocks on the disk without Go's scheduler knowing.
func mapWhereSafe(file osFile) (File, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &system); err != nil {
		return nil, errors.Join(&os.PathError{Op: "statfs", Path: file.Name(), Err: err}, file.Close())
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return nil, errors.Join(&os.PathError{Op: "stat", Path: file.Name(), Err: err}, file.Close())
	}
	switch system.Type {
	case unix.TMPFS_MAGIC:
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC:
		if needsStablePages(blockDevices, uint64(info.Dev)) {
			return file, nil
		}
	default:
		return file, nil
	}
	mapped, err := Mapped(osMappable{file})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return mapped, nil
}

// blockDevices is where the kernel describes its block devices.
const blockDevices = "/sys/dev/block"

// needsStablePages reports whether pages under writeback to a block device must not change,
// as for RAID with parity and for storage that checksums its transport. It is true as well
// where the kernel does not say. devices is the folder blockDevices.
func needsStablePages(devices string, device uint64) bool {
	folder := fmt.Sprintf("%s/%d:%d", devices, unix.Major(device), unix.Minor(device))
	// A partition shares its disk's queue: the folder is a link into that of the disk.
	for _, queue := range []string{"/queue", "/../queue"} {
		if text, err := os.ReadFile(folder + queue + "/stable_writes"); err == nil {
			return string(bytes.TrimSpace(text)) != "0"
		}
	}
	return true
}

// osMappable is a Mappable in the file system.
type osMappable struct{ osFile }

func (f osMappable) PageSize() int64 { return int64(os.Getpagesize()) }

func (f osMappable) Room() int64 {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return 0
	}
	return int64(system.Bavail) * int64(system.Bsize)
}

func (f osMappable) Map(from, to int64) (Window, error) {
	memory, err := unix.Mmap(int(f.Fd()), from, int(to-from), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "map", Path: f.Name(), Err: err}
	}
	return osWindow(memory), nil
}

type osWindow []byte

// Put implements Window. Where the file ends before its mapping, or the disk fails or has no
// room, the copy raises a signal (SIGBUS), which Go turns into a panic.
func (w osWindow) Put(at int64, p []byte) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	copy(w[at:], p)
	return true
}

func (w osWindow) Close() error { return unix.Munmap(w) }
