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
	var inFlight atomic.Int64
	s := newShares(Config{MaxInFlight: limit, Waiting: func() int { return 0 }}, &inFlight)
	var tickets []ticket
	enter := func(keys int, target string) (admitted int) {
		for range keys {
			n := len(tickets)
			key := ident.LivePrefix + fmt.Sprintf("%0*d", ident.KeyLength-len(ident.LivePrefix), n)
			q := &handler.Request{Target: target, Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}}}
			ticket, may := s.enter(q, fmt.Sprintf("192.0.%d.%d", n/200, n%200))
			if !may {
				s.leave(ticket)
				continue
			}
			admitted++
			tickets = append(tickets, ticket)
		}
		return admitted
	}
	leave := func() {
		for _, ticket := range tickets {
			s.leave(ticket)
		}
		tickets = nil
	}
	require.Equal(t, limit-limit/4, enter(limit+100, searchPath+"name=tata"))
	require.Equal(t, limit/4, enter(limit/4, "/v1/companies/U72900ZZ2015PTC000001"))
	leave()
	require.Equal(t, limit, enter(limit, "/v1/companies/U72900ZZ2015PTC000001"), "lookups alone have all places")
	leave()
	require.Zero(t, s.searches.Load())
	require.Zero(t, s.admitted.Load())
}
