package sqld

// ErrLogInUse is for tests with a server, which can't be in this package.
var ErrLogInUse = errLogInUse

// EmptyLog empties the log of the running server, or, of a nil one, that of any database.
func (s *Server) EmptyLog(path string, limit int64) (freed int64, err error) {
	if s == nil {
		return (&run{}).emptyLog(path, limit)
	}
	return s.current().emptyLog(path, limit)
}
