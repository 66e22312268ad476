package lease

import (
	"net/netip"

	"regedge/replicate/metering/syncproto"
)

// Limits of the sandbox key, per client address (design section 9).
const (
	sandboxNotFoundCap = 100
	// clientsLimit bounds each of the two sets of addresses that are remembered. When
	// the newer is full the older is dropped, so that a flood of addresses costs memory
	// for this many and makes the service forget only who was silent meanwhile.
	clientsLimit = 1 << 15
)

// client counts the sandbox requests of one address.
type client struct {
	minute          int64
	day             int32
	count, notFound int32
}

// clients remembers addresses in two sets: who is seen moves to the newer one.
type clients struct{ newer, older map[netip.Prefix]*client }

func newClients() clients {
	return clients{map[netip.Prefix]*client{}, map[netip.Prefix]*client{}}
}

// at returns the counts of an address, of the minute and day of now.
func (c *clients) at(address string, now int64) *client {
	name := clientPrefix(address)
	found := c.newer[name]
	if found == nil {
		if found = c.older[name]; found == nil {
			found = &client{}
		}
		if len(c.newer) >= clientsLimit {
			c.newer, c.older = map[netip.Prefix]*client{}, c.newer
		}
		c.newer[name] = found
	}
	if m := syncproto.Minute(now); found.minute != m {
		found.minute, found.count = m, 0
	}
	if d := syncproto.Day(now); found.day != d {
		found.day, found.notFound = d, 0
	}
	return found
}

// clientPrefix is whom the requests of an address count for: an IPv4 address, or an IPv6
// network of 64 bits. All that is no address counts together.
func clientPrefix(address string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}
