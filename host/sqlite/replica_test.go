package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
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
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// replicaFixture is a primary, a replica of it, and a reader of the replica.
type replicaFixture struct {
	primary, near *sqld.Server
	*sqlite.Replica
	beats int64
	skew  atomic.Int64 // added to the reader's clock, in nanoseconds
}

// testTimeout is long because on a busy machine a replica has taken half a minute to find its
// primary again.
const testTimeout = 90 * time.Second

func remote(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := libsql.Open(url, "")
	require.NoError(t, err)
	return db
}

func startReplica(t *testing.T, config sqlite.ReplicaConfig) *replicaFixture {
	t.Helper()
	w := &replicaFixture{primary: sqldtest.Primary(t)}
	db := remote(t, w.primary.URL())
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	require.NoError(t, db.Close())
	w.beat(t)
	w.near = sqldtest.Replica(t, w.primary)
	config.Database, config.Connections = schema.Access, 2
	config.File = sqld.File(w.near.Dir)
	config.Endpoint = sqlite.NewRemote(remote(t, w.near.URL()), sqlite.Config{})
	config.Now = func() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }
	w.open(t, config)
	return w
}

func (w *replicaFixture) open(t *testing.T, config sqlite.ReplicaConfig) {
	t.Helper()
	opened, err := sqlite.OpenReplica(config)
	require.NoError(t, err)
	w.Replica = opened
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	w.until(t, func() bool { return opened.Ready(0) == nil && !opened.Remote() })
}

// beat writes a heartbeat to the primary, and a row with its number.
func (w *replicaFixture) beat(t *testing.T) int64 {
	t.Helper()
	w.beats++
	sqldtest.Exec(t, w.primary,
		fmt.Sprintf("INSERT OR REPLACE INTO heartbeat VALUES (1, %d)", time.Now().UnixMilli()),
		fmt.Sprintf("INSERT OR REPLACE INTO plan VALUES ('probe', 0, %d, 0, 0, 0)", w.beats))
	return w.beats
}

// until calls Refresh until the condition holds.
func (w *replicaFixture) until(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		_ = w.Refresh()
		return holds()
	}, testTimeout, 20*time.Millisecond, "%v", w.Refresh())
}

// read returns the number of the heartbeat that the reader sees.
func (w *replicaFixture) read(t *testing.T) int64 {
	t.Helper()
	var result handler.Result
	require.NoError(t, w.Query(t.Context(), "SELECT per_minute FROM plan WHERE id = 'probe'", nil, &result))
	require.Equal(t, 1, result.Rows(), "a copy that is being built was read")
	return result.Values[0].Int
}

func TestWritesOfThePrimaryAreReadFromTheFile(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{})
	for range 3 {
		n := w.beat(t)
		w.until(t, func() bool { return w.read(t) == n })
		require.False(t, w.Remote())
	}
	age, known := w.Age()
	require.True(t, known)
	require.Less(t, age, testTimeout)
}

func TestARebuiltReplicaIsReadOnceItIsWhole(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{})
	n := w.read(t)
	w.near.Kill()
	require.NoError(t, os.RemoveAll(w.near.Dir))
	require.Equal(t, n, w.read(t), "the deleted file")
	_ = w.Refresh()
	require.Equal(t, n, w.read(t), "the deleted file, known to be deleted")
	require.NoError(t, w.near.Start())
	for done := false; !done; {
		_ = w.Refresh()
		require.GreaterOrEqual(t, w.read(t), n)
		_, err := os.Stat(sqld.File(w.near.Dir))
		done = err == nil
	}
	n = w.beat(t)
	w.until(t, func() bool { return w.read(t) == n && !w.Remote() })
	require.NoError(t, w.Ready(0))
}

// TestLeftoversOfADatabaseAreNeverRead starts a replica beside each set of files that may be left
// when it has to copy a new log of its primary and is killed while it deletes the old copy.
func TestLeftoversOfADatabaseAreNeverRead(t *testing.T) {
	files := []string{"data", "data-wal", "data-shm", "client_wal_index"}
	for set := 1; set < 1<<len(files); set++ {
		var removed []string
		for i, name := range files {
			if set&(1<<i) != 0 {
				removed = append(removed, name)
			}
		}
		t.Run("without "+strings.Join(removed, " "), func(t *testing.T) {
			t.Parallel()
			w := startReplica(t, sqlite.ReplicaConfig{})
			w.readBesideLeftovers(t, removed)
		})
	}
}

