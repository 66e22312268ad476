package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
)

// openSmall opens a database of one table of three rows.
func openSmall(t *testing.T, connections int) *Store {
	path := t.TempDir() + "/some.db"
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, writer.Exec("CREATE TABLE t (v); INSERT INTO t VALUES (1), (2), (3)"))
	require.NoError(t, writer.Close())
	s, err := Open(Config{Path: path, Connections: connections})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestTheFirstConnectionIsUsedFirst, since the first connections have large page caches.
func TestTheFirstConnectionIsUsedFirst(t *testing.T) {
	s := openSmall(t, 4)
	var used [3]*connection
	for n := range used {
		c, err := s.acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, c.slot)
		used[n] = c
	}
	for _, n := range []int{1, 0, 2} {
		s.release(used[n], nil)
	}
	first, err := s.acquire(t.Context())
	require.NoError(t, err)
	require.Same(t, used[0], first)
	second, err := s.acquire(t.Context())
	require.NoError(t, err)
	require.Same(t, used[1], second)
	s.release(first, sqlite3.IOERR) // breaks the connection
	s.release(second, nil)
	again, err := s.acquire(t.Context())
	require.NoError(t, err)
	require.Zero(t, again.slot)
	require.NotSame(t, first, again)
	s.release(again, nil)

	const large = 5 << 30
	sizes := make([]int, 5)
	for at := range sizes {
		sizes[at] = Config{Connections: len(sizes)}.cacheKiB(at, large)
	}
	require.Equal(t, []int{48 << 10, 48 << 10, 6 << 10, 6 << 10, 6 << 10}, sizes)
	require.Equal(t, 48<<10, Config{Connections: 1}.cacheKiB(0, large))
	require.Equal(t, 3<<10, Config{Connections: 2}.cacheKiB(0, 1<<20))
}

// TestAConnectionThatCannotBeMadeLeavesItsSlot and its token for later statements.
func TestAConnectionThatCannotBeMadeLeavesItsSlot(t *testing.T) {
	s := openSmall(t, 2)
	first, err := s.acquire(t.Context())
	require.NoError(t, err)
	path := s.config.Path
	require.NoError(t, os.Rename(path, path+".away"))
	for range 4 {
		_, err = s.acquire(t.Context())
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.NoError(t, os.Rename(path+".away", path))
	second, err := s.acquire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, second.slot)
	s.release(second, nil)
	s.release(first, nil)
	require.Empty(t, s.tokens)
}

func TestAStatementIsCompiledOnce(t *testing.T) {
	s := openSmall(t, 1)
	const limited = "SELECT v FROM t LIMIT ?1"
	for n := range int64(4) {
		var dst handler.Result
		require.NoError(t, s.Query(t.Context(), limited, []handler.Value{{Kind: handler.Integer, Int: n}}, &dst))
		require.EqualValues(t, n, dst.Rows())
	}
	statement := s.slots[0].idle.statements[limited]
	require.Zero(t, statement.Status(sqlite3.STMTSTATUS_REPREPARE, false))
	require.NoError(t, s.Query(t.Context(), "SELECT 1", nil, new(handler.Result)))
	require.Same(t, statement, s.slots[0].idle.statements[limited], "another one leaves it")
}

// TestARefreshOfTheSameFileKeepsItsConnections, whose page caches are warm.
func TestARefreshOfTheSameFileKeepsItsConnections(t *testing.T) {
	s := openSmall(t, 1)
	c := s.slots[0].idle
	require.NotNil(t, c)
	require.NoError(t, s.Refresh())
	require.Same(t, c, s.slots[0].idle)
}

