package sqld

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestTheKernelEndsAConnectionWhosePrimaryIsGone after half a minute, whether or not data is on its way.
func TestTheKernelEndsAConnectionWhosePrimaryIsGone(t *testing.T) {
	primary, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer primary.Close()
	r := relayOf(t, &Config{Primary: "http://" + primary.Addr().String()}, handshakeTimeout)
	go func() {
		if answer, err := r.call(entriesCall); err == nil {
			answer.Body.Close()
		}
	}()
	far, err := primary.Accept()
	require.NoError(t, err)
	defer far.Close()
	for what, option := range map[string]struct{ level, name, want int }{
		"probes of an idle connection": {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"seconds to the first probe":   {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
		"seconds between probes":       {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
		"probes without an answer":     {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
		"milliseconds of data":         {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30_000},
	} {
		got := 0
		require.Eventually(t, func() (set bool) { // some are set once the connection is made
			got, err = unix.GetsockoptInt(otherEnd(t, far), option.level, option.name)
			return err != nil || got == option.want
		}, time.Minute, time.Millisecond, what)
		require.NoError(t, err)
		require.Equal(t, option.want, got, what)
	}
}

// otherEnd is the descriptor of the other end of a connection, which this process has too.
func otherEnd(t *testing.T, conn net.Conn) int {
	t.Helper()
	port := conn.RemoteAddr().(*net.TCPAddr).Port
	for fd := range 1 << 16 {
		if address, err := syscall.Getsockname(fd); err == nil {
			if own, ok := address.(*syscall.SockaddrInet4); ok && own.Port == port {
				return fd
			}
		}
	}
	require.Fail(t, "the other end is not open")
	return -1
}
