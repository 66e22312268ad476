package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/schema"
)

// registryFile makes a registry of one release, with a heartbeat, and a further change.
func registryFile(t *testing.T, change string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	_, err = db.Exec(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('one', 1, 0, 0, 0, 0, 0);
		INSERT INTO heartbeat (id, beat) VALUES (1, 500000);` + change)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return path
}

const begun = `INSERT INTO pushing (id, release, back, token, claimed, batch, dirty) VALUES (1, 'two', 0, 't', 't', 1, 0);`

// TestTheAgeOfAHeldReleaseIsThatOfItsFile: a push may take an hour, during which the file still follows.
func TestTheAgeOfAHeldReleaseIsThatOfItsFile(t *testing.T) {
	path := registryFile(t, begun)
	r, err := OpenReplica(ReplicaConfig{Database: schema.Registry, File: path, Connections: 1, ReadTx: time.Hour, Now: func() time.Time { return time.UnixMilli(600_000) }})
	require.NoError(t, err)
	defer r.Close()
	require.True(t, r.view.Load().file.held.Load())
	writer, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer writer.Close()
	_, err = writer.Exec(`UPDATE heartbeat SET beat = 590000`)
	require.NoError(t, err)
	require.NoError(t, r.Refresh())
	age, known := r.Age()
	require.True(t, known)
	require.Equal(t, 10*time.Second, age)
}

// TestAFileInTheMiddleOfAPushIsTakenOnlyWhereNoneIsOpen, and never one older than the last read.
func TestAFileInTheMiddleOfAPushIsTakenOnlyWhereNoneIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		open   bool
		newest int64
		want   error
	}{
		"a whole one":               {"", true, 500_000, nil},
		"in the middle":             {begun + "UPDATE pushing SET dirty = 1", true, 500_000, errPushed},
		"in the middle, and no one": {begun + "UPDATE pushing SET dirty = 1", false, 500_000, nil},
		"before the first record":   {begun, true, 500_000, nil},
	} {
		r, _ := replicaAt(time.UnixMilli(600_000), view{}, nil)
		if c.open {
			r, _ = replicaAt(time.UnixMilli(600_000), view{file: openSmall(t, 1)}, nil)
		}
		r.config.Database, r.config.File, r.released = schema.Registry, registryFile(t, c.change), true
		opened, _, err := r.openFile(c.newest)
		require.ErrorIs(t, err, c.want, name)
		if err == nil {
			require.NoError(t, opened.Close())
		}
	}
	r, _ := replicaAt(time.UnixMilli(600_000), view{}, nil)
	r.config.Database, r.config.File, r.newest = schema.Registry, registryFile(t, ""), 500_001
	next := &view{}
	_, err := r.checkFile(&view{}, next)
	require.ErrorContains(t, err, "is being built")
	require.Nil(t, next.file)
}

// TestASuspectStatementKeepsItsFileFromBeingRead until it runs again.
func TestASuspectStatementKeepsItsFileFromBeingRead(t *testing.T) {
	path := accessFile(t, `CREATE TABLE t (v)`)
	r, _ := replicaAt(time.UnixMilli(600_000), view{}, nil)
	r.config.File = path
	file, err := Open(Config{Path: path, Pinned: true, Watched: true})
	require.NoError(t, err)
	defer file.Close()
	failed := &failedStatement{statement: "SELECT v FROM t"}
	before := &view{file: file, suspect: failed}
	next := &view{file: file, suspect: failed}
	beat, err := r.checkFile(before, next)
	require.NoError(t, err)
	require.EqualValues(t, 500_000, beat)
	require.Nil(t, next.suspect, "it ran")

	damaged := openDamaged(t)
	damaged.config.Watched = true
	before = &view{file: damaged, suspect: failed}
	next = &view{file: damaged, suspect: failed}
	require.Error(t, r.retrySuspect(before, next))
	require.Same(t, failed, next.suspect)
}

// TestWhileNothingCanBeReadTheAgeIsThatOfWhatWasRead last, and the file stays open.
func TestWhileNothingCanBeReadTheAgeIsThatOfWhatWasRead(t *testing.T) {
	closed := openSmall(t, 1)
	require.NoError(t, closed.Close())
	r, _ := replicaAt(time.UnixMilli(600_000), view{file: closed}, &scripted{err: errMissing})
	r.newest = 590_000
	r.config.File = closed.config.Path
	require.Error(t, r.Refresh())
	v := r.view.Load()
	require.Same(t, closed, v.file)
	require.False(t, v.remote)
	age, known := r.Age()
	require.True(t, known)
	require.Equal(t, 10*time.Second, age)
}

// TestWhatCantBeReadHasNoAgeThatIsAlwaysGood: this clock was set back, or the writer's was ahead, when reading began to fail.
func TestWhatCantBeReadHasNoAgeThatIsAlwaysGood(t *testing.T) {
	file := openDamaged(t)
	r, _ := replicaAt(time.UnixMilli(600_000), view{file: file, beat: 900_000, suspect: &failedStatement{statement: "SELECT v FROM t"}}, &scripted{err: errMissing})
	r.newest, r.config.MaxAge = 900_000, time.Minute
	var dst handler.Result
	for range 2 {
		require.Error(t, r.Refresh())
		require.ErrorIs(t, r.Query(t.Context(), "SELECT v FROM u", nil, &dst), ErrAhead)
	}
	r.config.Now = func() time.Time { return time.UnixMilli(1_000_000) } // it is right again
	require.Error(t, r.Refresh())
	require.ErrorIs(t, r.Query(t.Context(), "SELECT v FROM u", nil, &dst), ErrTooOld)
}

// TestTheNewestHeartbeatIsRemembered even while an older copy is read, so that no other
// older one replaces it.
func TestTheNewestHeartbeatIsRemembered(t *testing.T) {
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: accessFile(t, ""),
		Connections: 1, Now: func() time.Time { return time.UnixMilli(600_000) }})
	require.NoError(t, err)
	defer r.Close()
	require.EqualValues(t, 500_000, r.newest)
	r.newest = 590_000
	require.NoError(t, r.Refresh())
	require.EqualValues(t, 590_000, r.newest)
}

// TestAFileIsReadFromItsFirstReleaseOn, also where there is no endpoint.
func TestAFileIsReadFromItsFirstReleaseOn(t *testing.T) {
	path := registryFile(t, `DELETE FROM release`)
	r, err := OpenReplica(ReplicaConfig{Database: schema.Registry, File: path, Connections: 1, Now: func() time.Time { return time.UnixMilli(600_000) }})
	require.NoError(t, err)
	defer r.Close()
	var dst handler.Result
	err = r.Query(t.Context(), "SELECT id FROM release", nil, &dst)
	require.ErrorIs(t, err, ErrUnreleased)
	require.ErrorContains(t, err, "its first copy is under way")
	writer, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer writer.Close()
	_, err = writer.Exec(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('one', 1, 0, 0, 0, 0, 0)`)
	require.NoError(t, err)
	require.NoError(t, r.Refresh())
	require.NoError(t, r.Query(t.Context(), "SELECT id FROM release", nil, &dst))
}

