package sqlite

import (
	"cmp"
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
	errMissing = errors.New("the replica has no file yet")
	errPushed  = errors.New("the replica's new file is in the middle of a push")
	errEmpty   = errors.New("the database is empty: its first copy is under way, or its primary has not been filled yet, by regedge push or by the writer")
	errFilling = errors.New("the registry has no release: its primary was recreated and is being filled")
	errNoKeys  = errors.New("the access database has no keys: its primary was recreated, and the writer fills it")
)

// source is the file or the endpoint.
type source interface {
	Query(context.Context, string, []handler.Value, *handler.Result) error
}

// Refresh checks the endpoint, which keeps the replica awake, and the file, and decides which of
// them is read from now on. Its error is why the file is not read, or neither; it is for the log and
// is returned at each call.
func (r *Replica) Refresh() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.isAhead(r.newest) { // this clock was also ahead when the beat was read
		r.newest = 0
	}
	before := r.view.Load()
	next := r.check(before)
	// A statement may have found the file corrupt since the check began (reportCorrupt): its view is newer,
	// so its suspect is carried over if the file is still the same.
	for !r.view.CompareAndSwap(before, next) {
		before = r.view.Load()
		if before.file == next.file {
			next.suspect, next.why = before.suspect, before.why
			next.remote = next.remote || next.endpoint == nil
		}
	}
	if before.file != nil && before.file != next.file {
		if err := before.file.Close(); err != nil {
			r.config.Log.Error("close the old file", "database", r.config.Database, "error", err)
		}
	}
	if !r.isAhead(next.beat) { // else all correct ones would seem older
		r.newest = max(r.newest, next.beat)
	}
	r.logSwitch(before, next)
	if next.why != nil {
		return fmt.Errorf("%s replica: %w", r.config.Database, next.why)
	}
	return nil
}

// probe is the newest heartbeat of the file or of the endpoint, Unix milliseconds, or why it can't be read.
type probe struct {
	beat int64
	err  error
}

// check makes the next view.
func (r *Replica) check(before *view) *view {
	next := &view{file: before.file, suspect: before.suspect}
	var file, endpoint probe
	endpoint.beat, endpoint.err = r.checkEndpoint()
	next.endpoint = endpoint.err
	file.beat, file.err = r.checkFile(before, next)
	r.choose(before, next, file, endpoint)
	if before.remote && next.remote && before.endpoint == nil && isSilence(endpoint.err) && r.failures < maxMissed {
		next.endpoint, next.beat = nil, before.beat // not given up yet: a statement has a longer timeout than a check
	}
	if r.config.Database == schema.Registry {
		r.followReleases(next)
	} else if next.file != nil {
		if found, err := hasKeys(newest{next.file}); err == nil {
			r.keyed = found
		}
	}
	return next
}

// choose decides whether statements go to the file or to the endpoint: to the file, unless it can't be
// read, lags behind, or is older than an answer of the endpoint (reads never go back in time).
func (r *Replica) choose(before, next *view, file, endpoint probe) {
	back := before.remote && file.beat < r.newest
	switch {
	case r.config.File == "":
		next.remote, next.beat, next.why = true, endpoint.beat, endpoint.err
	case back && file.err == nil && endpoint.err != nil: // neither can be used
		next.remote, next.beat, next.why = true, r.newest, errors.Join(stuck(next.unopened), endpoint.err)
	case file.err == nil && !back && (endpoint.err != nil || r.follows(file.beat, endpoint.beat)):
		next.beat = file.beat
	case endpoint.err == nil && file.err == nil:
		next.remote, next.beat, next.why = true, endpoint.beat, stuck(next.unopened)
	case endpoint.err == nil:
		next.remote, next.beat, next.why = true, endpoint.beat, file.err
	default:
		// Neither can be read well: keep what was read last. before.beat may be ahead of the clock; newest never is.
		next.remote, next.beat, next.why = next.file == nil || back, cmp.Or(r.newest, before.beat), errors.Join(file.err, endpoint.err)
	}
}

// followReleases checks whether a registry has a release yet, and makes the file hold it while a push is under way.
func (r *Replica) followReleases(next *view) {
	if next.remote && next.endpoint == nil {
		r.watchPush()
	}
	if next.file != nil {
		if !r.released {
			_ = r.checkReleased(next.file)
		}
		r.followPush(next)
	}
	next.unreleased = !r.released
}

