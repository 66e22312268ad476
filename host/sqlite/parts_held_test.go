package sqlite

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/handler"
)

const pushingTable = "CREATE TABLE pushing (release, dirty, batch); INSERT INTO pushing VALUES ('two', 0, 0);"

// openWatched opens a database that others write to, with two connections whose transactions last.
func openWatched(t *testing.T, script string) (*Store, *sqlite3.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.db")
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { writer.Close() })
	require.NoError(t, writer.Exec("PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0; CREATE TABLE t (v); INSERT INTO t VALUES (1);"+script))
	s, err := Open(Config{Path: path, Connections: 2, ReadTx: time.Hour, Pinned: true, Watched: true, CacheResults: true})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, writer
}

// valueOf reads the newest row that a store sees.
func valueOf(t *testing.T, s source) int64 {
	t.Helper()
	var dst handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT max(v) FROM t", nil, &dst))
	return dst.Values[0].Int
}

// TestAHoldThatComesTooLateHoldsNothing: records of a push are visible already.
// The connections go on as before.
func TestAHoldThatComesTooLateHoldsNothing(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	require.NoError(t, writer.Exec("UPDATE pushing SET dirty = 1"))
	held, err := s.hold(t.Context())
	require.NoError(t, err)
	require.False(t, held)
	require.False(t, s.held.Load())
	require.Empty(t, s.tokens)
	for _, p := range s.slots {
		require.False(t, p.idle.tx.open, "nobody would end it")
	}
	require.NoError(t, writer.Exec("INSERT INTO t VALUES (2)"))
	require.EqualValues(t, 2, valueOf(t, s))
}

// TestAHoldWithoutAllConnectionsHoldsNothing: one is missing, or in use for too long.
func TestAHoldWithoutAllConnectionsHoldsNothing(t *testing.T) {
	s, _ := openWatched(t, pushingTable)
	c, err := s.acquire(t.Context())
	require.NoError(t, err)
	timeout := s.config.Timeout
	s.config.Timeout = time.Millisecond
	held, err := s.hold(t.Context())
	require.ErrorIs(t, err, ErrTimeout)
	s.config.Timeout = timeout
	require.False(t, held || s.held.Load())
	require.Len(t, s.tokens, 1, "that of the one in use")
	s.config.Timeout = time.Minute
	s.release(c, sqlite3.IOERR)
	require.NoError(t, os.Rename(s.config.Path, s.config.Path+".away"))
	held, err = s.hold(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist, "the one that broke can't be opened again")
	require.False(t, held || s.held.Load())
	require.Empty(t, s.tokens)
	require.NoError(t, os.Rename(s.config.Path+".away", s.config.Path))
	held, err = s.hold(t.Context())
	require.NoError(t, err)
	require.True(t, held, "it is opened again")
	for _, p := range s.slots {
		require.True(t, p.idle.tx.open)
	}
}

