package sqlite

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/schema"
)

// between is an endpoint that reads a file. Before its next statement it calls a given function, once.
type between struct {
	*Store
	call func() error
}

func (e *between) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	if call := e.call; call != nil {
		e.call = nil
		if err := call(); err != nil {
			return err
		}
	}
	return e.Store.Query(ctx, statement, args, dst)
}

func betweenOf(t *testing.T, path string) *between {
	t.Helper()
	s, err := Open(Config{Path: path, Connections: 1})
	require.NoError(t, err)
	return &between{Store: s}
}

// accessAt makes an access database with a heartbeat.
func accessAt(t *testing.T, beat int64) string {
	t.Helper()
	path := t.TempDir() + "/data"
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec("INSERT INTO heartbeat (id, beat) VALUES (1, ?)", beat)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return path
}

func execIn(t *testing.T, path, script string) {
	t.Helper()
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	_, err = db.Exec(script)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// TestDamageThatIsFoundDuringACheckIsNotForgotten: the check began with the view before, in which the file was good.
func TestDamageThatIsFoundDuringACheckIsNotForgotten(t *testing.T) {
	path := accessAt(t, 500_000)
	endpoint := betweenOf(t, path)
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, Now: func() time.Time { return time.UnixMilli(500_000) }})
	require.NoError(t, err)
	defer r.Close()
	require.False(t, r.Remote())
	endpoint.call = func() error {
		r.reportCorrupt(r.view.Load(), "SELECT count(*) FROM plan", nil, sqlite3.CORRUPT)
		return nil
	}
	require.ErrorIs(t, r.Refresh(), sqlite3.CORRUPT, "it is logged")
	require.True(t, r.Remote())
	require.ErrorIs(t, r.Ready(0), sqlite3.CORRUPT)
	require.NoError(t, r.Refresh())
	require.False(t, r.Remote(), "the statement runs again")
	require.NoError(t, r.Ready(0))
}

// TestTheAgeIsOfTheFileThatIsReadAgain while its endpoint is silent, and not of what the endpoint said last.
func TestTheAgeIsOfTheFileThatIsReadAgain(t *testing.T) {
	path := accessAt(t, 500_000)
	endpoint := betweenOf(t, accessAt(t, 600_000))
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, Now: func() time.Time { return time.UnixMilli(700_000) }})
	require.NoError(t, err)
	defer r.Close()
	require.True(t, r.Remote(), "the file does not follow")
	execIn(t, path, "UPDATE heartbeat SET beat = 690000")
	endpoint.call = func() error { return errors.New("no answer") }
	require.NoError(t, r.Refresh())
	require.False(t, r.Remote())
	age, known := r.Age()
	require.True(t, known)
	require.Equal(t, 10*time.Second, age)
}

// TestAnEndpointThatIsBeingFilledIsNotRead, once it had a release: it would say "not found" of everything.
func TestAnEndpointThatIsBeingFilledIsNotRead(t *testing.T) {
	path := registryFile(t, "")
	r, err := OpenReplica(ReplicaConfig{Database: schema.Registry, Endpoint: betweenOf(t, path), Connections: 1, Now: func() time.Time { return time.UnixMilli(600_000) }})
	require.NoError(t, err)
	defer r.Close()
	query := func() error { return r.Query(t.Context(), "SELECT count(*) FROM company", nil, new(handler.Result)) }
	require.NoError(t, query())
	execIn(t, path, "DELETE FROM release")
	require.ErrorIs(t, r.Refresh(), errFilling)
	require.ErrorIs(t, query(), errFilling)
	require.ErrorIs(t, r.Ready(0), errFilling)
}

// TestKeysAreReadOnWhileTheirDatabaseIsFilledAnew: its primary was lost. The writer's first heartbeat comes after the last key.
func TestKeysAreReadOnWhileTheirDatabaseIsFilledAnew(t *testing.T) {
	const keys = `INSERT INTO plan VALUES ('p', 1, 1, 1, 0, 0); INSERT INTO account (id, plan) VALUES (1, 'p'); INSERT INTO api_key (id, account, hash) VALUES (1, 1, zeroblob(32))`
	path, filling, filled := accessAt(t, 500_000), accessAt(t, 0), accessAt(t, 520_000)
	execIn(t, path, keys)
	execIn(t, filling, "DELETE FROM heartbeat")
	execIn(t, filled, keys+`, (2, 1, randomblob(32))`)
	endpoint := betweenOf(t, filling)
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, Now: func() time.Time { return time.UnixMilli(520_000) }})
	require.NoError(t, err)
	defer r.Close()
	for _, c := range []struct {
		with string
		keys int64
	}{{filling, 1}, {filled, 2}} {
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
		require.NoError(t, os.Rename(c.with, path))
		_ = r.Refresh()
		var result handler.Result
		require.NoError(t, r.Query(t.Context(), "SELECT count(*) FROM api_key", nil, &result))
		require.Equal(t, c.keys, result.Row(0)[0].Int)
	}
}

