package engine

import "time"

// maxPoll bounds the pollables that one call may wait for.
const maxPoll = 64

// maxWriteBytes bounds one write, as wasi:io does.
const maxWriteBytes = 4096

// pollable is the resource pollable. It becomes ready at a time, or always is.
type pollable struct{ at time.Time }

// alwaysReady is the time of a pollable that is always ready.
var alwaysReady time.Time

// ioImports are the functions of wasi:io.
func ioImports() []function {
	return []function{
		drop(ioError, kindIOError),
		define(ioPoll, "poll", "iii:", poll),
		drop(ioPoll, kindPollable),
		define(ioStreams, "[method]output-stream.blocking-write-and-flush", "iiii:", streamWrite),
		drop(ioStreams, kindOutputStream),
	}
}

// streamWrite is output-stream.blocking-write-and-flush: (list<u8>) -> result<_, stream-error>. It never
// blocks, because the stream writes into memory.
func streamWrite(i *instance, stack []uint64) {
	body := &i.bodies[i.ref(stack[0], kindOutputStream)]
	data := i.bytes(uint32(stack[1]), uint32(stack[2]))
	if len(data) > maxWriteBytes {
		trap("write of %d bytes is over the limit of %d", len(data), maxWriteBytes)
	}
	if len(data) > maxBodyBytes-len(body.data) {
		trap("body is over the limit of %d bytes", maxBodyBytes)
	}
	out := i.out(uint32(stack[3]), 12, 4)
	body.data = append(body.data, data...)
	put32(out, 0, 0)
}

func (i *instance) addPollable(at time.Time, parent int32) uint32 {
	i.pollables = append(i.pollables, pollable{at})
	return i.add(kindPollable, len(i.pollables)-1, parent)
}

// poll is poll: (list<borrow<pollable>>) -> list<u32>. It waits until one is ready, at most until the
// request's deadline.
func poll(i *instance, stack []uint64) {
	count := uint32(stack[1])
	if count == 0 || count > maxPoll {
		trap("poll of %d pollables", count)
	}
	var times [maxPoll]time.Time
	handles := i.list(uint32(stack[0]), count, 4, 4)
	for n := range times[:count] {
		times[n] = i.pollables[i.ref(uint64(get32(handles, n*4)), kindPollable)].at
	}
	i.waitFor(earliest(times[:count]))
	var ready [maxPoll]uint32
	n := uint32(0)
	now := time.Now()
	for at, t := range times[:count] {
		if !t.After(now) {
			ready[n] = uint32(at)
			n++
		}
	}
	list := i.alloc(n*4, 4)
	view := i.bytes(list, n*4)
	for at := range n {
		put32(view, int(at)*4, ready[at])
	}
	i.putList(stack[2], list, n)
}

func earliest(times []time.Time) time.Time {
	first := times[0]
	for _, t := range times[1:] {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

// waitFor sleeps until a time. It traps if the request's deadline is earlier.
func (i *instance) waitFor(at time.Time) {
	wait := time.Until(at)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.ctx.Done():
		panic(ErrTimeLimit)
	}
}
