package server

import (
	"net/http"
	"sync/atomic"
	"time"
)

// The unpaid answers (refusals, pages, and answers to malformed requests) are rate-limited for each
// address and each key: a burst of unpaidBurst, then one per unpaidInterval. Beyond the limit answers stay
// the same, but their connection is not read until the next one is due, for longestHold at most:
// thousands of busy connections then cost a small part of a processor. With HTTP/2 the holds of a
// connection's streams add up. New connections of the address wait too, so that reconnecting does not
// help, and have a rate limit of their own: a handshake costs as much as ten lookups.
//
// Trusted proxies are never held up: their connections carry the requests of others.
const (
	unpaidBurst, unpaidInterval = 100, 50 * time.Millisecond
	longestHold                 = time.Second

	connectionBurst, connectionInterval = 100, 10 * time.Millisecond
	// longestHolds bounds the sum of the holds of a connection's streams, and the hold of a new
	// connection.
	longestHolds = 10 * time.Second
)

// pace is a rate limit: a burst, then one per interval (a leaky bucket by the generic cell rate
// algorithm: due is the earliest time at which the next one conforms).
type pace struct {
	burst    int64
	interval time.Duration
	longest  time.Duration // the most that an early one is held
	due      [slots]atomic.Int64
}

// paceStart is the origin of due, on the monotonic clock. It is an hour back, so that a due of 0 is long
// past.
var paceStart = time.Now().Add(-time.Hour)

// note counts one event and returns how early it comes.
func (p *pace) note(slot uint16, now time.Time) time.Duration {
	at := int64(now.Sub(paceStart))
	for {
		due := p.due[slot].Load()
		next := min(max(due, at-p.burst*int64(p.interval))+int64(p.interval), at+int64(p.longest))
		if p.due[slot].CompareAndSwap(due, next) {
			return time.Duration(max(next-at, 0))
		}
	}
}

// early returns how early an event would come, without counting it.
func (p *pace) early(slot uint16, now time.Time) time.Duration {
	return time.Duration(max(p.due[slot].Load()-int64(now.Sub(paceStart)), 0))
}

// paces are the rate limits of unpaid answers and of connections. due is in nanoseconds since
// paceStart, by the slot of an address or a key.
type paces struct{ unpaidAddress, unpaidKey, connections pace }

func newPaces() *paces {
	p := new(paces)
	for _, unpaid := range []*pace{&p.unpaidAddress, &p.unpaidKey} {
		unpaid.burst, unpaid.interval, unpaid.longest = unpaidBurst, unpaidInterval, longestHold
	}
	p.connections.burst, p.connections.interval, p.connections.longest = connectionBurst, connectionInterval, longestHolds
	return p
}

// unpaid reports whether nobody pays for the answer. Other answers to an account or a sandbox address are
// limited by its rate.
func (e *exchange) unpaid() bool {
	switch status := e.response.Status; {
	case status == http.StatusTooManyRequests, e.route == routePage, e.route == routeInvalid:
		return true
	case status >= http.StatusBadRequest, status == http.StatusNoContent: // the preflight
		return e.bill.Account == 0 && !e.bill.Sandbox
	}
	return false
}

// pace counts an answer, and holds up its connection if it has to.
func (s *Server) pace(e *exchange, from *peer) {
	if !e.unpaid() {
		return
	}
	now := time.Now()
	hold := s.paces.unpaidAddress.note(s.shares.slot(network(e.client)), now)
	if key := keyOf(&e.request); e.response.Status == http.StatusTooManyRequests && isLive(key) {
		hold = max(hold, s.paces.unpaidKey.note(s.shares.slot(key), now))
	}
	from.conn.hold(hold)
}

// early returns how early a request over HTTP/2 comes. The streams of its connection take turns if it is
// early: a hundred at once from each of many connections would make others wait.
func (s *Server) early(from *peer) time.Duration {
	if from.conn == nil || from.conn.address == "" {
		return 0
	}
	return s.paces.unpaidAddress.early(s.shares.slot(from.conn.address), time.Now())
}

// paceConnection counts a new connection, and holds it up if it has to.
func (s *Server) paceConnection(c *counted) {
	slot, now := s.shares.slot(c.address), time.Now()
	c.hold(max(s.paces.connections.note(slot, now), s.paces.unpaidAddress.early(slot, now)))
}
