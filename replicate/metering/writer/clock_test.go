package writer

import (
	"sync/atomic"
	"time"
)

// fakeClock is a clock that a test moves.
type fakeClock struct {
	start       time.Time
	passed, off atomic.Int64
}

func (c *fakeClock) now() time.Time         { return c.start.Add(c.elapsed() + time.Duration(c.off.Load())) }
func (c *fakeClock) elapsed() time.Duration { return time.Duration(c.passed.Load()) }
func (c *fakeClock) pass(d time.Duration)   { c.passed.Add(int64(d)) }

// setOff sets the clock wrong, without any time passing.
func (c *fakeClock) setOff(by time.Duration) { c.off.Store(int64(by)) }
