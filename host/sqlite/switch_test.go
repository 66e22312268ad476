package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/internal/testkit"
	"regedge/schema"
)

// TestTheFileBeforeIsClosed when it is replaced: else its disk space would stay in use for as long as the
// edge runs.
func TestTheFileBeforeIsClosed(t *testing.T) {
	path := accessCopy(t, 2, time.Minute)
	w := new(replicaFixture)
	var err error
	w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer w.Close()
	require.EqualValues(t, 2, w.read(t))
	before := len(testkit.OpenFiles(t, path))
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
	require.NoError(t, os.Rename(accessCopy(t, 3, 0), path))
	_ = w.Refresh()
	require.EqualValues(t, 3, w.read(t))
	require.LessOrEqual(t, len(testkit.OpenFiles(t, path)), before)
}

// timed is an endpoint that notes how long each statement was given.
type timed struct {
	sqlite.Endpoint
	given []time.Duration
}

func (e *timed) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(time.Hour)
	}
	e.given = append(e.given, time.Until(until))
	return e.Endpoint.Query(ctx, statement, args, dst)
}

// TestChecksOfAnEndpointAreLimitedInTime: one comes every second, and a replica may hang.
func TestChecksOfAnEndpointAreLimitedInTime(t *testing.T) {
	endpoint := &timed{Endpoint: open(t, sqlite.Config{Path: accessCopy(t, 2, 0)})}
	r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, Endpoint: endpoint, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.Refresh())
	require.NotEmpty(t, endpoint.given)
	for _, given := range endpoint.given {
		require.Less(t, given, time.Second)
	}
}

// TestAHeartbeatFromTheFutureMakesNoRightOneOld: the primary's clock was ahead, and is right again. One that
// is little ahead counts, since clocks differ. This clock may have been ahead too.
func TestAHeartbeatFromTheFutureMakesNoRightOneOld(t *testing.T) {
	for _, c := range []struct {
		ahead, clock time.Duration
		old          bool
	}{{time.Hour, 0, false}, {3 * time.Second, 0, true}, {time.Hour, time.Hour, false}} {
		endpoint := new(exchanged)
		endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 1, -c.ahead)}))
		clock := c.clock
		r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
			Database: schema.Access, Endpoint: endpoint, Connections: 1, Now: func() time.Time { return time.Now().Add(clock) },
		})
		require.NoError(t, err)
		defer r.Close()
		endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 2, 0)}))
		clock = 0
		err = r.Refresh()
		require.Equal(t, c.old, err != nil, "%v: %v", c, err)
	}
}

// TestAFileFromTheFutureIsNotTheNewest: the primary's clock was ahead when the file was written last.
func TestAFileFromTheFutureIsNotTheNewest(t *testing.T) {
	path := accessCopy(t, 1, -time.Hour)
	endpoint := new(exchanged)
	endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 1, -time.Hour)}))
	w := new(replicaFixture)
	var err error
	w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, MaxAge: time.Minute, Now: time.Now,
	})
	require.NoError(t, err)
	defer w.Close()
	require.True(t, w.Ahead())
	require.False(t, w.Remote(), "both are ahead")

	endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 2, 0)}))
	_ = w.Refresh()
	require.EqualValues(t, 2, w.read(t), "of the endpoint, which is right")
	require.NoError(t, os.Rename(accessCopy(t, 3, 0), path))
	_ = w.Refresh()
	require.EqualValues(t, 3, w.read(t), "of the file that took its place")
	require.False(t, w.Remote())
	require.NoError(t, w.Ready(time.Minute))
}

// TestAFileThatDoesNotFollowIsReadForAWhile, then the endpoint, if it can be read.
func TestAFileThatDoesNotFollowIsReadForAWhile(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		keep   time.Duration
		silent error
		want   int64
	}{
		"within its time":             {2 * time.Minute, nil, 1},
		"after its time":              {30 * time.Second, nil, 2},
		"with an endpoint in trouble": {30 * time.Second, away, 1},
	} {
		endpoint := &failing{Store: open(t, sqlite.Config{Path: accessCopy(t, 2, 0)}), err: c.silent}
		w := new(replicaFixture)
		var err error
		w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{
			Database: schema.Access, File: accessCopy(t, 1, time.Minute), Endpoint: endpoint, Connections: 1, Keep: c.keep, Now: time.Now,
		})
		require.NoError(t, err)
		defer w.Close()
		require.Equal(t, c.want, w.read(t), name)
		require.Equal(t, c.want == 2, w.Remote(), name)
		require.Equal(t, c.want == 2, w.Ready(0) != nil, name)
	}
}

