package server

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
)

// TestSearchesOfManyKeysLeaveRoomForLookups: they held all places, since each takes longer, and every lookup was refused.
func TestSearchesOfManyKeysLeaveRoomForLookups(t *testing.T) {
	const limit = DefaultMaxInFlight
	c := clientsOf(Config{MaxInFlight: limit, Waiting: func() int { return 0 }})
	require.Equal(t, limit-limit/4, c.enter(limit+100, oneSearch))
	require.Equal(t, limit/4, c.enter(limit/4, oneLookup))
	c.leave()
	require.Equal(t, limit, c.enter(limit, oneLookup), "lookups alone have all places")
	c.leave()
	require.Zero(t, c.searches.Load())
	require.Zero(t, c.admitted.Load())
}

// TestWaitingSearchesTakeNoPlaceOfOthers: with few places, those of keys without a lease kept out all others while the
// writer was away. Waiting lookups that may be no searches do not make room for more of them.
func TestWaitingSearchesTakeNoPlaceOfOthers(t *testing.T) {
	const limit, maxWaiting = 64, 128
	waiting := 0
	c := clientsOf(Config{MaxInFlight: limit, MaxWaiting: maxWaiting, Waiting: func() int { return waiting }})
	wait := func(target string, lookups int) {
		for range lookups {
			require.Equal(t, 1, c.enter(1, target))
			waiting++
		}
	}
	wait(oneSearch, maxWaiting)
	require.Equal(t, limit-limit/4, c.enter(limit, oneSearch))
	require.Equal(t, limit/4, c.enter(limit/4, oneLookup))
	c.leave()
	waiting = 0
	wait(oneLookup, maxWaiting)
	require.Equal(t, limit-limit/4, c.enter(limit, oneSearch))
	c.leave()
}

const (
	oneSearch = searchPath + "name=tata"
	oneLookup = "/v1/companies/U72900ZZ2015PTC000001"
)

// clients have a key and an address each, and a lookup in flight.
type clients struct {
	*shares
	tickets []ticket
}

func clientsOf(config Config) *clients { return &clients{shares: newShares(config, new(atomic.Int64))} }

// enter begins a lookup of each of so many more clients, and returns how many of them may.
func (c *clients) enter(more int, target string) (admitted int) {
	for range more {
		n := len(c.tickets)
		key := ident.LivePrefix + fmt.Sprintf("%0*d", ident.KeyLength-len(ident.LivePrefix), n)
		q := &handler.Request{Target: target, Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}}}
		ticket, may := c.shares.enter(q, fmt.Sprintf("192.0.%d.%d", n/200, n%200))
		if !may {
			c.shares.leave(ticket)
			continue
		}
		admitted++
		c.tickets = append(c.tickets, ticket)
	}
	return admitted
}

func (c *clients) leave() {
	for _, ticket := range c.tickets {
		c.shares.leave(ticket)
	}
	c.tickets = nil
}
