package sqlite

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/internal/testkit"
	"regedge/schema"
)

// TestAClosedStoreLeavesNoFileOpen, whatever it has prepared and whichever connection was in use.
func TestAClosedStoreLeavesNoFileOpen(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	require.EqualValues(t, 1, valueOf(t, newest{s}))
	var dst handler.Result
	for n := range maxStatements + 2 {
		require.NoError(t, s.Query(t.Context(), "SELECT 1"+string(rune('0'+n%10))+string(rune('0'+n/10)), nil, &dst))
	}
	require.Error(t, s.Query(t.Context(), "SELECT 1; SELECT 2", nil, &dst))
	used, err := s.acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.NoError(t, s.Close())
	s.release(used, nil)
	require.Empty(t, testkit.OpenFiles(t, s.config.Path))
	for range 2 * len(s.slots) {
		require.ErrorIs(t, s.Query(t.Context(), "SELECT 1", nil, &dst), ErrClosed)
	}
	held, err := s.hold(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	require.False(t, held)
}

// TestEveryPartOfAConnectionIsClosed: SQLite refuses to close one that has a statement left.
func TestEveryPartOfAConnectionIsClosed(t *testing.T) {
	s := openSmall(t, 1)
	var dst handler.Result
	for n := range maxStatements + 2 {
		require.NoError(t, s.Query(t.Context(), "SELECT v FROM t LIMIT "+string(rune('0'+n%10))+string(rune('0'+n/10)), nil, &dst))
	}
	require.Error(t, s.Query(t.Context(), "SELECT 1; SELECT 2", nil, &dst))
	require.NoError(t, s.slots[0].idle.close())
	s.slots[0].idle = nil
}

// TestAFileThatIsNoDatabaseIsClosed.
func TestAFileThatIsNoDatabaseIsClosed(t *testing.T) {
	path := t.TempDir() + "/noise.db"
	require.NoError(t, os.WriteFile(path, make([]byte, 5000), 0o600))
	require.NoError(t, os.WriteFile(path, []byte("not a database, but longer than the head of one: 0123456789012345678901234567890123456789012345678901234567890123456789"), 0o600))
	_, err := Open(Config{Path: path})
	require.Error(t, err)
	require.Empty(t, testkit.OpenFiles(t, path))
}

// TestAConnectionToAReplacedFileIsClosed when it is released, and one to another file at once.
func TestAConnectionToAReplacedFileIsClosed(t *testing.T) {
	s := openSmall(t, 2)
	path := s.config.Path
	c, err := s.acquire(t.Context())
	require.NoError(t, err)
	idle, err := s.acquire(t.Context())
	require.NoError(t, err)
	s.release(idle, nil)
	require.NoError(t, os.Rename(path, path+".before"))
	require.True(t, s.Replaced(), "there is none")
	other, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, other.Exec("CREATE TABLE t (v)"))
	require.NoError(t, other.Close())
	require.NoError(t, s.Refresh())
	s.release(c, nil)
	require.Nil(t, s.slots[c.slot].idle)
	require.Empty(t, testkit.OpenFiles(t, path))

	pinned, _ := openWatched(t, "")
	pinned.fresh.close()
	pinned.fresh, pinned.config.Path = nil, path
	var dst handler.Result
	require.ErrorIs(t, newest{pinned}.Query(t.Context(), "SELECT 1", nil, &dst), ErrReplaced)
	require.Empty(t, testkit.OpenFiles(t, path))
}

// TestAConnectionOnlyReads: it recovers no log and creates no file, whatever its statements are. Its
// cache is as large as it should be.
func TestAConnectionOnlyReads(t *testing.T) {
	s := openSmall(t, 1)
	c := s.slots[0].idle
	only, _ := c.sqlite.ReadOnly("main")
	require.True(t, only)
	require.NoError(t, c.sqlite.SetAuthorizer(nil))
	size, _, err := c.sqlite.Prepare("PRAGMA cache_size")
	require.NoError(t, err)
	defer size.Close()
	require.True(t, size.Step())
	require.Equal(t, -s.config.cacheKiB(0, c.file.Size()), size.ColumnInt(0))
}

