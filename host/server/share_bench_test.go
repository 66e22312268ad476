package server

import (
	"sync/atomic"
	"testing"

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
