package writer

import (
	"sync/atomic"
	"time"
)

// fakeClock is a clock that a test sets forward.
type fakeClock struct {
	start  time.Time
	passed atomic.Int64
}

func (c *fakeClock) now() time.Time       { return c.start.Add(time.Duration(c.passed.Load())) }
func (c *fakeClock) pass(d time.Duration) { c.passed.Add(int64(d)) }