// TestABrokenConnectionIsClosed. A held one keeps no deadline, which could pass before it is let go.
func TestABrokenConnectionIsClosed(t *testing.T) {
	var dst handler.Result
	damaged := openDamaged(t)
	damaged.config.Watched = true
	before := testkit.OpenFiles(t, damaged.config.Path)
	require.ErrorIs(t, newest{damaged}.Query(t.Context(), "SELECT v FROM t", nil, &dst), sqlite3.CORRUPT)
	require.Nil(t, damaged.fresh)
	require.Equal(t, before, testkit.OpenFiles(t, damaged.config.Path))
	require.NoError(t, newest{damaged}.Query(t.Context(), "SELECT v FROM u", nil, &dst))
	require.Nil(t, damaged.fresh.limit.ctx)

	unsure := openDamagedBy(t, pushingTable)
	held, err := unsure.hold(t.Context())
	require.ErrorIs(t, err, sqlite3.CORRUPT)
	require.False(t, held)
	require.Nil(t, unsure.slots[0].idle)
	require.Empty(t, testkit.OpenFiles(t, unsure.config.Path))

	s, _ := openWatched(t, pushingTable)
	held, err = s.hold(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	for _, p := range s.slots {
		require.Nil(t, p.idle.limit.ctx)
	}
	// A connection that can't end its transaction is closed, by letGo as well as by the timer.
	open, c := len(testkit.OpenFiles(t, s.config.Path)), s.slots[0].idle
	refuseTransactions(t, s.slots[1].idle)
	s.letGo()
	require.Nil(t, s.slots[1].idle)
	require.Less(t, len(testkit.OpenFiles(t, s.config.Path)), open)
	require.EqualValues(t, 1, valueOf(t, s))
	refuseTransactions(t, c)
	s.expire(c)
	require.Nil(t, s.slots[0].idle)
	require.EqualValues(t, 1, valueOf(t, s), "by a new one")
}

// refuseTransactions makes a connection fail to begin and end transactions.
func refuseTransactions(t *testing.T, c *connection) {
	t.Helper()
	require.NoError(t, c.sqlite.SetAuthorizer(func(sqlite3.AuthorizerActionCode, string, string, string, string) sqlite3.AuthorizerReturnCode {
		return sqlite3.AUTH_DENY
	}))
}

// TestAStatementWithoutItsTransactionFails: it would read another state than the one before it.
func TestAStatementWithoutItsTransactionFails(t *testing.T) {
	s, _ := openWatched(t, "")
	c := s.slots[0].idle
	refuseTransactions(t, c)
	var dst handler.Result
	require.ErrorContains(t, s.Query(t.Context(), "SELECT v FROM t", nil, &dst), "begin read transaction")
	require.False(t, c.tx.open)
}

// TestAHeldTransactionIsOfAnyAge: an expired one is not renewed when a hold begins, nor while
// it lasts.
func TestAHeldTransactionIsOfAnyAge(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	require.EqualValues(t, 1, valueOf(t, s))
	c := s.slots[0].idle
	require.True(t, c.tx.open)
	c.tx.until = time.Now().Add(-time.Hour)
	require.NoError(t, writer.Exec("INSERT INTO t VALUES (2)"))
	held, err := s.hold(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.EqualValues(t, 1, valueOf(t, s))
	s.letGo()
	require.EqualValues(t, 2, valueOf(t, s))
}

// TestAStatementThatFailedBeginsAnew: else it would continue after the row where it failed.
func TestAStatementThatFailedBeginsAnew(t *testing.T) {
	s := openSmall(t, 1)
	var dst handler.Result
	for most, want := range map[int]error{3: nil, 1: ErrTooLarge} {
		s.config.MaxRows = most
		require.ErrorIs(t, s.Query(t.Context(), "SELECT v FROM t", nil, &dst), want)
	}
	s.config.MaxRows = 1
	require.ErrorIs(t, s.Query(t.Context(), "SELECT v FROM t", nil, &dst), ErrTooLarge)
	s.config.MaxRows = 3
	require.NoError(t, s.Query(t.Context(), "SELECT v FROM t", nil, &dst))
	require.Equal(t, 3, dst.Rows())
}

// TestACachedResultIsItsOwn: its caller, and the one before, may change theirs.
func TestACachedResultIsItsOwn(t *testing.T) {
	s, _ := openWatched(t, "")
	argument := []handler.Value{{Kind: handler.Text, Text: "a"}}
	for range 3 {
		var dst handler.Result
		require.NoError(t, s.Query(t.Context(), "SELECT ?1", argument, &dst))
		require.Equal(t, "a", dst.Values[0].Text)
		dst.Values[0].Text = "changed"
	}
}

// TestAPanicThatIsNoFaultGoesOn, and a goroutine's own faults end the process as before.
func TestAPanicThatIsNoFaultGoesOn(t *testing.T) {
	require.PanicsWithValue(t, "other", func() { _ = guard(func() error { panic("other") }) })
	require.NoError(t, guard(func() error { return nil }))
	require.False(t, panicsOnFault())
}

// TestAStatementWithoutMemoryKeepsNoPlace: go-sqlite3 panics then, and each place that is kept is lost until a restart.
func TestAStatementWithoutMemoryKeepsNoPlace(t *testing.T) {
	s := openSmall(t, 1)
	s.config.Watched, s.config.Timeout = true, time.Minute
	starve := func(c *connection) {
		require.NoError(t, c.sqlite.SetAuthorizer(nil))
		require.NoError(t, c.sqlite.Exec("PRAGMA hard_heap_limit=400000"))
	}
	const greedy = "SELECT length(group_concat(hex(zeroblob(200000)))) FROM t"
	var dst handler.Result
	for range 2 {
		starve(s.slots[0].idle)
		require.ErrorIs(t, s.Query(t.Context(), greedy, nil, &dst), errMemory)
		require.NoError(t, s.Query(t.Context(), greedy, nil, &dst), "on another connection")
		require.Empty(t, s.tokens)

		require.NoError(t, newest{s}.Query(t.Context(), greedy, nil, &dst))
		starve(s.fresh)
		require.ErrorIs(t, newest{s}.Query(t.Context(), greedy, nil, &dst), errMemory)
		require.NoError(t, newest{s}.Query(t.Context(), greedy, nil, &dst), "on another connection")
	}
	require.Len(t, testkit.OpenFiles(t, s.config.Path), 2)
}

// TestAReplicaThatIsNotTakenOrClosedLeavesNoFileOpen.
func TestAReplicaThatIsNotTakenOrClosedLeavesNoFileOpen(t *testing.T) {
	path := accessFile(t, "")
	endpoint := &scripted{err: errMissing}
	_, err := OpenReplica(ReplicaConfig{Database: schema.Registry, File: path, Endpoint: endpoint, Now: time.Now})
	var other *schema.OtherError
	require.ErrorAs(t, err, &other)
	require.Empty(t, testkit.OpenFiles(t, path))
	require.Equal(t, 1, endpoint.closed)

	endpoint = &scripted{err: errMissing}
	r, err := OpenReplica(ReplicaConfig{Database: schema.Access, File: path, Endpoint: endpoint, Connections: 3, CacheResults: true, Now: time.Now})
	require.NoError(t, err)
	require.Equal(t, DefaultKeep, r.config.Keep)
	file := r.view.Load().file
	require.Len(t, file.slots, 3)
	require.True(t, file.config.CacheResults && file.config.Pinned)
	require.NoError(t, r.Close())
	require.Equal(t, 1, endpoint.closed)
	require.NoError(t, r.Refresh())
	require.Empty(t, testkit.OpenFiles(t, path), "it is not opened again")
}

// TestAFileThatIsNotTakenForAPushIsClosed: it is opened anew each second until the push ends.
func TestAFileThatIsNotTakenForAPushIsClosed(t *testing.T) {
	r, _ := replicaAt(time.UnixMilli(600_000), view{file: openSmall(t, 1)}, nil)
	r.config.Database, r.config.File, r.released = schema.Registry, registryFile(t, begun+"UPDATE pushing SET dirty = 1"), true
	_, _, err := r.openFile(500_000)
	require.ErrorIs(t, err, errPushed)
	require.Empty(t, testkit.OpenFiles(t, r.config.File))
}

// accessFile makes an access database with a heartbeat.
func accessFile(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec("INSERT INTO heartbeat (id, beat) VALUES (1, 500000);" + script)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return path
}

// panicsOnFault returns the SetPanicOnFault setting, which guard should have restored.
func panicsOnFault() bool { return debug.SetPanicOnFault(false) }