func (w *replicaFixture) readBesideLeftovers(t *testing.T, removed []string) {
	const plans = 500 // on many pages, which must all come from the same state
	sqldtest.Exec(t, w.primary, fmt.Sprintf(`INSERT INTO plan
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'p' || i || hex(zeroblob(100)), 0, 0, 0, 0, 0 FROM n`, plans))
	turn := func() int64 {
		w.beats++
		sqldtest.Exec(t, w.primary,
			fmt.Sprintf("INSERT OR REPLACE INTO heartbeat VALUES (1, %d)", time.Now().UnixMilli()),
			fmt.Sprintf("UPDATE plan SET per_minute = %d WHERE id <> 'probe'", w.beats))
		return w.beats
	}
	n := turn()
	var seen atomic.Int64
	read := func() error {
		var result handler.Result
		if err := w.Query(t.Context(), "SELECT count(*), min(per_minute), max(per_minute) FROM plan WHERE id <> 'probe'", nil, &result); err != nil {
			return err
		}
		count, least, most := result.Values[0].Int, result.Values[1].Int, result.Values[2].Int
		if count != plans || least != most || least < seen.Load() {
			return fmt.Errorf("%d rows of %d to %d were read, after %d of %d", count, least, most, plans, seen.Load())
		}
		seen.Store(least)
		return nil
	}
	w.until(t, func() bool { return read() == nil && seen.Load() == n })
	reading, stop := context.WithCancel(t.Context())
	defer stop()
	failed := make(chan error, 1)
	go func() {
		var err error
		for ; err == nil && reading.Err() == nil; time.Sleep(100 * time.Microsecond) {
			err = read()
		}
		failed <- err
	}()

	w.primary.Kill()
	require.NoError(t, w.primary.Start())
	sqldtest.Await(t, w.primary, "")
	w.near.Kill()
	for _, name := range removed {
		require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(sqld.File(w.near.Dir)), name)))
	}
	_ = w.Refresh()
	require.NoError(t, w.near.Start())
	n = turn()
	w.until(t, func() bool { return len(failed) > 0 || seen.Load() == n && !w.Remote() })
	stop()
	require.NoError(t, <-failed)
}

func TestAnEdgeFollowsAfterBothServersWereKilled(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{})
	for _, server := range []*sqld.Server{w.near, w.primary} {
		server.Kill()
		require.Positive(t, w.read(t))
		_ = w.Refresh()
		require.Positive(t, w.read(t))
		require.NoError(t, w.Ready(0), "the file is well, however silent the servers are")
		require.NoError(t, server.Start())
		sqldtest.Await(t, server, "")
		n := w.beat(t)
		w.until(t, func() bool { return w.read(t) == n && !w.Remote() })
	}
}

func TestEndpointIsTheFallbackForAMissingFile(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{})
	elsewhere := filepath.Join(t.TempDir(), "data")
	second := &replicaFixture{primary: w.primary, near: w.near, beats: w.beats}
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Access, File: elsewhere, Connections: 1, Now: time.Now,
		Endpoint: sqlite.NewRemote(remote(t, w.near.URL()), sqlite.Config{}),
	})
	require.NoError(t, err)
	defer opened.Close()
	second.Replica = opened
	require.True(t, second.Remote())
	require.NoError(t, second.Ready(0))
	require.Equal(t, w.read(t), second.read(t))
	require.NoError(t, os.Symlink(sqld.File(w.near.Dir), elsewhere))
	for _, suffix := range []string{"-wal", "-shm"} {
		require.NoError(t, os.Symlink(sqld.File(w.near.Dir)+suffix, elsewhere+suffix))
	}
	second.until(t, func() bool { return !second.Remote() })
	require.EqualValues(t, 2, second.Switches(), "to the endpoint, and back to the file")
}

// TestAWholeFileIsReadOnWhileItDoesNotFollow reads a file that stays as it is, beside an endpoint that
// goes on.
func TestAWholeFileIsReadOnWhileItDoesNotFollow(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{})
	begun := time.Now().UnixMilli()
	still := filepath.Join(t.TempDir(), "still")
	db, err := schema.OpenFile(still)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec("INSERT OR REPLACE INTO heartbeat VALUES (1, ?)", begun)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Access, File: still, Connections: 1, Keep: 20 * time.Second,
		Now:      func() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) },
		Endpoint: sqlite.NewRemote(remote(t, w.near.URL()), sqlite.Config{}),
	})
	require.NoError(t, err)
	defer opened.Close()
	for _, c := range []struct {
		behind time.Duration
		remote bool
	}{{0, false}, {19 * time.Second, false}, {21 * time.Second, true}} {
		sqldtest.Exec(t, w.primary, fmt.Sprintf("INSERT OR REPLACE INTO heartbeat VALUES (1, %d)", begun+c.behind.Milliseconds()))
		w.skew.Store(int64(c.behind))
		w.until(t, func() bool {
			var beat handler.Result
			err := w.Query(t.Context(), "SELECT beat FROM heartbeat", nil, &beat)
			return err == nil && beat.Values[0].Int == begun+c.behind.Milliseconds()
		})
		_ = opened.Refresh()
		require.Equal(t, c.remote, opened.Remote(), c.behind)
		require.Equal(t, c.remote, opened.Ready(0) != nil, c.behind)
	}
}

