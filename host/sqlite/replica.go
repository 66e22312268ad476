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
	// askTimeout bounds a look at the endpoint, so that looks keep coming each second.
	askTimeout = 900 * time.Millisecond
	// DefaultBehind is how much older than the endpoint's heartbeat the file's may be:
	// some beats, since the two are read one after the other.
	DefaultBehind = 3 * time.Second
)

// Errors of Query and Ready.
var (
	// ErrNowhere says that neither the file nor the endpoint can be read.
	ErrNowhere = errors.New("neither the replica's file nor its endpoint can be read")
	// ErrTooOld says that the copy is older than Config.MaxAge.
	ErrTooOld = errors.New("the replica is too far behind its primary")
	// ErrUnreleased says that the registry is being filled for the first time: what is not
	// found in it may well be there soon.
	ErrUnreleased = errors.New("the registry has no release yet")
)

// Endpoint is the replica's HTTP endpoint.
type Endpoint interface {
	Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error
	Close() error
}

// ReplicaConfig says what to read.
type ReplicaConfig struct {
	Database schema.Database
	// File is the replica's database file; without one only the endpoint is read. It may
	// be missing, and come later.
	File string
	// Endpoint is closed by Close.
	Endpoint Endpoint
	// Connections is the most statements that read the file at once.
	Connections int
	// Hold is how much later than its commit something may be read; see Config.
	Hold time.Duration
	// Remember keeps results while the database does not change; see Config.
	Remember bool
	// Behind is DefaultBehind when 0.
	Behind time.Duration
	// MaxAge refuses statements once the copy is older than that; 0 never does.
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
	newest int64 // newest heartbeat that was read, Unix milliseconds
	// released is whether a registry with a release was read.
	released bool
	// silent counts the looks in a row at which the endpoint did not answer.
	silent int

	switches atomic.Int64
}

// view is where statements go at a time. It is replaced, never changed.
type view struct {
	file *Store // nil when there is none that can be read
	// remote is true while statements go to the endpoint, for the reason why.
	remote bool
	why    error
	// suspect is a statement that found the file corrupt.
	suspect *suspect
	beat    int64 // Unix milliseconds, 0 while there is none
	// unreleased is true for a registry while none with a release was read.
	unreleased bool
	asked      error // of the endpoint
}

type suspect struct {
	statement string
	args      []handler.Value
	err       error
}

// OpenReplica begins to read. It fails only for another database, or for one of a version that
// can't be read: a replica that is not there yet may come.
func OpenReplica(config ReplicaConfig) (*Replica, error) {
	if config.Behind == 0 {
		config.Behind = DefaultBehind
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	r := &Replica{config: config}
	r.view.Store(&view{remote: true, why: errStarting})
	var newer *schema.NewerError
	var other *schema.OtherError
	if err := r.Refresh(); errors.As(err, &newer) || errors.As(err, &other) {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

var errStarting = errors.New("not looked at yet")

// Query runs one statement as Store does.
func (r *Replica) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	for {
		v := r.view.Load()
		if age, known := r.age(v); known && r.config.MaxAge > 0 && age > r.config.MaxAge {
			return ErrTooOld
		}
		if v.remote || v.file == nil {
			return r.ask(ctx, v, statement, args, dst)
		}
		if v.unreleased {
			return ErrUnreleased
		}
		err := v.file.Query(ctx, statement, args, dst)
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrTimeout):
			return err
		case errors.Is(err, ErrClosed) && r.view.Load() != v:
			continue // the file was changed for another meanwhile
		}
		if corrupt(err) {
			r.suspect(v, statement, args, err)
		}
		if r.config.Endpoint == nil || v.asked != nil || r.config.Endpoint.Query(ctx, statement, args, dst) != nil {
			return err
		}
		return nil
	}
}

func (r *Replica) ask(ctx context.Context, v *view, statement string, args []handler.Value, dst *handler.Result) error {
	if v.asked != nil || errors.Is(v.why, errStarting) {
		return fmt.Errorf("%w: %w", ErrNowhere, v.why)
	}
	if v.unreleased {
		return ErrUnreleased
	}
	return r.config.Endpoint.Query(ctx, statement, args, dst)
}

// suspect has statements go to the endpoint until this one can be run on the file.
func (r *Replica) suspect(v *view, statement string, args []handler.Value, err error) {
	next := *v
	next.suspect = &suspect{statement, append([]handler.Value(nil), args...), err}
	next.why = err
	next.remote = v.asked == nil
	if r.view.CompareAndSwap(v, &next) {
		if v.suspect == nil {
			r.config.Log.Error("the replica's file is damaged: stop the replica, delete its directory, start it", "database", r.config.Database, "because", err)
		}
		r.noteSwitch(v, &next)
	}
}

// Age is how old the copy is that is read now; false while no heartbeat was read.
func (r *Replica) Age() (time.Duration, bool) { return r.age(r.view.Load()) }

func (r *Replica) age(v *view) (time.Duration, bool) {
	if v.beat == 0 {
		return 0, false
	}
	return max(0, r.config.Now().Sub(time.UnixMilli(v.beat))), true
}

// Remote reports whether statements go to the endpoint although there should be a file.
func (r *Replica) Remote() bool { return r.config.File != "" && r.view.Load().remote }

// Switches is how often the way of reading changed.
func (r *Replica) Switches() int64 { return r.switches.Load() }

// Ready is nil when this node should be given requests: the database can be read, is not
// corrupt or stuck, and is not older than limit (0 for any age).
func (r *Replica) Ready(limit time.Duration) error {
	v := r.view.Load()
	switch {
	case v.remote && v.asked != nil:
		return fmt.Errorf("%w: %w", ErrNowhere, v.why)
	case v.suspect != nil:
		return v.suspect.err
	case errors.Is(v.why, errStuck):
		return v.why
	}
	if age, known := r.age(v); known && limit > 0 && age > limit {
		return fmt.Errorf("%w: by %v", ErrTooOld, age.Round(time.Second))
	}
	return nil
}

// Close ends the reading.
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
