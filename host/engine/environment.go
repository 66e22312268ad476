package engine

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// Clock is the machine's clock.
type Clock struct{}

// UnixMilli returns the time in milliseconds since 1970, UTC.
func (Clock) UnixMilli() int64 { return time.Now().UnixMilli() }

// Random is the operating system's source of randomness.
type Random struct{}

// Read fills p with cryptographically secure random bytes.
func (Random) Read(p []byte) { rand.Read(p) }

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

// entropy buffers random numbers, since each read of the source may be a system call. Numbers that
// were returned are wiped.
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

// The case undefined of the variant error of fermyon:spin/variables.
const variableUndefined = 1

// variableImports are the functions of fermyon:spin/variables.
func variableImports() []function {
	return []function{define(spinVariables, "get", "iii:", variableGet)}
}

// variableGet is get: (string) -> result<string, error>.
func variableGet(i *instance, stack []uint64) {
	value, ok := i.engine.config.Variables[string(i.text(uint32(stack[0]), uint32(stack[1])))]
	if !ok {
		ptr, size := i.lower("no such variable")
		out := i.out(uint32(stack[2]), 16, 4)
		put32(out, 0, 1)
		put32(out, 4, variableUndefined)
		put32(out, 8, ptr)
		put32(out, 12, size)
		return
	}
	ptr, size := i.lowerText(value)
	out := i.out(uint32(stack[2]), 16, 4)
	put32(out, 0, 0)
	put32(out, 4, ptr)
	put32(out, 8, size)
}
