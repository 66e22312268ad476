package engine

import (
	"crypto/rand"
	"time"

	"regedge/handler"
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
		define(randomInterface, "get-random-bytes", "Ii:", randomBytes),
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

// randomBytes is random.get-random-bytes: (u64) -> list<u8>.
func randomBytes(i *instance, stack []uint64) {
	b := i.newBlock(stack[0])
	i.entropy.read(b.memory, i.engine.config.Random)
	i.putList(stack[1], b.base, uint32(len(b.memory)))
}

// entropy buffers random bytes, since each read of the source may be a system call. Bytes that were
// returned are wiped.
type entropy struct {
	buffer [256]byte
	unused []byte // the end of buffer
}

func (e *entropy) read(p []byte, source handler.Random) {
	for len(p) > 0 {
		if len(e.unused) == 0 {
			if len(p) >= len(e.buffer) {
				source.Read(p)
				return
			}
			e.unused = e.buffer[:]
			source.Read(e.unused)
		}
		n := copy(p, e.unused)
		clear(e.unused[:n])
		p, e.unused = p[n:], e.unused[n:]
	}
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