// TestAConnectionThatBreaksWhileHeldIsNotReplaced until the push has ended: a new one would see its records.
// Without any connection nothing is held any more.
func TestAConnectionThatBreaksWhileHeldIsNotReplaced(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	timeout := s.config.Timeout
	breakOne := func() {
		c, err := s.acquire(t.Context())
		require.NoError(t, err)
		s.release(c, sqlite3.IOERR)
	}
	for _, all := range []bool{false, true} {
		held, err := s.hold(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		before := valueOf(t, s)
		require.NoError(t, writer.Exec("INSERT INTO t SELECT max(v) + 1 FROM t"))
		breakOne()
		require.Equal(t, before, valueOf(t, s))
		c, err := s.acquire(t.Context())
		require.NoError(t, err)
		s.config.Timeout = time.Millisecond
		_, err = s.acquire(t.Context())
		require.ErrorIs(t, err, ErrTimeout, "one of two is left")
		s.config.Timeout = timeout
		s.release(c, nil)
		if all {
			breakOne()
			require.False(t, s.held.Load())
		}
		s.letGo()
		require.Empty(t, s.tokens)
		require.Equal(t, before+1, valueOf(t, s))
		both := make([]*connection, 2)
		for i := range both {
			both[i], err = s.acquire(t.Context())
			require.NoError(t, err)
		}
		for _, c := range both {
			s.release(c, nil)
		}
	}
}

// TestWhatIsHeldIsLetGo: by idle connections at once, by a busy one on release.
func TestWhatIsHeldIsLetGo(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	held, err := s.hold(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, writer.Exec("INSERT INTO t VALUES (2)"))
	for _, p := range s.slots {
		require.True(t, p.idle.tx.open)
		s.expire(p.idle) // its time is over, and it stays
		require.True(t, p.idle.tx.open)
	}
	require.EqualValues(t, 1, valueOf(t, s))
	require.EqualValues(t, 2, valueOf(t, newest{s}))
	used, err := s.acquire(t.Context())
	require.NoError(t, err)
	s.letGo()
	require.False(t, s.slots[1].idle.tx.open)
	require.True(t, used.tx.open, "its statement runs")
	s.release(used, nil)
	require.False(t, used.tx.open)
	require.EqualValues(t, 2, valueOf(t, s))
	s.letGo()
	require.True(t, s.slots[0].idle.tx.open, "nothing is held")
}

// TestATransactionThatBeganAfterOneExpiredLasts: else each statement would take the locks again.
func TestATransactionThatBeganAfterOneExpiredLasts(t *testing.T) {
	s, _ := openWatched(t, "")
	c, err := s.acquire(t.Context())
	require.NoError(t, err)
	s.expire(c)
	s.release(c, nil)
	require.False(t, c.tx.open)
	require.EqualValues(t, 1, valueOf(t, s))
	require.True(t, c.tx.open)
	require.EqualValues(t, 1, valueOf(t, s))
	require.True(t, c.tx.open)
}

// TestCachedResultsOutliveTheirTransaction while the database stays the same.
func TestCachedResultsOutliveTheirTransaction(t *testing.T) {
	s, writer := openWatched(t, "")
	query := func() string {
		var dst handler.Result
		require.NoError(t, s.Query(t.Context(), "SELECT ?1", []handler.Value{{Kind: handler.Text, Text: "a"}}, &dst))
		return dst.Values[0].Text
	}
	require.Equal(t, "a", query())
	c := s.slots[0].idle
	c.cache.results["a"].result.Values[0].Text = "cached"
	for range 3 {
		require.NoError(t, c.tx.leave())
		require.Equal(t, "cached", query())
	}
	require.NoError(t, writer.Exec("INSERT INTO t VALUES (2)"))
	require.NoError(t, c.tx.leave())
	require.Equal(t, "a", query())
}

// TestTheConnectionAsideIsOpenedAgain after it broke, for the same file alone, and not after Close.
func TestTheConnectionAsideIsOpenedAgain(t *testing.T) {
	s, writer := openWatched(t, "")
	require.EqualValues(t, 1, valueOf(t, newest{s}))
	s.fresh.close()
	s.fresh = nil
	require.NoError(t, writer.Exec("INSERT INTO t VALUES (2)"))
	require.EqualValues(t, 2, valueOf(t, newest{s}))
	require.Zero(t, s.fresh.tx.length)

	s.fresh.close()
	s.fresh = nil
	path := s.config.Path
	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.Rename(path+suffix, path+".away"+suffix))
	}
	other, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, other.Exec("CREATE TABLE t (v)"))
	require.NoError(t, other.Close())
	var dst handler.Result
	require.ErrorIs(t, newest{s}.Query(t.Context(), "SELECT 1", nil, &dst), ErrReplaced)
	require.NoError(t, s.Close())
	require.ErrorIs(t, newest{s}.Query(t.Context(), "SELECT 1", nil, &dst), ErrClosed)

	unwatched := openSmall(t, 1)
	require.ErrorIs(t, newest{unwatched}.Query(t.Context(), "SELECT 1", nil, &dst), ErrClosed)
}

