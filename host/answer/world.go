package answer

import (
	"crypto/rand"
	"time"
)

// Clock is the clock of the machine, as handler and engine ask for it.
type Clock struct{}

// UnixMilli is the time in milliseconds since 1970, UTC.
func (Clock) UnixMilli() int64 { return time.Now().UnixMilli() }

// Random is the randomness of the machine.
type Random struct{}

// Read fills p with cryptographically secure random bytes.
func (Random) Read(p []byte) { rand.Read(p) }
