package sqlite_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/schema"
)

// TestTheFileBeforeIsClosed when another one took its place: the disk would keep its room for as long as
// the edge runs.
func TestTheFileBeforeIsClosed(t *testing.T) {
	path := accessCopy(t, 2, time.Minute)
	w := new(replicaFixture)
	var err error
	w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer w.Close()
	require.EqualValues(t, 2, w.read(t))
	before := len(openFiles(t, path))
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
	require.NoError(t, os.Rename(accessCopy(t, 3, 0), path))
	_ = w.Refresh()
	require.EqualValues(t, 3, w.read(t))
	require.LessOrEqual(t, len(openFiles(t, path)), before)
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
// is little ahead counts, since clocks differ.
func TestAHeartbeatFromTheFutureMakesNoRightOneOld(t *testing.T) {
	for ahead, old := range map[time.Duration]bool{time.Hour: false, 3 * time.Second: true} {
		endpoint := new(exchanged)
		endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 1, -ahead)}))
		r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, Endpoint: endpoint, Connections: 1, Now: time.Now})
		require.NoError(t, err)
		defer r.Close()
		endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 2, 0)}))
		err = r.Refresh()
		require.Equal(t, old, err != nil, "%v ahead: %v", ahead, err)
	}
}
