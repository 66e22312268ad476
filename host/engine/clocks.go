package engine

import (
	"encoding/binary"
	"time"
)

// clockImports are the functions of wasi:clocks and wasi:random.
func clockImports() []function {
	return []function{
		define(wallClock, "now", "i:", wallNow),
		define(monotonicClock, "subscribe-duration", "I:i", subscribeDuration),
		define(randomInterface, "get-random-u64", ":I", randomU64),
	}
}

// wallNow is wall-clock.now: () -> datetime, to the millisecond.
func wallNow(i *instance, stack []uint64) {
	now := time.UnixMilli(i.engine.config.Clock.UnixMilli())
	out := i.out(uint32(stack[0]), 16, 8)
	put64(out, 0, uint64(now.Unix()))
	put32(out, 8, uint32(now.Nanosecond()))
}

// subscribeDuration is monotonic-clock.subscribe-duration: (duration) -> pollable.
func subscribeDuration(i *instance, stack []uint64) {
	wait := time.Duration(min(stack[0], uint64(time.Hour)))
	stack[0] = uint64(i.addPollable(time.Now().Add(wait), noParent))
}

// randomU64 is random.get-random-u64: () -> u64.
func randomU64(i *instance, stack []uint64) { stack[0] = i.entropy.next(i.engine.config.Random) }

// entropy hands out random numbers from a buffer, since each read may be a system call.
// What was handed out is wiped.
type entropy struct {
	buffer [256]byte
	used   int
	filled bool
}

func (e *entropy) next(source interface{ Read([]byte) }) uint64 {
	if !e.filled || e.used == len(e.buffer) {
		source.Read(e.buffer[:])
		e.used, e.filled = 0, true
	}
	number := e.buffer[e.used : e.used+8]
	n := binary.LittleEndian.Uint64(number)
	clear(number)
	e.used += 8
	return n
}
