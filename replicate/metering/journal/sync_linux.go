package journal

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syncer makes files durable. It submits an asynchronous request to the kernel (io_submit(2),
// IOCB_CMD_FDSYNC), whose completion is an event that Go's poller waits for. A goroutine in
// fdatasync(2) would keep its thread for as long as the disk takes, and on one core nothing
// would be answered until the scheduler notices. Where the kernel has or allows no such
// requests, it calls fdatasync.
//
// Measured on 2026-11-23 on one core, with 16 connections, in turns: with fdatasync a lookup
// costs 7 to 8% more processor time (two runs), and there are 11 to 19% fewer lookups a second.
type syncer struct {
	mu      Lock    // one request at a time
	context uintptr // the kernel's, 0 for none
	event   *os.File
	request controlBlock
	batch   [1]*controlBlock
}

// controlBlock is struct iocb of linux/aio_abi.h; fields that a sync does not use must be zero.
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
	s := &syncer{mu: NewLock(RankDisk)}
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

// sync makes the contents and size of a file durable, but not its times.
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
	_, _ = s.event.Read(count[:]) // on an error, io_getevents waits instead
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
