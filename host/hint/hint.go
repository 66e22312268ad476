// Package hint adds to an error what an operator can do about it. The program prints the
// error on one line and its hint on the next.
package hint

import (
	"errors"
	"fmt"
)

// hinted is an error with a hint.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// With adds a hint to an error. The hint is a sentence without a full stop that names a
// command, a flag or a check.
func With(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// Of returns the outermost hint of an error, or "" when it has none.
func Of(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}
