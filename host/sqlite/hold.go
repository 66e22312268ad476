package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"regedge/handler"
)

// A push writes its records in many transactions. Readers that followed each of them would mix records of two
// releases. So the table pushing says when a push begins (its release is not empty) and, some seconds later, that its
// first records have been written (dirty). In between, all connections of a Store begin a read transaction, and they
// keep that snapshot until the push has ended.

const selectPushing = `SELECT release <> '' OR dirty, dirty, batch FROM pushing`

// holdBytes is how much larger than the file the write-ahead log may grow while transactions are held: meanwhile its
// owner can't restart it.
const holdBytes = 1 << 30

// stalledAfter is how long a push may write nothing before it counts as given up.
const stalledAfter = 30 * time.Second

// errWithin is why an edge that started during a push is not ready.
var errWithin = errors.New("a push is under way, of whose release this edge has a part: it is ready when the push ends, or stands still")

// pushing is the state of a push as the database records it. batch counts the transactions that the push has made.
type pushing struct {
	underWay, dirty bool
	batch           int64
}

// readPushing reads the state from a source. It is zero for a database that was never pushed to.
func readPushing(s source) (p pushing, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	var result handler.Result
	if err := s.Query(ctx, selectPushing, nil, &result); err != nil || result.Rows() == 0 {
		return p, err
	}
	if result.Columns != 3 {
		return p, errShape
	}
	return pushing{result.Values[0].Int != 0, result.Values[1].Int != 0, result.Values[2].Int}, nil
}

// newest reads the newest state of a Store, which its held transactions don't see.
type newest struct{ *Store }

// Query implements source.
func (n newest) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	s := n.Store
	s.aside.Lock()
	defer s.aside.Unlock()
	c, err := s.connectionAside()
	if err != nil {
		return err
	}
	c.limit.set(ctx, s.config.Now, s.config.Now().Add(s.config.Timeout))
	defer c.limit.clear()
	err = guard(func() error { return c.query(statement, args, dst, s.config.MaxRows, s.config.MaxBytes) })
	if breaks(err) {
		s.fresh = nil
		c.close()
	}
	return err
}

// connectionAside returns the connection beside the slots, reopened if it broke. The caller holds aside.
func (s *Store) connectionAside() (c *connection, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed || !s.config.Watched {
		return nil, ErrClosed
	}
	if s.fresh == nil {
		s.fresh, err = s.connect(s.config.Connections)
	}
	return s.fresh, err
}

// hold makes every connection keep its read transaction, or begin one, until letGo. It reports false, and holds
// nothing, if records of a push are visible already. The store is pinned.
func (s *Store) hold(ctx context.Context) (held bool, err error) {
	s.gather(true)
	s.held.Store(true)
	defer func() {
		s.gather(false)
		if !held {
			s.letGo()
		}
	}()
	for taken := range cap(s.tokens) {
		if err := s.takeToken(ctx); err != nil {
			s.giveTokens(taken)
			return false, err
		}
	}
	defer s.giveTokens(cap(s.tokens))
	for at := range s.slots {
		clean, err := s.holdSlot(ctx, at)
		if err != nil || !clean {
			return false, err
		}
	}
	return true, nil
}

func (s *Store) gather(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathers = on
}

func (s *Store) giveTokens(n int) {
	for range n {
		<-s.tokens
	}
}

// holdSlot begins the transaction of a slot's connection, and reports whether that sees no record of a push. The
// caller has all tokens, so only the timers use connections meanwhile.
func (s *Store) holdSlot(ctx context.Context, at int) (clean bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, ErrClosed
	}
	c := s.slots[at].idle
	if c == nil { // it broke
		if c, err = s.connect(at); err != nil {
			return false, err
		}
		s.slots[at].idle = c
	}
	now := s.config.Now()
	c.limit.set(ctx, s.config.Now, now.Add(s.config.Timeout))
	defer c.limit.clear()
	var result handler.Result
	err = guard(func() error {
		if err := c.enter(now, true); err != nil {
			return err
		}
		return c.query(selectPushing, nil, &result, s.config.MaxRows, s.config.MaxBytes)
	})
	if err != nil {
		if breaks(err) {
			s.slots[at].idle = nil
			c.close()
		}
		return false, err
	}
	return result.Rows() == 0 || result.Values[1].Int == 0, nil
}

