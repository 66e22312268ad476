package sqlite_test

import (
	"os"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
)

// count returns how many people the store sees.
func count(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	var result handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT count(*) FROM person", nil, &result))
	return result.Values[0].Int
}

func TestReadTransactionSeesOneStateUntilItExpires(t *testing.T) {
	path, writer := newFile(t, people)
	now := time.Unix(1000, 0)
	s := open(t, sqlite.Config{Path: path, Connections: 1, ReadTx: time.Hour, Now: func() time.Time { return now }})
	require.EqualValues(t, 3, count(t, s))
	require.NoError(t, writer.Exec("INSERT INTO person (id) VALUES (4)"))
	require.EqualValues(t, 3, count(t, s))
	now = now.Add(time.Hour)
	require.EqualValues(t, 3, count(t, s))
	now = now.Add(1)
	require.EqualValues(t, 4, count(t, s))
}

func TestIdleConnectionDoesNotBlockCheckpoints(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 1, ReadTx: time.Millisecond})
	require.EqualValues(t, 3, count(t, s))
	require.NoError(t, writer.Exec("INSERT INTO person (id) VALUES (4)"))
	require.Eventually(t, func() bool {
		busy, _, err := writer.Prepare("PRAGMA wal_checkpoint(TRUNCATE)")
		require.NoError(t, err)
		defer busy.Close()
		require.True(t, busy.Step())
		return busy.ColumnInt(0) == 0
	}, time.Minute, time.Millisecond)
	require.EqualValues(t, 4, count(t, s))
}

// emptyLog has the owner empty its WAL, which fails while a reader is in an older state.
func emptyLog(t *testing.T, path string, writer *sqlite3.Conn) {
	t.Helper()
	checkpoint, _, err := writer.Prepare("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	defer checkpoint.Close()
	require.True(t, checkpoint.Step(), "%v", checkpoint.Err())
	require.Zero(t, checkpoint.ColumnInt(0), "a reader is in the way")
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	require.Zero(t, info.Size())
}

func TestBusyStoreDoesNotBlockCheckpoints(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 2, ReadTx: time.Millisecond})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		var result handler.Result
		for {
			select {
			case <-stop:
				return
			default:
				_ = s.Query(t.Context(), "SELECT name FROM person", nil, &result)
			}
		}
	}()
	require.NoError(t, writer.BusyTimeout(10*time.Second))
	for range 20 {
		require.NoError(t, writer.Exec("UPDATE person SET name = 'Ravi' WHERE id = 2"))
		emptyLog(t, path, writer)
	}
	close(stop)
	<-stopped
	var result handler.Result
	require.NoError(t, s.Query(t.Context(), "SELECT name FROM person WHERE id = 2", nil, &result))
}

func TestStatementsCannotBeginTransactions(t *testing.T) {
	path, _ := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, ReadTx: time.Hour})
	var result handler.Result
	for _, statement := range []string{"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a"} {
		require.Error(t, s.Query(t.Context(), statement, nil, &result), statement)
	}
	require.EqualValues(t, 3, count(t, s))
}
