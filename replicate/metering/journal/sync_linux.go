package journal

import (
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syncer brings files to the disk. It asks the kernel to do so in the background
// (io_submit(2), IOCB_CMD_FDSYNC) and is told of the end by an event that Go's poller waits
// for. In fdatasync(2) a goroutine would take the thread with it for as long as the disk
// takes, and on one core nothing would be answered until the scheduler notices.
// Where the kernel has or allows no such requests, fdatasync it is.
type syncer struct {
	mu      sync.Mutex // one request at a time
	context uintptr    // of the kernel, 0 for none
	event   *os.File
	request controlBlock
	batch   [1]*controlBlock
}

// controlBlock is struct iocb of linux/aio_abi.h; what a sync has no use for must be zero.
type controlBlock struct {
	_         [16]byte // data, key, flags of a read or write
	opcode    uint16
	_         uint16 // priority
	file      uint32
	_         [32]byte // buffer, bytes, offset, reserved
	flags     uint32
	eventFile uint32
}

// completion is struct io_event.
type completion struct {
	_      [16]byte // data, request
	result int64
	_      int64
}

// From linux/aio_abi.h.
const (
	opDataSync      = 3 // IOCB_CMD_FDSYNC
	flagEventFile   = 1 // IOCB_FLAG_RESFD
	requestsAtATime = 1
)

func newSyncer() *syncer {
	s := &syncer{}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return s
	}
	s.event = os.NewFile(uintptr(fd), "eventfd")
	s.request = controlBlock{opcode: opDataSync, flags: flagEventFile, eventFile: uint32(fd)}
	s.batch[0] = &s.request
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, requestsAtATime, uintptr(unsafe.Pointer(&s.context)), 0); errno != 0 {
		s.context = 0
	}
	return s
}

// sync makes what was written to a file durable; the file's times may stay behind.
func (s *syncer) sync(file *os.File) error {
	control, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var synced error
	err = control.Control(func(fd uintptr) { synced = s.syncDescriptor(int(fd)) })
	return errors.Join(err, synced)
}

func (s *syncer) syncDescriptor(fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.context == 0 {
		return unix.Fdatasync(fd)
	}
	s.request.file = uint32(fd)
	if n, _, _ := unix.Syscall(unix.SYS_IO_SUBMIT, s.context, 1, uintptr(unsafe.Pointer(&s.batch))); n != 1 {
		return unix.Fdatasync(fd)
	}
	var count [8]byte
	_, _ = s.event.Read(count[:]) // without it, what follows waits
	var done completion
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, s.context, 1, 1, uintptr(unsafe.Pointer(&done)), 0, 0)
		switch {
		case n == 1 && errno == 0 && done.result < 0:
			return unix.Errno(-done.result)
		case n == 1 && errno == 0:
			return nil
		case errno != unix.EINTR:
			return errno
		}
	}
}

func (s *syncer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.context != 0 {
		unix.Syscall(unix.SYS_IO_DESTROY, s.context, 0, 0)
		s.context = 0
	}
	if s.event != nil {
		s.event.Close()
	}
}