func TestEndpointIsTheFallbackForACorruptFile(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{})
	broken := filepath.Join(t.TempDir(), "broken")
	source, err := os.ReadFile(sqld.File(w.near.Dir))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(broken, source, 0o600))
	db, err := schema.OpenFile(broken)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec(fmt.Sprintf("INSERT OR REPLACE INTO heartbeat VALUES (1, %d)", time.Now().UnixMilli()))
	require.NoError(t, err)
	var page int64
	require.NoError(t, db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_plan_1'").Scan(&page))
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	require.NoError(t, db.Close())

	var log testkit.Log
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Access, File: broken, Connections: 1, Now: time.Now, Keep: time.Hour,
		Log:      slog.New(slog.NewTextHandler(&log, nil)),
		Endpoint: sqlite.NewRemote(remote(t, w.near.URL()), sqlite.Config{}),
	})
	require.NoError(t, err)
	defer opened.Close()
	require.False(t, opened.Remote())
	second := &replicaFixture{Replica: opened}
	n := w.beat(t) // newer than the copy's
	w.until(t, func() bool { return w.read(t) == n })
	damage(t, broken, page)
	require.Equal(t, w.read(t), second.read(t), "the statement itself is answered")
	require.Contains(t, log.String(), "the replica's file is damaged")
	require.True(t, opened.Remote())
	require.Error(t, opened.Ready(0))
	_ = opened.Refresh()
	require.True(t, opened.Remote(), "until it is well")
	source, err = os.ReadFile(sqld.File(w.near.Dir))
	require.NoError(t, err)
	wal, err := os.ReadFile(sqld.File(w.near.Dir) + "-wal")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(broken+".new", source, 0o600))
	require.NoError(t, os.RemoveAll(broken+"-shm"))
	require.NoError(t, os.WriteFile(broken+"-wal", wal, 0o600))
	require.NoError(t, os.Rename(broken+".new", broken))
	second.until(t, func() bool { return opened.Ready(0) == nil && !opened.Remote() })
}

// damage overwrites a page of a database file.
func damage(t *testing.T, path string, page int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	junk := make([]byte, 4096)
	for i := range junk {
		junk[i] = 0xa5
	}
	_, err = file.WriteAt(junk, (page-1)*4096)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func TestUnreachableEndpointIsLoggedOnce(t *testing.T) {
	var log testkit.Log
	w := startReplica(t, sqlite.ReplicaConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
	w.near.Kill()
	for range 30 {
		_ = w.Refresh()
	}
	require.False(t, w.Remote(), "the file can be read")
	// On a busy machine it may have been silent before.
	silent := strings.Count(log.String(), "the replica's endpoint does not answer")
	again := func() int { return strings.Count(log.String(), "the replica's endpoint answers again") }
	require.Equal(t, again()+1, silent, log.String())
	require.NoError(t, w.near.Start())
	w.until(t, func() bool { return again() == silent })
}

func TestACopyThatIsTooOldIsRefused(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{MaxAge: time.Minute})
	w.read(t)
	require.NoError(t, w.Ready(time.Minute))
	w.skew.Store(int64(2 * time.Minute))
	require.ErrorIs(t, w.Query(t.Context(), "SELECT 1", nil, new(handler.Result)), sqlite.ErrTooOld)
	require.ErrorIs(t, w.Ready(time.Minute), sqlite.ErrTooOld)
	w.skew.Store(0)
	w.beat(t)
	w.until(t, func() bool { return w.Ready(time.Minute) == nil })
}

// TestAHeartbeatFromTheFutureIsNotFresh sets the writer's clock an hour ahead, and back.
func TestAHeartbeatFromTheFutureIsNotFresh(t *testing.T) {
	w := startReplica(t, sqlite.ReplicaConfig{MaxAge: time.Minute})
	remoteOnly, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Access, MaxAge: time.Minute, Now: time.Now,
		Endpoint: sqlite.NewRemote(remote(t, w.near.URL()), sqlite.Config{}),
	})
	require.NoError(t, err)
	defer remoteOnly.Close()
	sqldtest.Exec(t, w.primary, fmt.Sprintf("UPDATE heartbeat SET beat = %d", time.Now().Add(time.Hour).UnixMilli()))
	w.until(t, w.Ahead)
	require.NoError(t, remoteOnly.Refresh())
	require.True(t, remoteOnly.Ahead())
	_, known := w.Age()
	require.False(t, known)
	require.ErrorIs(t, w.Query(t.Context(), "SELECT 1", nil, new(handler.Result)), sqlite.ErrAhead)
	require.ErrorIs(t, w.Ready(time.Minute), sqlite.ErrAhead)
	n := w.beat(t)
	w.until(t, func() bool { return w.Ready(time.Minute) == nil && w.read(t) == n })
	require.NoError(t, remoteOnly.Refresh(), "the endpoint counts as older than what was read before")
	require.NoError(t, remoteOnly.Ready(time.Minute))
}

