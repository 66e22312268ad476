package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"regedge/replicate/metering/mmap"
)

// mappedFile is written through memory, without a system call for each record. What was put into
// a shared mapping survives the end of the process as what write(2) took does (mmap(2)). The file
// is longer than what was written to it until it is closed: its end is zeros.
type mappedFile struct {
	osFile
	size   int64  // of what was written
	base   int64  // where the window begins
	window []byte // the mapped part, to the end of the file
}

// What is taken of the disk at once: windowSize in bytes, which 20,000 charges a second fill in less
// than one, and at most a part in windowShare of the room that is left, for others need some.
const (
	windowSize  = 1 << 20
	windowShare = 64
)

// mapFile has a file written through memory where that is known to be good, and else leaves it
// as it is. Where a file system or a device keeps checksums of what is written, a thread that
// touches a page which is on its way to the disk waits for the disk, and Go's scheduler does not
// know.
func mapFile(file osFile) (File, error) {
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
		if wantsStillPages(blockDevices, uint64(info.Dev)) {
			return file, nil
		}
	default:
		return file, nil
	}
	return &mappedFile{osFile: file, size: info.Size}, nil
}

// blockDevices is where the kernel tells about its block devices.
const blockDevices = "/sys/dev/block"

// wantsStillPages reports whether a block device must find what is on its way to it unchanged, as
// RAID with parity does and storage whose transport has checksums; also where the kernel does not
// say. devices is the folder blockDevices.
func wantsStillPages(devices string, device uint64) bool {
	folder := fmt.Sprintf("%s/%d:%d", devices, unix.Major(device), unix.Minor(device))
	// A partition has its disk's queue. The folder is a link, whose parent the kernel finds.
	for _, queue := range []string{"/queue", "/../queue"} {
		if text, err := os.ReadFile(folder + queue + "/stable_writes"); err == nil {
			return string(bytes.TrimSpace(text)) != "0"
		}
	}
	return true
}

// Write appends p, or some of it after which it fails.
func (f *mappedFile) Write(p []byte) (int, error) {
	end := f.size + int64(len(p))
	if end > f.base+int64(len(f.window)) {
		if err := f.move(end); err != nil {
			return 0, err
		}
	}
	if !mmap.Copy(f.window[f.size-f.base:], p) {
		return len(p), fmt.Errorf("write %s: its memory can't be written: the disk failed or is full, or the file was cut off", f.Name())
	}
	f.size = end
	return len(p), nil
}

// move has the window begin at the page that is written next, and reach to the end at least.
func (f *mappedFile) move(end int64) error {
	pages := int64(os.Getpagesize())
	base := f.size / pages * pages
	least := (end + pages - 1) / pages * pages
	most := max(least, base+min(windowSize, f.room()/windowShare/pages*pages))
	err := f.lengthen(most)
	if (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)) && most > least {
		most = least
		err = f.lengthen(most)
	}
	if err != nil {
		return err
	}
	window, err := unix.Mmap(int(f.Fd()), base, int(most-base), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errors.Join(&os.PathError{Op: "map", Path: f.Name(), Err: err}, f.File.Truncate(f.length()))
	}
	err = f.unmap()
	f.base, f.window = base, window
	return err
}

// lengthen writes zeros at the end of the file, for which the disk must have room, or leaves it as
// it is.
func (f *mappedFile) lengthen(to int64) error {
	for at := f.length(); at < to; {
		n, err := f.File.Write(zeros[:min(to-at, int64(len(zeros)))])
		if err != nil {
			return errors.Join(err, f.File.Truncate(f.length()))
		}
		at += int64(n)
	}
	return nil
}

var zeros [64 << 10]byte

// length is that of the file: to the end of the window or, where there is none, of what was written.
func (f *mappedFile) length() int64 { return max(f.size, f.base+int64(len(f.window))) }

// room is how many bytes the disk has left for this user; 0 when it does not say.
func (f *mappedFile) room() int64 {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return 0
	}
	return int64(system.Bavail) * int64(system.Bsize)
}

func (f *mappedFile) unmap() error {
	if f.window == nil {
		return nil
	}
	window := f.window
	f.base, f.window = 0, nil
	return unix.Munmap(window)
}

// Truncate implements File.
func (f *mappedFile) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.size = size
	return f.unmap()
}

// Close cuts off what was not written.
func (f *mappedFile) Close() error {
	return errors.Join(f.File.Truncate(f.size), f.unmap(), f.File.Close())
}
