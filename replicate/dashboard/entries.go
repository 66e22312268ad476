package dashboard

import (
	"sync"
	"time"
)

const (
	// entriesPerPerson bounds the successful sign-ins of a person within attemptWindow, and those in each browser that
	// they used before. Attempts do not bound these, since a success resets their count; but each computes a hash, for
	// which all others wait.
	entriesPerPerson = 60
	// maxEntries bounds the people and browsers that are remembered.
	maxEntries = 10_000
)

// entries counts sign-ins by e-mail address, or by the browser that a person used before. It is safe for concurrent use.
type entries struct {
	mu sync.Mutex
	of map[string]entryCount
}

type entryCount struct {
	since time.Time
	count int
}

// check returns a *throttledError if somebody has signed in too often.
func (e *entries) check(subject string, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.of[subject]
	if left := attemptWindow - now.Sub(c.since).Abs(); c.count >= entriesPerPerson && left > 0 {
		return &throttledError{left}
	}
	return nil
}

// note counts a sign-in.
func (e *entries) note(subject string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, known := e.of[subject]
	if e.of == nil || !known && len(e.of) >= maxEntries {
		e.of = map[string]entryCount{}
	}
	if now.Sub(c.since).Abs() >= attemptWindow {
		c = entryCount{since: now}
	}
	c.count++
	e.of[subject] = c
}