func TestAnEdgeMayStartBeforeItsReplica(t *testing.T) {
	dir := t.TempDir()
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Access, File: filepath.Join(dir, "none"), Connections: 1, Now: time.Now,
		Endpoint: sqlite.NewRemote(remote(t, "http://127.0.0.1:1"), sqlite.Config{}),
	})
	require.NoError(t, err)
	defer opened.Close()
	require.ErrorIs(t, opened.Ready(0), sqlite.ErrUnreadable)
	require.ErrorIs(t, opened.Query(context.Background(), "SELECT 1", nil, new(handler.Result)), sqlite.ErrUnreadable)
}

func TestDatabaseOfALaterVersionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec("INSERT INTO schema_version SELECT 99, 0, max(database) FROM schema_version")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Connections: 1, Now: time.Now})
	var newer *schema.NewerError
	require.ErrorAs(t, err, &newer)
}

// TestADatabaseOneVersionOlderOrNewerIsRead allows edges to be upgraded one after another.
func TestADatabaseOneVersionOlderOrNewerIsRead(t *testing.T) {
	path := accessCopy(t, 1, 0)
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, File: path, Connections: 1, Now: time.Now})
	require.NoError(t, err)
	defer r.Close()
	for _, change := range []string{
		`CREATE TEMP TABLE next AS SELECT * FROM schema_version ORDER BY version DESC LIMIT 1;
			UPDATE next SET version = version + 1; INSERT INTO schema_version SELECT * FROM next;
			CREATE TABLE of_the_future (id)`,
		"DELETE FROM schema_version WHERE version > 1; DROP TABLE heartbeat",
	} {
		_, err := db.Exec(change)
		require.NoError(t, err)
		require.NoError(t, ignoreEndpoint(r.Refresh()))
		require.NoError(t, r.Ready(time.Minute))
		require.NoError(t, r.Query(t.Context(), "SELECT count(*) FROM plan", nil, new(handler.Result)))
	}
	_, known := r.Age()
	require.False(t, known, "an older database has no heartbeat")
}

// ignoreEndpoint drops the error that there is no endpoint.
func ignoreEndpoint(err error) error {
	if err != nil && strings.Contains(err.Error(), "there is no endpoint") {
		return nil
	}
	return err
}

func TestAnotherDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	require.NoError(t, db.Close())
	_, err = sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Registry, File: path, Connections: 1, Now: time.Now})
	var other *schema.OtherError
	require.ErrorAs(t, err, &other)
}

// TestARegistryIsReadFromItsFirstReleaseOn checks that lookups fail, rather than find nothing, while the
// registry is being filled for the first time.
func TestARegistryIsReadFromItsFirstReleaseOn(t *testing.T) {
	for name, byFile := range map[string]bool{"by its file": true, "by its endpoint": false} {
		t.Run(name, func(t *testing.T) {
			primary := sqldtest.Primary(t)
			db := remote(t, primary.URL())
			defer db.Close()
			require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
			near := sqldtest.Replica(t, primary)
			file := ""
			if byFile {
				file = sqld.File(near.Dir)
			}
			r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
				Database: schema.Registry, File: file, Connections: 1, Now: time.Now,
				Endpoint: sqlite.NewRemote(remote(t, near.URL()), sqlite.Config{}),
			})
			require.NoError(t, err)
			defer r.Close()
			query := func() error {
				_ = r.Refresh()
				var result handler.Result
				return r.Query(t.Context(), "SELECT count(*) FROM company", nil, &result)
			}
			require.ErrorIs(t, query(), sqlite.ErrUnreleased)
			sqldtest.Exec(t, primary, `INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
				VALUES ('first', 1, 0, 0, 0, 0, 0)`)
			require.Eventually(t, func() bool { return query() == nil }, testTimeout, 10*time.Millisecond)
		})
	}
}
