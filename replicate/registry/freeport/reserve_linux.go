package freeport

import (
	"net"
	"net/netip"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// reserve binds a socket that never listens. Since it and the server set SO_REUSEADDR, the server can
// bind the same port (socket(7)), but the kernel does not choose a bound port for others.
func reserve(ip netip.Addr) (string, func(), error) {
	family, any := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: four(ip)})
	if !ip.Unmap().Is4() {
		family, any = unix.AF_INET6, &unix.SockaddrInet6{Addr: ip.As16()}
	}
	socket, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	release := sync.OnceFunc(func() { unix.Close(socket) })
	port, err := bind(socket, any)
	if err != nil {
		release()
		return "", nil, err
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(port)), release, nil
}

func four(ip netip.Addr) (bytes [4]byte) {
	if ip = ip.Unmap(); ip.Is4() {
		bytes = ip.As4()
	}
	return bytes
}

// bind binds the socket to a free port, and returns the port.
func bind(socket int, any unix.Sockaddr) (int, error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, any); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return name.Port, nil
	case *unix.SockaddrInet6:
		return name.Port, nil
	}
	return 0, unix.EAFNOSUPPORT
}
