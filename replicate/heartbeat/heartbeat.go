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
	// interval is the time between two heartbeats. Each costs a page of the replication log.
	interval = time.Second
	// timeout bounds one heartbeat.
	timeout = 5 * time.Second
	// lockedPatience is how long the database may be locked before a heartbeat reports an error: a push
	// holds the lock during each of its transactions, and sqld ends those of 5 s.
	lockedPatience = 15 * time.Second
	// restartPatience is how long after its last answer a primary may be unreachable, or stopping, without an error: it
	// restarts when a push hands it a whole file. It is not longer than timeout, so that a primary that hangs is
	// reported at once.
	restartPatience = timeout
	// fillPause is how often a new database is checked for its content.
	fillPause = 100 * time.Millisecond
)

// putHeartbeat writes a heartbeat at least as late as the one before, or goes back to the clock if the second argument
// is true. It writes a first heartbeat only if the third is true; else it returns no row.
const putHeartbeat = `INSERT INTO heartbeat (id, beat) SELECT 1, ?1 WHERE ?3 OR EXISTS (SELECT 1 FROM heartbeat)
ON CONFLICT (id) DO UPDATE SET beat = iif(?2, excluded.beat, max(beat + 1, excluded.beat)) RETURNING beat`

// Heartbeats writes a heartbeat into a database each second.
type Heartbeats struct {
	DB  *sql.DB
	Now func() time.Time
	// Agrees reports whether most of the edges have the same time as Now. It may be nil, if that is not known.
	Agrees func() bool
	// Lost is called with each heartbeat for which there is no table; it may be nil.
	Lost func()
	// Filled reports whether a new database has its content: from the first heartbeat on, readers replace their copy by
	// it. It is nil for a database that somebody else fills.
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

// awaitFilled waits until the database is filled, but not beyond the next tick: another writer may have written a
// heartbeat.
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

// errUnfilled says that a database has no heartbeat yet, and must not get one.
var errUnfilled = sql.ErrNoRows

// beatClock decides when a heartbeat may go back. Of two copies, readers take the one with the older heartbeat for the
// older copy. So heartbeats do not follow a clock that was set back: it may be the clock that is now wrong. But
// heartbeats that were written while the clock was ahead make readers refuse the copy until the right time has caught
// up. So a heartbeat goes back in three cases: the clock returns to where it has been for most of the time; it has been
// behind for so long that readers refuse the copy anyway, as too old; or most of the readers have the clock's time, and
// so refused the heartbeats from the future. A machine that starts with a wrong clock, which is then set right, is
// recognised by the previous run's last heartbeat: the clock returns to a time soon after it.
type beatClock struct {
	agrees func() bool // may be nil

	before    time.Time // the previous run's last heartbeat, zero without one
	hasBefore bool      // before was looked for
	leapt     bool      // at the start, the clock was long after before

	usual, other heldOffset
	seen         time.Duration // when the clock was read last, since the service began
	ahead        bool          // heartbeats were written while the clock was ahead of usual
	// behind is since when the clock has been behind the heartbeats, 0 while it is not.
	behind time.Duration
	back   bool // the next heartbeat is to go back
}

// heldOffset is a clock's offset from the time since the service began, in milliseconds, and how long in total the
// clock has had it. It follows a clock that is adjusted gradually.
type heldOffset struct {
	millis int64
	held   time.Duration
}

// near reports whether a clock still has this offset.
func (h *heldOffset) near(millis int64) bool {
	return millis-h.millis <= clockJump.Milliseconds() && h.millis-millis <= clockJump.Milliseconds()
}

const (
	// clockJump is how far off a correct clock may be.
	clockJump = 5 * time.Second
	// ClockPatience is how long a clock may be behind. It is also how long it must be elsewhere before that counts as
	// usual. It is the default of --access-max-age, after which edges take a copy for too old anyway.
	ClockPatience = 10 * time.Minute
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
	if c.other.held > max(c.usual.held, ClockPatience) {
		c.usual, c.other, c.ahead = c.other, c.usual, false
	}
	c.back = c.back || c.behind > 0 && (since-c.behind > ClockPatience || c.goesOn(at, since) || c.agrees != nil && c.agrees())
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
			"behind", by.Round(time.Second).String(), "while", ClockPatience.String())
	}
}

// failureLog logs when heartbeats begin to fail, when the token becomes or stops being the reason, and when heartbeats
// recover. A registry before its first push, and a brief lock or restart by a push, are not errors.
type failureLog struct {
	log         *slog.Logger
	said        bool      // that they fail
	refused     bool      // since the token is refused
	empty       bool      // that they wait for the tables was logged
	filling     bool      // that they wait for the content was logged
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

// Stops reports whether an error is the answer of an sqld 0.24 that has closed its databases and is about to exit.
func Stops(err error) bool {
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
		*h = failureLog{log: h.log, empty: true, answered: at} // forget what was logged before
		return
	}
	locked := strings.Contains(err.Error(), "database is locked")
	if locked {
		h.answered = at
		if h.lockedSince.IsZero() {
			h.lockedSince = at
		}
	}
	refused := errors.Is(libsql.Explain(err), libsql.ErrUnauthorized)
	restarting := !h.said && (unreached(err) || Stops(err)) && at.Sub(h.answered) < restartPatience
	switch {
	case h.said && h.refused == refused, locked && at.Sub(h.lockedSince) < lockedPatience, restarting:
		return
	case refused:
		h.why = "the primary refuses the writer's token: no heartbeat"
		h.log.Error(h.why, "error", err)
	default:
		h.why = "no heartbeat: the writer's log says why" // the log says why; readiness is public, and errors name addresses
		h.log.Error("no heartbeat", "error", err)
	}
	h.said, h.refused = true, refused
}
