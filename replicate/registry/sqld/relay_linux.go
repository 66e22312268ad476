package sqld

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// boundSilence bounds how long data may stay unacknowledged (tcp(7), TCP_USER_TIMEOUT). By default no
// keepalive is sent meanwhile, and the kernel retries for a quarter of an hour. A sandbox that refuses
// the option keeps this default.
func boundSilence(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
}