// letGo ends the held transactions: of idle connections at once, of others after their statement. Slots that
// lost their connection get a new one when they are next used.
func (s *Store) letGo() {
	if !s.held.Swap(false) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.slots {
		c := s.slots[at].idle
		switch {
		case s.slots[at].lost:
			s.slots[at] = slot{}
			<-s.tokens
		case s.slots[at].taken:
			s.slots[at].renew = true
		case c != nil:
			if err := guard(c.tx.leave); err != nil {
				s.slots[at].idle = nil
				c.close()
			}
		}
	}
}

// logBytes is by how much the write-ahead log is larger than the file.
func (s *Store) logBytes() int64 {
	file, err := os.Stat(s.config.Path)
	log, logErr := os.Stat(s.config.Path + "-wal")
	if err != nil || logErr != nil {
		return 0
	}
	return log.Size() - file.Size()
}

// errOnlyThere is why the endpoint is read during a push for which this edge came too late.
var errOnlyThere = errors.New("a push is under way, and only the replica's endpoint still has the release before")

// followPush makes a file hold its current release while a push is under way. If it is too late for that, statements
// go to the endpoint, provided that still holds the release.
func (r *Replica) followPush(next *view) {
	now, err := readPushing(newest{next.file})
	if err != nil {
		return // Refresh notices elsewhere that the file can't be read
	}
	r.hold(next.file, now)
	if next.remote {
		return
	}
	partial := r.beganWithin(now)
	switch {
	case r.unheld == "":
	case next.endpoint == nil && r.endpointHolds():
		next.remote, next.why = true, errOnlyThere
		partial = false
	default:
		r.tellMixed(r.unheld)
	}
	r.partial.Store(partial)
}

// hold makes a store hold its release while a push is under way, or notes in unheld why it can't.
func (r *Replica) hold(s *Store, now pushing) {
	const late = "its records came before this edge could hold the release before"
	switch {
	case !now.underWay:
		r.unheld = ""
		s.letGo()
	case s.held.Load() && s.logBytes() > holdBytes:
		r.unheld = "the log has grown too large to hold the release before"
		s.letGo()
	case s.held.Load() || r.unheld != "":
	case now.dirty:
		r.unheld = late
	default:
		ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
		defer cancel()
		if held, err := s.hold(ctx); !held && err == nil {
			r.unheld = late
		}
	}
}

// endpointHolds reports whether the endpoint answers from the release before the push that is under way (see Beside).
func (r *Replica) endpointHolds() bool {
	now, err := readPushing(r.config.Endpoint)
	return err == nil && now.underWay && !now.dirty
}

// watchPush tells, while the endpoint is read, whether it shows records of a push.
func (r *Replica) watchPush() {
	now, err := readPushing(r.config.Endpoint)
	if err != nil {
		return // dealt with elsewhere
	}
	r.partial.Store(r.beganWithin(now))
	if now.dirty {
		r.tellMixed("the replica's endpoint is read, which has no release to hold")
	}
}

// beganWithin reports whether this edge started during the push under way and so shows part of it. Requests should
// then go to the edges that hold the release before. A push that has written nothing for stalledAfter keeps no edge
// away.
func (r *Replica) beganWithin(now pushing) bool {
	if !r.followed {
		r.followed, r.within = true, now.dirty
	}
	r.mixed = r.mixed && now.underWay
	r.within = r.within && now.underWay
	if now.batch != r.batch || r.moved.IsZero() {
		r.batch, r.moved = now.batch, time.Now()
	}
	return r.within && time.Since(r.moved) < stalledAfter
}

// tellMixed logs, once for a push, that answers may mix two releases until it ends.
func (r *Replica) tellMixed(why string) {
	if !r.mixed {
		r.mixed = true
		r.config.Log.Warn("answers may mix two releases until the push that is under way ends", "because", why)
	}
}
