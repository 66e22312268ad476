package sqld

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// boundSilence bounds how long data may stay unacknowledged (tcp(7), TCP_USER_TIMEOUT): meanwhile no
// keepalive is sent, and the kernel retries for a quarter of an hour. A sandbox that refuses the option
// keeps that.
func boundSilence(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
}
