package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
	"regedge/schema"
)

var (
	errStuck   = errors.New("the replica's file does not follow its endpoint")
	errMissing = errors.New("there is no replica's file yet")
	errFilling = errors.New("the registry has no release: its primary was made anew and is being filled")
)

// source is what can be asked for its heartbeat.
type source interface {
	Query(context.Context, string, []handler.Value, *handler.Result) error
}

// Refresh looks at the endpoint, which keeps the replica awake, and at the file, and
// decides which is read from now on. Its error says why the file is not, or why nothing
// is; it is for the log, and repeats.
func (r *Replica) Refresh() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	before := r.view.Load()
	next := r.look(before)
	if !r.view.CompareAndSwap(before, next) {
		return nil // a statement found the file corrupt meanwhile; the next look deals with it
	}
	if before.file != nil && before.file != next.file {
		if err := before.file.Close(); err != nil {
			r.config.Log.Error("close the old file", "database", r.config.Database, "error", err)
		}
	}
	r.newest = max(r.newest, next.beat)
	r.noteSwitch(before, next)
	if next.why != nil {
		return fmt.Errorf("%s replica: %w", r.config.Database, next.why)
	}
	return nil
}

// look makes the next view.
func (r *Replica) look(before *view) *view {
	next := &view{file: before.file, suspect: before.suspect}
	far, asked := r.askEndpoint()
	next.asked = asked
	near, err := r.readFile(before, next)
	switch {
	case r.config.File == "":
		next.remote, next.beat, next.why = true, far, asked
	case err == nil && (asked != nil || far-near <= r.config.Behind.Milliseconds()):
		next.beat = near
	case asked == nil && err == nil:
		next.remote, next.beat, next.why = true, far, errStuck
	case asked == nil:
		next.remote, next.beat, next.why = true, far, err
	default:
		// Nothing is well: what was read last is better than nothing.
		next.remote, next.beat, next.why = next.file == nil, r.newest, errors.Join(err, asked)
	}
	if r.config.Database == schema.Registry && !r.released && next.file != nil {
		_ = r.filled(next.file) // it may have a release by now
	}
	next.unreleased = r.config.Database == schema.Registry && !r.released
	return next
}

// askEndpoint is the heartbeat of the endpoint; an error when it can't be read or is
// older than what was read before.
func (r *Replica) askEndpoint() (int64, error) {
	if r.config.Endpoint == nil {
		return 0, errors.New("there is no endpoint")
	}
	beat, err := r.beat(r.config.Endpoint)
	r.noteSilence(err)
	if err != nil {
		return 0, fmt.Errorf("ask the replica's endpoint: %w", err)
	}
	if beat < r.newest {
		return 0, fmt.Errorf("the replica's endpoint is %v behind what was read before", time.Duration(r.newest-beat)*time.Millisecond)
	}
	return beat, r.filled(r.config.Endpoint)
}

// filled fails for a registry without a release once one with a release was read: what
// was read last is better than a registry that is only beginning.
func (r *Replica) filled(s source) error {
	if r.config.Database != schema.Registry {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	var result handler.Result
	err := s.Query(ctx, "SELECT seq FROM release LIMIT 1", nil, &result)
	switch {
	case err == nil && result.Rows() > 0:
		r.released = true
		return nil
	case !r.released:
		return nil
	case err != nil:
		return err
	}
	return errFilling
}

// readFile is the heartbeat of the file that next shall read: the one of before, or
// another that took its place and is as new.
func (r *Replica) readFile(before, next *view) (int64, error) {
	if r.config.File == "" {
		return 0, errMissing
	}
	var near int64
	err := errMissing
	if before.file != nil {
		if near, err = r.beat(before.file); err == nil {
			err = r.acquit(before, next)
		}
		if !before.file.Replaced() {
			return near, err
		}
	}
	other, beat, openErr := r.openFile(max(near, r.newest))
	if openErr != nil {
		if before.file != nil {
			return near, err // go on with the one that is open
		}
		return 0, openErr
	}
	next.file, next.suspect = other, nil
	return beat, nil
}

// acquit forgets a suspect statement when it can be run again.
func (r *Replica) acquit(before, next *view) error {
	s := before.suspect
	if s == nil {
		return nil
	}
	var result handler.Result
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if err := before.file.Query(ctx, s.statement, s.args, &result); err != nil && corrupt(err) {
		return err
	}
	next.suspect = nil
	return nil
}

// openFile opens the file at the path, if its heartbeat is not older than least.
func (r *Replica) openFile(least int64) (*Store, int64, error) {
	opened, err := Open(Config{
		Path: r.config.File, Connections: r.config.Connections, Pinned: true, Hold: r.config.Hold,
		Remember: r.config.Remember,
	})
	if err != nil {
		return nil, 0, err
	}
	beat, err := r.beat(opened)
	if err == nil && beat < least {
		err = fmt.Errorf("the replica's file is being built: %v behind", time.Duration(least-beat)*time.Millisecond)
	}
	if err == nil {
		err = r.filled(opened)
	}
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, beat, nil
}

// beat reads the heartbeat, and the version of a database that has none: 0 then.
func (r *Replica) beat(s source) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	var result handler.Result
	if err := s.Query(ctx, schema.SelectVersion, nil, &result); err != nil {
		return 0, err
	}
	if err := schema.Readable(r.config.Database, schema.Database(result.Values[1].Text), int(result.Values[0].Int)); err != nil {
		return 0, err
	}
	err := s.Query(ctx, "SELECT coalesce(max(beat), 0) FROM heartbeat", nil, &result)
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return result.Values[0].Int, nil
}

// corrupt reports whether err says that the file is damaged.
func corrupt(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB)
}

// silentLooks is how often in a row the endpoint may not answer before that is logged: a
// replica that is started again is back sooner.
const silentLooks = 10

// noteSilence tells an operator once of an endpoint that does not answer, which nobody else
// notices while the file is well.
func (r *Replica) noteSilence(err error) {
	if err == nil {
		if r.silent >= silentLooks {
			r.config.Log.Info("the replica's endpoint answers again", "database", r.config.Database)
		}
		r.silent = 0
		return
	}
	if r.silent++; r.silent == silentLooks {
		r.config.Log.Warn("the replica's endpoint does not answer: nothing would stand in for its file", "database", r.config.Database, "because", err)
	}
}

// noteSwitch tells an operator when the way of reading changed.
func (r *Replica) noteSwitch(before, next *view) {
	if before.remote == next.remote && before.file == next.file && !errors.Is(before.why, errStarting) {
		return
	}
	r.switches.Add(1)
	switch {
	case !next.remote && next.file != nil:
		r.config.Log.Info("reading the replica's file", "database", r.config.Database)
	case next.asked == nil:
		r.config.Log.Warn("reading the replica's endpoint", "database", r.config.Database, "because", next.why)
	default:
		r.config.Log.Error("the database can't be read", "database", r.config.Database, "because", next.why)
	}
}
