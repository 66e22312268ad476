package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"regedge/handler"
	"regedge/schema"
)

const (
	// checkTimeout bounds a query of Refresh, which is called every second.
	checkTimeout = 900 * time.Millisecond
	// DefaultKeep is how far a file may lag behind its endpoint and still be read: a replica that copies
	// its database anew catches up sooner.
	DefaultKeep = 30 * time.Second
	// maxAhead is how far a heartbeat may be ahead of this clock: the clock skew that a ready edge
	// may have. Beyond it the age of the copy is unknown.
	maxAhead = 5 * time.Second
)

// Errors of Query and Ready.
var (
	// ErrUnreadable means that neither the file nor the endpoint can be read.
	ErrUnreadable = errors.New("neither the replica's file nor its endpoint can be read")
	// ErrToken means that the endpoint refuses the token. An Endpoint returns it, wrapped.
	ErrToken = errors.New("the replica's endpoint refuses the token")
	// ErrTooOld means that the copy is older than ReplicaConfig.MaxAge.
	ErrTooOld = errors.New("the replica is too far behind its primary")
	// ErrAhead means that the heartbeat is ahead of this clock, so that the age is unknown.
	ErrAhead = errors.New("the replica's heartbeat is ahead of the clock")
	// ErrUnreleased means that the registry is being filled for the first time: a "not found"
	// from it could be wrong.
	ErrUnreleased = errors.New("the registry has no release yet: its first copy is under way, or none was pushed")
)

// Endpoint is the replica's HTTP endpoint.
type Endpoint interface {
	Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error
	Close() error
}

// ReplicaConfig describes the replica to read.
type ReplicaConfig struct {
	Database schema.Database
	// File is the path of the replica's database file, which may not exist yet. If it is empty,
	// only the endpoint is read.
	File string
	// Endpoint is closed by Close. It may be nil.
	Endpoint Endpoint
	// Connections is the maximum number of statements that read the file at once.
	Connections int
	// ReadTx is how long a read transaction may be kept open; see Config.
	ReadTx time.Duration
	// CacheResults keeps results while the database does not change; see Config.
	CacheResults bool
	// Keep is how far the file's heartbeat may lag behind the endpoint's before statements go to the
	// endpoint; DefaultKeep when 0. The file answers in microseconds even while the replica is busy; the
	// endpoint does not.
	Keep time.Duration
	// MaxAge makes Query fail once the copy is older; 0 means any age is good.
	MaxAge time.Duration
	Now    func() time.Time
	Log    *slog.Logger
}

// Replica reads one database. It is safe for concurrent use.
type Replica struct {
	config ReplicaConfig
	view   atomic.Pointer[view]

	mu     sync.Mutex // of Refresh and Close
	closed bool
	newest int64 // newest heartbeat that was read and not ahead of the clock, Unix milliseconds
	// released is set once a registry with a release was read.
	released bool
	// keyed is set while the copy of access being read has a key. keyless is since when a copy without keys has been
	// waiting to take its place.
	keyed   bool
	keyless time.Time
	// unheld is why the file shows records of an unfinished push, or empty. mixed is set once this, or the same about
	// the endpoint, was logged.
	unheld string
	mixed  bool
	// followed is set once the state of a push was read. within is set for the rest of a push during which this edge
	// started. batch is the last count of transactions that the push had made, and moved is when it changed.
	followed, within bool
	batch            int64
	moved            time.Time
	// failures counts the checks in a row in which the endpoint did not answer.
	failures int
	// refused is set while the endpoint refuses the token.
	refused atomic.Bool
	// partial is set while this edge should get no requests; see beganWithin.
	partial atomic.Bool

	switches atomic.Int64
}

// view decides where statements go. It is immutable: Refresh replaces it.
type view struct {
	file *Store // nil if none can be read
	// remote is set while statements go to the endpoint; why is the reason.
	remote bool
	why    error
	// suspect is a statement that found the file corrupt, or nil.
	suspect *failedStatement
	beat    int64 // Unix milliseconds, 0 while there is none
	// unreleased is set for a registry until one with a release was read.
	unreleased bool
	// endpoint is why the endpoint can't be used, or nil.
	endpoint error
	// unopened is why a file that replaced the open one can't be read, or nil.
	unopened error
}

type failedStatement struct {
	statement string
	args      []handler.Value
	err       error
}

