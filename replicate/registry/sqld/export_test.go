package sqld

import "time"

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

// HangsAfter makes a replica count as hung after so many checks of a second each.
func (s *Server) HangsAfter(checks int) {
	s.hung = silence{checks, time.Second, 100 * time.Millisecond}
}
