// Package freeport reserves addresses of this machine for servers that are started later, in
// other processes, and perhaps again and again.
//
// To listen on port 0, take the port and close leaves a gap in which the kernel may give that
// port to anyone who asks for a free one; between two starts of a server it is minutes long.
package freeport

import (
	"fmt"
	"net/netip"
)

// Reserve finds a free TCP port of host, an address of this machine, and returns both as
// "host:port". On Linux the kernel gives that port to nobody until release, which may be called
// twice; a server that names it can listen on it, once or again after another. Elsewhere the
// port was free a moment ago, and no more is known.
func Reserve(host string) (address string, release func(), err error) {
	ip, err := netip.ParseAddr(host)
	if err == nil {
		address, release, err = reserve(ip)
	}
	if err != nil {
		return "", nil, fmt.Errorf("reserve an address of %s: %w", host, err)
	}
	return address, release, nil
}
