package sqld_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

const large = "INSERT INTO probe WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) SELECT n, randomblob(2000) FROM c"

// TestAReplicasLogIsEmptied, while the replica goes on to write it: it has every row afterwards, and did not
// copy its database anew.
func TestAReplicasLogIsEmptied(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER, filler BLOB)")
	log := &testkit.Log{}
	replica := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t), Primary: "http://" + primary.GRPC, Relay: true, Log: log})
	near := sqldtest.Open(t, replica)
	has := func(rows int) {
		t.Helper()
		require.Eventually(t, func() bool {
			var n int
			err := near.QueryRow("SELECT count(*) FROM probe").Scan(&n)
			return err == nil && n == rows
		}, time.Minute, 20*time.Millisecond)
	}
	has(0)
	file := sqld.File(replica.Dir)
	edge, err := schema.OpenReadOnly(file) // while somebody has the file open, sqld does not remove the log
	require.NoError(t, err)
	defer edge.Close()
	require.NoError(t, edge.Ping())
	before, err := os.Stat(file)
	require.NoError(t, err)
	short := func() {
		t.Helper()
		require.Eventually(t, func() bool { return logSize(t, file) <= 1<<20 }, time.Minute, 20*time.Millisecond)
	}
	sqldtest.Exec(t, primary, large) // one transaction
	has(5000)
	short()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "emptied the write-ahead log") }, time.Minute, 20*time.Millisecond)

	const more = 5
	db := sqldtest.Open(t, primary)
	for range more {
		_, err := db.Exec("INSERT INTO probe SELECT n, zeroblob(5000) FROM probe LIMIT 1000")
		require.NoError(t, err)
	}
	has(5000 + 1000*more)
	short()
	after, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "the database was copied anew: %s", log)
	require.NotContains(t, log.String(), "corruption")
	var sound string
	require.NoError(t, edge.QueryRow("PRAGMA integrity_check").Scan(&sound))
	require.Equal(t, "ok", sound)
}

func logSize(t testing.TB, file string) int64 {
	t.Helper()
	info, err := os.Stat(file + "-wal")
	require.NoError(t, err)
	return info.Size()
}

// TestALogThatIsReadIsLeft as it is, and so is a small one.
func TestALogThatIsReadIsLeft(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	freed, err := sqld.EmptyLog(file, 0)
	require.NoError(t, err)
	require.Zero(t, freed, "without a database")
	db, err := schema.OpenFile(file)
	require.NoError(t, err)
	defer db.Close()
	writer, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer writer.Close()
	exec := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			_, err := writer.ExecContext(t.Context(), s)
			require.NoError(t, err)
		}
	}
	exec("CREATE TABLE probe (n INTEGER, filler BLOB)", "PRAGMA wal_autocheckpoint = 0", large)
	size := logSize(t, file)
	require.Greater(t, size, int64(8<<20))

	freed, err = sqld.EmptyLog(file, size)
	require.NoError(t, err)
	require.Zero(t, freed)
	edge, err := schema.OpenReadOnly(file)
	require.NoError(t, err)
	defer edge.Close()
	reader, err := edge.Begin()
	require.NoError(t, err)
	var n int
	require.NoError(t, reader.QueryRow("SELECT count(*) FROM probe").Scan(&n))
	exec("INSERT INTO probe VALUES (0, NULL)")
	size = logSize(t, file)
	_, err = sqld.EmptyLog(file, 0)
	require.ErrorIs(t, err, sqld.ErrLogInUse)
	require.Equal(t, size, logSize(t, file))
	require.NoError(t, reader.Rollback())

	freed, err = sqld.EmptyLog(file, 0)
	require.NoError(t, err)
	require.Equal(t, size, freed)
	require.Zero(t, logSize(t, file))
	require.NoError(t, db.QueryRow("SELECT count(*) FROM probe").Scan(&n))
	require.Equal(t, 5001, n)
}

// TestALogIsEmptiedAndNotRemoved: the last connection to a database removes the log by its name, which may be that of
// another database by then.
func TestALogIsEmptiedAndNotRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, unused := filepath.Join(dir, "data"), filepath.Join(dir, "copy")
	db, err := schema.OpenFile(file)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE probe (n INTEGER, filler BLOB); " + large)
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		content, err := os.ReadFile(file + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(unused+suffix, content, 0o600))
	}
	freed, err := sqld.EmptyLog(unused, 0)
	require.NoError(t, err)
	require.Positive(t, freed)
	require.Zero(t, logSize(t, unused))
}
