package freeport

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func reserved(t *testing.T, host string) (string, func()) {
	t.Helper()
	address, release, err := Reserve(host)
	require.NoError(t, err)
	t.Cleanup(release)
	return address, release
}

// TestServersCanListenOnAReservedPort, several times in a row.
func TestServersCanListenOnAReservedPort(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		address, _ := reserved(t, host)
		for range 3 {
			listener, err := net.Listen("tcp", address)
			require.NoError(t, err)
			_, err = net.Listen("tcp", address)
			require.ErrorIs(t, err, unix.EADDRINUSE, "the port is in use")
			client, err := net.Dial("tcp", address)
			require.NoError(t, err)
			served, err := listener.Accept()
			require.NoError(t, err)
			require.NoError(t, served.Close()) // first, so that the server's side waits
			_, err = client.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, client.Close())
			require.NoError(t, listener.Close())
		}
	}
}

// TestTheKernelDoesNotChooseAReservedPort, in a network with four ports to choose from.
func TestTheKernelDoesNotChooseAReservedPort(t *testing.T) {
	inNetworkOf(t, "40001 40004", func() {
		address, release := reserved(t, "127.0.0.1")
		var got []string
		for range 4 {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				require.ErrorIs(t, err, unix.EADDRINUSE)
				continue
			}
			defer listener.Close()
			got = append(got, listener.Addr().String())
		}
		require.Len(t, got, 3)
		require.NotContains(t, got, address)
		_, err := net.Dial("tcp", got[0])
		require.ErrorIs(t, err, unix.EADDRNOTAVAIL, "not for a client either")
		release()
		release()
		client, err := net.Dial("tcp", got[0])
		require.NoError(t, err)
		defer client.Close()
		require.Equal(t, address, client.LocalAddr().String())
	})
}

// TestAReservedPortIsNotInherited: a process started meanwhile would keep it reserved.
func TestAReservedPortIsNotInherited(t *testing.T) {
	reserved(t, "127.0.0.1")
	files, err := exec.Command("ls", "-l", "/proc/self/fd").Output()
	require.NoError(t, err)
	require.NotContains(t, string(files), "socket:")
}

// TestReleaseAgainClosesNothing: the number of the socket may be another file's by then.
func TestReleaseAgainClosesNothing(t *testing.T) {
	_, release := reserved(t, "127.0.0.1")
	release()
	var others []*os.File
	for range 4 {
		other, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer other.Close()
		others = append(others, other)
	}
	release()
	for _, other := range others {
		_, err := other.Stat()
		require.NoError(t, err)
	}
}

// openSockets counts this process's sockets.
func openSockets(t *testing.T) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, file := range files {
		if to, err := os.Readlink("/proc/self/fd/" + file.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// TestAHostOfAnotherMachineIsRefused, and leaves no socket open.
func TestAHostOfAnotherMachineIsRefused(t *testing.T) {
	before := openSockets(t)
	defer func() { require.Equal(t, before, openSockets(t)) }()
	for host, because := range map[string]string{"192.0.2.1": "cannot assign requested address", "2001:db8::1": "cannot assign requested address", "localhost": "unable to parse IP"} {
		_, _, err := Reserve(host)
		require.ErrorContains(t, err, "reserve a port of "+host+": ")
		require.True(t, strings.Contains(err.Error(), because), err)
	}
}

// inNetworkOf calls f in a network namespace in which the kernel chooses from a range of ports.
func inNetworkOf(t *testing.T, ports string, f func()) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("no network namespace can be created here: ", err)
	}
	up(t, "lo")
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte(ports), 0))
	f()
}

// up brings a device of this network up (netdevice(7)).
func up(t *testing.T, device string) {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(socket)
	flags, err := unix.NewIfreq(device)
	require.NoError(t, err)
	flags.SetUint16(unix.IFF_UP)
	require.NoError(t, unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, flags))
}
