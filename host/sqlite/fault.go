package sqlite

import (
	"errors"
	"runtime/debug"
)

// errFault is the error of a statement that touched memory which its file no longer has.
var errFault = errors.New("the index of the database's WAL was cut short while it was in use")

// guard calls f, which uses a connection. SQLite maps the index of the WAL; where another process cuts that
// file short, its memory raises a signal (SIGBUS), of which Go makes a panic of the goroutine, if asked
// to, instead of the end of the process. The connection can't be used any more after errFault.
//
// The signal's panic names an address, like no other panic of SQLite.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		reason := recover()
		if _, fault := reason.(interface{ Addr() uintptr }); fault {
			err = errFault
		} else if reason != nil {
			panic(reason)
		}
	}()
	return f()
}