// failing is an endpoint with an error, if it is not nil.
type failing struct {
	*sqlite.Store
	err error
}

func (e *failing) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	if e.err != nil {
		return e.err
	}
	return e.Store.Query(ctx, statement, args, dst)
}

// registryCopy makes a registry with a heartbeat of now, with or without a release.
func registryCopy(t *testing.T, released bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	_, err = db.Exec("INSERT INTO heartbeat (id, beat) VALUES (1, ?)", time.Now().UnixMilli())
	require.NoError(t, err)
	if released {
		_, err = db.Exec("INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('one', 1, 0, 0, 0, 0, 0)")
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	return path
}

// TestARegistryThatIsBeingFilledDoesNotTakeThePlaceOfOneWithARelease: it would say "not found" of everything.
func TestARegistryThatIsBeingFilledDoesNotTakeThePlaceOfOneWithARelease(t *testing.T) {
	path := registryCopy(t, true)
	r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Registry, File: path, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer r.Close()
	for _, released := range []bool{false, true} {
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
		require.NoError(t, os.Rename(registryCopy(t, released), path))
		switches := r.Switches()
		_ = r.Refresh()
		require.Equal(t, released, r.Switches() > switches)
		var result handler.Result
		require.NoError(t, r.Query(t.Context(), "SELECT id FROM release", nil, &result))
		require.Equal(t, 1, result.Rows())
	}
}

// TestACopyWithoutAHeartbeatIsRead, of an unknown age.
func TestACopyWithoutAHeartbeatIsRead(t *testing.T) {
	path := accessCopy(t, 2, 0)
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	_, err = db.Exec("DROP TABLE heartbeat")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	w := new(replicaFixture)
	w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Connections: 1, MaxAge: time.Minute, Now: time.Now})
	require.NoError(t, err)
	defer w.Close()
	require.EqualValues(t, 2, w.read(t))
	_, known := w.Age()
	require.False(t, known)
}

// TestReadsDoNotGoBackToAFileThatStoodStill when the endpoint that replaced it fails a check or is gone: the
// file would undo revocations.
func TestReadsDoNotGoBackToAFileThatStoodStill(t *testing.T) {
	endpoint := &failing{Store: open(t, sqlite.Config{Path: accessCopy(t, 2, 0)})}
	w := new(replicaFixture)
	var err error
	path := accessCopy(t, 1, 5*time.Minute)
	w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer w.Close()
	require.EqualValues(t, 2, w.read(t))
	for missed := range 5 {
		endpoint.err = errors.New("slow")
		require.Error(t, w.Refresh())
		require.True(t, w.Remote())
		require.Error(t, w.Ready(10*time.Minute))
		endpoint.err = nil
		if missed < 2 {
			require.EqualValues(t, 2, w.read(t), "it may answer a statement all the same")
			continue
		}
		var result handler.Result
		err := w.Query(t.Context(), "SELECT per_minute FROM plan WHERE id = 'probe'", nil, &result)
		require.ErrorIs(t, err, sqlite.ErrUnreadable)
		require.ErrorContains(t, err, "does not follow its endpoint")
		require.ErrorContains(t, err, "slow")
	}
	require.Error(t, w.Refresh(), "the file stands still")
	require.EqualValues(t, 2, w.read(t))
	for _, said := range []error{errors.New("slow"), sqlite.ErrToken, sqlite.ErrToken} {
		endpoint.err = said
		_ = w.Refresh()
	}
	require.ErrorIs(t, w.Ready(time.Hour), sqlite.ErrUnreadable, "an endpoint that refuses is not silent")
	endpoint.err = nil
	require.Error(t, w.Refresh())
	require.EqualValues(t, 2, w.read(t))
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	_, err = db.Exec("UPDATE plan SET per_minute = 3")
	require.NoError(t, err)
	var newest handler.Result
	require.NoError(t, endpoint.Query(t.Context(), "SELECT beat FROM heartbeat", nil, &newest))
	for beat, want := range []int64{2, 3} {
		_, err = db.Exec("UPDATE heartbeat SET beat = ?", newest.Values[0].Int-1+int64(beat))
		require.NoError(t, err)
		_ = w.Refresh()
		require.Equal(t, want, w.read(t), "the file follows again, and is read once it has what was read")
	}
	require.NoError(t, db.Close())
}
