package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/internal/testkit"
	"regedge/schema"
)

// accessCopy makes a copy of an access database with a heartbeat of some time ago, and returns its
// path. The copy's number is the rate of the plan 'probe'.
func accessCopy(t *testing.T, number int, ago time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec("INSERT INTO heartbeat VALUES (1, ?)", time.Now().Add(-ago).UnixMilli())
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO plan VALUES ('probe', 0, ?, 0, 0, 0)", number)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return path
}

// exchanged is an endpoint with a replaceable copy.
type exchanged struct{ atomic.Pointer[sqlite.Store] }

func (e *exchanged) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	return e.Load().Query(ctx, statement, args, dst)
}

func (e *exchanged) Close() error { return nil }

func TestAnEndpointOlderThanWhatWasReadIsNotRead(t *testing.T) {
	newer := open(t, sqlite.Config{Path: accessCopy(t, 2, 0)})
	older := open(t, sqlite.Config{Path: accessCopy(t, 1, time.Minute)})
	for name, file := range map[string]string{"alone": "", "for a file that is missing": filepath.Join(t.TempDir(), "none")} {
		t.Run(name, func(t *testing.T) {
			endpoint := new(exchanged)
			endpoint.Store(newer)
			w := new(replicaFixture)
			var err error
			w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: file, Endpoint: endpoint, Connections: 1, Now: time.Now})
			require.NoError(t, err)
			defer w.Close()
			require.EqualValues(t, 2, w.read(t))

			endpoint.Store(older)
			require.ErrorContains(t, w.Refresh(), "behind what was read before")
			var result handler.Result
			require.ErrorIs(t, w.Query(t.Context(), "SELECT per_minute FROM plan", nil, &result), sqlite.ErrUnreadable)
			require.ErrorIs(t, w.Ready(0), sqlite.ErrUnreadable)

			endpoint.Store(newer)
			_ = w.Refresh()
			require.EqualValues(t, 2, w.read(t))
		})
	}
}

// TestACopyFromTheFutureMakesNoOlderOneGood: what was read before it still counts.
func TestACopyFromTheFutureMakesNoOlderOneGood(t *testing.T) {
	endpoint := new(exchanged)
	endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 1, 0)}))
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, Endpoint: endpoint, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer opened.Close()
	endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 2, -time.Hour)}))
	require.NoError(t, opened.Refresh())
	require.True(t, opened.Ahead())
	endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 3, time.Minute)}))
	require.ErrorContains(t, opened.Refresh(), "behind what was read before")
}

// other answers each statement with so many columns of one row, none for 0.
type other map[string]int

func (o other) Query(_ context.Context, statement string, _ []handler.Value, dst *handler.Result) error {
	known := map[string]handler.Value{
		schema.SelectVersion: {Kind: handler.Integer, Int: 2},
		"heartbeat":          {Kind: handler.Integer, Int: time.Now().UnixMilli()},
	}
	for part, columns := range o {
		if strings.Contains(statement, part) {
			*dst = handler.Result{Columns: columns, Values: make([]handler.Value, columns)}
			if columns > 0 {
				dst.Values[0] = known[part]
			}
			if columns == 2 {
				dst.Values[1] = handler.Value{Kind: handler.Text, Text: string(schema.Registry)}
			}
			return nil
		}
	}
	*dst = handler.Result{}
	return nil
}

func (o other) Close() error { return nil }

// TestAnEndpointThatAnswersOtherColumnsIsNotRead: another program may have taken its port.
func TestAnEndpointThatAnswersOtherColumnsIsNotRead(t *testing.T) {
	for _, endpoint := range []other{
		{},
		{schema.SelectVersion: 1},
		{schema.SelectVersion: 2},
		{schema.SelectVersion: 2, "heartbeat": 3},
	} {
		opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Registry, Endpoint: endpoint, Connections: 1, Now: time.Now})
		require.NoError(t, err)
		require.ErrorContains(t, opened.Refresh(), "does not have the columns that were asked for", endpoint)
		var result handler.Result
		require.ErrorIs(t, opened.Query(t.Context(), "SELECT 1", nil, &result), sqlite.ErrUnreadable, endpoint)
		require.NoError(t, opened.Close())
	}
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Registry, Endpoint: other{schema.SelectVersion: 2, "heartbeat": 1, "pushing": 1}, Connections: 1, Now: time.Now,
	})
	require.NoError(t, err)
	require.NoError(t, opened.Refresh(), "nothing is known of a push")
	require.NoError(t, opened.Close())
}

// TestWhyTheNextFileIsNotReadIsSaid: else an operator knows only that the open file lags.
func TestWhyTheNextFileIsNotReadIsSaid(t *testing.T) {
	path := accessCopy(t, 1, time.Minute)
	endpoint := new(exchanged)
	endpoint.Store(open(t, sqlite.Config{Path: accessCopy(t, 2, 0)}))
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer opened.Close()
	require.ErrorContains(t, opened.Refresh(), "does not follow its endpoint")
	require.NotContains(t, opened.Refresh().Error(), "the one that took its place")
	require.NoError(t, os.Rename(path, path+".before"))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.ErrorContains(t, opened.Refresh(), "does not follow its endpoint, and the one that took its place can't be read: open database "+path)
	require.ErrorContains(t, opened.Ready(0), "the one that took its place")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Rename(accessCopy(t, 3, 0), path))
	require.NoError(t, opened.Refresh())
	require.NoError(t, opened.Ready(0))
}

// TestAFileThatIsNotTakenIsClosed: an edge looks every second, and a replica may take hours to
// copy its database again.
func TestAFileThatIsNotTakenIsClosed(t *testing.T) {
	path := accessCopy(t, 2, 0)
	w := new(replicaFixture)
	var err error
	w.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer w.Close()
	require.EqualValues(t, 2, w.read(t))
	require.NoError(t, os.Rename(accessCopy(t, 1, time.Minute), path))
	_ = w.Refresh()
	before := testkit.OpenFiles(t, path)
	for range 10 {
		_ = w.Refresh()
		require.EqualValues(t, 2, w.read(t), "the file that was open before")
	}
	require.Equal(t, before, testkit.OpenFiles(t, path))
}