// follows reports whether a file keeps up with its endpoint, by their heartbeats. A heartbeat ahead of our
// clock is from when the writer's clock was ahead, and is older than one that is not.
func (r *Replica) follows(file, endpoint int64) bool {
	if r.isAhead(file) != r.isAhead(endpoint) {
		return r.isAhead(endpoint)
	}
	return endpoint-file <= r.config.Keep.Milliseconds()
}

// stuck is the error of a file that lags, joined with why the file that replaced it can't be read, if there is one.
func stuck(unopened error) error {
	if unopened == nil {
		return errStuck
	}
	return fmt.Errorf("%w, and the one that took its place can't be read: %w", errStuck, unopened)
}

// checkEndpoint reads the heartbeat of the endpoint. It fails if the endpoint can't be read, or is
// older than what was read before.
func (r *Replica) checkEndpoint() (int64, error) {
	if r.config.Endpoint == nil {
		return 0, errors.New("there is no endpoint")
	}
	beat, err := r.beat(r.config.Endpoint)
	r.logSilence(err)
	if err != nil {
		return 0, fmt.Errorf("query the replica's endpoint: %w", silentError{err})
	}
	if beat < r.newest {
		return 0, fmt.Errorf("the replica's endpoint is %v behind what was read before", time.Duration(r.newest-beat)*time.Millisecond)
	}
	return beat, cmp.Or(r.checkReleased(r.config.Endpoint), r.checkKeys(r.config.Endpoint))
}

// silentError wraps the error of a failed query of the endpoint.
type silentError struct{ error }

func (e silentError) Unwrap() error { return e.error }

// isSilence reports whether a check failed without any answer that explains it.
func isSilence(err error) bool {
	var silent silentError
	var newer *schema.NewerError
	var other *schema.OtherError
	return errors.As(err, &silent) && !errors.Is(err, ErrToken) && !errors.Is(err, errEmpty) && !errors.As(err, &newer) && !errors.As(err, &other)
}

// checkReleased fails for a registry without a release once one with a release was read: the old
// data is better than a registry that is being filled.
func (r *Replica) checkReleased(s source) error {
	if r.config.Database != schema.Registry {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
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

// checkKeys fails for a copy of access without keys while one with keys is read: it would refuse every key. After Keep
// the copy is accepted, since the last key may really have been revoked.
func (r *Replica) checkKeys(s source) error {
	if r.config.Database != schema.Access {
		return nil
	}
	found, err := hasKeys(s)
	switch {
	case found:
		r.keyed, r.keyless = true, time.Time{}
		return nil
	case !r.keyed:
		return nil
	case r.keyless.IsZero():
		r.keyless = time.Now()
	case time.Since(r.keyless) >= r.config.Keep:
		return nil
	}
	return cmp.Or(err, errNoKeys)
}

func hasKeys(s source) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	var result handler.Result
	err := s.Query(ctx, "SELECT id FROM api_key LIMIT 1", nil, &result)
	return err == nil && result.Rows() > 0, err
}

// checkFile sets the file of next and returns its heartbeat. The file is the one of before, or another that took its
// place and is as new. If the other one is in the middle of a push, the file of before stays, with the other's
// heartbeat.
func (r *Replica) checkFile(before, next *view) (int64, error) {
	if r.config.File == "" {
		return 0, errMissing
	}
	var fileBeat int64
	err := errMissing
	if before.file != nil {
		if fileBeat, err = r.beat(newest{before.file}); err == nil {
			err = r.retrySuspect(before, next)
		}
		if !before.file.Replaced() {
			return fileBeat, err
		}
	}
	oldest := r.newest
	if !r.isAhead(fileBeat) {
		oldest = max(oldest, fileBeat)
	}
	other, beat, openErr := r.openFile(oldest)
	switch {
	case openErr == nil:
	case before.file == nil:
		return 0, openErr
	case errors.Is(openErr, errPushed): // the replica is not stuck, and the open file has the release before the push
		next.unopened = openErr
		return beat, err
	default:
		next.unopened = openErr
		return fileBeat, err // keep the open one
	}
	next.file, next.suspect = other, nil
	return beat, nil
}

// retrySuspect drops a suspect statement if it runs again without finding the file corrupt.
func (r *Replica) retrySuspect(before, next *view) error {
	s := before.suspect
	if s == nil {
		return nil
	}
	var result handler.Result
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	if err := before.file.Query(ctx, s.statement, s.args, &result); err != nil && corrupt(err) {
		return err
	}
	next.suspect = nil
	return nil
}

// openFile opens the file at the path, if its heartbeat is not older than oldest. With errPushed it returns the heartbeat.
func (r *Replica) openFile(oldest int64) (*Store, int64, error) {
	opened, err := Open(Config{
		Path: r.config.File, Connections: r.config.Connections, Pinned: true, ReadTx: r.config.ReadTx,
		CacheResults: r.config.CacheResults, Watched: true,
	})
	if err != nil {
		return nil, 0, err
	}
	beat, err := r.beat(newest{opened})
	if err == nil && beat < oldest {
		err = fmt.Errorf("the replica's file is being built: %v behind", time.Duration(oldest-beat)*time.Millisecond)
	}
	if err == nil {
		err = cmp.Or(r.checkReleased(opened), r.checkKeys(opened))
	}
	if err == nil && r.released && r.unheld == "" && r.config.Database == schema.Registry && r.view.Load().file != nil {
		// The open file has a whole release, which is better than the middle of a push.
		if now, failed := readPushing(newest{opened}); failed == nil && now.dirty {
			return nil, beat, errors.Join(errPushed, opened.Close())
		}
	}
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, beat, nil
}

// beat checks the schema version and reads the heartbeat, which is 0 for a registry without one. An access database has its
// first heartbeat after its last key: without one it is being filled, and is empty for readers.
func (r *Replica) beat(s source) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	version, err := firstRow(ctx, s, schema.SelectVersion, 2)
	if err != nil {
		if strings.Contains(err.Error(), "no such table") {
			return 0, errEmpty
		}
		return 0, err
	}
	if err := schema.Readable(r.config.Database, schema.Database(version[1].Text), int(version[0].Int)); err != nil {
		return 0, err
	}
	heartbeat, err := firstRow(ctx, s, "SELECT coalesce(max(beat), 0) FROM heartbeat", 1)
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if heartbeat[0].Int == 0 && r.config.Database == schema.Access {
		return 0, errEmpty
	}
	return heartbeat[0].Int, nil
}

