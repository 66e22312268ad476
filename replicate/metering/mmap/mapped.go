// Package mmap copies into and out of memory that is mapped from a file.
package mmap

import "runtime/debug"

// Copy fills dst from src, of which one is mapped, and reports whether it could. It can't where
// the file ends before what is mapped, or the disk fails, or has no room: that arrives as a
// signal (SIGBUS), which Go makes a panic. What was copied before that stands in dst.
func Copy(dst, src []byte) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	copy(dst, src)
	return true
}
