package main

import (
	"regedge/wasm/bindings/fermyon/spin/variables"
	wallclock "regedge/wasm/bindings/wasi/clocks/wall-clock"
	wasirandom "regedge/wasm/bindings/wasi/random/random"
)

// clock is a handler.Clock.
type clock struct{}

func (clock) UnixMilli() int64 {
	now := wallclock.Now()
	return int64(now.Seconds)*1000 + int64(now.Nanoseconds/1_000_000)
}

// random is a handler.Random.
type random struct{}

func (random) Read(p []byte) {
	copy(p, wasirandom.GetRandomBytes(uint64(len(p))).Slice())
}

// variable returns a variable of the application, or "" if there is none of that name.
func variable(name string) string {
	value := variables.Get(name)
	if value.IsErr() {
		return ""
	}
	return *value.OK()
}