// beats is an endpoint of access with a heartbeat, or an error when that is asked for.
type beats struct {
	scripted
	beat int64
	err  error
}

func (e *beats) Query(_ context.Context, statement string, _ []handler.Value, dst *handler.Result) error {
	if strings.Contains(statement, "heartbeat") {
		dst.Columns, dst.Values = 1, []handler.Value{{Kind: handler.Integer, Int: e.beat}}
		return e.err
	}
	dst.Columns, dst.Values = 2, []handler.Value{{Kind: handler.Integer, Int: 1}, {Kind: handler.Text, Text: string(schema.Access)}}
	return nil
}

// TestAnEndpointIsReadFromTheNewestHeartbeatOn, and not while it is away.
func TestAnEndpointIsReadFromTheNewestHeartbeatOn(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		endpoint beats
		fails    bool
	}{
		"as new":          {beats{beat: 500_000}, false},
		"a little older":  {beats{beat: 499_999}, true},
		"without a table": {beats{err: errors.New("no such table: heartbeat")}, true},
		"away":            {beats{beat: 500_000, err: away}, true},
	} {
		r, _ := replicaAt(time.UnixMilli(600_000), view{}, &c.endpoint)
		r.newest = 500_000
		_, err := r.checkEndpoint()
		require.Equal(t, c.fails, err != nil, "%s: %v", name, err)
		r.newest = 0
		_, err = r.checkEndpoint()
		require.Equal(t, name == "away", err != nil, "%s: %v", name, err)
	}
}

// TestAnEmptyDatabaseIsCalledSo: the name of the table that is missing tells an operator nothing.
func TestAnEmptyDatabaseIsCalledSo(t *testing.T) {
	r, _ := replicaAt(time.UnixMilli(600_000), view{}, &scripted{err: errors.New("SQLite error: no such table: schema_version")})
	_, err := r.checkEndpoint()
	require.ErrorIs(t, err, errEmpty)
	r, _ = replicaAt(time.UnixMilli(600_000), view{}, &scripted{err: errors.New("away")})
	_, err = r.checkEndpoint()
	require.Error(t, err)
	require.NotErrorIs(t, err, errEmpty)
}

// TestAnErrorOfTheFileIsToldWhenTheEndpointFailsToo, and a suspect statement is kept as it was.
func TestAnErrorOfTheFileIsToldWhenTheEndpointFailsToo(t *testing.T) {
	r, _ := replicaAt(time.Unix(1000, 0), view{file: openSmall(t, 1)}, &scripted{err: errMissing})
	var dst handler.Result
	err := r.Query(t.Context(), "SELECT v FROM gone", nil, &dst)
	require.ErrorContains(t, err, "no such table")

	args := []handler.Value{{Kind: handler.Integer, Int: 1}}
	r.reportCorrupt(r.view.Load(), "SELECT ?1", args, errMissing)
	args[0].Int = 2
	require.EqualValues(t, 1, r.view.Load().suspect.args[0].Int)
}

