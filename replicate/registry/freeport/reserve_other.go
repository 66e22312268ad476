//go:build !linux

package freeport

import (
	"net"
	"net/netip"
)

func reserve(ip netip.Addr) (string, func(), error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), func() {}, listener.Close()
}