// OpenReplica opens a replica. It fails only for another database, or one of a version that can't
// be read: a replica that does not exist yet may appear later.
func OpenReplica(config ReplicaConfig) (*Replica, error) {
	if config.Keep == 0 {
		config.Keep = DefaultKeep
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	r := &Replica{config: config}
	r.view.Store(&view{remote: true, why: errStarting, endpoint: errStarting})
	var newer *schema.NewerError
	var other *schema.OtherError
	if err := r.Refresh(); errors.As(err, &newer) || errors.As(err, &other) {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

var errStarting = errors.New("not checked yet")

// Query runs one statement as Store.Query does. Beside the errors of a Store and of the endpoint it
// returns ErrUnreadable, ErrTooOld, ErrAhead and ErrUnreleased.
func (r *Replica) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	for {
		v := r.view.Load()
		if err := r.tooOld(v, r.config.MaxAge); err != nil {
			return err
		}
		if v.remote || v.file == nil {
			return r.queryEndpoint(ctx, v, statement, args, dst)
		}
		if v.unreleased {
			return ErrUnreleased
		}
		err := v.file.Query(ctx, statement, args, dst)
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrTimeout):
			return err
		case errors.Is(err, ErrClosed) && r.view.Load() != v:
			continue // Refresh has switched to another file
		}
		if corrupt(err) {
			r.reportCorrupt(v, statement, args, err)
		}
		if r.config.Endpoint == nil || v.endpoint != nil || r.config.Endpoint.Query(ctx, statement, args, dst) != nil {
			return err
		}
		return nil
	}
}

func (r *Replica) queryEndpoint(ctx context.Context, v *view, statement string, args []handler.Value, dst *handler.Result) error {
	if v.endpoint != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, v.why)
	}
	if v.unreleased {
		return ErrUnreleased
	}
	return r.config.Endpoint.Query(ctx, statement, args, dst)
}

// reportCorrupt sends statements to the endpoint until this one runs on the file again.
func (r *Replica) reportCorrupt(v *view, statement string, args []handler.Value, err error) {
	if v.suspect != nil && v.remote == (v.endpoint == nil) {
		return // nothing to change
	}
	next := *v
	next.suspect = &failedStatement{statement, append([]handler.Value(nil), args...), err}
	next.why = err
	next.remote = v.endpoint == nil
	if r.view.CompareAndSwap(v, &next) {
		if v.suspect == nil {
			r.config.Log.Error("the replica's file is damaged: regedge replica copies it anew; another replica has to be stopped, its directory deleted, and started", "database", r.config.Database, "because", err)
		}
		r.logSwitch(v, &next)
	}
}

// Age returns the age of the copy being read; false while no heartbeat was read, or one that is
// ahead of the clock.
func (r *Replica) Age() (time.Duration, bool) {
	v := r.view.Load()
	return max(0, r.sinceBeat(v.beat)), v.beat != 0 && !r.isAhead(v.beat)
}

// Ahead reports whether the heartbeat is ahead of the clock, so that the age is unknown.
func (r *Replica) Ahead() bool { return r.isAhead(r.view.Load().beat) }

// isAhead reports whether a heartbeat is more than maxAhead ahead of this clock.
func (r *Replica) isAhead(beat int64) bool { return r.sinceBeat(beat) < -maxAhead }

func (r *Replica) sinceBeat(beat int64) time.Duration {
	return r.config.Now().Sub(time.UnixMilli(beat))
}

// tooOld is an error if the copy is, or may be, older than limit; 0 is no limit. A copy without
// a heartbeat has no age.
func (r *Replica) tooOld(v *view, limit time.Duration) error {
	if v.beat == 0 || limit <= 0 {
		return nil
	}
	switch age := r.sinceBeat(v.beat); {
	case age < -maxAhead:
		return ErrAhead
	case age > limit:
		return ErrTooOld
	}
	return nil
}

// Remote reports whether statements go to the endpoint in place of the file.
func (r *Replica) Remote() bool { return r.config.File != "" && r.view.Load().remote }

// Refused reports whether the endpoint refuses the token. The file is read as long as it is good.
func (r *Replica) Refused() bool { return r.refused.Load() }

// Switches counts the changes between file and endpoint, or to another file.
func (r *Replica) Switches() int64 { return r.switches.Load() }

// Ready returns nil if this edge should get requests: the database can be read, is not corrupt
// or stuck, and is not older than limit (0 for any age).
func (r *Replica) Ready(limit time.Duration) error {
	v := r.view.Load()
	switch {
	case v.remote && v.endpoint != nil:
		return fmt.Errorf("%w: %w", ErrUnreadable, v.why)
	case v.suspect != nil:
		return v.suspect.err
	case errors.Is(v.why, errStuck):
		return v.why
	case r.partial.Load():
		return errWithin
	}
	if err := r.tooOld(v, limit); err != nil {
		err = fmt.Errorf("%w: by %v", err, r.sinceBeat(v.beat).Abs().Round(time.Second))
		if r.refused.Load() { // a replica without queries stops following
			err = fmt.Errorf("%w; %w", err, ErrToken)
		}
		return err
	}
	return nil
}

// Close closes the file and the endpoint. Later statements fail.
func (r *Replica) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	v := r.view.Load()
	var err error
	if v.file != nil {
		err = v.file.Close()
	}
	if r.config.Endpoint != nil {
		err = errors.Join(err, r.config.Endpoint.Close())
	}
	return err
}
