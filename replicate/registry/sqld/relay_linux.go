package sqld

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// boundSilence bounds how long data may stay unacknowledged (tcp(7), TCP_USER_TIMEOUT): while it does, no
// keepalive is sent, and the kernel tries again for a quarter of an hour. A sandbox that
// refuses it is left with that.
func boundSilence(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
}
