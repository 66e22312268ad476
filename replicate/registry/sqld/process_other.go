//go:build !linux

package sqld

import (
	"errors"
	"syscall"
)

// attributes give a server a process group of its own, since an interrupt from the terminal must reach
// its parent only, which stops its children in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// birth is unknown here, so that no process is taken for one that was left.
func birth(int) string { return "" }

// freeSpace is unknown here: a disk that is full says so itself.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
