// Package testkit keeps what processes and loggers write, for tests that look at it meanwhile.
package testkit

import (
	"bytes"
	"sync"
)

// Log is an io.Writer that may be read while it is written to. The zero value is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps p. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
