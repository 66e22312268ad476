package cli

import (
	"fmt"
	"time"
)

// silence is how long a command waits for another process without saying so.
const silence = 2 * time.Second

// waiting says what the command waits for, once silence has passed. The caller calls done when it no longer
// waits; nothing is written afterwards.
func (m *Main) waiting(what string) (done func()) {
	ended, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		select {
		case <-ended:
		case <-time.After(silence):
			fmt.Fprintf(m.Stderr, "regedge: waiting for %s\n", what)
		}
	}()
	return func() {
		close(ended)
		<-quiet
	}
}
