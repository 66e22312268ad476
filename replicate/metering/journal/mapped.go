package journal

import (
	"errors"
	"syscall"
)

// Mappable is a file that can be written through memory.
type Mappable interface {
	File
	// PageSize is the unit of Map, in bytes.
	PageSize() int64
	// Room is how many bytes the disk has left, 0 when that is unknown.
	Room() int64
	// Map maps the bytes from:to of the file, both multiples of PageSize. The file is at
	// least that long.
	Map(from, to int64) (Window, error)
}

// Window is a mapped part of a file.
type Window interface {
	// Put copies p to an offset in the window. It returns false when the memory can't be
	// written, because the disk failed or is full or the file was cut short; part of p may
	// then be in the file.
	Put(at int64, p []byte) bool
	// Close unmaps the window. What was put stays in the file.
	Close() error
}

// mappedFile appends through a mapped window, without a system call for each write. What was
// put into a shared mapping survives the end of the process, like what write(2) took
// (mmap(2)). Until it is closed, the file is longer than what was written: its end is zeros.
type mappedFile struct {
	Mappable
	size   int64  // bytes written
	base   int64  // where the window begins
	end    int64  // where it ends, which is the file's end; 0 without a window
	window Window // nil for none
}

// The disk space that one window takes: windowSize bytes, which 20,000 charges a second fill
// in less than a second, but at most 1/windowShare of the room that is left, since others
// need some.
const (
	windowSize  = 1 << 20
	windowShare = 64
)

// Mapped returns a File that appends to file through memory.
func Mapped(file Mappable) (File, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	return &mappedFile{Mappable: file, size: size}, nil
}

var errFault = errors.New("the file's memory can't be written: the disk failed or is full, or the file was cut short")

// Write implements File.
func (f *mappedFile) Write(p []byte) (int, error) {
	end := f.size + int64(len(p))
	if end > f.end {
		if err := f.moveWindow(end); err != nil {
			return 0, err
		}
	}
	if !f.window.Put(f.size-f.base, p) {
		return len(p), errFault
	}
	f.size = end
	return len(p), nil
}

// moveWindow moves the window to the page that is written next, reaching at least to end.
func (f *mappedFile) moveWindow(end int64) error {
	page := f.PageSize()
	base := f.size / page * page
	least := (end + page - 1) / page * page
	most := max(least, base+min(windowSize, f.Room()/windowShare)/page*page)
	err := f.extend(most)
	if (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) && most > least {
		most = least
		err = f.extend(most)
	}
	if err != nil {
		return err
	}
	window, err := f.Map(base, most)
	if err != nil {
		return errors.Join(err, f.Mappable.Truncate(f.length()))
	}
	err = f.unmap()
	f.base, f.end, f.window = base, most, window
	return err
}

// extend appends zeros to the file, so that the disk has room for what is put there; after
// an error the file is as long as before.
func (f *mappedFile) extend(to int64) error {
	for at := f.length(); at < to; {
		n, err := f.Mappable.Write(zeros[:min(to-at, int64(len(zeros)))])
		if err != nil {
			return errors.Join(err, f.Mappable.Truncate(f.length()))
		}
		at += int64(n)
	}
	return nil
}

var zeros [64 << 10]byte

// length is the file's length: the end of the window or, without one, of what was written.
func (f *mappedFile) length() int64 { return max(f.size, f.end) }

func (f *mappedFile) unmap() error {
	if f.window == nil {
		return nil
	}
	window := f.window
	f.base, f.end, f.window = 0, 0, nil
	return window.Close()
}

// Truncate implements File.
func (f *mappedFile) Truncate(size int64) error {
	if err := f.Mappable.Truncate(size); err != nil {
		return err
	}
	f.size = size
	return f.unmap()
}

// Size implements File: the bytes written.
func (f *mappedFile) Size() (int64, error) { return f.size, nil }

// Intact implements File. The zeros at the end belong to the file: memory behind its end can't be
// written.
func (f *mappedFile) Intact(size int64) error { return f.Mappable.Intact(max(size, f.length())) }

// Close cuts off the zeros at the end.
func (f *mappedFile) Close() error {
	return errors.Join(f.Mappable.Truncate(f.size), f.unmap(), f.Mappable.Close())
}
