package simulation

// told is what an operator was told of a row of the access database.
type told struct {
	table   byte
	id      int64
	pending bool // edges do not know of the change yet
}

const (
	accountRow = iota + 1
	keyRow
)

func (s *sim) told(t told, err error) {
	if err == nil {
		s.heard = append(s.heard, t)
	}
}
