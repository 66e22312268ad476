package writer

import (
	"sync"
	"time"
)

const (
	// refusalsPause is the shortest time between two lines about one kind of failure.
	refusalsPause = time.Minute
	// refusalsOver is how long ago the last failure must be for them to count as over: on a full disk
	// some calls succeed.
	refusalsOver = 10 * time.Second
)

// refusals logs failures that come many times a second: once at first, then now and then with their number.
type refusals struct {
	mu           sync.Mutex
	count        int // since they began
	last, logged time.Time
}

// note counts a failure, and calls tell when it is to be logged.
func (r *refusals) note(tell func(count int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.last = r.count+1, time.Now()
	if r.count == 1 || r.last.Sub(r.logged) >= refusalsPause {
		r.logged = r.last
		tell(r.count)
	}
}

// end notes a success, and calls tell when they are over.
func (r *refusals) end(tell func(count int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count > 0 && time.Since(r.last) >= refusalsOver {
		tell(r.count)
		r.count = 0
	}
}
