package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// errFault is the error of a statement that read mapped memory beyond the end of its file.
var errFault = errors.New("the index of the database's WAL was cut short while it was in use")

// errMemory is the error of a call in which go-sqlite3 panicked, as it does when it gets no memory.
var errMemory = errors.New("the statement was given up")

// guard calls f, which uses a connection. SQLite maps the index of the WAL into memory; if another process
// truncates that file, an access raises SIGBUS. SetPanicOnFault turns that into a panic of the goroutine, so
// that the process survives. The connection can't be used after errFault or errMemory.
//
// Of the runtime errors, only the panic from that signal has an address. The others are bugs, and panic on.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		if _, fault := reason.(interface{ Addr() uintptr }); fault {
			err = errFault
			return
		}
		given, isError := reason.(error)
		if _, mistake := reason.(runtime.Error); mistake || !isError {
			panic(reason)
		}
		err = fmt.Errorf("%w: %w", errMemory, given)
	}()
	return f()
}