// TestRowsOfAnEndpointAreClosed, whatever becomes of them: each keeps a connection.
func TestRowsOfAnEndpointAreClosed(t *testing.T) {
	s := openSmall(t, 1)
	db, err := driver.Open("file:" + s.config.Path + "?mode=ro")
	require.NoError(t, err)
	r := NewRemote(db, Config{MaxRows: 2, MaxBytes: 5})
	defer r.Close()
	var dst handler.Result
	for statement, want := range map[string]string{
		"SELECT v FROM t LIMIT 2": "", "SELECT v FROM t": ErrTooLarge.Error(), "SELECT 'longer', 1": ErrTooLarge.Error(),
		"SELECT 1.5": "column 0: the type float64 is not supported",
	} {
		err := r.Query(t.Context(), statement, nil, &dst)
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want, statement)
		}
		require.Zero(t, db.Stats().InUse, statement)
	}
}

// TestASuspectStatementIsForgottenWithItsFile when an undamaged file replaces it.
func TestASuspectStatementIsForgottenWithItsFile(t *testing.T) {
	damaged, whole := openSmall(t, 1), accessFile(t, "")
	r, _ := replicaAt(time.Unix(1000, 0), view{}, nil)
	r.config.File = whole
	before := &view{file: damaged, suspect: &failedStatement{statement: "SELECT v FROM t", err: sqlite3.CORRUPT}}
	next := &view{file: before.file, suspect: before.suspect}
	damaged.config.Path = whole // where another file is now
	_, err := r.checkFile(before, next)
	require.NoError(t, err)
	require.NotSame(t, damaged, next.file)
	require.Nil(t, next.suspect)
	require.NoError(t, next.file.Close())
}

// TestAHoldIsNotHeldUpByAConnectionThatBreaks while it waits for all connections: lookups would wait too.
func TestAHoldIsNotHeldUpByAConnectionThatBreaks(t *testing.T) {
	s, _ := openWatched(t, pushingTable)
	c, err := s.acquire(t.Context())
	require.NoError(t, err)
	held := make(chan bool)
	go func() {
		got, err := s.hold(t.Context())
		held <- got && err == nil
	}()
	require.Eventually(t, func() bool { return len(s.tokens) == cap(s.tokens) }, time.Minute, time.Millisecond, "it has all others")
	s.release(c, sqlite3.IOERR)
	require.True(t, <-held)
	for _, p := range s.slots {
		require.True(t, p.idle.tx.open)
	}
}

// TestAPushIsNotOverBecauseItsStateCannotBeRead: answers would mix its records with those of the release before.
func TestAPushIsNotOverBecauseItsStateCannotBeRead(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	r := &Replica{config: ReplicaConfig{Log: slog.New(slog.DiscardHandler)}}
	r.followPush(&view{file: s, endpoint: errMissing})
	require.True(t, s.held.Load())
	require.NoError(t, writer.Exec("INSERT INTO t VALUES (2); ALTER TABLE pushing RENAME TO mislaid"))
	r.followPush(&view{file: s, endpoint: errMissing})
	require.True(t, s.held.Load())
	require.EqualValues(t, 1, valueOf(t, s))
	require.NoError(t, writer.Exec("ALTER TABLE mislaid RENAME TO pushing; UPDATE pushing SET release = ''"))
	r.followPush(&view{file: s, endpoint: errMissing})
	require.EqualValues(t, 2, valueOf(t, s))
}

// TestAStatementBesideTheHeldOnesHasATimeout, too.
func TestAStatementBesideTheHeldOnesHasATimeout(t *testing.T) {
	s, _ := openWatched(t, pushingTable)
	s.config.Timeout = 20 * time.Millisecond
	const long = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000000) SELECT count(*) FROM n"
	require.ErrorIs(t, newest{s}.Query(t.Context(), long, nil, new(handler.Result)), sqlite3.INTERRUPT)
	s.config.Timeout = time.Minute
	require.EqualValues(t, 1, valueOf(t, newest{s}), "the next one goes on")
}
