package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/schema"
)

// openDamaged opens a database whose table t can't be read, and whose table u can.
func openDamaged(t *testing.T) *Store {
	t.Helper()
	return openDamagedBy(t, "CREATE TABLE t (v); CREATE TABLE u (v); INSERT INTO t VALUES (1); INSERT INTO u VALUES (2)")
}

// openDamagedBy opens a database made by a script, whose first table can't be read.
func openDamagedBy(t *testing.T, script string) *Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, writer.Exec("PRAGMA page_size = 4096;"+script))
	require.NoError(t, writer.Close())
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte(strings.Repeat("\xff", 4096)), 4096)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	s, err := Open(Config{Path: path, Connections: 1})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestASuspectStatementStaysUntilItRuns: the file is not read meanwhile.
func TestASuspectStatementStaysUntilItRuns(t *testing.T) {
	r, _ := replicaAt(time.Unix(1000, 0), view{}, nil)
	file := openDamaged(t)
	for statement, damaged := range map[string]bool{"SELECT v FROM t": true, "SELECT v FROM u": false, "SELECT v FROM gone": false} {
		before := &view{file: file, suspect: &failedStatement{statement: statement, err: sqlite3.CORRUPT}}
		next := &view{file: file, suspect: before.suspect}
		err := r.retrySuspect(before, next)
		require.Equal(t, damaged, err != nil, statement)
		require.Equal(t, damaged, next.suspect != nil, statement)
	}
}

// TestDamageIsLoggedOnce, and statements go to the endpoint if that can be read.
func TestDamageIsLoggedOnce(t *testing.T) {
	endpoint := &scripted{values: []handler.Value{{Kind: handler.Integer, Int: 7}}}
	r, log := replicaAt(time.Unix(1000, 0), view{file: openDamaged(t)}, endpoint)
	var dst handler.Result
	require.NoError(t, r.Query(t.Context(), "SELECT v FROM t", nil, &dst))
	require.EqualValues(t, 7, dst.Values[0].Int)
	require.True(t, r.Remote())
	require.ErrorIs(t, r.Ready(0), sqlite3.CORRUPT)
	require.Equal(t, 1, strings.Count(log.String(), "file is damaged"))
	v := r.view.Load()
	require.Equal(t, "SELECT v FROM t", v.suspect.statement)
	r.reportCorrupt(v, "SELECT v FROM t", nil, sqlite3.CORRUPT)
	require.Equal(t, 1, strings.Count(log.String(), "file is damaged"))

	alone, _ := replicaAt(time.Unix(1000, 0), view{file: openDamaged(t), endpoint: errMissing}, nil)
	require.ErrorIs(t, alone.Query(t.Context(), "SELECT v FROM t", nil, &dst), sqlite3.CORRUPT)
	require.False(t, alone.Remote(), "there is nothing else to read")
}

// TestTheEndpointIsNotAskedForWhatWouldFailThereToo, nor for a caller that has gone.
func TestTheEndpointIsNotAskedForWhatWouldFailThereToo(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	const endless = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
	for name, c := range map[string]struct {
		ctx       context.Context
		statement string
		asked     int
	}{
		"a good one":               {t.Context(), "SELECT v FROM t", 0},
		"a large result":           {t.Context(), "SELECT 1 FROM t, t, t, t", 0},
		"a long one":               {t.Context(), endless, 0},
		"a caller that has gone":   {gone, endless, 0},
		"a failure of the file":    {t.Context(), "SELECT v FROM gone", 1},
		"a failure without caller": {gone, "SELECT v FROM gone", 0},
	} {
		file := openSmall(t, 1)
		file.config.MaxRows, file.config.Timeout = 10, time.Minute
		if c.statement == endless {
			file.config.Timeout = 20 * time.Millisecond
		}
		endpoint := &scripted{}
		r, _ := replicaAt(time.Unix(1000, 0), view{file: file}, endpoint)
		var dst handler.Result
		_ = r.Query(c.ctx, c.statement, nil, &dst)
		require.Equal(t, c.asked, endpoint.asked, name)
	}
}

// TestAStatementGoesOnWithTheNextFile: the one that it began with was closed.
func TestAStatementGoesOnWithTheNextFile(t *testing.T) {
	before, next := openSmall(t, 1), openSmall(t, 1)
	require.NoError(t, before.Close())
	endpoint := &scripted{}
	r, _ := replicaAt(time.Unix(1000, 0), view{file: before}, endpoint)
	var dst handler.Result
	require.NoError(t, r.Query(t.Context(), "SELECT v FROM t", nil, &dst))
	require.Equal(t, 1, endpoint.asked, "no other file was opened")
	before.config.Now = func() time.Time { // Refresh comes between
		r.view.Store(&view{file: next})
		return time.Now()
	}
	require.NoError(t, r.Query(t.Context(), "SELECT v FROM t", nil, &dst))
	require.Equal(t, 3, dst.Rows())
	require.Equal(t, 1, endpoint.asked)
}

// TestAHoldEndsWhenTheLogGrowsTooLarge: it would fill the disk.
func TestAHoldEndsWhenTheLogGrowsTooLarge(t *testing.T) {
	s, writer := openWatched(t, pushingTable)
	file, err := os.Stat(s.config.Path)
	require.NoError(t, err)
	log, err := os.Stat(s.config.Path + "-wal")
	require.NoError(t, err)
	require.Equal(t, log.Size()-file.Size(), s.logBytes())
	r, said := replicaAt(time.Unix(1000, 0), view{file: s}, nil)
	r.config.Database = schema.Registry
	r.followPush(&view{file: s, endpoint: errMissing})
	require.True(t, s.held.Load())
	require.NoError(t, os.Truncate(s.config.Path+"-wal", file.Size()+holdBytes))
	r.followPush(&view{file: s, endpoint: errMissing})
	require.True(t, s.held.Load())
	require.NoError(t, os.Truncate(s.config.Path+"-wal", file.Size()+holdBytes+1))
	for range 2 {
		r.followPush(&view{file: s, endpoint: errMissing})
		require.False(t, s.held.Load())
	}
	require.Equal(t, 1, strings.Count(said.String(), "grown too large"))
	require.NoError(t, os.Truncate(s.config.Path+"-wal", log.Size()))
	require.NoError(t, writer.Exec("UPDATE pushing SET release = ''"))
	r.followPush(&view{file: s, endpoint: errMissing})
	require.False(t, r.mixed, "the next push is held again")
	require.NoError(t, os.Remove(s.config.Path))
	require.Zero(t, s.logBytes())
}

// TestAResultOfAnEndpointIsBoundedOverAllItsRows.
func TestAResultOfAnEndpointIsBoundedOverAllItsRows(t *testing.T) {
	s := openSmall(t, 1)
	db, err := driver.Open("file:" + s.config.Path + "?mode=ro")
	require.NoError(t, err)
	r := NewRemote(db, Config{MaxBytes: 9})
	defer r.Close()
	var dst handler.Result
	require.NoError(t, r.Query(t.Context(), "SELECT 'abc', 1 FROM t", nil, &dst))
	require.ErrorIs(t, r.Query(t.Context(), "SELECT 'abcd' FROM t", nil, &dst), ErrTooLarge)
}