// TestAnAccessDatabaseIsReadFromItsFirstHeartbeatOn by an edge that begins while it is filled: the keys that are not there yet
// would be refused.
func TestAnAccessDatabaseIsReadFromItsFirstHeartbeatOn(t *testing.T) {
	for name, byFile := range map[string]bool{"by its file": true, "by its endpoint": false} {
		t.Run(name, func(t *testing.T) {
			path := accessAt(t, 0)
			execIn(t, path, "DELETE FROM heartbeat")
			config := ReplicaConfig{Database: schema.Access, Endpoint: betweenOf(t, path), Connections: 1, Now: func() time.Time { return time.UnixMilli(520_000) }}
			if byFile {
				config.File = path
			}
			r, err := OpenReplica(config)
			require.NoError(t, err)
			defer r.Close()
			ask := func() error {
				return r.Query(t.Context(), "SELECT id FROM api_key", nil, new(handler.Result))
			}
			for range 2 {
				require.ErrorIs(t, r.Ready(0), errEmpty)
				require.ErrorIs(t, ask(), errEmpty)
				require.ErrorIs(t, r.Refresh(), errEmpty)
			}
			execIn(t, path, "INSERT INTO heartbeat (id, beat) VALUES (1, 520000)")
			require.NoError(t, r.Refresh())
			require.NoError(t, r.Ready(0))
			require.NoError(t, ask())
		})
	}
}

// TestACopyWithoutKeysIsWaitedFor: the primary was lost, and is filled anew by a writer of an older version, whose heartbeats
// come before the keys, or by one whose ledger is empty.
func TestACopyWithoutKeysIsWaitedFor(t *testing.T) {
	const keys = `INSERT INTO plan VALUES ('p', 1, 1, 1, 0, 0); INSERT INTO account (id, plan) VALUES (1, 'p'); INSERT INTO api_key (id, account, hash) VALUES (1, 1, zeroblob(32))`
	path, filled := accessAt(t, 500_000), accessAt(t, 520_000)
	execIn(t, path, keys)
	execIn(t, filled, keys)
	endpoint := betweenOf(t, accessAt(t, 510_000))
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 1, Now: func() time.Time { return time.UnixMilli(520_000) }})
	require.NoError(t, err)
	defer r.Close()
	replace := func(with string) {
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
		require.NoError(t, os.Rename(with, path))
	}
	counted := func() int64 {
		var result handler.Result
		require.NoError(t, r.Query(t.Context(), "SELECT count(*) FROM api_key", nil, &result))
		return result.Row(0)[0].Int
	}
	for range 2 {
		replace(accessAt(t, 510_000))
		_ = r.Refresh()
		require.EqualValues(t, 1, counted())
		require.ErrorIs(t, r.view.Load().unopened, errNoKeys)
		require.ErrorIs(t, r.view.Load().endpoint, errNoKeys)
	}
	replace(filled)
	_ = r.Refresh()
	require.EqualValues(t, 1, counted())
	require.NoError(t, r.view.Load().unopened)
	_ = r.Refresh()
	require.Zero(t, r.keyless, "the next loss has its own time")

	replace(accessAt(t, 520_000))
	_ = r.Refresh()
	require.EqualValues(t, 1, counted())
	r.keyless = r.keyless.Add(-DefaultKeep)
	_ = r.Refresh()
	require.Zero(t, counted(), "the last key may have been revoked")
}

