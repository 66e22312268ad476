package server

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
)

// BenchmarkShares is what a lookup pays for the shares.
func BenchmarkShares(b *testing.B) {
	s := newShares(Config{}.withDefaults(), new(atomic.Int64))
	key := ident.NewKey(func(p []byte) { clear(p) })
	q := &handler.Request{Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}}}
	b.ReportAllocs()
	for b.Loop() {
		turn, _ := s.enter(q, "192.0.2.1")
		s.leave(turn)
	}
}

// TestFewShareThePlacesOfOthers counts the customers that are refused beside an attacker with many keys.
func TestFewShareThePlacesOfOthers(t *testing.T) {
	s := newShares(Config{}.withDefaults(), new(atomic.Int64))
	for attacker := range 1000 {
		at := s.pair(fmt.Sprint("attacker ", attacker))
		for range 10 {
			s.keys.enter(at, s.limit, 1)
		}
	}
	refused := 0
	const customers = 20_000
	for customer := range customers {
		at := s.pair(fmt.Sprint("customer ", customer))
		if !s.keys.enter(at, s.limit, 1) {
			refused++
		}
		s.keys.leave(at)
	}
	require.Less(t, refused, customers/1000, "a row alone refuses 15 of 1,000")
	require.EqualValues(t, s.keys.busy.Load(), slots-idle(&s.keys, 0))
	for attacker := range 1000 {
		at := s.pair(fmt.Sprint("attacker ", attacker))
		for range 10 {
			s.keys.leave(at)
		}
	}
	require.Zero(t, s.keys.busy.Load())
	require.Equal(t, slots, idle(&s.keys, 0))
	require.Equal(t, slots, idle(&s.keys, 1), "what has left counts for nobody")
}

// TestWhoHasFewIsNotRefused lets 300 others come back from waiting all at once.
func TestWhoHasFewIsNotRefused(t *testing.T) {
	s := newShares(Config{MaxWaiting: 128}.withDefaults(), new(atomic.Int64))
	enter := func(party string, n byte) bool {
		key := ident.NewKey(func(p []byte) { clear(p); copy(p, fmt.Sprint(party, n)) })
		_, may := s.enter(&handler.Request{Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}}}, fmt.Sprint(party, n))
		return may
	}
	for n := range byte(150) {
		require.True(t, enter("other", n))
		require.True(t, enter("another", n))
	}
	for range 8 {
		require.True(t, enter("customer", 0))
	}
	require.False(t, enter("customer", 0), "no more than is sure")
	for n := range byte(100) {
		enter("other", n)
	}
	require.True(t, enter("newcomer", 0), "the last eighth is kept for who has none")
	require.False(t, enter("newcomer", 0))
}

// idle counts the slots of a row without a count.
func idle(p *parties, row int) (n int) {
	for i := range p.count[row] {
		if p.count[row][i].Load() == 0 {
			n++
		}
	}
	return n
}

// TestStrangersHaveTheirPart, all of it, and no more.
func TestStrangersHaveTheirPart(t *testing.T) {
	s := newShares(Config{MaxInFlight: 16}.withDefaults(), new(atomic.Int64))
	for n := range 16/strangersPart + 1 {
		_, may := s.enter(&handler.Request{}, fmt.Sprint("192.0.2.", n))
		require.Equal(t, n < 16/strangersPart, may, n)
	}
}

// enterAs begins a lookup of a client with an address and a key of its own.
func enterAs(s *shares, client byte) (ticket, bool) { return enterFrom(s, client, client) }

// enterFrom begins a lookup with a key from an address.
func enterFrom(s *shares, key, address byte) (ticket, bool) {
	live := ident.NewKey(func(p []byte) { clear(p); p[0] = key })
	return s.enter(&handler.Request{Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + live}}}, fmt.Sprint("192.0.2.", address))
}

// TestNobodyHoldsEveryPlace: neither an address with ever new keys, nor a key from ever new addresses.
func TestNobodyHoldsEveryPlace(t *testing.T) {
	for name, attack := range map[string]func(s *shares, n byte) (ticket, bool){
		"an address": func(s *shares, n byte) (ticket, bool) { return enterFrom(s, n, 1) },
		"a key":      func(s *shares, n byte) (ticket, bool) { return enterFrom(s, 1, n) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShares(Config{MaxInFlight: 16}.withDefaults(), new(atomic.Int64))
			for n := range byte(100) {
				if lookup, may := attack(s, 100+n); !may {
					s.leave(lookup)
				}
			}
			for customer := range byte(4) {
				_, may := enterAs(s, 2+customer)
				require.True(t, may, "customer %d", customer)
			}
		})
	}
}

// TestARefusedLookupGivesNoPlaceBack: it had none, and those that have one keep it.
func TestARefusedLookupGivesNoPlaceBack(t *testing.T) {
	s := newShares(Config{MaxInFlight: 16}.withDefaults(), new(atomic.Int64))
	held := make([]ticket, 16)
	for n := range held {
		var may bool
		held[n], may = enterAs(s, byte(n))
		require.True(t, may, n)
	}
	for range held {
		refused, may := enterAs(s, 0)
		require.False(t, may)
		s.leave(refused)
	}
	newcomer, may := enterAs(s, 16)
	require.False(t, may, "every place is taken")
	for _, lookup := range append(held, newcomer) {
		s.leave(lookup)
	}
	require.Zero(t, s.admitted.Load())
}

// TestWhoWaitsForALeaseMakesNobodysShareSmaller, though its lookups are in flight.
func TestWhoWaitsForALeaseMakesNobodysShareSmaller(t *testing.T) {
	waiting := 0
	s := newShares(Config{MaxInFlight: 16, MaxWaiting: 128, Waiting: func() int { return waiting }}.withDefaults(), new(atomic.Int64))
	for range 20 {
		_, may := enterAs(s, 1)
		require.True(t, may)
		waiting++
	}
	for n := range 13 {
		_, may := enterAs(s, 2)
		require.Equal(t, n < 12, may, "a quarter of the limit stays free")
	}
}
