package sqlite

import (
	"errors"
	"runtime/debug"
)

// errFault is the error of a statement that read mapped memory beyond the end of its file.
var errFault = errors.New("the index of the database's WAL was cut short while it was in use")

// guard calls f, which uses a connection. SQLite maps the index of the WAL into memory; if another process
// truncates that file, an access raises SIGBUS. SetPanicOnFault turns it into a panic of the goroutine, so
// that the process survives. The connection can't be used after errFault.
//
// Only the signal's panic has an address.
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
