package sqlite

import (
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// hold keeps the read transaction of a connection open from one statement to the next, so
// that a busy connection pays for its locks (some six system calls) once in a while and
// not with each statement. It is guarded by whoever has the connection.
//
// A transaction ends at the first statement after its time, or by a timer when there is
// none: a reader that stayed would keep the owner from emptying its log, and would not
// see what the owner wrote.
type hold struct {
	begin, end *sqlite3.Stmt
	length     time.Duration
	timer      *time.Timer
	until      time.Time
	open       bool
	running    bool // one of begin and end, which SQLite may have to compile anew
}

// newHold prepares for transactions of a length. They are begun by the connection alone:
// its authorizer refuses them to everybody else.
func newHold(sqlite *sqlite3.Conn, length time.Duration) (h hold, err error) {
	h.length = length
	if h.begin, _, err = sqlite.PrepareFlags("BEGIN", sqlite3.PREPARE_PERSISTENT); err != nil {
		return h, fmt.Errorf("prepare transactions: %w", err)
	}
	if h.end, _, err = sqlite.PrepareFlags("COMMIT", sqlite3.PREPARE_PERSISTENT); err != nil {
		return h, fmt.Errorf("prepare transactions: %w", err)
	}
	return h, nil
}

// enter makes sure that a transaction is open which began less than length before now,
// and reports whether it had to begin one.
func (h *hold) enter(now time.Time) (began bool, err error) {
	if h.length <= 0 {
		return false, nil
	}
	if h.open && now.After(h.until) {
		if err := h.leave(); err != nil {
			return false, err
		}
	}
	if h.open {
		return false, nil
	}
	if err := h.run(h.begin); err != nil {
		return false, fmt.Errorf("begin to read: %w", err)
	}
	h.open, h.until = true, now.Add(h.length)
	h.timer.Reset(h.length)
	return true, nil
}

// leave ends the transaction, if one is open.
func (h *hold) leave() error {
	if !h.open {
		return nil
	}
	h.open = false
	h.timer.Stop()
	if err := h.run(h.end); err != nil {
		return fmt.Errorf("end reading: %w", err)
	}
	return nil
}

func (h *hold) run(statement *sqlite3.Stmt) error {
	h.running = true
	defer func() { h.running = false }()
	statement.Step()
	return statement.Reset()
}

func (h *hold) close() {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.begin.Close()
	h.end.Close()
}

// newLapse is the timer, not yet running, that ends the transactions of a connection.
func (s *Store) newLapse(c *connection) *time.Timer {
	timer := time.AfterFunc(time.Hour, func() { s.lapse(c) })
	timer.Stop()
	return timer
}

// lapse ends the transaction of a connection when its time is over: now, or, while it is
// in use, when it is given back.
func (s *Store) lapse(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[c.place].idle != c {
		c.lapsed = true
		return
	}
	if err := c.hold.leave(); err != nil {
		s.places[c.place].idle = nil
		c.close()
	}
}
