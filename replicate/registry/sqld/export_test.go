package sqld

import (
	"context"
	"time"
)

// ErrLogInUse is for tests with a server, which can't be in this package.
var ErrLogInUse = errLogInUse

// EmptyLog empties the log of a database that no server of this process has.
func EmptyLog(path string, limit int64) (freed int64, err error) {
	return (&run{}).emptyLog(path, limit)
}

// In tests a damaged file is copied again soon.
func init() { copyPause = 10 * time.Second }

// In tests logs are emptied when they are small, and again and again.
func init() { logPause, logLimit = 50*time.Millisecond, 1<<20 }

// Runs reports whether a process runs, for tests with a server.
func Runs(pid int) bool { return birth(pid) != "" }

// Killed reports whether a stopped primary has the sign of a killed one.
func Killed(dir string) bool { return exists(sentinel(dir)) }

// HangsAfter makes a server count as hung after so many checks of a second each.
func (s *Server) HangsAfter(checks int) { s.hung = checksOfASecond(checks) }

// WritelessAfter makes a primary count as one that accepts no writes after so many checks of a second each.
func (s *Server) WritelessAfter(checks int) { s.writeless = checksOfASecond(checks) }

func checksOfASecond(checks int) silence { return silence{checks, time.Second, 100 * time.Millisecond} }

// WriteCheck returns a check of its own of whether a primary's writes are stuck.
func (s *Server) WriteCheck() func(ctx context.Context, limit time.Duration) bool {
	r := s.current()
	check := &writeCheck{log: r.writes.log, key: r.writes.key}
	return func(ctx context.Context, limit time.Duration) bool { return check.stuck(ctx, r.asked, limit) }
}
