package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel's memory for a connection, in bytes. By default it may grow to 6 MB received and 4 MB
// unsent, so that a few thousand clients that send without reading take gigabytes.
const (
	// receiveBytes is room for some requests. The kernel doubles it.
	receiveBytes = 64 << 10
	// unsentBytes bounds data not yet sent, not data in flight: the throughput of a distant client
	// stays the same.
	unsentBytes = 128 << 10
)

// boundBuffers bounds the kernel's buffers of a connection that is a socket.
func boundBuffers(conn net.Conn) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // fails only if the client is gone
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBytes)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
