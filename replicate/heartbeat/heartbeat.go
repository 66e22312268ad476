// Package heartbeat writes the time into a replicated database, so that readers of its replicas know how old
// their copy is. It decides when a heartbeat may go back after a clock was wrong (RATIONALE.md, "When may a
// heartbeat go back?").
package heartbeat

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"regedge/replicate/registry/libsql"
)

const (
	// interval is how often one is written. Each costs a page of the replication log.
	interval = time.Second
	// timeout bounds one heartbeat.
	timeout = 5 * time.Second
	// lockedPatience is how long the database may be locked before a heartbeat reports an error: a push
	// holds the lock during each of its transactions, and sqld ends those of 5 s.
	lockedPatience = 15 * time.Second
	// restartPatience is how long after an answer a primary may be unreached, or stop: it starts again when a push hands it a whole file. It
	// is not longer than timeout, so that one that hangs is told at once.
	restartPatience = timeout
	// fillPause is how often it is seen whether a new database is filled.
	fillPause = 100 * time.Millisecond
)

// putHeartbeat goes on from the heartbeat before, or back to the clock if the second argument is true. It writes a first one
// only if the third is true, and else returns no row.
const putHeartbeat = `INSERT INTO heartbeat (id, beat) SELECT 1, ?1 WHERE ?3 OR EXISTS (SELECT 1 FROM heartbeat)
ON CONFLICT (id) DO UPDATE SET beat = iif(?2, excluded.beat, max(beat + 1, excluded.beat)) RETURNING beat`

// Heartbeats writes a heartbeat into a database each second.
type Heartbeats struct {
	DB  *sql.DB
	Now func() time.Time
	// Agrees reports whether most of the edges have the time of Now; nil does not know.
	Agrees func() bool
	// Lost is called with each heartbeat for which there is no table; it may be nil.
	Lost func()
	// Filled reports whether a new database has its content: with the first heartbeat readers take it in place of their copy.
	// Nil for one that is filled by others.
	Filled func() bool
	Log    *slog.Logger

	failure atomic.Pointer[string]
}

// Failure is why no heartbeat is written, "" while they are, and while the database has no tables yet.
func (b *Heartbeats) Failure() string {
	if why := b.failure.Load(); why != nil {
		return *why
	}
	return ""
}

