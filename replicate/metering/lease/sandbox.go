package lease

import (
	"net/netip"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Limits of the sandbox key, per client address (docs/contract.md, "Sandbox").
const (
	sandboxNotFoundCap = 100
	// sandboxClientsLimit bounds each of the two generations of remembered addresses. A
	// flood of addresses costs the memory of this many, and only clients that were silent
	// meanwhile are forgotten.
	sandboxClientsLimit = 1 << 15
)

// sandboxClient counts the sandbox requests of one client address.
type sandboxClient struct {
	minute          int64
	day             int32
	count, notFound int32
}

// sandboxClients is a cache of counts in two generations. A client that makes a request
// moves to the newer one; when that is full, the older one is dropped.
type sandboxClients struct {
	newer, older map[netip.Prefix]*sandboxClient
}

func newSandboxClients() sandboxClients {
	return sandboxClients{map[netip.Prefix]*sandboxClient{}, map[netip.Prefix]*sandboxClient{}}
}

// at returns the counts of an address, for the minute and day of now.
func (c *sandboxClients) at(address string, now int64) *sandboxClient {
	key := clientPrefix(address)
	found := c.newer[key]
	if found == nil {
		if found = c.older[key]; found == nil {
			found = &sandboxClient{}
		}
		if len(c.newer) >= sandboxClientsLimit {
			c.newer, c.older = map[netip.Prefix]*sandboxClient{}, c.newer
		}
		c.newer[key] = found
	}
	if m := syncproto.Minute(now); found.minute != m {
		found.minute, found.count = m, 0
	}
	if d := syncproto.Day(now); found.day != d {
		found.day, found.notFound = d, 0
	}
	return found
}

// clientPrefix returns the rate-limit key of a client address: the IPv4 address, or the
// IPv6 network of 64 bits. Everything that is not an address shares one key.
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

// rateVerdict starts the verdict on a request, which is a refusal if the rate is used up.
func (c *sandboxClient) rateVerdict(now int64, r *charge.Request) charge.Verdict {
	v := charge.Verdict{
		RateLimit: r.PerMinute, RateRemaining: 0, RateReset: secondsUntil(now, endOfMinute(now)),
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	if int64(c.count) >= r.PerMinute {
		return exceededRate(v, now)
	}
	return v
}

// chargeSandbox decides on a request of the sandbox key. It needs no lease and costs
// nothing.
func (s *EdgeState) chargeSandbox(now int64, r *charge.Request, id sum) Answer {
	c := s.sandbox.at(r.Client, now)
	v := c.rateVerdict(now, r)
	if v.Code != "" {
		return Answer{Verdict: v}
	}
	c.count++
	v.RateRemaining = r.PerMinute - int64(c.count)
	switch {
	case r.Outcome == charge.Failed:
	case c.notFound >= sandboxNotFoundCap:
		v.Code, v.RetryAfter = charge.NotFoundCapExceeded, secondsUntil(now, syncproto.EndOfDay(c.day))
	case r.Outcome == charge.NotFound:
		c.notFound++
	}
	return s.answer(now, r, id, v, answered)
}