// TestAHoldThatFailsSaysNothing: there is a retry a second later.
func TestAHoldThatFailsSaysNothing(t *testing.T) {
	s, _ := openWatched(t, pushingTable)
	s.config.Timeout = time.Millisecond
	used, err := s.acquire(t.Context())
	require.NoError(t, err)
	r, log := replicaAt(time.Unix(1000, 0), view{file: s}, nil)
	r.followPush(&view{file: s, endpoint: errMissing})
	require.False(t, r.mixed || s.held.Load())
	require.Zero(t, log.Len())
	s.release(used, nil)
	s.config.Timeout = time.Minute
	r.followPush(&view{file: s, endpoint: errMissing})
	require.True(t, s.held.Load())
}

// TestAnEdgeThatBeginsWithinAPushIsNotReady until the push ends, or stands still: others have the release before.
func TestAnEdgeThatBeginsWithinAPushIsNotReady(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	change := func(set string) { require.NoError(t, writer.Exec("UPDATE pushing SET "+set)) }
	change("dirty = 1, batch = 1")
	r, _ := replicaAt(time.Unix(1000, 0), view{file: s, beat: time.Unix(1000, 0).UnixMilli()}, nil)
	r.followPush(&view{file: s, endpoint: errMissing})
	require.ErrorIs(t, r.Ready(0), errWithin)
	r.moved = time.Now().Add(-stalledAfter)
	r.followPush(&view{file: s, endpoint: errMissing})
	require.NoError(t, r.Ready(0), "it stands still")
	change("batch = 2")
	r.followPush(&view{file: s, endpoint: errMissing})
	require.ErrorIs(t, r.Ready(0), errWithin, "it goes on")
	change("release = '', dirty = 0")
	r.followPush(&view{file: s, endpoint: errMissing})
	require.NoError(t, r.Ready(0))
	change("release = 'three', dirty = 1, batch = 1")
	r.followPush(&view{file: s, endpoint: errMissing})
	require.NoError(t, r.Ready(0), "it was there before this one")
	require.True(t, r.mixed)
}

// TestAnEndpointThatIsReadDuringAPushIsTold, once for each push.
func TestAnEndpointThatIsReadDuringAPushIsTold(t *testing.T) {
	pushing := func(dirty int64) *scripted {
		return &scripted{values: []handler.Value{{Kind: handler.Integer, Int: dirty}, {Kind: handler.Integer, Int: dirty}, {Kind: handler.Integer}}}
	}
	r, log := replicaAt(time.Unix(1000, 0), view{}, nil)
	r.config.Database, r.released = schema.Registry, true
	told := func() int { return strings.Count(log.String(), "answers may mix two releases") }
	follow := func(endpoint *scripted, v view) {
		r.config.Endpoint = endpoint
		r.followReleases(&v)
	}
	follow(pushing(0), view{remote: true})
	require.Zero(t, told())
	for range 2 {
		follow(pushing(1), view{remote: true})
		follow(&scripted{err: errMissing}, view{remote: true})
	}
	require.Equal(t, 1, told())
	follow(pushing(0), view{remote: true})
	follow(pushing(1), view{})
	follow(pushing(1), view{remote: true, endpoint: errMissing})
	require.Equal(t, 1, told(), "the endpoint is not read")
	follow(pushing(1), view{remote: true})
	require.Equal(t, 2, told(), "another push")
	follow(pushing(0), view{remote: true})
	begun := pushing(0)
	begun.values[0].Int = 1
	follow(begun, view{remote: true})
	require.Equal(t, 2, told(), "it shows no record yet, or holds the release before")
}

// TestAnEndpointsResultIsWhole, or an error: of a row behind others, or of a caller that has gone. It
// is closed with its connections.
func TestAnEndpointsResultIsWhole(t *testing.T) {
	s := openSmall(t, 1)
	db, err := driver.Open("file:" + s.config.Path + "?mode=ro")
	require.NoError(t, err)
	remote := NewRemote(db, Config{})
	var dst handler.Result
	for _, from := range []source{s, remote} {
		require.ErrorContains(t, from.Query(t.Context(), "SELECT iif(v = 3, abs(-9223372036854775807 - 1), v) FROM t", nil, &dst), "overflow")
		require.Zero(t, dst.Rows())
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	err = remote.Query(gone, "SELECT 1", nil, &dst)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrTimeout)
	require.NoError(t, remote.Close())
	require.Error(t, remote.Query(t.Context(), "SELECT 1", nil, &dst))
}
