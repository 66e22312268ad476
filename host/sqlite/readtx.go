package sqlite

import (
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// readTx keeps the read transaction of a connection open across statements, so that a busy
// connection takes its file locks (some six system calls) once per transaction instead of
// once per statement. Only the current user of the connection may call it.
//
// A transaction ends at the first statement after its time, or by a timer if none comes: a
// reader that stayed would keep the owner from checkpointing its WAL, and would never see
// what the owner commits.
type readTx struct {
	begin, commit *sqlite3.Stmt
	length        time.Duration
	timer         *time.Timer
	until         time.Time
	open          bool
	running       bool // begin or commit is running, which the authorizer has to allow
}

// newReadTx prepares for transactions of a length. Statements of a caller cannot begin one: the
// authorizer refuses them.
func newReadTx(sqlite *sqlite3.Conn, length time.Duration) (tx readTx, err error) {
	tx.length = length
	if tx.begin, _, err = sqlite.PrepareFlags("BEGIN", sqlite3.PREPARE_PERSISTENT); err != nil {
		return tx, fmt.Errorf("prepare transactions: %w", err)
	}
	if tx.commit, _, err = sqlite.PrepareFlags("COMMIT", sqlite3.PREPARE_PERSISTENT); err != nil {
		return tx, fmt.Errorf("prepare transactions: %w", err)
	}
	return tx, nil
}

// enter makes sure that a transaction is open that began less than length before now, or with hold at
// any time, and reports whether it had to begin one.
func (tx *readTx) enter(now time.Time, hold bool) (began bool, err error) {
	if tx.length <= 0 {
		return false, nil
	}
	if tx.open && now.After(tx.until) && !hold {
		if err := tx.leave(); err != nil {
			return false, err
		}
	}
	if tx.open {
		return false, nil
	}
	if err := tx.run(tx.begin); err != nil {
		return false, fmt.Errorf("begin read transaction: %w", err)
	}
	tx.open, tx.until = true, now.Add(tx.length)
	tx.timer.Reset(tx.length)
	return true, nil
}

// leave ends the transaction, if one is open.
func (tx *readTx) leave() error {
	if !tx.open {
		return nil
	}
	tx.open = false
	tx.timer.Stop()
	if err := tx.run(tx.commit); err != nil {
		return fmt.Errorf("end read transaction: %w", err)
	}
	return nil
}

func (tx *readTx) run(statement *sqlite3.Stmt) error {
	tx.running = true
	defer func() { tx.running = false }()
	statement.Step()
	return statement.Reset()
}

func (tx *readTx) close() {
	if tx.timer != nil {
		tx.timer.Stop()
	}
	_ = guard(tx.begin.Close)
	_ = guard(tx.commit.Close)
}

// newExpiry makes the timer, not yet running, that ends the transactions of a connection.
func (s *Store) newExpiry(c *connection) *time.Timer {
	timer := time.AfterFunc(time.Hour, func() { s.expire(c) })
	timer.Stop()
	return timer
}

// expire ends a connection's transaction when its time is over: at once if the connection is
// idle, or else when it is released.
func (s *Store) expire(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.Load() {
		return // letGo ends it
	}
	if s.slots[c.slot].idle != c {
		c.expired = true
		return
	}
	if err := guard(c.tx.leave); err != nil {
		s.slots[c.slot].idle = nil
		c.close()
	}
}
