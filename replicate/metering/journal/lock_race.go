//go:build race

package journal

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Lock is a mutex with a rank. Lock panics when the goroutine holds a lock of the same or a
// higher rank already.
type Lock struct {
	mu   sync.Mutex
	rank Rank
}

// NewLock makes a lock of a rank.
func NewLock(rank Rank) Lock { return Lock{rank: rank} }

// held lists the ranks of the locks that a goroutine holds.
var held = struct {
	sync.Mutex
	by map[string][]Rank
}{by: map[string][]Rank{}}

// Lock takes the lock.
func (l *Lock) Lock() {
	me := goroutine()
	held.Lock()
	before := slices.Clone(held.by[me])
	held.Unlock()
	for _, r := range before {
		if r >= l.rank {
			panic(fmt.Sprintf("lock order: %v is taken while %v is held", l.rank, r))
		}
	}
	l.mu.Lock()
	held.Lock()
	defer held.Unlock()
	held.by[me] = append(held.by[me], l.rank)
}

// TryLock takes the lock if nobody holds it. It ignores ranks: a caller that does not wait can't be part of a
// deadlock.
func (l *Lock) TryLock() bool {
	if !l.mu.TryLock() {
		return false
	}
	me := goroutine()
	held.Lock()
	defer held.Unlock()
	held.by[me] = append(held.by[me], l.rank)
	return true
}

// Unlock releases the lock. The goroutine that took it must do so.
func (l *Lock) Unlock() {
	me := goroutine()
	held.Lock()
	at := slices.Index(held.by[me], l.rank)
	if at < 0 {
		held.Unlock()
		panic(fmt.Sprintf("lock order: %v is released by a goroutine that does not hold it", l.rank))
	}
	if held.by[me] = slices.Delete(held.by[me], at, at+1); len(held.by[me]) == 0 {
		delete(held.by, me)
	}
	held.Unlock()
	l.mu.Unlock()
}

// goroutine identifies the calling goroutine by the head of its stack trace, "goroutine 18 [".
func goroutine() string {
	var trace [64]byte
	head, _, _ := bytes.Cut(trace[:runtime.Stack(trace[:], false)], []byte(" ["))
	return string(head)
}
