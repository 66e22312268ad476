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
	// unsentBytes bounds what the client has no room for yet, not what is on its way: a fast client far
	// away is as fast as without.
	unsentBytes = 128 << 10
)

// boundBuffers bounds the buffers of a connection. One that is no socket has none.
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