// TestTheLastKeyIsRevoked in the copy that is read: one without keys can take its place at once.
func TestTheLastKeyIsRevoked(t *testing.T) {
	path := accessAt(t, 500_000)
	execIn(t, path, `INSERT INTO plan VALUES ('p', 1, 1, 1, 0, 0); INSERT INTO account (id, plan) VALUES (1, 'p'); INSERT INTO api_key (id, account, hash) VALUES (1, 1, zeroblob(32))`)
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: path, Endpoint: betweenOf(t, path), Connections: 1, Now: func() time.Time { return time.UnixMilli(500_000) }})
	require.NoError(t, err)
	defer r.Close()
	require.True(t, r.keyed)
	execIn(t, path, "DELETE FROM api_key")
	_ = r.Refresh()
	require.NoError(t, r.Refresh())
	require.NoError(t, r.view.Load().endpoint)
}

// TestAPushThatBeginsAnewStandsStillNoLonger, though it has written less than before.
func TestAPushThatBeginsAnewStandsStillNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Replica
		require.True(t, r.beganWithin(pushing{underWay: true, dirty: true, batch: 9}))
		time.Sleep(stalledAfter)
		require.False(t, r.beganWithin(pushing{underWay: true, dirty: true, batch: 9}))
		require.True(t, r.beganWithin(pushing{underWay: true, dirty: true, batch: 2}))
	})
}

// TestDamageIsToldOnceThoughTheEndpointComesBack after the file was found damaged.
func TestDamageIsToldOnceThoughTheEndpointComesBack(t *testing.T) {
	r, log := replicaAt(time.Unix(1000, 0), view{endpoint: errMissing}, nil)
	r.reportCorrupt(r.view.Load(), "SELECT 1", nil, sqlite3.CORRUPT)
	require.False(t, r.Remote(), "there is nothing else to read")
	back := *r.view.Load()
	back.endpoint = nil
	r.view.Store(&back)
	r.reportCorrupt(r.view.Load(), "SELECT 1", nil, sqlite3.CORRUPT)
	require.True(t, r.Remote())
	require.Equal(t, 1, strings.Count(log.String(), "is damaged"), log.String())
}

// TestAnOldReplicaSaysByHowMuch.
func TestAnOldReplicaSaysByHowMuch(t *testing.T) {
	r, _ := replicaAt(time.UnixMilli(700_400), view{beat: 600_000}, nil)
	require.ErrorContains(t, r.Ready(time.Minute), "by 1m40s")
	r.view.Store(&view{beat: 800_000})
	require.ErrorContains(t, r.Ready(time.Minute), "by 1m40s")
}

// TestADatabaseWithoutALogHasNone to measure: whoever holds a release asks each second.
func TestADatabaseWithoutALogHasNone(t *testing.T) {
	require.Zero(t, openSmall(t, 1).logBytes())
}

// TestTheTimeOfAStatementBeginsBeforeItsConnection is free.
func TestTheTimeOfAStatementBeginsBeforeItsConnection(t *testing.T) {
	s := openSmall(t, 1)
	s.config.Timeout = time.Minute
	var now, asked atomic.Int64
	s.config.Now = func() time.Time {
		asked.Add(1)
		return time.Unix(now.Load(), 0)
	}
	c, err := s.acquire(t.Context())
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		const long = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT count(*) FROM n"
		ended <- s.Query(t.Context(), long, nil, new(handler.Result))
	}()
	require.Eventually(t, func() bool { return asked.Load() > 0 }, time.Minute, time.Millisecond)
	now.Add(61)
	s.release(c, nil)
	require.ErrorIs(t, <-ended, ErrTimeout)
}

// TestAFileInTheMiddleOfAPushIsTakenWhereTheOpenOneIsToo: it follows, which the open one does no longer.
func TestAFileInTheMiddleOfAPushIsTakenWhereTheOpenOneIsToo(t *testing.T) {
	r, _ := replicaAt(time.UnixMilli(600_000), view{file: openSmall(t, 1)}, nil)
	r.config.Database, r.config.File, r.released = schema.Registry, registryFile(t, begun+"UPDATE pushing SET dirty = 1"), true
	r.unheld = "its records came before"
	opened, _, err := r.openFile(500_000)
	require.NoError(t, err)
	require.NoError(t, opened.Close())
}

// TestNothingIsReadBesideTheFirstPush: there is no release before it.
func TestNothingIsReadBesideTheFirstPush(t *testing.T) {
	path := registryFile(t, begun)
	read := func() bool {
		b := OpenBeside(path)
		defer b.Close()
		b.Refresh()
		_, _, ok := b.Read(t.Context(), "SELECT count(*) FROM company", nil)
		return ok
	}
	require.True(t, read(), "a release is held")
	execIn(t, path, "DELETE FROM release")
	require.False(t, read())
}