// Run writes until ctx is done. Failures are logged and retried.
func (b *Heartbeats) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	noted := failureLog{log: b.Log}
	clock := beatClock{agrees: b.Agrees}
	began := time.Now()
	for {
		limited, cancel := context.WithTimeout(ctx, timeout)
		err := clock.read(limited, b.DB)
		at, since := b.Now(), time.Since(began)
		var beat int64
		if err == nil {
			filled := b.Filled == nil || b.Filled()
			err = b.DB.QueryRowContext(limited, putHeartbeat, at.UnixMilli(), clock.mayGoBack(at, since), filled).Scan(&beat)
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			clock.wrote(time.UnixMilli(beat), at, since, noted.log)
		}
		noted.note(err, time.Now())
		if b.Lost != nil && noTable(err) {
			b.Lost()
		}
		why := noted.why
		b.failure.Store(&why)
		if errors.Is(err, errUnfilled) {
			b.awaitFilled(ctx, tick.C)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awaitFilled waits until the database is filled, at most until the next tick: it may have got a heartbeat by another writer.
func (b *Heartbeats) awaitFilled(ctx context.Context, tick <-chan time.Time) {
	look := time.NewTicker(fillPause)
	defer look.Stop()
	for !b.Filled() {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			return
		case <-look.C:
		}
	}
}

// errUnfilled says that a database has no heartbeat yet, and may not have one.
var errUnfilled = sql.ErrNoRows

// beatClock decides when a heartbeat may go back. Readers take the copy with the older heartbeat for the
// older one, so it does not follow a clock that was set back: that clock may be the wrong one. But
// heartbeats that were written while the clock was ahead make readers refuse the copy until the right time
// has caught up. So it goes back in three cases: the clock returns to where it has been for most of the
// time; it has been behind for so long that readers refuse the copy anyway, as too old; or most of the
// readers have its time, and so took no heartbeat from the future. A machine that starts with a wrong
// clock, which is then set right, is recognised by the previous run's heartbeat: the clock returns to soon
// after it.
type beatClock struct {
	agrees func() bool // may be nil

	before    time.Time // the previous run's last heartbeat, zero without one
	hasBefore bool      // it was looked for
	leapt     bool      // the clock at the start was long after it

	usual, other heldOffset
	seen         time.Duration // when the clock was read last, since the service began
	ahead        bool          // heartbeats were written while the clock was ahead of usual
	// behind is since when the clock has been behind the heartbeats, 0 while it is not.
	behind time.Duration
	back   bool // the next heartbeat is to go back
}

// heldOffset is a clock's offset from the time since the service began, in milliseconds, and how long the
// clock has had it in all. It follows a clock that is adjusted gradually.
type heldOffset struct {
	millis int64
	held   time.Duration
}

// near reports whether a clock still has this offset.
func (h *heldOffset) near(millis int64) bool {
	return millis-h.millis <= clockJump.Milliseconds() && h.millis-millis <= clockJump.Milliseconds()
}

const (
	// clockJump is how far off a right clock may be.
	clockJump = 5 * time.Second
	// clockPatience is how long a clock may be behind, or elsewhere until that may be usual. It is the
	// default of --access-max-age.
	clockPatience = 10 * time.Minute
	// startPatience is how long a machine may take to start again after the previous run's last heartbeat.
	startPatience = time.Hour
	// clockTrust is how long the clock at the start counts as held before.
	clockTrust = time.Minute
)

// read reads the previous run's last heartbeat, once.
func (c *beatClock) read(ctx context.Context, db *sql.DB) error {
	if c.hasBefore {
		return nil
	}
	var beat int64
	err := db.QueryRowContext(ctx, `SELECT beat FROM heartbeat WHERE id = 1`).Scan(&beat)
	switch {
	case err == nil:
		c.before = time.UnixMilli(beat)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	c.hasBefore = true
	return nil
}

// mayGoBack takes the clock's time, and the monotonic time since the service began.
func (c *beatClock) mayGoBack(at time.Time, since time.Duration) bool {
	millis := at.UnixMilli() - since.Milliseconds()
	if c.usual.held == 0 {
		c.usual = heldOffset{millis, clockTrust}
		c.leapt = !c.before.IsZero() && at.Sub(c.before) >= startPatience
	}
	switch passed := since - c.seen; {
	case c.usual.near(millis):
		c.usual = heldOffset{millis, c.usual.held + passed}
		c.back = c.back || c.ahead
	case c.other.near(millis):
		c.other = heldOffset{millis, c.other.held + passed}
		c.ahead = c.ahead || millis > c.usual.millis
	default:
		c.other = heldOffset{millis: millis}
		c.ahead = c.ahead || millis > c.usual.millis
	}
	c.seen = since
	if c.other.held > max(c.usual.held, clockPatience) {
		c.usual, c.other, c.ahead = c.other, c.usual, false
	}
	c.back = c.back || c.behind > 0 && (since-c.behind > clockPatience || c.goesOn(at, since) || c.agrees != nil && c.agrees())
	return c.back
}

// goesOn reports whether the clock continues the previous run's.
func (c *beatClock) goesOn(at time.Time, since time.Duration) bool {
	passed := at.Sub(c.before)
	return c.leapt && passed >= since && passed < since+startPatience
}

// wrote notes the heartbeat that the database has now.
func (c *beatClock) wrote(beat, at time.Time, since time.Duration, log *slog.Logger) {
	switch by := beat.Sub(at); {
	case c.back:
		log.Warn("heartbeats that were written while the clock was ahead are taken back")
		c.back, c.ahead, c.behind = false, false, 0
	case by <= clockJump:
		c.behind = 0
	case c.behind == 0:
		c.behind = max(since, 1)
		log.Warn("the clock is behind the heartbeats that were written: it was ahead before, or is wrong now. Set it right; they are taken back in a while",
			"behind", by.Round(time.Second).String(), "while", clockPatience.String())
	}
}

// failureLog logs when heartbeats begin to fail, when the token is or is no longer the reason, and when they recover. A registry without a first push,
// and a brief lock or restart by a push, are no errors.
type failureLog struct {
	log         *slog.Logger
	said        bool      // that they fail
	refused     bool      // since the token is refused
	empty       bool      // that they wait for the tables was said
	filling     bool      // that they wait until the database is filled was said
	why         string    // the error that was logged, for readiness
	beaten      bool      // a heartbeat was written before
	lockedSince time.Time // zero while it is not locked
	answered    time.Time // when the database answered last, zero before
}

// noTable reports whether a database has no tables: it is a new one.
func noTable(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no such table: heartbeat")
}

// unreached reports whether no server answered.
func unreached(err error) bool {
	var failed *url.Error
	return errors.As(err, &failed)
}

// stops reports whether an error is the answer of an sqld 0.24 that has closed its databases and is about to end.
func stops(err error) bool {
	return strings.Contains(err.Error(), "Namespace store has shutdown") || strings.Contains(err.Error(), "Namespace `default` doesn't exist")
}

func (h *failureLog) note(err error, at time.Time) {
	if err == nil {
		if h.said || h.empty || h.filling {
			h.log.Info("heartbeats are written")
		}
		*h = failureLog{log: h.log, beaten: true, answered: at}
		return
	}
	if errors.Is(err, errUnfilled) {
		if !h.filling {
			h.log.Info("no heartbeat yet: the database is being filled")
		}
		*h = failureLog{log: h.log, filling: true, why: "the writer is filling it", beaten: h.beaten, answered: at}
		return
	}
	if noTable(err) && !h.beaten {
		if h.said || !h.empty {
			h.log.Info("no heartbeat yet: the database is empty")
		}
		*h = failureLog{log: h.log, empty: true, answered: at} // what was said before is over
		return
	}
	locked := strings.Contains(err.Error(), "database is locked")
	if locked && h.lockedSince.IsZero() {
		h.lockedSince = at
	}
	refused := errors.Is(libsql.Explain(err), libsql.ErrUnauthorized)
	restarting := !h.said && (unreached(err) || stops(err)) && at.Sub(h.answered) < restartPatience
	switch {
	case h.said && h.refused == refused, locked && at.Sub(h.lockedSince) < lockedPatience, restarting:
		return
	case refused:
		h.why = "the primary refuses the writer's token: no heartbeat"
		h.log.Error(h.why, "error", err)
	default:
		h.why = "no heartbeat: the writer's log says why" // readiness is for anybody, errors name addresses
		h.log.Error("no heartbeat", "error", err)
	}
	h.said, h.refused = true, refused
}