// TestPreparedStatementsAreBounded: a component that sends ever new texts must not fill the memory.
func TestPreparedStatementsAreBounded(t *testing.T) {
	s := openSmall(t, 1)
	var dst handler.Result
	for i := range 5 * maxStatements {
		require.NoError(t, s.Query(t.Context(), "SELECT 1 "+strings.Repeat(" ", i), nil, &dst))
		c := s.slots[0].idle
		require.LessOrEqual(t, len(c.statements), maxStatements)
		open := 0 // not only in the cache: one that was not closed keeps its memory
		for range c.sqlite.Stmts() {
			open++
		}
		require.LessOrEqual(t, open, maxStatements+3, "with those of the transactions")
	}
}

func TestResultCacheIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer writer.Close()
	require.NoError(t, writer.Exec("PRAGMA journal_mode=wal; CREATE TABLE t (a)"))
	s, err := Open(Config{Path: path, Connections: 1, ReadTx: time.Hour, CacheResults: true})
	require.NoError(t, err)
	defer s.Close()
	query := func(statement, text string) map[string]cachedResult {
		var result handler.Result
		require.NoError(t, s.Query(t.Context(), statement, []handler.Value{{Kind: handler.Text, Text: text}}, &result))
		return s.slots[0].idle.cache.results
	}
	require.Len(t, query("SELECT ?1", "a"), 1)
	require.Len(t, query("SELECT ?1", "a"), 1, "cached already")
	require.Len(t, query("SELECT ?1 WHERE false", "b"), 1, "no rows")
	require.Len(t, query("SELECT ?1 || zeroblob(1000)", "c"), 1, "too long")
	for i := range 2 * maxCachedResults {
		require.LessOrEqual(t, len(query("SELECT ?1", fmt.Sprint(i))), maxCachedResults)
	}
	require.Len(t, query("SELECT ?1", "a"), maxCachedResults)
}

// TestACallerWaitsForAConnectionNoLongerThanAStatementMayTake, and not at all for one that is free.
func TestACallerWaitsForAConnectionNoLongerThanAStatementMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{tokens: make(chan struct{}, 1), config: Config{Timeout: 7 * time.Second}}
		began := time.Now()
		require.NoError(t, s.takeToken(t.Context()))
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, s.takeToken(t.Context()), ErrTimeout)
		require.Equal(t, 7*time.Second, time.Since(began))
	})
}

// TestResultsAreNotTakenUncompared: the transaction goes on when the database's version could not be read, and a revoked key would
// be good in it.
func TestResultsAreNotTakenUncompared(t *testing.T) {
	db, err := sqlite3.Open(":memory:")
	require.NoError(t, err)
	defer db.Close()
	c, err := newResultCache(db)
	require.NoError(t, err)
	key, _ := c.key("SELECT ?1", []handler.Value{{Kind: handler.Text, Text: "a key"}})
	c.put(key, &handler.Result{Columns: 1, Values: []handler.Value{{Kind: handler.Integer, Int: 1}}})
	var got handler.Result
	require.True(t, c.get(key, &got))
	require.NoError(t, c.version.Close())
	c.version, _, err = db.Prepare("SELECT abs(-9223372036854775808)")
	require.NoError(t, err)
	defer c.close()
	require.ErrorContains(t, c.begin(), "overflow")
	require.False(t, c.get(key, &got))
}

// TestAConnectionWithoutTransactionsIsRefused: it would go on with statements that do not exist.
func TestAConnectionWithoutTransactionsIsRefused(t *testing.T) {
	about, err := os.Stat(".")
	require.NoError(t, err)
	for _, missing := range []string{"BEGIN", "COMMIT"} {
		opened, err := sqlite3.Open(":memory:")
		require.NoError(t, err)
		require.NoError(t, opened.SetAuthorizer(func(action sqlite3.AuthorizerActionCode, name, _, _, _ string) sqlite3.AuthorizerReturnCode {
			if action == sqlite3.AUTH_TRANSACTION && name == missing {
				return sqlite3.AUTH_DENY
			}
			return sqlite3.AUTH_OK
		}))
		c := &connection{sqlite: opened, file: about, limit: &timeLimit{}}
		require.ErrorIs(t, c.setUp(Config{}), sqlite3.AUTH, missing)
		require.NoError(t, c.close())
	}
}
