// Package freeport reserves ports of this machine for servers that start later, in other
// processes, perhaps several times: a libSQL server behind a gate, the servers of tests.
//
// Listening on port 0, reading the port and closing it leaves a gap in which the kernel may give
// the port to any process that asks for a free one. Between two starts of a server that gap is
// minutes long.
package freeport

import (
	"fmt"
	"net/netip"
)

// Reserve finds a free TCP port of host, an IP address of this machine, and returns both as
// "host:port". On Linux, until release, which may be called twice, the kernel gives the port to no
// socket that asks for a free one, while servers that name the port can listen on it, one after
// another. On other systems the port was free at the time of the call, nothing more.
func Reserve(host string) (address string, release func(), err error) {
	ip, err := netip.ParseAddr(host)
	if err == nil {
		address, release, err = reserve(ip)
	}
	if err != nil {
		return "", nil, fmt.Errorf("reserve a port of %s: %w", host, err)
	}
	return address, release, nil
}