// errShape is the error for an answer that can't come from a libSQL server.
var errShape = errors.New("the answer does not have the columns that were asked for")

// firstRow returns the first row of a statement with so many columns. It fails if there is none.
func firstRow(ctx context.Context, s source, statement string, columns int) ([]handler.Value, error) {
	var result handler.Result
	if err := s.Query(ctx, statement, nil, &result); err != nil {
		return nil, err
	}
	if result.Columns != columns || result.Rows() == 0 {
		return nil, errShape
	}
	return result.Row(0), nil
}

// corrupt reports whether err says that the file is damaged.
func corrupt(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB)
}

// maxMissed failed checks in a row make the endpoint unusable for statements.
const maxMissed = 3

// maxFailures is how many checks of the endpoint in a row may fail before that is logged. A replica
// that is restarted is back sooner.
const maxFailures = 10

// logSilence logs once that the endpoint does not answer, or refuses the token, which has no other effect
// while the file can be read.
func (r *Replica) logSilence(err error) {
	log := r.config.Log.With("database", r.config.Database)
	told := r.refused.Load() || r.failures >= maxFailures
	switch refused := errors.Is(err, ErrToken); {
	case err == nil, errors.Is(err, errEmpty) && r.view.Load().file == nil: // as in a new cluster, until the first push
		if told {
			log.Info("the replica's endpoint answers again")
		}
		r.failures = 0
		r.refused.Store(false)
	case refused && !r.refused.Swap(true):
		log.Error("the replica's endpoint refuses the token: there is no fallback for its file", "because", err)
	case !refused:
		r.refused.Store(false)
		if r.failures++; r.failures == maxFailures {
			log.Warn("the replica's endpoint does not answer: there is no fallback for its file", "because", err)
		}
	}
}

// logSwitch logs a change between file and endpoint.
func (r *Replica) logSwitch(before, next *view) {
	if before.remote == next.remote && before.file == next.file && !errors.Is(before.why, errStarting) {
		return
	}
	r.switches.Add(1)
	switch {
	case !next.remote && next.file != nil:
		r.config.Log.Info("reading the replica's file", "database", r.config.Database)
	case next.endpoint == nil:
		r.config.Log.Warn("reading the replica's endpoint", "database", r.config.Database, "because", next.why)
	case errors.Is(before.why, errStarting) && errors.Is(next.why, errEmpty): // as in every new cluster
		r.config.Log.Info("there is nothing to read yet", "database", r.config.Database, "because", errEmpty)
	default:
		r.config.Log.Error("the database can't be read", "database", r.config.Database, "because", next.why)
	}
}
